"""Our kernel module and the streams of iWARP: it refuses what cannot be, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices

from verbs_adapters.lab import oracle
from verbs_adapters.lab.adapter import tell
from verbs_adapters.lab.kernels import KERNELS

PROGRAM = Path(__file__).parent / "agents" / "rough_streams.py"

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="three more guests: tox -e lab-all")


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_streams_are_refused_or_made_and_all_is_given_back(kernel: str) -> None:
    found = oracle.ask(kernel, "siw", PROGRAM, tell)

    assert found["refusals"] == {
        "no queue pair": "EINVAL",
        "a buffer": "EINVAL",
        "itself": "EINVAL",
        "an address too long": "EINVAL",
        "too many reads": "EINVAL",
        "more reads than the device has": "ENOMEM",
        "a foreign address": "EADDRNOTAVAIL",
        "good": "0",
        "again": "EISCONN",
        "from a third": "EISCONN",
    }
    assert "0" not in found["in error"].values()
    assert found["closed"] > 0
    assert found["left"] == found["before"]
