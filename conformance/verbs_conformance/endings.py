"""What can follow any program: all that a consumer can see is looked at, and everything is taken apart.

An object that was not given back, or is held by one that should not have been made, shows when its owner is to go:
everything is destroyed once in the order in which it was made, which is refused for what is in use, and then in the
opposite order, which is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from verbs_conformance.program import OWN_STEPS, Program
from verbs_conformance.session import Step
from verbs_conformance.sweep import Sweep, harvest
from verbs_reference import nodes as n
from verbs_reference.model import Model


def ended(sweep: Sweep, program: Program) -> Program:
    """The program with its ending; as in the sweep, what cannot be called is left out when it runs."""
    names = sweep.names(program)
    look = tuple(harvest(sweep.engine, sweep.shapes, names))
    apart = tuple(_apart(sweep.model, list(names.items())))
    back = tuple(_apart(sweep.model, list(reversed(names.items()))))
    return replace(program, kind="sweep", steps=(*program.steps, *look, *apart, *look[:1], *back))


def made(program: Program, lines: Sequence[str]) -> Program:
    """The program with the steps only that were made, of which these are the lines."""
    left = list(lines)
    steps = []
    for step in program.steps:
        if not left:
            break
        said = [i for i, line in enumerate(left) if line.startswith(f"{step} -> ")]
        if step.call not in OWN_STEPS and not said:
            continue
        del left[: said[0] + 1 if said else 0]
        steps.append(step)
    return replace(program, kind="regression", steps=tuple(steps))


def _apart(model: Model, names: Sequence[tuple[str, str]]) -> Iterator[Step]:
    """The calls that end what these names stand for."""
    for name, kind in names:
        for call, code in model.calls.items():
            if [kind_of.name for kind_of in code.params.values()] != [kind]:
                continue
            (param,) = code.params
            if any(isinstance(s, n.Delete) for case in code.successes for s in n.flat(case.body)):
                yield Step(call, {param: name})
