"""Programs made over for two devices: what talks to each other is put on different ones.

Theory of operation
-------------------
A program is written for one device.  What its calls name tells what must be together: everything that a call names is
of one device, except what stands at the other end of a connection.  The specification says which parameters and fields
do (``across``).  So each name of a program is on the same side as those that it is used with, and on the other side
than those across; the first one is on the first device.  The calls are then made with the objects of their side:

* the second device is opened where the first one is;
* what is made for a device alone (a protection domain, a completion queue) is made once for each side that uses it, and
  calls on it alone are made for each; so is anything else that would have to be on both sides, with what it is made of:
  a region, say, that is read here and written there;
* everything else there is once.

A program is left as it is if an end of a connection would have to be on both sides, and if nothing in it is at the
other end of anything.

Nothing here says what is to be seen: the model judges the program that comes out, as any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from verbs_conformance.engine import Engine
from verbs_conformance.program import Program, full_steps
from verbs_conformance.step import Step

SIDES = (0, 1)
SECOND = "_2"
"""What the names of the second device's objects end with where the first has them too."""


class Unspreadable(Exception):
    """Why a program cannot be made over."""


class Torn(Exception):
    """A name would have to be on both sides."""

    def __init__(self, names: tuple[str, ...], call: str) -> None:
        super().__init__(f"{names[0]} would have to be on both devices, as {call} uses it")
        self.names = names


@dataclass(frozen=True, slots=True)
class Use:
    """A name in an argument: where it stands there, and whether it is across from what the call is for."""

    name: str
    param: str
    place: int
    across: bool


class Spread:
    """Makes programs over, by what one specification says of its calls."""

    def __init__(self, engine: Engine, fixtures: Mapping[str, Program]) -> None:
        self._engine = engine
        self._fixtures = fixtures
        spec = engine.model.spec
        self._fields = {str(f.name) for kind in spec.objects.values() for f in kind.fields.values() if f.across}
        self._across = {str(call.name): frozenset(map(str, call.across)) for call in spec.calls.values()}
        self._ends = {str(kind.name) for kind in spec.objects.values() if any(f.across for f in kind.fields.values())}
        self._before: dict[str, list[Program]] = {}
        """The fixtures that were made over, by the name of the one that they are made of."""

    def place(self, program: Program) -> tuple[Program, str]:
        """The program for two devices; or as it is, with the reason."""
        before, own = full_steps(program, self._fixtures)
        try:
            made = self._laid_out((*before, *own))
        except Unspreadable as reason:
            return program, str(reason)
        first = tuple(step for steps in made[: len(before)] for step in steps)
        rest = tuple(step for steps in made[len(before) :] for step in steps)
        return replace(program, before=self._fixture(program.fixture, first), steps=rest), ""

    def _laid_out(self, steps: tuple[Step, ...]) -> list[list[Step]]:
        """For each step those that stand in its place, with as few things made twice as that takes."""
        kinds = {name: kind for step in steps for name, kind in self.kinds(step).items()}
        twofold = {name for step in steps if self.device_param(step) in step.args for name in self.kinds(step)}
        while True:
            try:
                return _Layout(self, steps, twofold).steps()
            except Torn as torn:
                more = [name for name in torn.names if kinds.get(name) not in self._ends and name not in twofold]
                if not more:
                    raise Unspreadable(str(torn)) from None
                twofold.add(more[0])

    def _fixture(self, name: str, steps: tuple[Step, ...]) -> Program:
        """A fixture made over; the same for all programs for which it comes out the same."""
        known = self._before.setdefault(name, [])
        for fixture in known:
            if fixture.steps == steps:
                return fixture
        known.append(Program(f"{name} on two devices, {len(known) + 1}", steps, kind="fixture"))
        return known[-1]

    # -- what the specification says of a step ---------------------------------------------------

    def kinds(self, step: Step) -> dict[str, str]:
        """The names that a step gives, with the kinds of their objects."""
        code = self._engine.model.calls.get(step.call)
        made = code.creates if code is not None else ()
        return {
            step.out[f"#{i}"]: code.outputs[output].name
            for i, output in enumerate(made)
            if code is not None and f"#{i}" in step.out
        }

    def opens(self, step: Step) -> bool:
        """Whether a step opens a device."""
        return step.call == self._engine.opening

    def device_param(self, step: Step) -> str:
        """The parameter that names the device that something is made for."""
        code = self._engine.model.calls.get(step.call)
        found = (name for name, kind in code.params.items() if kind == self._engine.device) if code is not None else ()
        return next(iter(found), "")

    def uses(self, step: Step, known: Iterable[str]) -> list[Use]:
        """Where a step names objects that are known."""
        code = self._engine.model.calls.get(step.call)
        found = []
        for param, text in step.args.items():
            if code is not None and param in code.params and code.params[param].tag == "bytes":
                continue
            across = param in self._across.get(step.call, ())
            for name, place, path in _names(text):
                if name in known:
                    found.append(Use(name, param, place, across ^ (len(self._fields.intersection(path)) % 2 == 1)))
        return found


