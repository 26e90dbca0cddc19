"""What the device may still do: for each process, the places that its future steps may read and write.

A *process* is one family of internal steps at one object: (position of the family, object number).  Its
elements are the records that may reach the queue it takes: those in the queue, and those that other
processes may push there.  For each element each case is either impossible (its guard is false now, and no
place it reads can be written by anybody) or potential; a fixed point over all processes decides.  What
the potential cases touch is the process's footprint.  It holds for every future of the state until the
consumer's next call, which is what the search in ``belief`` needs to leave independent steps alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from verbs_reference import footprint as fp
from verbs_reference import nodes as n
from verbs_reference.footprint import Access, Place
from verbs_reference.model import CallCase, Family, Model, StepCase
from verbs_reference.store import NeedChoice, Store

Process = tuple[int, int]


@dataclass(slots=True)
class _Case:
    """Static facts of a case: what guard and effect touch, and the test of its unchanging part."""

    index: int
    guard: list[Access]
    effect: list[Access]
    constant: Any
    applies: Any
    memory: list[tuple[Any, bool]]


@dataclass(slots=True)
class _Family:
    cases: list[_Case]
    domain: list[tuple[Any, list[Access]]]
    sources: list[tuple[int, Any]]


@dataclass(slots=True)
class Footprint:
    """What a process may do in any future: places read and written, and those that its being enabled reads."""

    reads: set[Place] = field(default_factory=set)
    writes: set[Place] = field(default_factory=set)
    needs: set[Place] = field(default_factory=set)


class Analysis:
    """The static part, once a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.changing = _changing(model)
        self.resolver = fp.Resolver(model.layout, self.changing)
        self.internal = _written_by_steps(model)
        self.families = [self._family(f) for f in model.families]
        self._cache: dict[tuple[int, int, int], list[bool]] = {}

    def _family(self, family: Family) -> _Family:
        cases = [self._case(family, i, c) for i, c in enumerate(family.cases)]
        domain = list(self._domain(family, _inline(family, family.domain_tree))) if family.domain_tree else []
        return _Family(cases, domain, self._sources(family))

    def _domain(self, family: Family, expr: n.Expr) -> Iterable[tuple[Any, list[Access]]]:
        """The accesses of a domain; those beside an unchanging test count only where that test holds."""
        if isinstance(expr, n.Logic | n.Not):
            parts = n.children(expr)
            fixed = [c for c in parts if isinstance(expr, n.Logic) and expr.op == "and" and self._is_fixed(family, c)]
            if not fixed:
                for child in parts:
                    yield from self._domain(family, child)
                return
            test = self.model.compiler.expression(
                n.Logic(expr.type, "and", (*fixed, n.Const(expr.type, True))), [family.head_var]
            )
            yield test, self._kept(a for c in parts if c not in fixed for a in fp.reads(c))
            return
        yield None, self._kept(fp.reads(expr))

    def _kept(self, accesses: Iterable[Access]) -> list[Access]:
        """Only accesses to what can change; the same one once."""
        found: dict[Access, None] = {}
        for a in accesses:
            if a.part in "MA" or (a.obj.type.name, a.field) in self.changing:
                found[a] = None
        return list(found)

    def _case(self, family: Family, index: int, case: StepCase) -> _Case:
        when = _inline(family, case.when_tree)
        body = tuple(_inline_stmt(family, s) for s in case.body)
        fixed = [c for c in fp.conjuncts(when) if self._is_fixed(family, c)]
        names = [family.var, family.head_var]
        compiler = self.model.compiler
        test: n.Expr = n.Logic(when.type, "and", (*fixed, n.Const(when.type, True)))
        effect = list(fp.effects(body))
        memory = [
            (compiler.expression(_places_of(a), names), a.writes) for a in effect if a.part == "M" and not a.bound
        ]
        return _Case(
            index,
            self._kept(fp.reads(when)),
            self._kept(a for a in effect if a.part != "M"),
            compiler.expression(test, names),
            compiler.expression(when, names),
            memory,
        )

    def _is_fixed(self, family: Family, expr: n.Expr) -> bool:
        """Whether a conjunct depends on nothing but the element's unchanging fields."""
        for e in n.walk(expr):
            if isinstance(e, n.Choice | n.Lookup) or (isinstance(e, n.Over) and isinstance(e.domain, str)):
                return False
            if isinstance(e, n.Builtin) and e.op in {"head", "last", "load", "alive"}:
                return False
            if isinstance(e, n.Field) and (e.obj.type.name, e.field) in self.changing:
                return False
        return n.free_names(expr) <= {family.head_var}

    def _sources(self, family: Family) -> list[tuple[int, Any]]:
        """The families that push to this one's queue, with the path from their object to the target."""
        found = []
        for i, other in enumerate(self.model.families):
            for case in other.cases:
                for stmt in _flat(case.body):
                    if (
                        isinstance(stmt, n.Push)
                        and (stmt.obj.type.name, stmt.field) == family.trigger
                        and stmt.value == n.Var(family.head_type, other.head_var)
                    ):
                        path = self.model.compiler.expression(_inline(other, stmt.obj), [other.var, other.head_var])
                        found.append((i, path))
        return found

    def guards(self, family: Family, case: StepCase) -> list[Access]:
        """What a case's guard reads, of what can change."""
        return self._kept(fp.reads(_inline(family, case.when_tree)))

    def effects(self, family: Family, case: StepCase) -> list[Access]:
        """What a case's effect reads and writes."""
        return list(fp.effects(_inline_stmt(family, s) for s in case.body))

    # -- of one state ----------------------------------------------------------------------------

    def footprints(self, store: Store) -> dict[Process, Footprint]:
        """The footprint of every process that has or may get work."""
        elements = self._elements(store)
        written: set[tuple[int, int]] = set()
        waiting = self._waiting(store, elements)
        prints: dict[Process, Footprint] = {}
        for process in elements:
            prints[process] = self._idle(store, process)
        moved = True
        while moved and waiting:
            moved = False
            rest = []
            for item in waiting:
                process, element, case, env, guard = item
                if self._potential(store, process, element, case, guard, written):
                    moved = True
                    self._add(store, prints[process], case, env, guard, process, element, written)
                else:
                    rest.append(item)
            waiting = rest
        return prints

    def _idle(self, store: Store, process: Process) -> Footprint:
        index, number = process
        kind, queue = self.model.families[index].trigger
        slot = self.model.layout.slot[kind][queue]
        made = Footprint()
        made.needs.add((number, slot, "E"))
        made.reads.add((number, slot, "H"))
        return made

    def _elements(self, store: Store) -> dict[Process, dict[int, None]]:
        """For each process the elements that may reach its queue."""
        found: dict[Process, dict[int, None]] = {}
        todo: list[tuple[Process, int]] = []
        for i, family in enumerate(self.model.families):
            slot = self.model.layout.slot[family.kind][family.trigger[1]]
            for number in store.active[family.trigger]:
                for element in store.objects[number][slot]:
                    todo.append(((i, number), element))
        while todo:
            process, element = todo.pop()
            have = found.setdefault(process, {})
            if element in have:
                continue
            have[element] = None
            for j, family in enumerate(self.families):
                for source, path in family.sources:
                    if source == process[0]:
                        target = path(store, process[1], element)
                        if target > 0:
                            todo.append(((j, target), element))
        return found

    def _waiting(self, store: Store, elements: dict[Process, dict[int, None]]) -> list[Any]:
        made = []
        for process, group in elements.items():
            index, number = process
            family = self.model.families[index]
            for element in group:
                env = {family.var: frozenset((number,)), family.head_var: frozenset((element,))}
                for case in self.families[index].cases:
                    if case.constant(store, number, element):
                        made.append((process, element, case, env, self._places(store, case.guard, env)))
        return made

    def _places(self, store: Store, accesses: list[Access], env: fp.Env) -> set[Place]:
        return {p for a in accesses for p in self.resolver.places(store, a, env)}

    def _potential(
        self, store: Store, process: Process, element: int, case: _Case, guard: set[Place], written: set[tuple[int, int]]
    ) -> bool:
        if any((p[0], p[1]) in written for p in guard):
            return True
        try:
            return bool(case.applies(store, process[1], element))
        except NeedChoice:
            return True

    def _add(
        self,
        store: Store,
        made: Footprint,
        case: _Case,
        env: fp.Env,
        guard: set[Place],
        process: Process,
        element: int,
        written: set[tuple[int, int]],
    ) -> None:
        index = process[0]
        for test, accesses in self.families[index].domain:
            if test is None or test(store, element):
                made.needs |= self._places(store, accesses, env)
        made.reads |= guard
        for access in case.effect:
            places = set(self.resolver.places(store, access, env))
            if access.writes:
                made.writes |= places
                written |= {(p[0], p[1]) for p in places}
            else:
                made.reads |= places
        exact = not any((p[0], p[1]) in written for p in made.reads)
        for places_of, writes in case.memory:
            found = _blocks(places_of(store, process[1], element)) if exact else {(0, 0, "M")}
            (made.writes if writes else made.reads).update(found)

    def of_call(self, store: Store, cases: Iterable[CallCase], args: dict[str, Any]) -> Footprint:
        """What a call with these arguments touches under these rules."""
        made = Footprint()
        env = {k: frozenset((v,)) for k, v in args.items()}
        for case in cases:
            for tree in (case.guard_tree, case.outputs_tree):
                if tree is not None:
                    kept = self._kept(a for a in fp.reads(tree) if a.part != "M")
                    made.reads |= self._places(store, kept, env)
                    if any(a.part == "M" for a in fp.reads(tree)):
                        made.reads.add((0, 0, "M"))
            for access in self._kept(fp.effects(case.body)):
                try:
                    places = set(self.resolver.places(store, access, env))
                except KeyError:
                    continue  # of an object that the call itself makes: nobody else knows it yet
                (made.writes if access.writes else made.reads).update(places)
        return made


