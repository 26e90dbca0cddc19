"""Runs the slice in a guest as a user would, and reads what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import yaml

from verbs_reports.records import Rule
from verbs_reports.results import Results, read

EVERYTHING = os.environ.get("VERBSPEC_LAB") == "all"
"""Whether to take an hour, as `tox -e lab-all` does."""

# Directed and regression programs, in short all whose names do not begin with `sweep/`.
NO_SWEEP = ("--select", "[!s]*", "--select", "s[!w]*")


class Slice(NamedTuple):
    """One run."""

    code: int
    output: str
    results: Results

    @property
    def failing(self) -> set[str]:
        """The programs that did not pass."""
        return {p.name for p in self.results.programs if p.verdict in {"fail", "error", "inconclusive"}}

    @property
    def troubles(self) -> list[str]:
        """What kept programs from being answered."""
        return [p.trouble.message for p in self.results.programs if p.trouble is not None]

    def fired(self) -> tuple[list[Rule], list[Rule]]:
        """The applicable rules that certainly fired, and those that did not; a `may` demands nothing."""
        applicable = [r for r in self.results.rules if r.verdict != "unsupported" and r.level != "may"]
        return [r for r in applicable if r.fired], [r for r in applicable if not r.fired]


def run(out: Path, *arguments: str) -> Slice:
    """Run `verbspec run lab` with these arguments."""
    command = [sys.executable, "-m", "verbs_conformance.cli", "run", "lab", *arguments]
    command += ["--budget", "0s", *(() if "--select" in arguments else NO_SWEEP), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Slice(done.returncode, done.stdout + done.stderr, read(out / "results.jsonl"))


def known(name: str) -> dict[str, list[str]]:
    """The differences of a driver that are on record, each with the programs that show it."""
    found: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return found
