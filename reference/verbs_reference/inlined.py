"""Expressions and statements of a family of steps without the names that the family gives by ``let``."""

from __future__ import annotations

from typing import Any

from verbs_reference import nodes as n
from verbs_reference.model import Family


def inline(family: Family, expr: n.Expr) -> n.Expr:
    """An expression of a family without the family's own names."""
    found = family.inlined.get(expr)
    if found is None:
        found = expr
        for name in reversed(family.lets):
            found = n.substitute(found, {name: family.lets[name]})
        family.inlined[expr] = found
    return found


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
