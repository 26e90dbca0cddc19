"""Places in the statements of an effect: each statement of it, and the effect with something else in its place.

A place is an index, and for what stands in a branch the branch's field and an index there, and so on.  Nothing is
changed: what is asked for shares all but the way to the place with what it was made of.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator

Body = list[ast.stmt]
Path = tuple[tuple[str, int], ...]


def paths(body: Iterable[ast.stmt], field: str = "body") -> Iterator[Path]:
    """The places of all statements, in order."""
    for i, stmt in enumerate(body):
        here = (field, i)
        yield (here,)
        if isinstance(stmt, ast.If):
            for inner in ("body", "orelse"):
                yield from ((here, *rest) for rest in paths(getattr(stmt, inner), inner))


def at(body: Body, path: Path) -> ast.stmt:
    """The statement at a place."""
    stmt = body[path[0][1]]
    for field, i in path[1:]:
        stmt = getattr(stmt, field)[i]
    return stmt


def replaced(body: Body, path: Path, by: Body) -> Body:
    """The body with other statements at a place."""
    (_, i), *rest = path
    if rest:
        owner = copy.copy(body[i])
        field = rest[0][0]
        inner = replaced(getattr(owner, field), tuple(rest), by)
        setattr(owner, field, inner or ([ast.Pass()] if field == "body" else []))
        by = [owner]
    return [*body[:i], *by, *body[i + 1 :]]


def with_keyword(stmt: ast.stmt, call: ast.Call, index: int, value: ast.expr) -> ast.stmt:
    """The statement with another value of a keyword of a call in it."""
    kept = call.keywords
    call.keywords = [*kept[:index], ast.keyword(kept[index].arg, value), *kept[index + 1 :]]
    try:
        return copy.deepcopy(stmt)
    finally:
        call.keywords = kept