class _Layout:
    """Which names of one program are on which side."""

    def __init__(self, spread: Spread, steps: tuple[Step, ...], twofold: set[str]) -> None:
        self._spread = spread
        self._steps = steps
        self._devices: list[str] = []
        self._twofold = twofold
        self._single: dict[str, tuple[str, bool]] = {}
        """For each other name one that it is tied to, and whether the two are on different sides."""
        for step in steps:
            self._tie(step)
        if len(self._devices) != 1:
            raise Unspreadable(f"it opens {len(self._devices)} devices itself")
        self._sides = self._put()
        if not any(self._sides.values()):
            raise Unspreadable("nothing in it is at the other end of a connection")
        self._needed = self._wanted()

    def _tie(self, step: Step) -> None:
        """Note what a step says of the names that it uses and gives."""
        if self._spread.opens(step):
            self._devices += step.out.values()
            return
        uses = self._spread.uses(step, self._single)
        given = list(self._spread.kinds(step))
        if not self._twofold.isdisjoint(given):
            for name in [use.name for use in uses] + [name for name in given if name not in self._twofold]:
                raise Torn((name,), step.call)
            return
        for name in given:
            self._single.setdefault(name, (name, False))
        tied = [(use.name, use.across) for use in uses] + [(name, False) for name in given]
        for (one, first), (other, second) in pairwise(tied):
            root, turned = self._root(one)
            top, twisted = self._root(other)
            differ = first ^ second ^ turned ^ twisted
            if root == top and differ:
                raise Torn((other, one), step.call)
            if root != top:
                self._single[top] = (root, differ)

    def _root(self, name: str) -> tuple[str, bool]:
        """What a name is tied to in the end, and whether that is on the other side."""
        turned = False
        while self._single[name][0] != name:
            name, differs = self._single[name]
            turned ^= differs
        return name, turned

    def _put(self) -> dict[str, int]:
        """The side of each name: the first of those that are tied to each other is on the first device."""
        begun: dict[str, bool] = {}
        sides = {}
        for name in self._single:  # in the order in which the program gives them
            root, turned = self._root(name)
            sides[name] = int(begun.setdefault(root, turned) ^ turned)
        return sides

    def _wanted(self) -> dict[str, set[int]]:
        """The sides on which each twofold thing is used, by what is made of it too; what it is used for comes later."""
        needed: dict[str, set[int]] = {name: set() for name in self._twofold}
        for step in reversed(self._steps):
            side = self._side(step)
            given = [needed[name] or {0} for name in step.out.values() if name in needed]
            sides = {side} if side is not None else set().union(*given)
            for use in self._spread.uses(step, needed):
                needed[use.name] |= {each ^ use.across for each in sides}
        return {name: sides or {0} for name, sides in needed.items()}

    def _side(self, step: Step) -> int | None:
        """The side on which a step is made; None if it is about twofold things alone, or about nothing."""
        for use in self._spread.uses(step, self._single):
            return self._sides[use.name] ^ use.across
        return next((self._sides[name] for name in step.out.values() if name in self._sides), None)

    # -- the program -----------------------------------------------------------------------------

    def steps(self) -> list[list[Step]]:
        """For each step those that stand in its place."""
        return [self._made(step) for step in self._steps]

    def _made(self, step: Step) -> list[Step]:
        if self._spread.opens(step):
            return [step, replace(step, out={at: self._name(name, 1) for at, name in step.out.items()})]
        side = self._side(step)
        if side is not None:
            return [self._on(step, side)]
        named = [use.name for use in self._spread.uses(step, self._needed)]
        named += [name for name in step.out.values() if name in self._needed]
        sides = set(SIDES).intersection(*(self._needed[name] for name in named)) if named else {0}
        if not sides:
            raise Unspreadable(f"{' and '.join(named)} are on different devices, and {step.call} names them together")
        return [self._on(step, each) for each in sorted(sides)]

    def _on(self, step: Step, side: int) -> Step:
        """A step with the objects of a side."""
        args = dict(step.args)
        for use in sorted(self._spread.uses(step, (*self._devices, *self._needed)), key=lambda u: -u.place):
            text, end = args[use.param], use.place + len(use.name)
            args[use.param] = text[: use.place] + self._name(use.name, side ^ use.across) + text[end:]
        param = self._spread.device_param(step)
        if side and param:
            args[param] = self._name(self._devices[0], side)
        return Step(step.call, args, {at: self._name(name, side) for at, name in step.out.items()})

    def _name(self, name: str, side: int) -> str:
        """What is called so on a side."""
        twofold = name in self._devices or name in self._twofold
        return name + SECOND if side and twofold else name


@cache
def _names(text: str) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
    """The names in an expression, each with its place and the fields that are taken of it."""
    found = []
    paths: dict[ast.Name, list[str]] = {}
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        chain, at = [], node
        while isinstance(at, ast.Attribute):
            chain.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and len(chain) >= len(paths.get(at, ())):
            paths[at] = chain
    for name, chain in paths.items():
        found.append((name.id, name.col_offset, tuple(chain)))
    return tuple(found)
