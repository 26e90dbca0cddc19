"""The slice judged on soft-RoCE, over kernel verbs and over user verbs; features are in test_lab_features."""

from __future__ import annotations

import pytest
import slices

APIS = {"linux-kernel": "rxe_6_1", "linux-user": "rxe_6_1_user"}
"""Each API with what is on record of it."""


@pytest.fixture(scope="module", params=APIS)
def rxe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> slices.Slice:
    """One run on the default guest."""
    selected = slices.of_features(wanted=False) if request.param == slices.FEATURES_OF else slices.NO_SWEEP
    return slices.run(tmp_path_factory.mktemp("rxe"), "-o", f"api={request.param}", *selected, rounds=slices.ROUNDS)


def test_the_run_is_whole_and_nothing_of_ours_broke(rxe: slices.Slice) -> None:
    assert rxe.results.footer is not None, rxe.output
    assert rxe.troubles == []
    assert rxe.results.header.device.kernel.startswith(("6.1.", "Linux 6.1."))
    assert rxe.results.header.api in APIS


def test_it_fails_as_the_driver_has_defects(rxe: slices.Slice) -> None:
    assert rxe.code == 1, rxe.output
    assert rxe.results.footer is not None
    assert (rxe.results.footer.verdict, rxe.results.footer.exit_code) == ("fail", 1)


def test_nine_of_ten_rules_certainly_fired(rxe: slices.Slice) -> None:
    fired, silent = rxe.fired()

    assert len(fired) >= 30
    assert len(fired) >= 9 * len(silent), f"did not fire: {[r.rule for r in silent]}"


def test_for_each_rule_that_did_not_fire_there_is_a_reason(rxe: slices.Slice) -> None:
    _, silent = rxe.fired()
    reasons = slices.unfired(APIS[rxe.results.header.api])

    for rule in silent:
        assert rule.rule in reasons or rule.verdict == "choice", f"no reason is on record for {rule.rule}"
    assert set(reasons) <= {rule.rule for rule in silent}, "some of these fire now"


def test_the_driver_differs_where_it_is_known_to(rxe: slices.Slice) -> None:
    differences = slices.known(APIS[rxe.results.header.api])
    explained = {program for programs in differences.values() for program in programs}

    assert rxe.failing - explained == set(), "programs that fail and are not on record"
    for difference, programs in differences.items():
        assert rxe.failing & set(programs), f"{difference} does not show any more"


def test_known_defects_come_out_by_themselves(rxe: slices.Slice) -> None:
    """Over kernel verbs: rxe does not compare protection domains where a region is invalidated (facts G12).

    Over user verbs, which have no such request: it does not flush a receive that is posted in ERR.
    """
    program, rule = {
        "linux-kernel": ("regress/foreign-invalidation", "inv/foreign"),
        "linux-user": ("regress/user-posted-in-error-receive", "rq/flushed"),
    }[rxe.results.header.api]
    failures = {p.name: p.failure for p in rxe.results.programs if p.failure is not None}

    assert rule in failures[program].suspects
