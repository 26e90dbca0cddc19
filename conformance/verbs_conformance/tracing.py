"""From a fact to what states it, what shows it, and what breaks it: the rules, their programs, the built-in faults.

A directed program shows its target rule. A regression program shows the entry that its ``says`` begins with, as
``B04: ...``; a fault of the built-in device names its entry too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from verbs_conformance.program import Program
from verbs_spec.facts import Fact, Facts

_ENTRY = re.compile(r"\s*([A-Z][A-Za-z]*-?[A-Z0-9-]*\d+[a-z]?):")


@dataclass(frozen=True, slots=True)
class Trace:
    """A fact with its regression programs, the directed programs of its rules, and its faults."""

    fact: Fact
    regressions: tuple[str, ...]
    directed: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def state(self) -> str:
        """How far it is: stated, partly, awaited or left out."""
        if self.fact.awaits:
            return f"awaits {', '.join(self.fact.awaits)}"
        if self.fact.rules:
            return "stated in part" if self.fact.reason else "stated"
        return "left out"

    def lines(self) -> list[str]:
        """What is to say of it besides its rules."""
        found = [f"not stated: {' '.join(self.fact.reason.split())}"] if self.fact.reason else []
        parts = (("shown by", self.regressions), ("broken by", self.faults))
        return found + [f"{kind}: {', '.join(names)}" for kind, names in parts if names]


def traces(known: Facts, shipped: Iterable[Program], entries: Mapping[str, Sequence[str]]) -> list[Trace]:
    """Every fact with what hangs on it; ``entries`` are the faults and the entries that each is taken from."""
    regressions: dict[str, list[str]] = {}
    directed: dict[str, list[str]] = {}
    faults: dict[str, list[str]] = {}
    for program in shipped:
        if program.kind == "regression":
            if found := _ENTRY.match(program.says):
                regressions.setdefault(found[1], []).append(program.name)
        elif program.target:
            directed.setdefault(program.target, []).append(program.name)
    for name, taken in entries.items():
        for entry in taken:
            faults.setdefault(entry, []).append(name)
    return [
        Trace(
            fact,
            tuple(regressions.get(fact.id, ())),
            tuple(dict.fromkeys(p for rule in fact.rules for p in directed.get(rule, ()))),
            tuple(faults.get(fact.id, ())),
        )
        for fact in known.facts.values()
    ]
