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
Move = tuple[Process, Any]
"""A transition: a process works on one element."""


@dataclass(slots=True)
class _Test:
    """One conjunct of a guard: its function and what it reads, apart by whether the designated objects can move."""

    holds: Any
    steady: list[Access]
    moving: list[Access]


@dataclass(slots=True)
class _Case:
    """Static facts of a case: what guard and effect touch, and the test of its unchanging part."""

    index: int
    guard: list[_Test]
    effect: list[Access]
    moving_effect: list[Access]
    constant: Any
    memory: list[tuple[Any, bool]]


@dataclass(slots=True)
class _Family:
    cases: list[_Case]
    steady: Any
    domain: list[tuple[Any, list[Access]]]
    sources: list[_Source]


@dataclass(frozen=True, slots=True)
class _Source:
    """A push: by which family, to which object, and of its head or of the head of its object's queue at a slot."""

    family: int
    path: Any
    slot: int | None


@dataclass(slots=True)
class Footprint:
    """What may be touched in any future: places read and written, and those that being enabled depends on."""

    reads: set[Place] = field(default_factory=set)
    writes: set[Place] = field(default_factory=set)
    needs: set[Place] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Pending:
    """The transitions that may come: their footprints, and for each those that bring its element to its queue."""

    prints: dict[Move, Footprint]
    before: dict[Move, list[Move]]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A case of a transition that may turn out to be possible."""

    move: Move
    case: _Case
    env: fp.Env
    guard: list[set[Place]]
    reads: set[Place]
    writes: set[Place]


class Analysis:
    """The static part, once a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.changing = _changing(model)
        self.resolver = fp.Resolver(model.layout, self.changing)
        self.internal = _written_by_steps(model)
        self.stepped, self.deletes = _stepped(model)
        self.touched_by_steps = _touched_by_steps(model)
        self.families = [self._family(f) for f in model.families]
        self._known: dict[Move, tuple[int, list[Any]]] = {}
        self.risky = {c.id: self._risky(c) for d in model.calls.values() for c in d.cases}

    def _family(self, family: Family) -> _Family:
        cases = [self._case(family, i, c) for i, c in enumerate(family.cases)]
        domain = list(self._domain(family, _inline(family, family.domain_tree))) if family.domain_tree else []
        return _Family(cases, self._steady(family), domain, self._sources(family))

    def _steady(self, family: Family) -> Any:
        """A test of what the domain asks of an element and no internal step can change; None if there is nothing."""
        if family.domain_tree is None:
            return None
        kept = [c for c in n.conjuncts(_inline(family, family.domain_tree)) if self._is_steady(c)]
        if not kept:
            return None
        test = n.Logic(family.domain_tree.type, "and", (*kept, n.Const(family.domain_tree.type, True)))
        return self.model.compiler.expression(test, [family.var, family.head_var])

    def _is_steady(self, expr: n.Expr) -> bool:
        for access in fp.reads(expr):
            if access.part == "M" or (access.part == "A" and self.deletes):
                return False
            if access.part not in "MA" and (access.obj.type.name, access.field) in self.stepped:
                return False
        return not any(isinstance(e, n.Choice) for e in n.walk(expr))

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
        fixed = [c for c in n.conjuncts(when) if self._is_fixed(family, c)]
        names = [family.var, family.head_var]
        compiler = self.model.compiler
        test: n.Expr = n.Logic(when.type, "and", (*fixed, n.Const(when.type, True)))
        effect = list(fp.effects(body))
        memory = [
            (compiler.expression(_places_of(a), names), a.writes) for a in effect if a.part == "M" and not a.bound
        ]
        guard = []
        for part in n.conjuncts(when):
            kept = self._kept(fp.reads(part))
            if part not in fixed:
                steady = [a for a in kept if self._stays(a)]
                guard.append(_Test(compiler.expression(part, names), steady, [a for a in kept if a not in steady]))
        rest = self._kept(a for a in effect if a.part != "M")
        return _Case(
            index,
            guard,
            [a for a in rest if self._stays(a)],
            [a for a in rest if not self._stays(a)],
            compiler.expression(test, names),
            memory,
        )

    def _stays(self, access: Access) -> bool:
        """Whether the object that an access designates depends on unchanging fields and look-up tables alone."""
        trees = [access.obj]
        for over in access.bound:
            if isinstance(over.domain, str):
                return False
            trees.append(over.domain)
        return not any(
            (isinstance(e, n.Builtin) and e.op in {"head", "last"})
            or (isinstance(e, n.Field) and (e.obj.type.name, e.field) in self.changing)
            for tree in trees
            for e in n.walk(tree)
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

    def _sources(self, family: Family) -> list[_Source]:
        """Where the elements of this family's queue come from: other families' heads, or heads of other queues."""
        found = []
        for i, other in enumerate(self.model.families):
            for stmt in (s for case in other.cases for s in _flat(case.body)):
                if not isinstance(stmt, n.Push) or (stmt.obj.type.name, stmt.field) != family.trigger:
                    continue
                path = self.model.compiler.expression(_inline(other, stmt.obj), [other.var, other.head_var])
                match _inline(other, stmt.value):
                    case n.Var(name=other.head_var):
                        found.append(_Source(i, path, None))
                    case n.Builtin(op="head", args=(n.Field(obj=n.Var(name=other.var)) as queue,)):
                        found.append(_Source(i, path, self.model.layout.slot[other.kind][queue.field]))
                    case _:
                        pass  # made here from other values: a record, whose consumers look at the queue itself
        return found

    def guards(self, family: Family, case: StepCase) -> list[Access]:
        """What a case's guard reads, of what can change."""
        return self._kept(fp.reads(_inline(family, case.when_tree)))

    def effects(self, family: Family, case: StepCase) -> list[Access]:
        """What a case's effect reads and writes."""
        return list(fp.effects(_inline_stmt(family, s) for s in case.body))

    # -- of one state ----------------------------------------------------------------------------

    def pending(self, store: Store) -> Pending:
        """Every transition that may come before the consumer's next call, with its footprint."""
        before = self._elements(store)
        prints = {move: self._idle(store, move) for move in before}
        written: set[tuple[int, int]] = set()
        waiting = self._waiting(store, before)
        moved = True
        while moved and waiting:
            moved = False
            rest = []
            for item in waiting:
                if self._potential(store, item, written):
                    moved = True
                    self._add(store, prints[item.move], item, written)
                else:
                    rest.append(item)
            waiting = rest
        return Pending(prints, before)

    def _idle(self, store: Store, move: Move) -> Footprint:
        (index, number), element = move
        family = self.model.families[index]
        kind, queue = family.trigger
        made = Footprint()
        made.reads.add((number, self.model.layout.slot[kind][queue], "H"))
        env = {family.var: frozenset((number,)), family.head_var: frozenset((element,))}
        for test, accesses in self.families[index].domain:
            if test is None or test(store, element):
                made.needs |= self._places(store, accesses, env)
        return made

    def _elements(self, store: Store) -> dict[Move, list[Move]]:
        """The transitions that may come, each with those that bring its element to its queue."""
        found: dict[Move, list[Move]] = {}
        todo: list[tuple[Move, Move | None]] = []
        for i, family in enumerate(self.model.families):
            slot = self.model.layout.slot[family.kind][family.trigger[1]]
            steady = self.families[i].steady
            todo.extend(
                (((i, number), element), None)
                for number in store.active[family.trigger]
                for element in store.objects[number][slot]
                if steady is None or steady(store, number, element)
            )
        while todo:
            move, source = todo.pop()
            known = move in found
            before = found.setdefault(move, [])
            if source is not None and source not in before:
                before.append(source)
            if not known:
                todo.extend((other, move) for other in self._following(store, move))
        return found

    def _following(self, store: Store, move: Move) -> Iterable[Move]:
        """The transitions to whose queues this one may push."""
        (index, number), element = move
        for j, family in enumerate(self.families):
            for source in family.sources:
                if source.family == index:
                    target = source.path(store, number, element)
                    pushed = (element,) if source.slot is None else store.objects[number][source.slot]
                    for e in pushed if target > 0 else ():
                        if family.steady is None or family.steady(store, target, e):
                            yield (j, target), e

    def _waiting(self, store: Store, moves: Iterable[Move]) -> list[_Waiting]:
        made = []
        version = store.shape[0]
        for move in moves:
            known = self._known.get(move)
            if known is None or known[0] != version:
                known = (version, self._steady_part(store, move))
                self._known[move] = known
            for case, env, guard, reads, writes in known[1]:
                made.append(_Waiting(move, case, env, self._moved(store, case, env, guard), reads, writes))
        return made

    def _steady_part(self, store: Store, move: Move) -> list[Any]:
        """Of each case that the element admits: the places that only look-up tables could change."""
        (index, number), element = move
        family = self.model.families[index]
        env = {family.var: frozenset((number,)), family.head_var: frozenset((element,))}
        made = []
        for case in self.families[index].cases:
            if case.constant(store, number, element):
                guard = [self._places(store, test.steady, env) for test in case.guard]
                reads = self._places(store, (a for a in case.effect if not a.writes), env)
                writes = self._places(store, (a for a in case.effect if a.writes), env)
                made.append((case, env, guard, reads, writes))
        return made

    def _moved(self, store: Store, case: _Case, env: fp.Env, guard: list[set[Place]]) -> list[set[Place]]:
        """What the parts of a guard read, with the objects that they designate at this moment."""
        return [
            known | self._places(store, test.moving, env) if test.moving else known
            for test, known in zip(case.guard, guard, strict=True)
        ]

    def _places(self, store: Store, accesses: Iterable[Access], env: fp.Env) -> set[Place]:
        return {p for a in accesses for p in self.resolver.places(store, a, env)}

    def _potential(self, store: Store, item: _Waiting, written: set[tuple[int, int]]) -> bool:
        """Whether every part of the guard holds now or reads what some transition may write."""
        for test, places in zip(item.case.guard, item.guard, strict=True):
            if any(p[:2] in written for p in places):
                continue
            try:
                if not test.holds(store, item.move[0][1], item.move[1]):
                    return False
            except NeedChoice:
                continue
        return True

    def _add(self, store: Store, made: Footprint, item: _Waiting, written: set[tuple[int, int]]) -> None:
        made.reads.update(*item.guard)
        made.reads |= item.reads
        made.writes |= item.writes
        written.update(p[:2] for p in item.writes)
        for access in item.case.moving_effect:
            places = set(self.resolver.places(store, access, item.env))
            if access.writes:
                made.writes |= places
                written.update(p[:2] for p in places)
            else:
                made.reads |= places
        exact = not any(p[:2] in written for p in made.reads if p[2] == "V")
        for places_of, writes in item.case.memory:
            found = _blocks(places_of(store, item.move[0][1], item.move[1])) if exact else {(0, 0, "M")}
            (made.writes if writes else made.reads).update(found)

    def of_call(
        self, store: Store, cases: Iterable[CallCase], others: Iterable[CallCase], args: dict[str, Any]
    ) -> Footprint:
        """What a call touches, of what steps touch too, if these cases may explain it; of others the guard counts."""
        made = Footprint()
        env = {k: frozenset((v,)) for k, v in args.items()}
        cases = list(cases)
        still = self._still_empty(store, cases, args)
        for case in cases:
            guard, outputs, effect = self.risky[case.id]
            for access in (*guard, *outputs):
                made.reads |= self._shared(store, access, env, still)
            for access in effect:
                (made.writes if access.writes else made.needs).update(self._shared(store, access, env, still))
        for case in others:
            for access in self.risky[case.id][0]:
                made.reads |= self._shared(store, access, env, still)
        return made

    def _shared(self, store: Store, access: Access, env: fp.Env, still: set[tuple[int, int]]) -> set[Place]:
        """The places of a call's access, without tests of emptiness that no step can change to matter."""
        if access.part == "M":
            return {(0, 0, "M")}
        try:
            found = set(self.resolver.places(store, access, env))
        except KeyError:
            return set()  # of an object that the call itself makes: nobody else knows it yet
        return {p for p in found if p[2] != "E" or (p[:2] not in still and not store.objects[p[0]][p[1]])}

    def _still_empty(self, store: Store, cases: list[CallCase], args: dict[str, Any]) -> set[tuple[int, int]]:
        """Queues that are empty and must be for each of the cases, which change nothing: no push can come before."""
        if not cases or any(c.body for c in cases):
            return set()
        env = {k: frozenset((v,)) for k, v in args.items()}
        groups = []
        for case in cases:
            found: set[tuple[int, int]] = set()
            for part in n.conjuncts(case.guard_tree) if case.guard_tree is not None else []:
                match part:
                    case n.Compare(op="==", left=n.Builtin(op="len", args=(n.Field(),)), right=n.Const(value=0)):
                        found |= {p[:2] for a in fp.reads(part) if a.part == "E" for p in self.resolver.places(store, a, env)}
                    case _:
                        pass
            groups.append({c for c in found if not store.objects[c[0]][c[1]]})
        return set.intersection(*groups)

    def _risky(self, case: CallCase) -> tuple[list[Access], list[Access], list[Access]]:
        guard = list(fp.reads(case.guard_tree)) if case.guard_tree is not None else []
        outputs = list(fp.reads(case.outputs_tree)) if case.outputs_tree is not None else []
        return self._risks(guard), self._risks(outputs), self._risks(fp.effects(case.body))

    def _risks(self, accesses: Iterable[Access]) -> list[Access]:
        """The accesses that some step's access can conflict with."""
        found: dict[Access, None] = {}
        for a in accesses:
            key = ("", "") if a.part == "M" else (a.obj.type.name, "" if a.part == "A" else a.field)
            if any((w or a.writes) and fp.meets(a.part, part) for part, w in self.touched_by_steps.get(key, ())):
                found[a] = None
        return list(found)


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


def _stepped(model: Model) -> tuple[set[tuple[str, str]], bool]:
    """The fields that internal steps write, and whether any step ends an object's life."""
    stmts = [s for f in model.families for c in f.cases for s in _flat(c.body)]
    fields = {(s.obj.type.name, s.field) for s in stmts if isinstance(s, n.Assign | n.Push | n.Pop | n.Clear)}
    return fields, any(isinstance(s, n.Delete) for s in stmts)


def _touched_by_steps(model: Model) -> dict[tuple[str, str], set[tuple[str, bool]]]:
    """For each field the parts that some step reads or writes; memory is the field ("", "")."""
    found: dict[tuple[str, str], set[tuple[str, bool]]] = {}
    for family in model.families:
        found.setdefault(family.trigger, set()).update({("E", False), ("H", False)})
        trees = [family.domain_tree] if family.domain_tree is not None else []
        for case in family.cases:
            accesses = [a for t in (*trees, case.when_tree) for a in fp.reads(_inline(family, t))]
            accesses += list(fp.effects(_inline_stmt(family, s) for s in case.body))
            for a in accesses:
                key = ("", "") if a.part == "M" else (a.obj.type.name, "" if a.part == "A" else a.field)
                found.setdefault(key, set()).add((a.part, a.writes))
    return found


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