def _blocks(places: Iterable[tuple[int, int]]) -> set[Place]:
    return {
        (-1, block, "M") for start, length in places if length for block in range(start >> 6, (start + length - 1 >> 6) + 1)
    }


def _places_of(access: Access) -> n.Expr:
    return access.obj.args[0] if isinstance(access.obj, n.Builtin) and access.obj.op == "load" else access.obj


def _flat(body: Iterable[n.Stmt]) -> Iterable[n.Stmt]:
    for stmt in body:
        yield stmt
        if isinstance(stmt, n.Branch):
            yield from _flat(stmt.then)
            yield from _flat(stmt.other)


def _inline(family: Family, expr: n.Expr) -> n.Expr:
    for name in reversed(family.lets):
        expr = n.substitute(expr, {name: family.lets[name]})
    return expr


def _inline_stmt(family: Family, stmt: n.Stmt) -> n.Stmt:
    changed: dict[str, Any] = {}
    for name in type(stmt).__dataclass_fields__:
        value = getattr(stmt, name)
        if isinstance(value, n.Expr):
            changed[name] = _inline(family, value)
        elif isinstance(value, tuple) and value and isinstance(value[0], n.Stmt):
            changed[name] = tuple(_inline_stmt(family, s) for s in value)
        else:
            changed[name] = value
    return type(stmt)(**changed)


def _changing(model: Model) -> set[tuple[str, str]]:
    """Fields written after their object was made, by anybody."""
    bodies = [c.body for f in model.families for c in f.cases] + [c.body for d in model.calls.values() for c in d.cases]
    return {
        (s.obj.type.name, s.field)
        for body in bodies
        for s in _flat(body)
        if isinstance(s, n.Assign | n.Push | n.Pop | n.Clear)
    }


def _written_by_steps(model: Model) -> dict[tuple[str, str], set[object] | None]:
    """For each field that steps assign: the constants, or None if it may become anything."""
    found: dict[tuple[str, str], set[object] | None] = {}
    for family in model.families:
        for case in family.cases:
            for s in _flat(case.body):
                if isinstance(s, n.Assign):
                    key = (s.obj.type.name, s.field)
                    known = found.setdefault(key, set())
                    if isinstance(s.value, n.Const) and known is not None:
                        known.add(s.value.value)
                    else:
                        found[key] = None
    return found
