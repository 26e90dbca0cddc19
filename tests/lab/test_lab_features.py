"""The features, judged on soft-RoCE over user verbs: each difference is on record and has a waiver."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices

from verbs_conformance.target import load
from verbs_spec.profiles import features

RECORD = "rxe_6_1_features"
WAIVERS = Path(__file__).parents[2] / "reports/published/waivers/rxe.yaml"

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="400 programs: tox -e lab-all")


@pytest.fixture(scope="module")
def rxe(tmp_path_factory: pytest.TempPathFactory) -> slices.Slice:
    """One run of all programs that need a feature, with the waivers."""
    out = tmp_path_factory.mktemp("features")
    selected = slices.of_features(wanted=True)
    return slices.run(out, "-o", "api=linux-user", "--waivers", str(WAIVERS), *selected)


def test_each_feature_but_the_drafts_is_judged(rxe: slices.Slice) -> None:
    spec = load()

    assert rxe.results.footer is not None, rxe.output
    assert set(rxe.results.header.features) == {f for f in features(spec) if not spec.profiles[f].draft} - {
        "two-devices"
    }


def test_each_program_runs(rxe: slices.Slice) -> None:
    assert len(rxe.results.programs) * 2 > len(slices.of_features(wanted=True)) * 0.9
    assert [p.name for p in rxe.results.programs if p.trouble is not None] == slices.known(RECORD)["crashes"]


def test_the_driver_differs_where_it_is_known_to(rxe: slices.Slice) -> None:
    waived = {p.name for p in rxe.results.programs if p.verdict == "waived"}
    told = [w for w in rxe.results.waivers if w.verdict == "waived"]

    assert rxe.failing == set(slices.known(RECORD)["crashes"]), "programs that fail and that no waiver is for"
    assert waived == set(slices.known(RECORD)["waived"])
    assert {w.verdict for w in rxe.results.waivers} == {"waived"}, [w for w in rxe.results.waivers if w not in told]


def test_for_each_rule_that_did_not_fire_there_is_a_reason(rxe: slices.Slice) -> None:
    _, silent = rxe.fired()
    reasons = slices.unfired(RECORD)

    for rule in silent:
        assert rule.rule in reasons or rule.verdict in {"choice", "waived"}, f"no reason is on record for {rule.rule}"
