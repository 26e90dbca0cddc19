"""What can be said of the rules before any state is known: which fields steps write, and what each case
touches.

Trees become small functions once, so that nothing is interpreted while a program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from verbs_reference import changes
from verbs_reference import footprint as fp
from verbs_reference import nodes as n
from verbs_reference.accesses import Access, effects, reads
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import Family, Model, StepCase
from verbs_spec.errors import SpecError

Function = Callable[..., Any]


@dataclass(slots=True)
class Test:
    """A part of a guard: ``holds(S, number, element)``, and the atoms that it reads."""

    holds: Function
    reads: Function | None


@dataclass(slots=True)
class Pushed:
    """A push that a case always makes: to which queue, and the parts of the record that are known
    beforehand."""

    queue: tuple[str, str]
    path: Function
    parts: dict[int, Function]


@dataclass(slots=True)
class Memory:
    """An access to memory: its places, None if they cannot be told beforehand, and what they depend on."""

    places: Function | None
    depends: Function | None
    writes: bool


@dataclass(slots=True)
class CaseFacts:
    """Of a case: the test of its unchanging part, its guard, and the places of its effect."""

    index: int
    constant: Function | None
    tests: list[Test]
    reads: Function | None
    writes: Function | None
    assigns: list[tuple[Function, Function]]
    memory: list[Memory]
    pushes: list[Pushed]
    looks: tuple[Function, int] | None
    accesses: list[Access]
    """What guard and effect touch of what can change."""


@dataclass(frozen=True, slots=True)
class Target:
    """A push of an element: in which case, to which object; of the head, of what stands in another queue (its
    object and slot), or of a value that is known beforehand."""

    case: int
    path: Function
    queue: tuple[Function, int] | None = None
    value: Function | None = None


@dataclass(slots=True)
class Need:
    """A part of a domain: where it counts, what may make it true, and what may make it false."""

    admits: Function | None
    reads: Function
    depends: Function


@dataclass(slots=True)
class FamilyFacts:
    """Of a family: what its domain asks, and where its elements go."""

    trigger: tuple[str, str]
    cases: list[CaseFacts]
    steady: Function | None
    domain: list[Test]
    needs: list[Need]
    moving: Function | None
    targets: list[tuple[int, Target]] = field(default_factory=list)


class Statics:
    """All of it for one model; what the statics of a model that differs in a few rules hold already is taken over."""

    def __init__(self, model: Model, like: Statics | None = None) -> None:
        self.model = model
        self.changing = changes.changing(model)
        self.internal = changes.written_by_steps(model)
        self.stepped, self.deletes = changes.stepped(model)
        filled = changes.filled(model)
        self.like = like if like is not None and self._agrees(like, filled) else None
        if self.like is not None:  # what may change there may change here too
            self.changing, self.stepped, self.deletes = self.like.changing, self.like.stepped, self.like.deletes
        self.resolver: fp.Resolver = self.like.resolver if self.like else fp.Resolver(model.layout, self.changing)
        self.designators: fp.Designators = (
            self.like.designators
            if self.like is not None
            else fp.Designators(model.compiler, self.stepped, self.changing, filled)
        )
        known: dict[int, CaseFacts] = {} if self.like is None else self.like._cases
        self._cases: dict[int, CaseFacts] = {
            id(c): known[id(c)] for f in model.families for c in f.cases if id(c) in known
        }
        self.families: list[FamilyFacts] = []
        for i, family in enumerate(model.families):
            with fp.placed(model.spec.families[family.name].name.where):
                if self.like is not None and family is self.like.model.families[i]:
                    self.families.append(replace(self.like.families[i], targets=[]))
                else:
                    self.families.append(self._family(family))
        for j, family in enumerate(model.families):
            for i, other in enumerate(model.families):
                self.families[i].targets += [(j, target) for target in self._between(i, other, j, family)]

    def knows(self, case: StepCase) -> bool:
        """Whether the case is the very same in the model that this one is like."""
        return self.like is not None and id(case) in self.like._cases

    def _between(self, i: int, other: Family, j: int, family: Family) -> Iterable[Target]:
        """What the one family brings to the other's queue."""
        old = [] if self.like is None else self.like.model.families
        if self.like is not None and other is old[i] and family is old[j]:
            return [target for to, target in self.like.families[i].targets if to == j]
        return self._sources(other, family)

    def _agrees(self, like: Statics, filled: set[tuple[str, str]]) -> bool:
        """Whether what was found for the families of another model holds for equal ones of this model.

        It does if no more can change here than there: that something may change is always allowed for."""
        mine, other = self.model.layout, like.model.layout
        return (
            self.changing <= like.changing
            and self.stepped <= like.stepped
            and self.deletes <= like.deletes
            and filled <= like.designators.filled
            and [f.name for f in self.model.families] == [f.name for f in like.model.families]
            and (mine is other or mine.agrees(other))
        )

    def _family(self, family: Family) -> FamilyFacts:
        names = [family.var, family.head_var]
        domain = [] if family.domain_tree is None else n.conjuncts(inline(family, family.domain_tree))
        cases = []
        for i, case in enumerate(family.cases):
            if not self.knows(case):
                with fp.placed(case.rule.id.where):
                    self._cases[id(case)] = self._case(family, i, case)
            cases.append(self._cases[id(case)])
        accesses = [a for tree in domain for a in self.kept(reads(tree))]
        accesses += [a for case in cases for a in case.accesses]
        return FamilyFacts(
            family.trigger,
            cases,
            self._test([c for c in domain if self.is_steady(c)], names),
            [self._part(tree, names) for tree in domain],
            [x for tree in domain for x in self._needs(family, tree)],
            self.designators.moving(accesses, names),
        )

    def _part(self, tree: n.Expr, names: list[str]) -> Test:
        return Test(
            self.model.compiler.expression(tree, names),
            self.designators.atoms(self.kept(reads(tree)), names),
        )

    def _test(self, parts: list[n.Expr], names: list[str]) -> Function | None:
        """A test of all of some parts; None if there are none."""
        if not parts:
            return None
        tree = n.Logic(parts[0].type, "and", (*parts, n.Const(parts[0].type, True)))
        return self.model.compiler.expression(tree, names)

    def _needs(
        self, family: Family, expr: n.Expr, *, positive: bool = True, beside: tuple[n.Expr, ...] = ()
    ) -> Iterator[Need]:
        """What a domain reads; what stands beside an unchanging test counts only where that test leaves it
        open."""
        if isinstance(expr, n.Not):
            yield from self._needs(family, expr.arg, positive=not positive, beside=beside)
            return
        if isinstance(expr, n.Logic):
            fixed = [c for c in expr.args if self.is_fixed(family, c)]
            tests = fixed if expr.op == "and" else [n.Not(c.type, c) for c in fixed]
            for child in expr.args:
                if child not in fixed:
                    yield from self._needs(family, child, positive=positive, beside=(*beside, *tests))
            return
        names = [family.var, family.head_var]
        accesses = self.kept(reads(expr))
        atoms = self.designators.atoms(accesses, names)
        depends = self.designators.atoms([_wanting(a, expr) for a in accesses] if positive else accesses, names)
        if atoms is not None and depends is not None:
            yield Need(self._test(list(beside), [family.head_var]), atoms, depends)

    def _case(self, family: Family, index: int, case: StepCase) -> CaseFacts:
        names = [family.var, family.head_var]
        parts = n.conjuncts(inline(family, case.when_tree))
        fixed = [c for c in parts if self.is_fixed(family, c)]
        body = [inline_statement(family, s) for s in case.body]
        effect = list(effects(body))
        kept = self.kept(effect)
        guards = self.kept(a for tree in parts for a in reads(tree))
        atoms = self.designators.atoms
        return CaseFacts(
            index,
            self._test(fixed, [family.head_var]),
            [self._part(tree, names) for tree in parts if tree not in fixed],
            atoms((a for a in kept if not a.writes), names),
            atoms((a for a in kept if a.writes), names),
            list(self._assigns(body, names)),
            [self._memory(a, names) for a in effect if a.part == "M"],
            list(self._pushes(body, names)),
            self._looks(family, parts),
            [*guards, *kept],
        )

    def _looks(self, family: Family, parts: list[n.Expr]) -> tuple[Function, int] | None:
        """The other queue whose head a guard looks at, if it is one: its object and slot."""
        heads = {e.args[0] for p in parts for e in n.walk(p) if isinstance(e, n.Builtin) and e.op == "head"}
        if len(heads) != 1:
            return None
        queue = heads.pop()
        if not isinstance(queue, n.Field) or not self.is_steady(queue.obj):
            return None
        path = self.model.compiler.expression(queue.obj, [family.var, family.head_var])
        return path, self.model.layout.slot[queue.obj.type.name][queue.field]

    def _memory(self, access: Access, names: list[str]) -> Memory:
        tree = places_of(access)
        known = not access.bound and n.free_names(tree) <= set(names)
        return Memory(
            self.model.compiler.expression(tree, names) if known else None,
            self.designators.atoms(self.kept(reads(tree)), names) if known else None,
            access.writes,
        )

    def _assigns(self, body: list[n.Stmt], names: list[str]) -> Iterator[tuple[Function, Function]]:
        """The fields that are assigned what is known before: their atoms and the value."""
        for stmt in n.flat(body):
            if isinstance(stmt, n.Assign) and self.is_steady(stmt.value) and n.free_names(stmt.value) <= set(names):
                atoms = self.designators.atoms([Access(stmt.obj, stmt.field, "V", True)], names)
                if atoms is not None:
                    yield atoms, self.model.compiler.expression(stmt.value, names)

    def _pushes(self, body: list[n.Stmt], names: list[str]) -> Iterator[Pushed]:
        for stmt in body:
            if isinstance(stmt, n.Push) and isinstance(stmt.value, n.Record) and self.is_steady(stmt.obj):
                parts = {
                    i: self.model.compiler.expression(p, names)
                    for i, p in enumerate(stmt.value.parts)
                    if self.is_steady(p) and n.free_names(p) <= set(names)
                }
                path = self.model.compiler.expression(stmt.obj, names)
                yield Pushed((stmt.obj.type.name, stmt.field), path, parts)

    def _sources(self, other: Family, family: Family) -> Iterator[Target]:
        """Where the elements of this family's queue come from in another family: its heads, or other queues."""
        for index, case in enumerate(other.cases):
            known: dict[str, n.Expr] = {}
            for stmt in n.flat(case.body):
                if isinstance(stmt, n.Let):
                    known[stmt.name] = inline(other, n.substitute(stmt.value, known))
                if isinstance(stmt, n.Push) and (stmt.obj.type.name, stmt.field) == family.trigger:
                    value = inline(other, n.substitute(stmt.value, known))
                    yield from self._target(other, index, stmt, value)

    def _target(self, other: Family, index: int, stmt: n.Push, value: n.Expr) -> Iterator[Target]:
        names = [other.var, other.head_var]
        path = self.model.compiler.expression(inline(other, stmt.obj), names)
        match value:
            case n.Record():
                pass  # made here from other values, and its consumers look at the queue itself
            case n.Var(name=other.head_var):
                yield Target(index, path)
            case n.Builtin(op="head", args=(n.Field() as queue,)) if self._is_known(queue.obj, names):
                slot = self.model.layout.slot[queue.obj.type.name][queue.field]
                yield Target(index, path, (self.model.compiler.expression(queue.obj, names), slot))
            case _ if self._is_known(value, names):
                yield Target(index, path, None, self.model.compiler.expression(value, names))
            case _:
                rule = other.cases[index].rule
                raise SpecError(
                    f"{rule.id} pushes to {stmt.obj.type.name}.{stmt.field}, from which a family takes, what steps may "
                    "change before; push the head of a queue, or what no step changes",
                    rule.id.where,
                )

    def _is_known(self, expr: n.Expr, names: list[str]) -> bool:
        """Whether an expression of a step can be told before any step is taken."""
        return self.is_steady(expr) and n.free_names(expr) <= set(names)

    # -- kinds of expressions --------------------------------------------------------------------

    def is_fixed(self, family: Family, expr: n.Expr) -> bool:
        """Whether an expression depends on nothing but the element's unchanging fields."""
        for e in n.walk(expr):
            if isinstance(e, n.Choice | n.Lookup) or (isinstance(e, n.Over) and isinstance(e.domain, str)):
                return False
            if isinstance(e, n.Builtin) and e.op in {"head", "last", "load", "alive"}:
                return False
            if isinstance(e, n.Field) and (e.obj.type.name, e.field) in self.changing:
                return False
        return n.free_names(expr) <= {family.head_var}

    def is_steady(self, expr: n.Expr) -> bool:
        """Whether no internal step can change what an expression is."""
        for access in reads(expr):
            if access.part == "M" or (access.part == "A" and self.deletes):
                return False
            if access.part != "A" and (access.obj.type.name, access.field) in self.stepped:
                return False
        return not any(
            isinstance(e, n.Choice) or (isinstance(e, n.Over) and isinstance(e.domain, str)) for e in n.walk(expr)
        )

    def kept(self, accesses: Iterable[Access]) -> list[Access]:
        """Only accesses to what can change; the same one once."""
        found: dict[Access, None] = {}
        for a in accesses:
            if a.part == "A" or (a.part != "M" and (a.obj.type.name, a.field) in self.changing):
                found[a] = None
        return list(found)


def _wanting(access: Access, expr: n.Expr) -> Access:
    """A test that a queue is not empty, in a place where true is wanted, cannot be made false by a push."""
    match expr:
        case n.Compare(op="!=" | ">", left=n.Builtin(op="len")) if access.part == "E":
            return replace(access, part="H")
        case _:
            return access


def lasting(expr: n.Expr, *, positive: bool = True) -> Iterator[Access]:
    """What a condition reads, a push left out where it cannot make the condition false."""
    if isinstance(expr, n.Not):
        yield from lasting(expr.arg, positive=not positive)
    elif isinstance(expr, n.Logic):
        for child in expr.args:
            yield from lasting(child, positive=positive)
    else:
        yield from (_wanting(a, expr) if positive else a for a in reads(expr))


def places_of(access: Access) -> n.Expr:
    """The places of an access to memory."""
    return access.obj.args[0] if isinstance(access.obj, n.Builtin) and access.obj.op == "load" else access.obj
