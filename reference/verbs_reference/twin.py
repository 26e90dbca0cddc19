"""Copies a store, so that two programs can go on from one state without knowing of each other.

Every container of the store that can change is copied; what it holds cannot, but for objects, which are containers
themselves.  Changes name their containers, so those of a belief's branches are told anew, in terms of the copy."""

from __future__ import annotations

from typing import Any

from verbs_reference.store import Entry, Store

_NESTED = ("objects", "live", "table", "active")
_PLAIN = ("ended", "pages", "options", "once", "counter", "left")
"""The fields of a store that hold containers, and those that are one."""


def twin(store: Store, branches: list[list[Entry]]) -> tuple[Store, list[list[Entry]]]:
    """A store of its own in the same state, and lists of changes of this one as changes of that; nothing is journaled.

    The two stores are of different programs from now on: what one makes the other has not.
    """
    made = Store(store.layout)
    twins: dict[int, Any] = {}
    for name in _NESTED:
        old = getattr(store, name)
        setattr(made, name, {key: container.copy() for key, container in old.items()})
        if any(branches):
            new = getattr(made, name)
            twins.update((id(container), new[key]) for key, container in old.items())
            twins[id(old)] = new
    for name in _PLAIN:
        setattr(made, name, getattr(store, name).copy())
        twins[id(getattr(store, name))] = getattr(made, name)

    def other(container: Any) -> Any:
        """What stands for a container there; an object that only branches have made is in none of the store's."""
        if id(container) not in twins:
            twins[id(container)] = container.copy()
        return twins[id(container)]

    def value_of(value: Any) -> Any:
        return other(value) if type(value) is list else value

    return made, [[(other(container), key, value_of(value)) for container, key, value in c] for c in branches]
