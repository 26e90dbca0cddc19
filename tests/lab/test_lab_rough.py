"""A run whose guests go wrong in every way goes on to its end, and its results are whole."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import slices

from verbs_reports.results import read

AGENT = Path(__file__).parent / "agents" / "rough_guest.py"

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="six guests: tox -e lab-all")

HEALTHY = ("--select", "reg/*")
"""They come before the others; one guest is ended while they run."""

# Each program at which the agent goes wrong: its verdict, and what is said of the guest.
ROUGH = {
    "regress/unknown-state": ("fail", "Kernel panic - not syncing: sysrq triggered crash"),
    "regress/page-no-power-of-two": ("fail", "the agent's call does not come back"),
    "regress/page-too-small": ("error", "ended with status 3"),
    "regress/offset-in-first-page": ("error", "not JSON"),
}


def end_a_guest(run: subprocess.Popen[str], results: Path) -> None:
    """Once the first program has been judged, end the emulator."""
    until = time.monotonic() + 600
    while not (results.exists() and results.read_bytes().count(b"\n") > 1):  # the header's line, and a program's
        assert run.poll() is None
        assert time.monotonic() < until, "no program has been judged"
        time.sleep(0.02)
    guests = [pid for pid in slices.descendants(run.pid) if slices.is_guest(pid)]
    assert len(guests) == 1
    os.kill(guests[0], signal.SIGKILL)


def test_a_run_outlives_its_guests(tmp_path: Path) -> None:
    selected = [word for program in ROUGH for word in ("--select", program)]
    words = slices.command(tmp_path, "-o", f"agent={AGENT}", "-o", "deadline=10", *HEALTHY, *selected)

    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        end_a_guest(run, tmp_path / "results.jsonl")
        said, _ = run.communicate()

    assert run.returncode == 3, said
    results = read(tmp_path / "results.jsonl")
    assert results.footer is not None
    assert (results.footer.exit_code, results.footer.verdict) == (3, "error")
    assert results.footer.programs == len(results.programs)
    for program in results.programs:
        if program.name in ROUGH:
            verdict, message = ROUGH[program.name]
            assert program.verdict == verdict
            assert program.trouble is not None
            assert message in program.trouble.message
            assert "console:" in program.trouble.evidence or "not JSON" in message
    healthy = [p for p in results.programs if p.name not in ROUGH]
    ended = [p for p in healthy if p.trouble is not None]
    assert len(results.programs) == len(healthy) + len(ROUGH)
    assert [p.verdict for p in healthy if p not in ended] == ["pass"] * (len(healthy) - 1)
    assert [(p.verdict, p.trouble.whose) for p in ended if p.trouble is not None] == [("error", "glue")]
    assert "the guest is gone" in slices.Slice(run.returncode, said, results).troubles[0]
