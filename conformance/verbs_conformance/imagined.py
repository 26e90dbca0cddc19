"""A backend that is nothing but the specification: it answers what the rules allow.

It serves two ends.  The directed search runs on it, so that programs are made from the specification alone.  And
the suite must find it conforming, whatever schedule it draws.  It is never what a device is compared with.

Values that a rule leaves to the backend are found by trying: what the rule's outputs are equal to, then numbers
that the call mentions, then fresh ones.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from verbs_conformance.device import ANY, Device
from verbs_reference import nodes as n
from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.store import NeedChoice, Store
from verbs_reference.types import Absent, Type
from verbs_reference.walk import Step as Move

FRESH = 0x10000
ENDLESS = 10_000
"""After so many steps without a call there is no end to them."""


class Imagination:
    """A model's state that is run: calls with made-up outputs, internal steps by a seeded choice."""

    def __init__(
        self, model: Model, seed: int = 0, limits: Mapping[str, Any] | None = None, device: Device = ANY
    ) -> None:
        self.model = model
        self.store: Store = model.store()
        self.random = random.Random(seed)
        self.limits = {**(limits or {}), **device.answers}
        self.device = device
        """What it is made to do where the rules leave it open.  Of other rules that permit it makes use where they are
        causes of which something is seen; of other choices it takes the first option, or any if they are not stable."""
        self.numbers = 1_000_000
        self.serial = 1
        self.fired: list[str] = []
        self.consulted: set[str] = set()
        """The open choices that decided something since this was last cleared."""

    # -- internal steps --------------------------------------------------------------------------

    def runnable(self) -> list[Move]:
        """The internal steps that can be taken now; if the device makes use of a permission, those alone."""
        found: list[Move] = []
        first: list[Move] = []
        for i, family in enumerate(self.model.families):
            if family.optional and not any(c.id in self.device.permitted for c in family.cases):
                continue
            for number in list(self.store.active[family.trigger]):
                case = self._choosing(lambda f=family, x=number: f.pick(self.store, x))
                if case is not None and case >= 0:
                    used = family.cases[case].id in self.device.permitted
                    if used or not family.optional:
                        move = Move((i, number), case, 0, tuple(self.store.once.items()), ())
                        (first if used else found).append(move)
        return first or found

    def take(self, move: Move) -> None:
        """Take a step."""
        family = self.model.families[move.process[0]]
        self.store.once = dict(move.once)
        family.cases[move.case].effect(self.store, move.process[1])
        self.store.once = {}
        self.fired.append(family.cases[move.case].id)

    def quiesce(self) -> None:
        """Take steps until there is nothing left to do, each time the first possible one."""
        for _ in range(ENDLESS):
            moves = self.runnable()
            if not moves:
                return
            self.take(moves[0])
        raise LookupError(f"there is no end to the steps of the rules: the last ones were {', '.join(self.fired[-4:])}")

    def wander(self, most: int) -> None:
        """Take up to so many steps, drawn by chance."""
        for _ in range(self.random.randrange(most + 1)):
            moves = self.runnable()
            if not moves:
                return
            self.take(self.random.choice(moves))

    def _choosing(self, work: Any) -> Any:
        """Do a piece of work, drawing each open choice that it asks for."""
        store = self.store
        store.once = {}
        while True:
            try:
                return work()
            except NeedChoice as e:
                known, stable = self.model.voc.choices[e.name]
                self.consulted.add(e.name)
                if stable:
                    store.once[e.name] = self.device.options.get(e.name, known[0])
                else:
                    store.once[e.name] = self.device.options.get(e.name) or self.random.choice(known)

    # -- calls -----------------------------------------------------------------------------------

    def causes(self, code: CallCode, args: tuple[Any, ...]) -> list[CallCase]:
        """The causes of failure that hold; one that always holds is the device's to use, if it is said to."""
        asked = [
            c for c in code.causes if c.id in self.device.permitted or not (c.always or c.id in self.device.declined)
        ]
        return self._choosing(  # type: ignore[no-any-return]
            lambda: [c for c in asked if c.guard is not None and c.guard(self.store, *args)]
        )

    def call(self, code: CallCode, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...], list[CallCase]]:
        """Perform a call: its result, outputs and the rules that decided."""
        holding = self.causes(code, args)
        firm = [c for c in holding if c.rule.level != "may" and c.undefined is None]
        if firm or holding:
            used = [c for c in holding if c.id in self.device.permitted]
            case = (firm or used or holding)[0]
            result = next(iter(sorted(case.prefer or case.returns)), "0")
            empty = tuple(self.model.voc.default(t) for t in code.outputs.values())
            self._do(case, (*args, *empty))
            return result, empty, [*firm] or [case]
        for case in code.successes:
            if case.guard is None or self._choosing(lambda c=case: c.guard(self.store, *args)):
                outputs = self._outputs(code, case, args)
                self._do(case, (*args, *outputs))
                return next(iter(sorted(case.returns))), outputs, [case]
        raise LookupError(f"no rule of {code.name} applies: the ways to succeed have a hole")

    def _do(self, case: CallCase, values: tuple[Any, ...]) -> None:
        """What a call does; begun anew where a choice is asked for on the way."""
        effect, store, mark = case.effect, self.store, len(self.store.journal)
        if effect is None:
            return

        def once() -> None:
            store.undo(mark)
            effect(store, *values)

        self._choosing(once)

    def _outputs(self, code: CallCode, case: CallCase, args: tuple[Any, ...]) -> tuple[Any, ...]:
        found: dict[str, Any] = {o: self.limits[o] for o in code.outputs if o in self.limits and not code.params}
        for name in code.creates:
            self.numbers += 1
            found[name] = self.numbers
        parts = n.conjuncts(case.outputs_tree) if case.outputs_tree is not None else []
        bounds: dict[str, list[Any]] = {}
        self._solve(code, args, parts, found, bounds)
        found.update({o: v[0] for o, v in bounds.items() if o not in found and isinstance(v[0], Absent)})
        mentioned = n.free_names(case.outputs_tree) if case.outputs_tree is not None else set()
        for name in code.outputs.keys() - found.keys() - mentioned:
            found[name] = self._unconstrained(code.outputs[name])
        free = [o for o in code.outputs if o not in found]
        tries = [list(dict.fromkeys((*bounds.get(o, ()), *self._tries(code.outputs[o], args)))) for o in free]
        for values in _choices(tries, [code.outputs[o].tag == "enum" for o in free]):
            outputs = tuple({**found, **dict(zip(free, values, strict=True))}[o] for o in code.outputs)
            if case.outputs is None or case.outputs(self.store, *args, *outputs):
                return outputs
        raise LookupError(f"no outputs found that {case.id} allows")

    def _solve(
        self,
        code: CallCode,
        args: tuple[Any, ...],
        parts: list[n.Expr],
        found: dict[str, Any],
        bounds: dict[str, list[Any]],
    ) -> None:
        """Take outputs from equations whose other side is known; note what they are compared with otherwise."""
        for _ in range(3):
            for part in parts:
                if isinstance(part, n.If) and n.free_names(part.test) & code.outputs.keys() <= found.keys():
                    test = self._value(code, args, part.test, found)
                    self._solve(code, args, n.conjuncts(part.then if test else part.other), found, bounds)
                for inner in n.walk(part):
                    self._equation(code, args, inner, inner is part, found, bounds)

    def _equation(
        self,
        code: CallCode,
        args: tuple[Any, ...],
        part: n.Expr,
        firm: bool,
        found: dict[str, Any],
        bounds: dict[str, list[Any]],
    ) -> None:
        """Take what an output is compared with: its value if that is demanded, else something to try."""
        if not isinstance(part, n.Compare) or not isinstance(part.left, n.Var):
            return
        name, outputs = part.left.name, code.outputs.keys()
        if name in outputs and name not in found and n.free_names(part.right) <= {*code.params, *found}:
            value = self._value(code, args, part.right, found)
            if firm and part.op == "==":
                found[name] = value
            else:
                bounds.setdefault(name, []).append(value)

    def _value(self, code: CallCode, args: tuple[Any, ...], expr: n.Expr, found: dict[str, Any]) -> Any:
        function = self.model.compiler.expression(expr, [*code.params, *found])
        return function(self.store, *args, *found.values())

    def _unconstrained(self, kind: Type) -> Any:
        """A value for an output that no rule constrains: fresh for a number."""
        if kind.tag != "nat":
            return self.model.voc.default(kind)
        self.serial += 1
        return self.serial * FRESH

    def _tries(self, kind: Type, args: tuple[Any, ...]) -> Iterator[Any]:
        match kind.tag:
            case "enum":
                yield from self.model.voc.enums[kind.name]
            case "bool":
                yield from (True, False)
            case "nat":
                yield from (a for a in args if isinstance(a, int) and not isinstance(a, bool | Absent))
                self.serial += 1
                yield self.serial * FRESH
                yield from range(17)
                yield from (4096, 8192, 3584, 7680, 16384)
            case "ref":
                yield from self.store.live[kind.name]
                yield 0
            case _:
                yield self.model.voc.default(kind)


def _choices(tries: list[list[Any]], enumerators: list[bool]) -> Iterator[tuple[Any, ...]]:
    """Some thousand choices of one value each: enumerators in their order, for each of them others nearest first."""
    heads = list(itertools.product(*(each for each, first in zip(tries, enumerators, strict=True) if first)))
    for head in heads:
        given = iter(head)
        rest = [[next(given)] if first else each for each, first in zip(tries, enumerators, strict=True)]
        yield from itertools.islice(_nearest_first(rest), max(5000 // len(heads), 250))


def _nearest_first(tries: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Choices of one value each: the first of all, those that differ from them in one place, then the others."""
    if not all(tries):
        return
    usual = tuple(each[0] for each in tries)
    yield usual
    for i, each in enumerate(tries):
        for value in each[1:]:
            yield (*usual[:i], value, *usual[i + 1 :])
    yield from itertools.product(*tries)
