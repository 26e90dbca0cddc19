"""Which places of the state a rule may read and write: the static half of the belief's search.

An *access* is a field of an object that an expression over the rule's names designates.  A place is
(object number, slot, part), where part is one of

    V   a field that is no queue, or a queue as a whole
    H   a queue's head: read by ``head``, written by ``pop``
    T   a queue's tail: written by ``push``
    E   whether a queue is empty
    A   whether the object is alive
    M   contents of memory: a block of 64 bytes, or (0, 0) for any

Two accesses conflict if one of them writes and both touch the same place; H and T do not conflict, E
conflicts with T only while the queue is empty (which the search looks up), and V conflicts with all parts.
Fields that are never written after their object was made are left out: nothing can conflict there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.store import Layout, Store

Place = tuple[int, int, str]
Env = dict[str, frozenset[Any]]


@dataclass(frozen=True, slots=True)
class Access:
    """A field of what ``obj`` designates, where the bound names run over their domains."""

    obj: n.Expr
    field: str
    part: str
    writes: bool
    bound: tuple[n.Over, ...] = ()


def reads(expr: n.Expr, bound: tuple[n.Over, ...] = ()) -> Iterator[Access]:
    """Every field that an expression reads."""
    match expr:
        case n.Builtin(op="head" | "last") if isinstance(expr.args[0], n.Field):
            yield from reads(expr.args[0].obj, bound)
            yield Access(expr.args[0].obj, expr.args[0].field, "H" if expr.op == "head" else "V", False, bound)
        case n.Compare(left=n.Builtin(op="len", args=(n.Field() as queue,)), right=n.Const(value=0)):
            yield from reads(queue.obj, bound)
            yield Access(queue.obj, queue.field, "E", False, bound)
        case n.Field():
            yield from reads(expr.obj, bound)
            yield Access(expr.obj, expr.field, "V", False, bound)
        case n.Over():
            if isinstance(expr.domain, n.Expr):
                yield from reads(expr.domain, bound)
            inner = (*bound, expr)
            if expr.test is not None:
                yield from reads(expr.test, inner)
            yield from reads(expr.body, inner)
        case n.Builtin(op="alive"):
            yield Access(expr.args[0], "", "A", False, bound)
            yield from reads(expr.args[0], bound)
        case n.Lookup():
            yield Access(expr, "", "A", False, bound)
            yield from reads(expr.value, bound)
        case n.Builtin(op="load"):
            yield Access(expr, "", "M", False, bound)
            yield from (a for c in n.children(expr) for a in reads(c, bound))
        case _:
            for child in n.children(expr):
                yield from reads(child, bound)


def effects(body: Iterable[n.Stmt]) -> Iterator[Access]:
    """Every field that statements read or write; both sides of a branch."""
    for stmt in body:
        yield from (a for e in _values(stmt) for a in reads(e))
        match stmt:
            case n.Assign():
                yield Access(stmt.obj, stmt.field, "V", True)
            case n.Push():
                yield Access(stmt.obj, stmt.field, "T", True)
            case n.Pop():
                yield Access(stmt.obj, stmt.field, "H", True)
            case n.Clear():
                yield Access(stmt.obj, stmt.field, "V", True)
            case n.Store() | n.Havoc():
                yield Access(stmt.places, "", "M", True)
            case n.Branch():
                yield from effects(stmt.then)
                yield from effects(stmt.other)
            case n.Delete():
                yield Access(stmt.obj, "", "A", True)
            case _:
                pass


def _values(stmt: n.Stmt) -> Iterator[n.Expr]:
    match stmt:
        case n.Branch():
            yield stmt.test
        case n.New():
            yield from (v for _, v in stmt.values)
        case _:
            for name in type(stmt).__dataclass_fields__:
                value = getattr(stmt, name)
                if isinstance(value, n.Expr):
                    yield value


def conflict(store: Store, writes: set[Place], touched: set[Place]) -> bool:
    """Whether a write of one meets an access of the other."""
    for number, slot, part in writes:
        if part == "M":
            if (number, slot, "M") in touched or (0, 0, "M") in touched:
                return True
            if slot == 0 and number == 0 and any(p[2] == "M" for p in touched):
                return True
            continue
        for other in _MEETS[part]:
            if (number, slot, other) in touched and not (
                part == "T" and other == "E" and store.objects[number][slot]
            ):
                return True
    return False


_MEETS = {"V": "VHTE", "H": "HVE", "T": "TVE", "A": "A", "E": "VHT", "M": "M"}


def meets(part: str, other: str) -> bool:
    """Whether two parts of one place overlap."""
    return other in _MEETS[part]


class Resolver:
    """Finds the objects that an expression may designate, given what its names may stand for."""

    def __init__(self, layout: Layout, changing: set[tuple[str, str]]) -> None:
        self.layout = layout
        self.changing = changing

    def values(self, store: Store, expr: n.Expr, env: Env) -> frozenset[Any]:
        """All values that the expression may have; refs as numbers.  Over-approximates."""
        match expr:
            case n.Const():
                return frozenset((expr.value,))
            case n.Var():
                return env[expr.name]
            case n.Field():
                slot = self.layout.slot[expr.obj.type.name][expr.field]
                null = self.layout.null[expr.obj.type.name]
                objects = store.objects
                return frozenset(objects[o or null][slot] for o in self.values(store, expr.obj, env))
            case n.Part():
                names = list(self.layout.voc.records[expr.record.type.name])
                position = names.index(expr.field)
                return frozenset(r[position] for r in self.values(store, expr.record, env))
            case n.Lookup():
                table = store.table[(expr.kind, expr.field)]
                return frozenset(table.get(v, 0) for v in self.values(store, expr.value, env))
            case n.If():
                return self.values(store, expr.then, env) | self.values(store, expr.other, env)
            case n.Arith():
                left, right = (self.values(store, e, env) for e in (expr.left, expr.right))
                return frozenset(_arith(expr.op, a, b) for a in left for b in right)
            case n.Builtin(op="head" | "last"):
                queues = self.values(store, expr.args[0], env)
                return frozenset(e for q in queues for e in q)
            case _:
                raise TypeError(f"{type(expr).__name__} cannot designate an object here")

    def places(self, store: Store, access: Access, env: Env) -> Iterator[Place]:
        """The places of one access."""
        if access.part == "M":
            yield (0, 0, "M")
            return
        inner = env
        for over in access.bound:
            inner = {**inner, over.var: self._domain(store, over, inner)}
        slot = 1 if access.part == "A" else self.layout.slot[access.obj.type.name][access.field]
        for number in self.values(store, access.obj, inner):
            if number > 0:
                yield (number, slot, access.part)

    def _domain(self, store: Store, over: n.Over, env: Env) -> frozenset[Any]:
        if isinstance(over.domain, str):
            return frozenset(store.live[over.domain])
        return frozenset(e for group in self.values(store, over.domain, env) for e in group)


def _arith(op: str, left: int, right: int) -> int:
    match op:
        case "+":
            return left + right
        case "-":
            return max(left - right, 0)
        case "*":
            return left * right
        case "//":
            return left // right if right else 0
        case _:
            return left % right if right else left
