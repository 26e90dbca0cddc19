"""A guest that gets half of the processor's time is judged as one that gets all of it; nothing is built for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import slices

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="two runs, one at half speed: tox -e lab-all")

PATTERNS = ("reg/*", "inv/*", "send/*", "regress/*flush*", "regress/*peer*")
SELECTED = ["-o", "boot_deadline=600", *(word for pattern in PATTERNS for word in ("--select", pattern))]
"""What works in the background, and a start that may take long on a machine which has other things to do as well."""

SLICE = 0.05
"""Seconds for which the guest runs, and for which it then stands still."""


@contextmanager
def half_speed() -> Iterator[list[int]]:
    """Let every guest that this process's descendants start run half of the time; the list counts the stops."""
    over = threading.Event()
    stops: list[int] = []

    def stop_and_go() -> None:
        while not over.wait(SLICE):
            guests = [pid for pid in slices.descendants(os.getpid()) if slices.is_guest(pid)]
            with suppress(ProcessLookupError):
                for pid in guests:
                    os.kill(pid, signal.SIGSTOP)
            over.wait(SLICE)
            for pid in guests:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            stops.extend(guests)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield stops
    finally:
        over.set()
        thread.join()


def test_half_the_speed_gives_the_same_verdicts(tmp_path: Path) -> None:
    whole = slices.run(tmp_path / "whole", *SELECTED)
    with half_speed() as stops:
        half = slices.run(tmp_path / "half", *SELECTED)

    assert not [line for line in half.output.splitlines() if line.startswith("lab: ")], "something was made"
    assert half.results.footer is not None
    assert len(stops) * SLICE > half.results.footer.seconds / 8, "the guest was not slowed"
    assert half.troubles == whole.troubles == []
    assert half.code == whole.code
    assert half.verdicts == whole.verdicts
