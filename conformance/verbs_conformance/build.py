"""Makes the committed directed programs from the specification.

For each API profile the search starts from every fixture, the smallest first, one call deep and then deeper, until
every rule has a witness or nothing more is found.  What has none must have a reason in ``unwitnessed.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from verbs_conformance import program as programs
from verbs_conformance.directed import Directed
from verbs_conformance.program import Program, full_steps
from verbs_conformance.session import Engine
from verbs_reference.model import Model
from verbs_spec.document import Spec
from verbs_spec.profiles import select

DEPTHS = (1, 2)


def limits(engine: Engine, fixtures: Mapping[str, Program]) -> dict[str, Any]:
    """What the imagined device answers when it is opened: the outermost fixture's options, every feature present."""
    outermost = next(p for p in fixtures.values() if not p.fixture)
    found: dict[str, Any] = {k: int(v) for k, v in outermost.options}
    opening = engine.model.calls[engine.opening]
    found.update({o: True for o, t in opening.outputs.items() if t.tag == "bool"})
    return found


def witnesses(engine: Engine, fixtures: Mapping[str, Program], depths: tuple[int, ...] = DEPTHS) -> Iterator[Program]:
    """A program for each rule of a model that the search can fire."""
    api, transport = engine.model.spec.selected or ("", "")
    wanted = {str(r) for r in engine.model.spec.rules}
    standing = sorted(
        (p for p in fixtures.values() if p.applies(api, transport)), key=lambda p: len(sum(full_steps(p, fixtures), ()))
    )
    tentative: dict[str, Program] = {}
    known = limits(engine, fixtures)
    for depth in depths:
        for fixture in standing:
            if wanted:
                search = Directed(engine, fixture, fixtures, known)
                yield from search.search(wanted, depth)
                for rule, program in search.tentative.items():
                    tentative.setdefault(rule, program)
    yield from (tentative[rule] for rule in sorted(wanted & tentative.keys()))


def build(spec: Spec, api: str, transport: str) -> list[Program]:
    """The directed programs of one API profile, in the order of the specification's rules."""
    engine = Engine(Model(select(spec, api, transport)))
    order = {str(r): i for i, r in enumerate(engine.model.spec.rules)}
    found = list(witnesses(engine, programs.fixtures()))
    return sorted(found, key=lambda p: (order.get(p.target, -1), p.name))


def missing(spec: Spec, api: str, transport: str, found: list[Program]) -> list[str]:
    """The rules of a profile that none of these programs is for."""
    have = {p.target for p in found}
    fixed = {p.fixture for p in found if not p.target}
    model_rules = [str(r) for r in select(spec, api, transport).rules]
    return [r for r in model_rules if r not in have and not fixed] if not fixed else [r for r in model_rules if r not in have]
