"""Drops explanations that another one stands for: it reaches them by internal steps alone after the call.

Many explanations are compared, and nearly all pairs fail at the same few steps.  So steps are numbered, which makes
their comparison cheap, and for each explanation that is kept the sequences are remembered that cannot follow it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verbs_reference.explanations import Found
from verbs_reference.walk import Step

if TYPE_CHECKING:
    from verbs_reference.search import Search

Path = tuple[int, ...]
"""Steps by their numbers."""


@dataclass(slots=True)
class _Kept:
    """An explanation that stands for others."""

    found: Found
    path: Path
    steps: frozenset[int]
    impossible: set[Path] = field(default_factory=set)
    """Sequences of steps of which the last cannot follow."""


def without_redundant(search: Search, made: list[Found]) -> list[Found]:
    """Without what another explanation leads to; the store is at the root of all."""
    made.sort(key=lambda f: len(f.path))
    numbers: dict[Step, int] = {}
    paths = [tuple(numbers.setdefault(s, len(numbers)) for s in f.path) for f in made]
    steps = list(numbers)
    kept: list[_Kept] = []
    store = search.store
    root = store.changes(0)
    store.undo(0)
    for f, path in zip(made, paths, strict=True):
        own = frozenset(path)
        if not any(k.steps <= own and _leads_to(search, k, f, path, steps) for k in kept):
            kept.append(_Kept(f, path, own))
    store.redo(root)
    return [k.found for k in kept]


def _leads_to(search: Search, first: _Kept, second: Found, path: Path, steps: list[Step]) -> bool:
    """Whether the steps that the second has more lead from the first to it; the store is at the base."""
    left = list(path)
    for step in first.path:
        if step not in left:
            return False
        left.remove(step)
    if not left or set(first.found.deviates) != set(second.deviates):
        return False
    rest = tuple(left)
    if first.impossible and any(rest[:i] in first.impossible for i in range(1, len(rest) + 1)):
        return False
    store = search.store
    try:
        store.redo(first.found.changes)
        for i, step in enumerate(rest, 1):
            if not search.take(steps[step]):
                first.impossible.add(rest[:i])
                return False
        return bool(store.signature(0) == second.signature)
    finally:
        store.undo(0)
