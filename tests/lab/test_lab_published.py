"""Each published deviation, replayed: its program fails on the driver, and its waiver says why."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import slices

from verbs_adapters.contract import Hello
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.program import Program
from verbs_conformance.waivers import load

WAIVERS = Path(__file__).parents[2] / "reports/published/waivers"

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="a guest or two for each kernel: tox -e lab-all")


class Case(NamedTuple):
    """A driver under a kernel and an API."""

    driver: str
    kernel: str
    api: str = "linux-kernel"

    @property
    def transport(self) -> str:
        return "iwarp" if self.driver == "siw" else "roce"

    @property
    def waivers(self) -> Path:
        return WAIVERS / f"{self.driver}.yaml"

    @property
    def options(self) -> list[str]:
        given = {"kernel": self.kernel, "device": self.driver, "api": self.api, "deadline": "60"}
        return [word for key, value in given.items() for word in ("-o", f"{key}={value}")]

    def programs(self) -> list[Program]:
        """The programs of the waivers that are for this kernel."""
        hello = Hello(
            contract="1",
            name="",
            version="1",
            device=f"{self.driver}0",
            kernel=f"{self.kernel}.1",
            api=(self.api,),
            transport=(self.transport,),
        )
        applying = [w for w in load(self.waivers, target.load()) if w.applies(hello, self.api, self.transport)]
        found = [p for w in applying for p in w.runs(self.api, self.transport)]
        return list({p.name: p for p in found}.values())

    def replay(self, shown: list[Program], folder: Path, *more: str) -> tuple[int, dict[str, str], str]:
        """The exit code, the verdict on each program, and what was printed."""
        file = folder / "programs.yaml"
        file.write_text(programs.dump(shown), encoding="utf-8")
        command = [sys.executable, "-m", "verbs_conformance.cli", "replay", str(file), "lab", *self.options, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        verdicts = re.findall(r"^(\S+): (\S+) \(after the fixture", done.stdout, re.MULTILINE)
        return done.returncode, {name: verdict for verdict, name in verdicts}, done.stdout + done.stderr


CASES = [
    *(Case("rxe", kernel) for kernel in ("6.1", "6.12", "7.2")),
    Case("rxe", "6.1", "linux-user"),
    *(Case("siw", kernel) for kernel in ("6.1", "6.12", "7.2")),
]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_each_deviation_is_reproduced_by_replay(case: Case, tmp_path: Path) -> None:
    shown = case.programs()

    code, verdicts, told = case.replay(shown, tmp_path)

    assert code == 1, told
    assert verdicts == {p.name: "fail" for p in shown}, told


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_each_deviation_is_what_its_waiver_says(case: Case, tmp_path: Path) -> None:
    shown = case.programs()

    code, verdicts, told = case.replay(shown, tmp_path, "--waivers", str(case.waivers))

    assert code == 0, told
    assert verdicts == {p.name: "waived" for p in shown}, told


CRASHES = [
    *(
        (Case("siw", kernel), "regress/empty-element-first", "NULL pointer dereference")
        for kernel in ("6.1", "6.12", "7.2")
    ),
    *((Case(driver, "7.2"), "regress/unknown-state", "array-index-out-of-bounds") for driver in ("rxe", "siw")),
    (Case("rxe", "6.1", "linux-user"), "regress/unbound-without-region", "SIGSEGV during `bind_mw`"),
]
"""What takes a kernel or a process down, or makes a kernel report itself; no waiver is for such a thing."""


@pytest.mark.parametrize(("case", "name", "report"), CRASHES)
def test_what_crashes_is_reproduced_and_not_waived(case: Case, name: str, report: str, tmp_path: Path) -> None:
    shown = [p for p in programs.shipped("programs") if p.name == name]

    code, verdicts, told = case.replay(shown, tmp_path, "--waivers", str(case.waivers))

    assert code == 1, told
    assert verdicts == {name: "fail"}
    assert report in told
