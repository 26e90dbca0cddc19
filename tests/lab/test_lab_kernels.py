"""The same slice on the other kernels and on soft-iWARP: what differs there is on record as well."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="other kernels: tox -e lab-all")

RECORD = "rxe_6_12"
"""Both kernels have the same differences, but 7.2 reports one of them itself."""


@pytest.mark.parametrize(
    ("kernel", "reports"),
    [("6.12", []), ("7.2", ["UBSAN: array-index-out-of-bounds", "drivers/infiniband/core/verbs.c"])],
)
def test_the_driver_differs_where_it_is_known_to(kernel: str, reports: list[str], tmp_path: Path) -> None:
    run = slices.run(tmp_path, "-o", f"kernel={kernel}")
    differences = slices.known(RECORD)
    explained = {program for programs in differences.values() for program in programs}
    fired, silent = run.fired()
    reporting = [p.name for p in run.results.programs if p.trouble is not None]

    assert run.results.header.device.kernel.startswith(f"{kernel}.")
    assert reporting == (differences["state-that-is-none"] if reports else [])
    assert all(part in trouble for trouble in run.troubles for part in reports)
    assert run.failing - explained == set(), "programs that fail and are not on record"
    for difference, programs in differences.items():
        assert run.failing & set(programs), f"{difference} does not show any more"
    assert len(fired) >= 9 * len(silent)


def test_soft_iwarp_differs_where_it_is_known_to(tmp_path: Path) -> None:
    run = slices.run(tmp_path, "-o", "kernel=6.12", "-o", "device=siw", "-o", "deadline=180")
    differences = slices.known("siw_6_12")
    explained = {program for programs in differences.values() for program in programs}
    fired, silent = run.fired()

    assert run.results.header.transport == "iwarp"
    assert run.failing - explained == set(), "programs that fail and are not on record"
    for difference, programs in differences.items():
        assert run.failing & set(programs), f"{difference} does not show any more"
    assert len(fired) >= 9 * len(silent)
    assert all("NULL pointer dereference" in trouble for trouble in run.troubles)


def test_a_key_byte_that_siw_does_not_compare_comes_out_by_itself(tmp_path: Path) -> None:
    """Facts G11."""
    run = slices.run(tmp_path, "-o", "device=siw", "--select", "regress/stale-key-invalidates")
    failures = [p.failure for p in run.results.programs if p.failure is not None]

    assert failures
    assert all("inv/stale" in failure.suspects for failure in failures)
