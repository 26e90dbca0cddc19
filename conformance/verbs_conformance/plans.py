"""Steps that are known to lead somewhere, for programs that are drawn.

A directed program was searched on the model: its steps make a rule fire.  Without the look at everything that it ends
with, they are a plan that a drawn program may follow wherever the objects that they name are there: in another state
than that of its own fixture, with other calls between its steps, and with the steps of other plans before them.  A
regression program is a plan as it stands, since what it looks at is what it was written for.  A drawn program begins
on the fixture of a plan that was followed least, and follows that plan first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from verbs_conformance.engine import Engine
from verbs_conformance.program import Program, shipped
from verbs_conformance.step import Step, words
from verbs_conformance.sweep import Sweep

SILENCE = "settle"


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps, what they are for, the fixture under them, and the objects that must be there before, each with its
    kind."""

    target: str
    """The rule, or the program if that was not made for one."""
    home: str
    steps: tuple[Step, ...]
    needs: frozenset[tuple[str, str]]
    names: frozenset[str]
    """All objects that its steps name."""

    def wants(self, step: Step) -> frozenset[str]:
        """The objects that must be there for one of its steps."""
        return self.names & words(step)


def plans(engine: Engine, fixtures: Mapping[str, Program]) -> list[Plan]:
    """The plans for one profile."""
    sweep = Sweep(engine, fixtures)
    known = {name: sweep.names(fixture) for name, fixture in fixtures.items() if fixture.under(engine.model.spec)}
    given = {name for fixture in fixtures.values() for step in fixture.steps for name in step.out.values()}
    made = []
    for program in shipped("programs"):
        if program.fixture in known and not program.peril and program.under(engine.model.spec):
            steps = _without_the_look(program.steps) if program.target else program.steps
            if any(step.call != SILENCE for step in steps):
                own = {name for step in steps for name in step.out.values()}
                names = frozenset().union(*(words(step) & (given | own) for step in steps))
                needs = _needs(steps, known[program.fixture])
                made.append(Plan(program.target or program.name, program.fixture, steps, needs, names))
    return made


def _without_the_look(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps before the last silence, behind which all is looked at."""
    last = max((i for i, step in enumerate(steps) if step.call == SILENCE), default=len(steps))
    return steps[:last]


def _needs(steps: tuple[Step, ...], names: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """The objects of a fixture that the steps name, as far as they do not make them themselves."""
    needs: set[str] = set()
    made: set[str] = set()
    for step in steps:
        needs |= (words(step) & names.keys()) - made
        made |= set(step.out.values())
    return frozenset((name, names[name]) for name in needs)


def renumbered(step: Step, params: frozenset[str], number: int) -> Step:
    """The step with this number for each of these parameters that it gives."""
    return replace(step, args={name: str(number) if name in params else text for name, text in step.args.items()})
