"""The fast-registration slice judged on soft-RoCE, over kernel verbs."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices


@pytest.fixture(scope="module")
def rxe(tmp_path_factory: pytest.TempPathFactory) -> slices.Slice:
    """One run on the default guest."""
    return slices.run(tmp_path_factory.mktemp("rxe"))


def test_the_run_is_whole_and_nothing_of_ours_broke(rxe: slices.Slice) -> None:
    assert rxe.results.footer is not None, rxe.output
    assert rxe.troubles == []
    assert rxe.code in {1, 2}, rxe.output
    assert rxe.results.header.device.kernel.startswith("6.1.")
    assert rxe.results.header.api == "linux-kernel"


def test_nine_of_ten_rules_certainly_fired(rxe: slices.Slice) -> None:
    fired, silent = rxe.fired()

    assert len(fired) >= 30
    assert len(fired) >= 9 * len(silent), f"did not fire: {[r.rule for r in silent]}"


def test_the_driver_differs_where_it_is_known_to(rxe: slices.Slice) -> None:
    differences = slices.known("rxe_6_1.yaml")
    explained = {program for programs in differences.values() for program in programs}

    assert rxe.failing - explained == set(), "programs that fail and are not on record"
    for difference, programs in differences.items():
        assert rxe.failing & set(programs), f"{difference} does not show any more"


def test_known_defects_come_out_by_themselves(rxe: slices.Slice) -> None:
    """rxe does not compare protection domains where a region is invalidated: facts G12."""
    failures = {p.name: p.failure for p in rxe.results.programs if p.failure is not None}

    assert "inv/foreign" in failures["regress/foreign-invalidation"].suspects


def test_the_second_start_builds_nothing(tmp_path: Path) -> None:
    again = slices.run(tmp_path, "--select", "pd/*")

    assert "building" not in again.output
    assert "installing" not in again.output
    assert again.troubles == []
