"""The third reading: expressions become z3 terms, statements a new symbolic state.

A state holds a few objects of each kind (the scope).  ``Base`` is the state before: each field of each
object an unknown that is made when it is first asked for, so that a proof speaks only of what its rules
touch.  ``State`` is what statements have changed of it.  Statements run under a condition (``under``), which
is how both sides of an ``if`` are performed at once.  A new object is one more object than the scope had, so
no state is left out because it would be too large.

Reading a field through an unknown reference is a choice between the objects that it may be; assigning
through it changes each of them under the condition that it is the one.  ``lookup`` takes the oldest live
object that fits; that at most one fits is a type invariant, which ``proofs`` proves too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verbs_reference import nodes as n
from verbs_reference import symbolic as s
from verbs_reference.showing import show
from verbs_reference.store import UPTO, Layout
from verbs_reference.symbolic import OPAQUE, Alt, FlagSet, Seq, Unknowns, conj, disj, ite, neg
from verbs_reference.types import Type

Env = dict[str, Any]
Place = tuple[str, str, int]


class Base:
    """The unknown state before a rule."""

    def __init__(
        self,
        layout: Layout,
        sizes: Mapping[str, int],
        cells: int,
        exact: bool = False,
        ranges: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
    ) -> None:
        self.layout = layout
        self.ranges = ranges or {}
        self.voc = layout.voc
        self.exact = exact
        self.sizes = {kind: sizes.get(kind, 0) for kind in layout.kinds}
        self.unknowns = Unknowns(layout.voc, self.sizes, cells)
        self.known: dict[Place, Any] = {}
        self.choices: dict[str, Alt] = {}
        self.givens: dict[str, Any] = {}

    def field(self, kind: str, name: str, number: int) -> Any:
        """The unknown value of a field; ``name`` is empty for whether the object is alive."""
        place = (kind, name, number)
        if place not in self.known:
            label = f"{kind}#{number}.{name or 'alive'}"
            if (kind, name) in self.ranges:
                self.known[place] = self.unknowns.one_of(label, self.ranges[kind, name])
            else:
                self.known[place] = self.unknowns.make(
                    label, self.voc.objects[kind][name].type if name else Type("bool")
                )
        return self.known[place]

    def choice(self, name: str) -> Alt:
        """The option of a choice: one unknown for all that one rule asks."""
        if name not in self.choices:
            self.choices[name] = self.unknowns.one_of(f"choice({name})", self.voc.choices[name][0])
        return self.choices[name]

    def given(self, name: str) -> Any:
        """Whether a parameter or output that may be absent is there."""
        if name not in self.givens:
            self.givens[name] = self.unknowns.make(f"given({name})", Type("bool"))
        return self.givens[name]


class State:
    """A state, by its difference from the base."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.changed: dict[Place, Any] = {}
        self.counts = dict(base.sizes)

    def copy(self) -> State:
        """A state that can be changed by itself."""
        twin = State(self.base)
        twin.changed, twin.counts = dict(self.changed), dict(self.counts)
        return twin

    def get(self, kind: str, name: str, number: int) -> Any:
        """A field of one object."""
        found = self.changed.get((kind, name, number))
        return self.base.field(kind, name, number) if found is None else found

    def alive(self, kind: str, number: int) -> Any:
        """Whether one object is alive."""
        return self.get(kind, "", number)

    def numbers(self, kind: str) -> range:
        """The objects of a kind."""
        return range(1, self.counts[kind] + 1)

    def put(self, kind: str, name: str, number: int, value: Any, under: Any) -> None:
        """Change a field where a condition holds."""
        if under is not False:
            self.changed[kind, name, number] = ite(under, value, self.get(kind, name, number))

    def new(self, kind: str, values: dict[str, Any], under: Any) -> int:
        """One object more, alive where a condition holds."""
        self.counts[kind] += 1
        number = self.counts[kind]
        self.changed[kind, "", number] = under
        defaults = self.base.layout.defaults[kind]
        for (name, info), default in zip(self.base.voc.objects[kind].items(), defaults, strict=True):
            value = values[name] if name in values else s.constant(default, info.type, self.base.voc)
            self.changed[kind, name, number] = value
        return number


