"""Runs the slice in a guest as a user would, and reads what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from verbs_conformance import program as programs
from verbs_conformance.target import load
from verbs_reports.records import Rule
from verbs_reports.results import Results, read

EVERYTHING = os.environ.get("VERBSPEC_LAB") == "all"
"""Whether to take an hour, as `tox -e lab-all` does."""

# Directed and regression programs, in short all whose names do not begin with `sweep/`.
NO_SWEEP = ("--select", "[!s]*", "--select", "s[!w]*")

FEATURES_OF = "linux-user"
"""The API under which soft-RoCE has features."""

ROUNDS = 3 if EVERYTHING else 1
"""How often the slice is judged on the default guest; elsewhere it is judged once."""


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

    @property
    def verdicts(self) -> dict[str, list[tuple[str, str]]]:
        """What was said of each program and each rule, in order."""
        programs = [(p.name, str(p.verdict)) for p in self.results.programs]
        return {"programs": programs, "rules": [(r.rule, str(r.verdict)) for r in self.results.rules]}

    def fired(self) -> tuple[list[Rule], list[Rule]]:
        """The applicable rules that certainly fired, and those that did not; a `may` demands nothing."""
        applicable = [r for r in self.results.rules if r.verdict != "unsupported" and r.level != "may"]
        return [r for r in applicable if r.fired], [r for r in applicable if not r.fired]


def of_features(*, wanted: bool) -> list[str]:
    """The selection of the user verbs' programs that need features, but for drafts, or of those that need none."""
    drafts = {str(p.name) for p in load().profiles.values() if p.draft}
    found = [p for p in programs.shipped("programs") if not p.peril and p.applies(FEATURES_OF, "roce")]
    found = [p for p in found if drafts.isdisjoint(p.feature)]
    names = {p.name for p in found if bool(p.feature) is wanted} - {
        p.name for p in found if bool(p.feature) is not wanted
    }
    return [word for name in sorted(names) for word in ("--select", name)]


def of_other_devices() -> set[str]:
    """The programs that only some devices run: those that say what the device does, which this one may not do."""
    return {p.name for p in programs.shipped("programs") if p.device}


def command(out: Path, *arguments: str, rounds: int = 1) -> list[str]:
    """`verbspec run lab` with these arguments."""
    words = [sys.executable, "-m", "verbs_conformance.cli", "run", "lab", *arguments]
    words += ["--budget", "0s", "--rounds", str(rounds), *(() if "--select" in arguments else NO_SWEEP)]
    return [*words, "--out", str(out)]


def run(out: Path, *arguments: str, rounds: int = 1) -> Slice:
    """Run it to its end."""
    done = subprocess.run(command(out, *arguments, rounds=rounds), capture_output=True, text=True, check=False)
    assert (out / "results.jsonl").exists(), f"nothing was judged, exit code {done.returncode}:\n{done.stderr}"
    return Slice(done.returncode, done.stdout + done.stderr, read(out / "results.jsonl"))


def descendants(pid: int) -> list[int]:
    """A process and all that it has started, as far as they are still there."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in descendants(int(child)))]


def is_guest(pid: int) -> bool:
    """Whether a process is an emulator."""
    try:
        return "qemu-system" in Path(f"/proc/{pid}/cmdline").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False


def known(record: str) -> dict[str, list[str]]:
    """The differences of a driver that are on record, each with the programs that show it."""
    found: dict[str, list[str]] = _read(f"{record}.yaml")
    return found


def unfired(record: str) -> dict[str, str]:
    """The rules that do not fire on a driver, each with the reason."""
    found: dict[str, str] = _read("unfired.yaml").get(record) or {}
    return found


def _read(name: str) -> Any:
    return yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
