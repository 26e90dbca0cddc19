"""The sweep: from each outermost fixture every usual call, and every call that differs from it in one argument.

From each fixture that has an object of each kind also sequences of four usual calls that give the device work.

One program a call: the call, what a consumer can see, one of the continuations that the profile has, and what can be
seen then.  A call often does its harm later: a registration that should have been flushed opens a region at the next
connection, a place that was not given back is missed when the queue is full.  Continuations are data (programs of kind
``continuation``) and taken in turn, so that a call which is tried from several fixtures meets several of them.
Sequences are tried from every other fixture.

Directed programs fire each rule once; the sweep tries each boundary that the menus of the specification name from every
fixture, so that a check which is wrong only for a region that begins inside a page, say, is met.  Programs are made
when the run starts, not committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from verbs_conformance.engine import Engine
from verbs_conformance.program import Program, continuations, full_steps
from verbs_conformance.shapes import Shape, build, harmless, usual_and_near
from verbs_conformance.step import Step, words
from verbs_reference import nodes as n
from verbs_reference.model import CallCode

FRESH = 1


class Sweep:
    """The programs of one profile."""

    def __init__(self, engine: Engine, fixtures: Mapping[str, Program]) -> None:
        self.engine = engine
        self.model = engine.model
        self.fixtures = fixtures
        self.shapes = harmless(engine.model)
        self.continuations = continuations(engine.model.spec)

    def programs(self, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Program]:
        """The programs with wanted names, from each fixture that no other one stands on; the smallest first."""
        spec = self.model.spec
        parents = {p.fixture for p in self.fixtures.values() if p.under(spec)}
        standing = [p for p in self.fixtures.values() if p.under(spec) and p.name not in parents]
        for turn, fixture in enumerate(sorted(standing, key=lambda p: len(sum(full_steps(p, self.fixtures), ())))):
            names = self.names(fixture)
            follow = itertools.cycle(self._following(names, turn))
            counts: dict[str, int] = {}
            for kind in names.values():
                counts[kind] = counts.get(kind, 0) + 1
            for shape in self.shapes:
                for i, step in enumerate(usual_and_near(shape, names, FRESH, counts)):
                    name, after = f"sweep/{fixture.name}/{shape.name}-{i}", next(follow)
                    if wanted(name):
                        yield self._program(fixture, name, step, names, after)
            if all(s.needs <= set(names.values()) for s in self.shapes):
                orders = itertools.islice(self._orders(), turn % 2, None, 2)
                yield from self._one_after_the_other(fixture, names, orders, wanted)

    def _orders(self) -> Iterator[tuple[Shape, Shape, Shape]]:
        """Every two calls of one verb that give work, and one of another verb that goes before them."""
        working = [s for s in self.shapes if s.call in self.engine.giving]
        for before, first, second in itertools.product(working, repeat=3):
            if before.call != first.call and first.call == second.call:
                yield before, first, second

    def _one_after_the_other(
        self,
        fixture: Program,
        names: dict[str, str],
        orders: Iterator[tuple[Shape, Shape, Shape]],
        wanted: Callable[[str], bool],
    ) -> Iterator[Program]:
        """Two usual calls of one verb after another verb's work was given twice: what the first leaves behind shows at
        the second.  The other verb's is given to the last objects, which may be the peer's."""
        seen = tuple(harvest(self.engine, self.shapes, names))
        for before, first, second in orders:
            name = f"sweep/{fixture.name}/{before.name}+{first.name}+{second.name}"
            if wanted(name):
                order = ((before, -1), (before, -1), (first, 0), (second, 0))
                steps = [_usual(shape, names, FRESH + i, which) for i, (shape, which) in enumerate(order)]
                yield Program(name, (*(s for s in steps if s is not None), *seen), fixture.name, "sweep")

    def names(self, fixture: Program) -> dict[str, str]:
        """The names that a fixture or a program gives and leaves, with the kinds of their objects."""
        names: dict[str, str] = {}
        for step in sum(full_steps(fixture, self.fixtures), ()):
            code = self.model.calls.get(step.call)
            if code and ends(code):
                names.pop(step.args.get(ends(code), ""), None)
            for i, made in enumerate(code.creates if code else ()):
                if f"#{i}" in step.out:
                    names[step.out[f"#{i}"]] = code.outputs[made].name if code else ""
        return names

    def _following(self, names: Mapping[str, str], turn: int) -> list[tuple[Step, ...]]:
        """What may follow a call, beginning with another one for each fixture."""
        known = {
            name for p in (*self.fixtures.values(), *self.continuations) for s in p.steps for name in s.out.values()
        }
        missing = known - names.keys()
        found = [tuple(s for s in p.steps if missing.isdisjoint(words(s))) for p in self.continuations]
        found = [steps for steps in found if any(s.call in self.engine.giving for s in steps)] or [()]
        turn %= len(found)
        return found[turn:] + found[:turn]

    def _program(
        self, fixture: Program, name: str, step: Step, names: Mapping[str, str], after: tuple[Step, ...]
    ) -> Program:
        seen = tuple(harvest(self.engine, self.shapes, names))
        first = seen[1:] if step.call == self.engine.polling[0] else seen  # a poll is tried without silence before
        follow = (*after, *seen) if after else ()
        return Program(name, (step, *first, *follow), fixture.name, "sweep")


def ends(code: CallCode) -> str:
    """The only parameter of a call that ends what it names; nothing for other calls."""
    ending = len(code.params) == 1 and any(isinstance(s, n.Delete) for c in code.successes for s in n.flat(c.body))
    return next(iter(code.params)) if ending else ""


def _usual(shape: Shape, names: dict[str, str], fresh: int, which: int) -> Step | None:
    """The usual call, of the first or the last object of each kind."""
    return build(shape, names, fresh, {}, lambda menu, offered: offered[which if menu.entries[0] == "each" else 0])


def harvest(engine: Engine, shapes: Sequence[Shape], names: Mapping[str, str]) -> Iterator[Step]:
    """All that a consumer can see: silence, then what every queue holds, then each call that only looks, for each
    object."""
    yield Step("settle", {})
    call, _ = engine.polling
    param, kind = next(iter(engine.model.calls[call].params.items()))
    yield from (Step("drain", {param: name}) for name, k in names.items() if k == kind.name)
    for shape in shapes:
        code = engine.model.calls[shape.call]
        if code.outputs and not any(c.body for c in code.cases) and shape.call != call:
            own = code.params[shape.menus[0].name].name
            for name, k in names.items():
                if k == own:
                    yield next(usual_and_near(shape, {name: own}, 0, {}))
