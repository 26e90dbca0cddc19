"""The typed tree of an expression or a statement.

The parser (``parse``) makes these nodes; three readers walk them: ``compiled`` turns them into Python
functions, ``naive`` evaluates them by plain recursion, ``solver`` turns them into z3 terms.  Defines are
expanded by the parser, so that a tree holds nothing but what stands here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from verbs_reference.types import Type


class _Hashed:
    """A value that never changes: the hash of a whole tree is taken once."""

    __slots__ = ("_hash",)
    _hash: int

    def __init_subclass__(cls) -> None:
        type.__setattr__(cls, "__hash__", _Hashed.__hash__)  # its own, so that dataclass makes none

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            parts = (getattr(self, name) for name in _names(type(self), ""))
            object.__setattr__(self, "_hash", hash((type(self), *parts)))
            return self._hash


_NAMES: dict[tuple[type, str], tuple[str, ...]] = {}


def _names(kind: type, word: str) -> tuple[str, ...]:
    """The fields of a class of nodes whose type has this word in it."""
    found = _NAMES.get((kind, word))
    if found is None:
        found = _NAMES[kind, word] = tuple(each.name for each in fields(kind) if word in str(each.type))
    return found


def _parts(expr: Expr) -> tuple[str, ...]:
    """The fields in which expressions stand."""
    return _names(type(expr), "Expr")


@dataclass(frozen=True, slots=True)
class Expr(_Hashed):
    """An expression; ``type`` is known for every node."""

    type: Type


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A literal: number, truth value, null (0), enumerator (text)."""

    value: object


@dataclass(frozen=True, slots=True)
class Var(Expr):
    """A parameter, output, bound variable or local name."""

    name: str


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """A field of the object that ``obj`` refers to; of null it is the type's default."""

    obj: Expr
    field: str


@dataclass(frozen=True, slots=True)
class Part(Expr):
    """A field of a record value."""

    record: Expr
    field: str


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """Negation."""

    arg: Expr


@dataclass(frozen=True, slots=True)
class Logic(Expr):
    """``and``/``or`` over two or more arguments, evaluated from the left as far as needed."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Arith(Expr):
    """``+ - * // %`` on naturals; ``-`` stops at 0; ``x // 0`` is 0 and ``x % 0`` is x."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """``== != < <= > >=``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class If(Expr):
    """``then if test else other``."""

    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Member(Expr):
    """``item in group``: group is a flags value or a queue."""

    item: Expr
    group: Expr


@dataclass(frozen=True, slots=True)
class Flags(Expr):
    """A flags value, element by element."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Sequence(Expr):
    """A queue's value, element by element; stands in arguments of generated programs."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Record(Expr):
    """A record value; ``parts`` in the order of the declaration."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Over(Expr):
    """``any all count sum flat`` of ``body`` for ``var`` in ``domain`` where ``test`` holds.

    ``domain`` is an expression (queue, flags) or an object kind's name: all its live objects.
    """

    op: str
    var: str
    var_type: Type
    domain: Expr | str
    test: Expr | None
    body: Expr


@dataclass(frozen=True, slots=True)
class Lookup(Expr):
    """The live object of a kind whose immutable field has this value, or null."""

    kind: str
    field: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Choice(Expr):
    """The option that this backend takes."""

    name: str


@dataclass(frozen=True, slots=True)
class Builtin(Expr):
    """A function of the language: ``len head last nth upto alive pow2 shl span walk slice load size
    given added exchanged``."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Stmt(_Hashed):
    """A statement."""


@dataclass(frozen=True, slots=True)
class Assign(Stmt):
    """``obj.field = value``; nothing happens where obj is null."""

    obj: Expr
    field: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Push(Stmt):
    """Add at a queue's tail."""

    obj: Expr
    field: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Pop(Stmt):
    """Drop a queue's head; nothing happens where it is empty."""

    obj: Expr
    field: str


@dataclass(frozen=True, slots=True)
class Clear(Stmt):
    """Empty a queue."""

    obj: Expr
    field: str


