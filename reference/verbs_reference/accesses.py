"""Which fields an expression or an effect touches.

An *access* is a field of an object that an expression over the rule's names designates.  It touches a part of
that field:

    V   a field that is no queue, or a queue as a whole
    H   a queue's head: read by ``head``, written by ``pop``
    T   a queue's tail: written by ``push``
    E   whether a queue is empty
    A   whether the object is alive
    M   contents of memory: a block of 64 bytes, or (0, 0) for any

An effect has names of its own: ``x = e``, and ``x = new(...)``.  An object that it makes nobody else knows yet, but
through a field of it, or through another name, the effect reaches objects that others know.  So its accesses are told
without its own names: a name stands for the value that the effect gives it, and a field of a new object for what it
was made with or is assigned later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from verbs_reference import nodes as n
from verbs_reference.types import BOOL


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
            yield from _reads_over(expr, bound)
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


def _reads_over(expr: n.Over, bound: tuple[n.Over, ...]) -> Iterator[Access]:
    if isinstance(expr.domain, n.Expr):
        yield from reads(expr.domain, bound)
    inner = (*bound, expr)
    if expr.test is not None:
        yield from reads(expr.test, inner)
    yield from reads(expr.body, inner)


def effects(body: Iterable[n.Stmt]) -> Iterator[Access]:
    """Every field that statements read or write; both sides of a branch."""
    stmts = tuple(body)
    own = _Own(stmts)
    yield from map(own.without, _effects(stmts))


def _effects(body: Iterable[n.Stmt]) -> Iterator[Access]:
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
                yield from _effects(stmt.then)
                yield from _effects(stmt.other)
            case n.Delete():
                yield Access(stmt.obj, "", "A", True)
            case _:
                pass


class _Own:
    """What the names of an effect stand for, and the fields of the objects that it makes."""

    def __init__(self, body: Iterable[n.Stmt]) -> None:
        self.names: dict[str, n.Expr] = {}
        self.made: dict[str, dict[str, n.Expr]] = {}
        for stmt in n.flat(body):
            match stmt:
                case n.Let():
                    self.names[stmt.name] = self.told(stmt.value)
                case n.New():
                    for field, value in stmt.values:
                        self._holds(stmt.name, field, value)
                case n.Assign(obj=n.Var(name=name)) if name in self.made:
                    self._holds(name, stmt.field, stmt.value)
                case _:
                    pass

    def _holds(self, name: str, field: str, value: n.Expr) -> None:
        fields = self.made.setdefault(name, {})
        fields[field] = _either(fields.get(field), self.told(value))

    def told(self, expr: n.Expr) -> n.Expr:
        """An expression without the effect's own names, as far as they stand for what was there before."""
        expr = n.substitute(expr, self.names)
        for e in n.walk(expr):
            if isinstance(e, n.Field) and isinstance(e.obj, n.Var) and e.field in self.made.get(e.obj.name, ()):
                expr = n.replaced(expr, e, self.made[e.obj.name][e.field])
        return expr

    def without(self, access: Access) -> Access:
        """An access without them."""
        if not self.names and not self.made:
            return access
        bound = (
            replace(over, domain=self.told(over.domain)) if isinstance(over.domain, n.Expr) else over
            for over in access.bound
        )
        return replace(access, obj=self.told(access.obj), bound=tuple(bound))


def _either(one: n.Expr | None, other: n.Expr) -> n.Expr:
    """Something that may be either."""
    return other if one is None else n.If(other.type, n.Const(BOOL, True), one, other)


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


def meets(part: str, other: str) -> bool:
    """Whether two parts of one place overlap."""
    return other in _MEETS[part]


_MEETS = {"V": "VHTE", "H": "HVE", "T": "TVE", "A": "A", "E": "VHT", "M": "M"}
