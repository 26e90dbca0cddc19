"""What can be said of the rules before any state is known: which fields steps write, and what each case
touches.

Trees become small functions once, so that nothing is interpreted while a program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from verbs_reference import footprint as fp
from verbs_reference import nodes as n
from verbs_reference.footprint import Access
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
        self.changing = _changing(model)
        self.internal = _written_by_steps(model)
        self.stepped, self.deletes = _stepped(model)
        self.resolver = fp.Resolver(model.layout, self.changing)
        self.like = like if like is not None and self._agrees(like) else None
        self.designators = fp.Designators(model.compiler, self.stepped, self.changing, _filled(model))
        if self.like is not None:
            self.designators = self.like.designators
        self.families: list[FamilyFacts] = []
        for i, family in enumerate(model.families):
            with fp.placed(model.spec.families[family.name].name.where):
                if self.like is not None and same_family(family, self.like.model.families[i]):
                    self.families.append(replace(self.like.families[i], targets=[]))
                else:
                    self.families.append(self._family(family))
        for j, family in enumerate(model.families):
            for i, target in self._sources(family):
                self.families[i].targets.append((j, target))

    def _agrees(self, like: Statics) -> bool:
        """Whether what was found for the families of another model holds for equal ones of this model."""
        mine, other = self.model.layout, like.model.layout
        return (
            (self.changing, self.stepped, self.deletes) == (like.changing, like.stepped, like.deletes)
            and [f.name for f in self.model.families] == [f.name for f in like.model.families]
            and (mine.slot, mine.looked_up, mine.triggers, mine.memory, mine.transient, mine.defaults)
            == (other.slot, other.looked_up, other.triggers, other.memory, other.transient, other.defaults)
        )

    def _family(self, family: Family) -> FamilyFacts:
        names = [family.var, family.head_var]
        domain = [] if family.domain_tree is None else n.conjuncts(inline(family, family.domain_tree))
        cases = []
        for i, case in enumerate(family.cases):
            with fp.placed(case.rule.id.where):
                cases.append(self._case(family, i, case))
        accesses = [a for tree in domain for a in self.kept(fp.reads(tree))]
        for case in family.cases:
            accesses += self.guards(family, case) + self.kept(self.effects(family, case))
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
            self.designators.atoms(self.kept(fp.reads(tree)), names),
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
        reads = self.kept(fp.reads(expr))
        atoms = self.designators.atoms(reads, names)
        depends = self.designators.atoms([_wanting(a, expr) for a in reads] if positive else reads, names)
        if atoms is not None and depends is not None:
            yield Need(self._test(list(beside), [family.head_var]), atoms, depends)

    def _case(self, family: Family, index: int, case: StepCase) -> CaseFacts:
        names = [family.var, family.head_var]
        parts = n.conjuncts(inline(family, case.when_tree))
        fixed = [c for c in parts if self.is_fixed(family, c)]
        body = [inline_statement(family, s) for s in case.body]
        effect = list(fp.effects(body))
        kept = self.kept(effect)
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
            self.designators.atoms(self.kept(fp.reads(tree)), names) if known else None,
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

    def _sources(self, family: Family) -> Iterator[tuple[int, Target]]:
        """Where the elements of this family's queue come from: other families' heads, or other queues."""
        for i, other in enumerate(self.model.families):
            for index, case in enumerate(other.cases):
                known: dict[str, n.Expr] = {}
                for stmt in n.flat(case.body):
                    if isinstance(stmt, n.Let):
                        known[stmt.name] = inline(other, n.substitute(stmt.value, known))
                    if isinstance(stmt, n.Push) and (stmt.obj.type.name, stmt.field) == family.trigger:
                        value = inline(other, n.substitute(stmt.value, known))
                        yield from ((i, t) for t in self._target(other, index, stmt, value))

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
        for access in fp.reads(expr):
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

    def guards(self, family: Family, case: StepCase) -> list[Access]:
        """What a case's guard reads, of what can change."""
        return self.kept(fp.reads(inline(family, case.when_tree)))

    def effects(self, family: Family, case: StepCase) -> list[Access]:
        """What a case's effect reads and writes."""
        return list(fp.effects(inline_statement(family, s) for s in case.body))


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
        yield from (_wanting(a, expr) if positive else a for a in fp.reads(expr))


def same_family(one: Family, other: Family) -> bool:
    """Whether two models' families are the same, tree by tree."""
    return _family_trees(one) == _family_trees(other)


def _family_trees(family: Family) -> tuple[object, ...]:
    cases = [(c.id, c.when_tree, c.body) for c in family.cases]
    return family.kind, family.var, family.trigger, family.head_var, family.lets, family.domain_tree, cases


def places_of(access: Access) -> n.Expr:
    """The places of an access to memory."""
    return access.obj.args[0] if isinstance(access.obj, n.Builtin) and access.obj.op == "load" else access.obj


def inline(family: Family, expr: n.Expr) -> n.Expr:
    """An expression of a family without the family's own names."""
    for name in reversed(family.lets):
        expr = n.substitute(expr, {name: family.lets[name]})
    return expr


def inline_statement(family: Family, stmt: n.Stmt) -> n.Stmt:
    """The same for a statement."""
    changed: dict[str, Any] = {}
    for name in type(stmt).__dataclass_fields__:
        value = getattr(stmt, name)
        if isinstance(value, n.Expr):
            changed[name] = inline(family, value)
        elif isinstance(value, tuple) and value and isinstance(value[0], n.Stmt):
            changed[name] = tuple(inline_statement(family, s) for s in value)
        elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
            changed[name] = tuple((k, inline(family, v)) for k, v in value)
        else:
            changed[name] = value
    return type(stmt)(**changed)


def _bodies(model: Model) -> Iterator[n.Stmt]:
    for family in model.families:
        for case in family.cases:
            yield from n.flat(case.body)


def _assigned(stmts: Iterable[n.Stmt]) -> set[tuple[str, str]]:
    return {(s.obj.type.name, s.field) for s in stmts if isinstance(s, n.Assign | n.Push | n.Pop | n.Clear)}


def _changing(model: Model) -> set[tuple[str, str]]:
    """Fields written after their object was made, by anybody."""
    calls = (s for call in model.calls.values() for case in call.cases for s in n.flat(case.body))
    return _assigned(_bodies(model)) | _assigned(calls)


def _stepped(model: Model) -> tuple[set[tuple[str, str]], bool]:
    """The fields that internal steps write, and whether any step makes an object or ends one's life."""
    return _assigned(_bodies(model)), any(isinstance(s, n.Delete | n.New) for s in _bodies(model))


def _filled(model: Model) -> set[tuple[str, str]]:
    """The queues to which internal steps push."""
    return {(s.obj.type.name, s.field) for s in _bodies(model) if isinstance(s, n.Push | n.Assign)}


def _written_by_steps(model: Model) -> dict[tuple[str, str], set[object] | None]:
    """For each field that steps assign: the constants, or None if it may become anything."""
    found: dict[tuple[str, str], set[object] | None] = {}
    for stmt in _bodies(model):
        if not isinstance(stmt, n.Assign):
            continue
        key = (stmt.obj.type.name, stmt.field)
        known = found.setdefault(key, set())
        if isinstance(stmt.value, n.Const) and known is not None:
            known.add(stmt.value.value)
        else:
            found[key] = None
    return found
