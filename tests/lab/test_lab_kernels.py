"""The same slice on the other kernels: what differs there is on record as well."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="other kernels: tox -e lab-all")


@pytest.mark.parametrize(("kernel", "record"), [("6.12", "rxe_6_12"), ("7.2", "rxe_6_12")])
def test_the_driver_differs_where_it_is_known_to(kernel: str, record: str, tmp_path: Path) -> None:
    run = slices.run(tmp_path, "-o", f"kernel={kernel}")
    explained = {program for programs in slices.known(record).values() for program in programs}
    fired, silent = run.fired()

    assert run.results.header.device.kernel.startswith(f"{kernel}.")
    assert run.troubles == []
    assert run.failing <= explained
    assert len(fired) >= 9 * len(silent)
