"""What failed in an earlier run, so that it alone runs again.

Programs that ship, and those of the sweep, are found again by name.  A stateful program ships nowhere: it is read
from the file that was written for it, or made from the steps in its record, and runs under its own seed.  The rules
that get a verdict are those that the failed programs counted against.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from verbs_conformance import program as programs
from verbs_conformance.errors import BadProgram
from verbs_conformance.program import Program
from verbs_conformance.step import Step
from verbs_conformance.target import Target
from verbs_reports import records as r
from verbs_reports.results import Results
from verbs_reports.summary import blamed
from verbs_reports.verdicts import BROKEN, UNDECIDED
from verbs_spec.errors import Where
from verbs_spec.text import Text


@dataclass(frozen=True, slots=True)
class Again:
    """Names of programs to run again, programs that have to be brought along with their seeds, and rules."""

    names: frozenset[str]
    programs: tuple[tuple[Program, int], ...] = ()
    rules: frozenset[str] = frozenset()


def failed(results: Results, folder: Path) -> Again:
    """What broke or was not decided in these results, which lie in a folder."""
    found = [p for p in results.programs if p.verdict in BROKEN | UNDECIDED]
    drawn = [p for p in found if p.kind == "stateful"]
    return Again(
        frozenset(p.name for p in found if p.kind != "stateful"),
        tuple((_program(p, results.header, folder), p.seed) for p in drawn),
        frozenset(rule for p in found if (rule := blamed(p))),
    )


def target(header: r.Header) -> Target:
    """What the results are of."""
    return Target(header.adapter.name, header.adapter.options, header.api, header.transport, header.features)


def _program(record: r.Program, header: r.Header, folder: Path) -> Program:
    path = folder / record.file
    if record.file and path.is_file():
        return programs.load(path)[0]
    made = Program(record.name, tuple(_steps(record)), record.fixture, "stateful", seed=record.seed)
    return replace(made, api=(header.api,), transport=(header.transport,), feature=header.features)


def _steps(record: r.Program) -> Iterator[Step]:
    if not record.steps:
        raise BadProgram(
            f"the results hold no steps of the program {record.name}, so it cannot be run again; "
            "make the whole run again with the same --seed"
        )
    for number, line in enumerate(record.steps, 1):
        yield programs.step(Text(line.partition(" -> ")[0], Where(record.name, number, 1), quoted=True))