@dataclass(frozen=True, slots=True)
class Let(Stmt):
    """Give a value a local name."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class New(Stmt):
    """Make an object; ``values`` by field, the rest are their initial values."""

    name: str
    kind: str
    values: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Delete(Stmt):
    """End an object's life; its fields stay readable, it is no longer found."""

    obj: Expr


@dataclass(frozen=True, slots=True)
class Store(Stmt):
    """Put bytes at places of memory."""

    places: Expr
    data: Expr


@dataclass(frozen=True, slots=True)
class Havoc(Stmt):
    """Forget what is at places of memory: from now on any byte may be there."""

    places: Expr


@dataclass(frozen=True, slots=True)
class Branch(Stmt):
    """``if``."""

    test: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...]


def substitute(expr: Expr, values: dict[str, Expr]) -> Expr:
    """The expression with variables replaced; bound variables hide outer ones of the same name.

    What has none of the variables is the same object as before.
    """
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    changed: dict[str, Any] = {}
    for name in _parts(expr):
        old = getattr(expr, name)
        inner = values
        if isinstance(expr, Over) and name in {"test", "body"} and expr.var in values:
            inner = {k: v for k, v in values.items() if k != expr.var}
        if isinstance(old, Expr):
            new: Any = substitute(old, inner)
            if new is not old:
                changed[name] = new
        elif isinstance(old, tuple):
            new = tuple(substitute(e, inner) for e in old)
            if any(a is not b for a, b in zip(new, old, strict=True)):
                changed[name] = new
    return replace(expr, **changed) if changed else expr


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with ``new`` wherever ``old`` stood."""
    if expr == old:
        return new
    parts = {name: part for name in _parts(expr) if isinstance(part := getattr(expr, name), Expr | tuple)}
    changed: dict[str, Any] = {
        name: replaced(part, old, new) if isinstance(part, Expr) else tuple(replaced(e, old, new) for e in part)
        for name, part in parts.items()
    }
    return replace(expr, **changed) if changed else expr


def children(expr: Expr) -> list[Expr]:
    """The direct subexpressions."""
    found: list[Expr] = []
    for name in _parts(expr):
        value = getattr(expr, name)
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(e for e in value if isinstance(e, Expr))
    return found


def walk(expr: Expr) -> list[Expr]:
    """The expression and everything below it, from the left, each before what is below it."""
    found: list[Expr] = []
    todo = [expr]
    while todo:
        found.append(here := todo.pop())
        todo += reversed(children(here))
    return found


def free_names(expr: Expr) -> set[str]:
    """The variables that an expression mentions and does not bind itself."""
    if isinstance(expr, Var):
        return {expr.name}
    names: set[str] = set()
    for name in _parts(expr):
        value = getattr(expr, name)
        parts = value if isinstance(value, tuple) else (value,)
        inner = set().union(*(free_names(e) for e in parts if isinstance(e, Expr)))
        if isinstance(expr, Over) and name in {"test", "body"}:
            inner.discard(expr.var)
        names |= inner
    return names


def in_statement(stmt: Stmt) -> list[Expr]:
    """The expressions that stand directly in a statement and in what is nested in it."""
    found: list[Expr] = []
    for name in type(stmt).__dataclass_fields__:
        value = getattr(stmt, name)
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, tuple):
            for part in value:
                if isinstance(part, Stmt):
                    found.extend(in_statement(part))
                elif isinstance(part, tuple) and isinstance(part[1], Expr):
                    found.append(part[1])
    return found


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a conjunction."""
    if isinstance(expr, Logic) and expr.op == "and":
        return [c for a in expr.args for c in conjuncts(a)]
    return [expr]


def is_stateless(expr: Expr) -> bool:
    """Whether an expression's value depends on its names alone."""
    return not any(
        isinstance(e, Field | Lookup | Choice)
        or (isinstance(e, Over) and isinstance(e.domain, str))
        or (isinstance(e, Builtin) and e.op in {"alive", "load"})
        for e in walk(expr)
    )


def flat(body: Iterable[Stmt]) -> list[Stmt]:
    """The statements of a block and of the branches in it."""
    found: list[Stmt] = []
    for stmt in body:
        found.append(stmt)
        if isinstance(stmt, Branch):
            found += [*flat(stmt.then), *flat(stmt.other)]
    return found
