"""The features, judged on soft-RoCE over user verbs: each difference is on record and has a waiver."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices

from verbs_conformance.target import load
from verbs_spec.profiles import features

RECORD = "rxe_6_1_features"
WAIVERS = Path(__file__).parents[2] / "reports/published/waivers/rxe.yaml"

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="600 programs: tox -e lab-all")


@pytest.fixture(scope="module")
def rxe(tmp_path_factory: pytest.TempPathFactory) -> slices.Slice:
    """One run of all programs that need a feature, and of the waivers' own."""
    out = tmp_path_factory.mktemp("features")
    return slices.run(out, "-o", "api=linux-user", "--waivers", str(WAIVERS), *slices.of_features(wanted=True))


def test_each_feature_but_the_drafts_is_judged(rxe: slices.Slice) -> None:
    spec = load()
    judged = {name for name in features(spec) if not spec.profiles[name].draft}

    assert rxe.results.footer is not None, rxe.output
    assert set(rxe.results.header.features) == judged - {"two-devices"}


def test_each_program_is_answered_but_those_that_take_their_process_down(rxe: slices.Slice) -> None:
    wanted = set(slices.of_features(wanted=True)) - {"--select"} - slices.of_other_devices()

    assert wanted <= {p.name for p in rxe.results.programs}
    assert {p.name for p in rxe.results.programs if p.trouble is not None} == set(slices.known(RECORD)["crashes"])


def test_the_driver_differs_where_it_is_known_to(rxe: slices.Slice) -> None:
    wanted = set(slices.of_features(wanted=True))
    waived = {p.name for p in rxe.results.programs if p.verdict == "waived"}

    assert rxe.failing == set(slices.known(RECORD)["crashes"]), "programs that fail and that no waiver is for"
    assert waived & wanted == set(slices.known(RECORD)["waived"])
    assert [w.waiver for w in rxe.results.waivers if w.verdict != "waived"] == []


def test_for_each_rule_that_did_not_fire_there_is_a_reason(rxe: slices.Slice) -> None:
    _, silent = rxe.fired()
    reasons = slices.unfired(RECORD)

    for rule in silent:
        assert rule.rule in reasons or rule.verdict in {"choice", "waived"}, f"no reason is on record for {rule.rule}"
