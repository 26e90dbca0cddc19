"""Which fields change after their object was made, and what internal steps do to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verbs_reference import nodes as n
from verbs_reference.model import Model


def _bodies(model: Model) -> Iterator[n.Stmt]:
    for family in model.families:
        for case in family.cases:
            yield from n.flat(case.body)


def _assigned(stmts: Iterable[n.Stmt]) -> set[tuple[str, str]]:
    return {(s.obj.type.name, s.field) for s in stmts if isinstance(s, n.Assign | n.Push | n.Pop | n.Clear)}


def changing(model: Model) -> set[tuple[str, str]]:
    """Fields written after their object was made, by anybody."""
    calls = (s for call in model.calls.values() for case in call.cases for s in n.flat(case.body))
    return _assigned(_bodies(model)) | _assigned(calls)


def stepped(model: Model) -> tuple[set[tuple[str, str]], bool]:
    """The fields that internal steps write, and whether any step makes an object or ends one's life."""
    return _assigned(_bodies(model)), any(isinstance(s, n.Delete | n.New) for s in _bodies(model))


def filled(model: Model) -> set[tuple[str, str]]:
    """The queues to which internal steps push."""
    return {(s.obj.type.name, s.field) for s in _bodies(model) if isinstance(s, n.Push | n.Assign)}


def written_by_steps(model: Model) -> dict[tuple[str, str], set[object] | None]:
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