class Reading:
    """Evaluates expressions on one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.base = state.base
        self.voc = state.base.voc

    def value(self, expr: n.Expr, env: Env) -> Any:
        """The term of an expression."""
        if expr.type.is_opaque:
            return OPAQUE
        match expr:
            case n.Const():
                return s.constant(expr.value, expr.type, self.voc)
            case n.Var():
                return env[expr.name]
            case n.Field():
                return self._field(expr, env)
            case n.Part():
                position = list(self.voc.records[expr.record.type.name]).index(expr.field)
                return self.value(expr.record, env)[position]
            case n.Choice():
                return self.base.choice(expr.name)
            case n.Lookup():
                return self._lookup(expr, env)
            case n.Over():
                return self._over(expr, env)
            case n.Builtin():
                return self._builtin(expr, env)
            case _:
                return self._plain(expr, env)

    def _plain(self, expr: n.Expr, env: Env) -> Any:
        match expr:
            case n.Not():
                return neg(self.value(expr.arg, env))
            case n.Logic():
                return self._logic(expr, env)
            case n.If():
                test = self.value(expr.test, env)
                return ite(test, self.value(expr.then, env), self.value(expr.other, env))
            case n.Arith():
                left, right = self.value(expr.left, env), self.value(expr.right, env)
                return s.arithmetic(expr.op, left, right, self.base.exact)
            case n.Compare():
                return self._compare(expr, env)
            case n.Member():
                return self._member(expr, env)
            case n.Flags():
                return self._flags([self.value(i, env) for i in expr.items])
            case n.Sequence():
                return Seq((True, self.value(i, env)) for i in expr.items)
            case n.Record():
                return tuple(self.value(p, env) for p in expr.parts)
            case _:
                raise TypeError(f"no such expression: {expr}")

    def _logic(self, expr: n.Logic, env: Env) -> Any:
        parts = []
        for arg in expr.args:
            part = self.value(arg, env)
            if part is (expr.op == "or"):
                return part
            parts.append(part)
        return conj(*parts) if expr.op == "and" else disj(*parts)

    def _field(self, expr: n.Field, env: Env) -> Any:
        kind = expr.obj.type.name
        target = self.value(expr.obj, env)
        made = s.constant(self.voc.default(expr.type), expr.type, self.voc)
        for key, cond in target.cases.items():
            if key:
                made = ite(cond, self.state.get(kind, expr.field, key), made)
        return made

    def _lookup(self, expr: n.Lookup, env: Env) -> Alt:
        wanted = self.value(expr.value, env)
        cases: dict[Any, Any] = {}
        none: Any = True
        for number in self.state.numbers(expr.kind):
            fits = s.equal(self.state.get(expr.kind, expr.field, number), wanted)
            here = conj(self.state.alive(expr.kind, number), fits)
            cases[number] = conj(none, here)
            none = conj(none, neg(here))
        return Alt({**cases, 0: none})

    def _compare(self, expr: n.Compare, env: Env) -> Any:
        left, right = self.value(expr.left, env), self.value(expr.right, env)
        if left is OPAQUE or right is OPAQUE:
            return self.base.unknowns.make(f"test {len(self.base.unknowns.facts)}: {show(expr)}", Type("bool"))
        if expr.op in {"==", "!="}:
            same = s.equal(left, right)
            return same if expr.op == "==" else neg(same)
        return s.order(expr.op, left, right)

    def _member(self, expr: n.Member, env: Env) -> Any:
        item, group = self.value(expr.item, env), self.value(expr.group, env)
        if isinstance(group, FlagSet):
            return disj(*(conj(cond, group.when(key)) for key, cond in item.cases.items()))
        return disj(*(conj(present, s.equal(each, item)) for present, each in group.cells))

    def _flags(self, items: list[Alt]) -> FlagSet:
        keys = dict.fromkeys(key for item in items for key in item.cases)
        return FlagSet({key: disj(*(item.when(key) for item in items)) for key in keys})

    def domain(self, expr: n.Over, env: Env) -> list[tuple[Any, Any]]:
        """What a quantifier runs over, as (present, value)."""
        if isinstance(expr.domain, str):
            kind = expr.domain
            return [(self.state.alive(kind, i), Alt({i: True})) for i in self.state.numbers(kind)]
        found = self.value(expr.domain, env)
        if isinstance(found, FlagSet):
            return [(cond, Alt({key: True})) for key, cond in found.members.items()]
        return list(found.cells)

    def _over(self, expr: n.Over, env: Env) -> Any:
        parts = []
        for present, each in self.domain(expr, env):
            inner = {**env, expr.var: each}
            holds = present if expr.test is None else conj(present, self.value(expr.test, inner))
            if holds is not False:
                parts.append((holds, self.value(expr.body, inner)))
        match expr.op:
            case "any":
                return disj(*(conj(holds, body) for holds, body in parts))
            case "all":
                return conj(*(disj(neg(holds), body) for holds, body in parts))
            case "count":
                return _total((holds, 1) for holds, _ in parts)
            case "sum":
                return _total(parts)
            case _:
                raise TypeError(f"no such quantifier: {expr.op}")

    def _builtin(self, expr: n.Builtin, env: Env) -> Any:
        if isinstance(named := expr.args[0], n.Var) and expr.op == "given":
            return self.base.given(named.name)
        args = [self.value(a, env) for a in expr.args]
        match expr.op:
            case "len":
                return _total((present, 1) for present, _ in args[0].cells)
            case "head" | "last" | "nth":
                return self._element(expr, args)
            case "alive":
                kind = expr.args[0].type.name
                return disj(*(conj(c, self.state.alive(kind, k)) for k, c in args[0].cases.items() if k))
            case "upto":
                return self._upto(args[0])
            case "pow2":
                return s.pow2(args[0], self.base.exact)
            case "shl":
                return s.shl(args[0], self.base.exact)
            case "size":
                return self.base.unknowns.make(f"size {len(self.base.unknowns.facts)}: {show(expr)}", Type("nat"))
            case _:
                raise TypeError(f"no such function: {expr.op}")

    def _element(self, expr: n.Builtin, args: list[Any]) -> Any:
        made = s.constant(self.voc.default(expr.type), expr.type, self.voc)
        cells = args[0].cells
        for i, (present, each) in enumerate(cells):
            if expr.op == "head":
                return ite(present, each, made)
            here = conj(present, s.equal(args[1], i)) if expr.op == "nth" else present
            made = ite(here, each, made)
        return made

    def _upto(self, count: Any) -> Seq:
        if isinstance(count, int):
            return Seq((True, i) for i in range(min(count, UPTO)))
        return Seq((count > i, i) for i in range(s.greatest(count, UPTO)))


def _total(parts: Iterable[tuple[Any, Any]]) -> Any:
    made: Any = 0
    for holds, value in parts:
        made = s.arithmetic("+", made, ite(holds, value, 0), True)
    return made


def perform(state: State, body: tuple[n.Stmt, ...], env: Env, under: Any = True) -> None:
    """Perform statements on a state where a condition holds; local names are added to ``env``."""
    for stmt in body:
        reading = Reading(state)
        match stmt:
            case n.Let():
                env[stmt.name] = reading.value(stmt.value, env)
            case n.New():
                values = {name: reading.value(expr, env) for name, expr in stmt.values}
                env[stmt.name] = Alt({state.new(stmt.kind, values, under): True})
            case n.Branch():
                test = reading.value(stmt.test, env)
                perform(state, stmt.then, dict(env), conj(under, test))
                perform(state, stmt.other, dict(env), conj(under, neg(test)))
            case n.Store() | n.Havoc():
                pass
            case _:
                _write(state, stmt, env, under)


def _write(state: State, stmt: n.Stmt, env: Env, under: Any) -> None:
    reading = Reading(state)
    assert isinstance(stmt, n.Assign | n.Push | n.Pop | n.Clear | n.Delete)
    kind = stmt.obj.type.name
    target = reading.value(stmt.obj, env)
    name = "" if isinstance(stmt, n.Delete) else stmt.field
    value = reading.value(stmt.value, env) if isinstance(stmt, n.Assign | n.Push) else None
    for number, cond in target.cases.items():
        if number == 0:
            continue
        old = state.get(kind, name, number)
        match stmt:
            case n.Assign():
                new = value
            case n.Delete():
                new = False
            case n.Clear():
                new = Seq(())
            case n.Pop():
                new = Seq(old.cells[1:])
            case n.Push():
                new = pushed(old, value)
        state.put(kind, name, number, new, conj(under, cond))


def pushed(queue: Seq, value: Any) -> Seq:
    """The queue with one more at its tail."""
    cells = []
    before: Any = True
    for present, each in queue.cells:
        cells.append((before, ite(present, each, value)))
        before = present
    return Seq([*cells, (before, value)])
