"""What can follow any program: all that a consumer can see is looked at, and everything is taken apart.

An object that was not given back, or is held by one that should not have been made, shows when its owner is to go:
everything is destroyed once in the order in which it was made, which is refused for what is in use, and then in the
opposite order, which is not.  What the program itself has made goes last, and before each piece of it what it may
hold is to go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from verbs_conformance.program import Program
from verbs_conformance.step import Step
from verbs_conformance.sweep import Sweep, ends, harvest
from verbs_reference.model import Model


def ended(sweep: Sweep, program: Program) -> Program:
    """The program with its ending; as in the sweep, what cannot be called is left out when it runs."""
    names = sweep.names(program)
    before = sweep.names(replace(program, steps=()))
    own = {name: kind for name, kind in names.items() if name not in before}
    look = tuple(harvest(sweep.engine, sweep.shapes, names))
    every, back = _apart(sweep.model, names), tuple(reversed(list(_apart(sweep.model, before))))
    last = [step for one in reversed(list(_apart(sweep.model, own))) for step in (*reversed(back), one)]
    return replace(program, kind="sweep", steps=(*program.steps, *look, *every, *look[:1], *back, *last, *back))


def made(sweep: Sweep, program: Program, lines: Sequence[str]) -> Program:
    """The program with the steps only that were made, of which these are the lines."""
    poll, _ = sweep.engine.polling
    at = 0
    steps = []
    for step in program.steps:
        said = f"{Step(poll, step.args) if step.call == 'drain' else step} -> "
        begin = at
        while at < len(lines) and lines[at].startswith(said) and (at == begin or step.call == "drain"):
            at += 1
        if at > begin:
            steps.append(step)
    return replace(program, kind="regression", steps=tuple(steps))


def _apart(model: Model, names: Mapping[str, str]) -> Iterator[Step]:
    """The calls that end what these names stand for."""
    for name, kind in names.items():
        for call, code in model.calls.items():
            if (param := ends(code)) and code.params[param].name == kind:
                yield Step(call, {param: name})
