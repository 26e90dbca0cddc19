"""The model's state, updated in place with undo.

An object is a list: its number, whether it is alive, then its fields in declared order.  Null of each
kind is an object too, with a negative number and default fields, so that reading through null needs no
test.  Everything that can change is a cell of some container; a change is journaled as (container, key,
old value), which makes undo, redo and comparison of branches one mechanism for fields, the sets of live
objects, look-up tables and the sets of busy queues alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from verbs_reference.contents import UNKNOWN, Places
from verbs_reference.vocabulary import Vocabulary

ALIVE = 1
FIRST_FIELD = 2
MISSING = object()
PAGE = 4096
UPTO = 64
"""The longest ``upto``."""

Entry = tuple[Any, Any, Any]


class NeedChoice(Exception):
    """An expression asked for a choice that is open; the search forks and asks again."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Layout:
    """Where each field of each kind stands, derived once from the vocabulary."""

    def __init__(self, voc: Vocabulary, looked_up: set[tuple[str, str]], triggers: set[tuple[str, str]]) -> None:
        self.voc = voc
        self.kinds = tuple(voc.objects)
        self.null = {kind: -1 - i for i, kind in enumerate(self.kinds)}
        self.slot = {kind: {f: FIRST_FIELD + i for i, f in enumerate(fields)} for kind, fields in voc.objects.items()}
        self.looked_up = sorted(looked_up)
        self.triggers = triggers
        self.memory = {
            kind: (name, *info.bounds)
            for kind, fields in voc.objects.items()
            for name, info in fields.items()
            if info.bounds
        }
        self.transient: dict[str, tuple[int, ...]] = {}
        """Kinds whose objects live only in queues that steps take, with the slots of what changes in them."""
        self.null_fields = {
            kind: [voc.default(info.type) for info in fields.values()] for kind, fields in voc.objects.items()
        }
        self.defaults = {kind: list(values) for kind, values in self.null_fields.items()}
        """Initial values; ``Model`` puts in those that the specification gives."""

    def agrees(self, other: Layout) -> bool:
        """Whether what was made for the other one holds for this one."""
        return self.voc is other.voc and (self.looked_up, self.triggers, self.transient, self.defaults) == (
            other.looked_up,
            other.triggers,
            other.transient,
            other.defaults,
        )


class Store:
    """One model state and its journal."""

    __slots__ = (
        "active",
        "counter",
        "ended",
        "journal",
        "layout",
        "left",
        "live",
        "objects",
        "once",
        "options",
        "pages",
        "table",
    )

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.objects: dict[int, list[Any]] = {
            number: [number, False, *layout.null_fields[kind]] for kind, number in layout.null.items()
        }
        self.live: dict[str, dict[int, bool]] = {kind: {} for kind in layout.kinds}
        self.table: dict[tuple[str, str], dict[Any, int]] = {key: {} for key in layout.looked_up}
        self.active: dict[tuple[str, str], dict[int, bool]] = {key: {} for key in layout.triggers}
        self.ended: dict[int, str] = {}
        """The objects that live no more, with their kinds."""
        self.pages: dict[int, int] = {}
        self.options: dict[str, str] = {}
        self.once: dict[str, str] = {}
        self.counter = [1]
        self.left: list[Any] = []
        self.journal: list[Entry] = []

    # -- changes ---------------------------------------------------------------------------------

    def put(self, container: Any, key: Any, value: Any) -> None:
        """Change one cell, remembering what it held."""
        old = container.get(key, MISSING) if type(container) is dict else container[key]
        self.journal.append((container, key, old))
        if value is MISSING:
            container.pop(key, None)
        else:
            container[key] = value

    def set(self, number: int, slot: int, value: Any) -> None:
        """Assign a field; nothing happens through null."""
        if number > 0:
            obj = self.objects[number]
            self.journal.append((obj, slot, obj[slot]))
            obj[slot] = value

    def push(self, number: int, slot: int, value: Any, trigger: tuple[str, str] | None) -> None:
        """Add at a queue's tail."""
        if number > 0:
            obj = self.objects[number]
            old = obj[slot]
            self.journal.append((obj, slot, old))
            obj[slot] = (*old, value)
            if trigger is not None and not old and obj[ALIVE]:
                self.put(self.active[trigger], number, True)

    def queue(self, number: int, slot: int, value: tuple[Any, ...], trigger: tuple[str, str] | None) -> None:
        """Replace a queue's content by a rest of it."""
        if number > 0:
            obj = self.objects[number]
            old = obj[slot]
            self.journal.append((obj, slot, old))
            obj[slot] = value
            if trigger is not None and obj[ALIVE]:
                if self.layout.transient:
                    self.left.extend(old[: len(old) - len(value)])
                busy = self.active[trigger]
                if value and number not in busy:
                    self.put(busy, number, True)
                elif not value and number in busy:
                    self.put(busy, number, MISSING)

    def collect(self) -> None:
        """Forget what no queue holds any more: states that differ in it alone are one state.

        Only for kinds whose objects nothing but queues refers to; called when an effect is complete.
        """
        left, self.left = self.left, []
        for number in left:
            kind = next((k for k in self.layout.transient if type(number) is int and number in self.live[k]), None)
            if kind is None or self._held(number):
                continue
            obj, defaults = self.objects[number], self.layout.defaults[kind]
            for slot in self.layout.transient[kind]:
                if obj[slot] != defaults[slot - FIRST_FIELD]:
                    self.put(obj, slot, defaults[slot - FIRST_FIELD])

    def _held(self, element: int) -> bool:
        return any(
            element in self.objects[number][self.layout.slot[kind][name]]
            for (kind, name), busy in self.active.items()
            for number in busy
        )

    def fresh(self) -> int:
        """A number for a new object."""
        number = self.counter[0]
        self.put(self.counter, 0, number + 1)
        return number

    def new(self, kind: str, number: int, values: dict[str, Any]) -> int:
        """Make an object with this number; fields not given take their defaults."""
        slots = self.layout.slot[kind]
        obj = [number, True, *self.layout.defaults[kind]]
        for name, value in values.items():
            obj[slots[name]] = value
        self.put(self.objects, number, obj)
        self.put(self.live[kind], number, True)
        for key in self.layout.looked_up:
            if key[0] == kind:
                self.put(self.table[key], obj[slots[key[1]]], number)
        for trigger in self.layout.triggers:
            if trigger[0] == kind and obj[slots[trigger[1]]]:
                self.put(self.active[trigger], number, True)
        if kind in self.layout.memory:
            self._map(kind, obj, number)
        return number

    def delete(self, kind: str, number: int) -> None:
        """End an object's life."""
        if number not in self.live[kind]:
            return
        obj = self.objects[number]
        slots = self.layout.slot[kind]
        self.put(obj, ALIVE, False)
        self.put(self.ended, number, kind)
        self.put(self.live[kind], number, MISSING)
        for key in self.layout.looked_up:
            value = obj[slots[key[1]]] if key[0] == kind else MISSING
            if value is not MISSING and self.table[key].get(value) == number:
                self.put(self.table[key], value, MISSING)
        for trigger in self.layout.triggers:
            if trigger[0] == kind and number in self.active[trigger]:
                self.put(self.active[trigger], number, MISSING)
        if kind in self.layout.memory:
            self._map(kind, obj, None)

    def _map(self, kind: str, obj: list[Any], owner: int | None) -> None:
        name, first, length = self.layout.memory[kind]
        slots = self.layout.slot[kind]
        start, size = obj[slots[first]], obj[slots[length]]
        if owner is not None and not obj[slots[name]]:
            obj[slots[name]] = "\0" * size
        for page in range(start // PAGE, (start + max(size, 1) - 1) // PAGE + 1):
            self.put(self.pages, page, MISSING if owner is None else owner)

    # -- undo, redo ------------------------------------------------------------------------------

    def undo(self, mark: int) -> None:
        """Take back every change since the journal had this length."""
        journal = self.journal
        while len(journal) > mark:
            container, key, old = journal.pop()
            if old is MISSING:
                container.pop(key, None)
            else:
                container[key] = old

    def changes(self, mark: int) -> list[Entry]:
        """The net changes since the journal had this length, as (container, key, new value)."""
        seen: dict[tuple[int, Any], Entry] = {}
        for container, key, old in self.journal[mark:]:
            place = (id(container), key)
            if place not in seen:
                seen[place] = (container, key, old)
        made = []
        for container, key, old in seen.values():
            now = container.get(key, MISSING) if type(container) is dict else container[key]
            if now is not old and now != old:
                made.append((container, key, now))
        return made

    def delta(self, mark: int) -> int:
        """How a hash of the state, the exclusive or over all cells, differs since the journal had this
        length.

        Look-up tables and sets of busy queues follow from the objects and are left out.
        """
        seen: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        for entry in self.journal[mark:]:
            place = (id(entry[0]), entry[1])
            if place not in seen:
                seen[place] = entry
        made = 0
        for container, key, old in seen.values():
            if type(container) is list:
                name = -1 if container is self.counter else container[0]
                made ^= hash((name, key, old)) ^ hash((name, key, container[key]))
            elif container is self.options:
                made ^= hash((key, None if old is MISSING else old)) ^ hash((key, container.get(key)))
        return made

    def redo(self, changes: list[Entry]) -> None:
        """Apply changes that :meth:`changes` returned."""
        for container, key, value in changes:
            self.put(container, key, value)

    def signature(self, mark: int) -> frozenset[tuple[Any, ...]]:
        """A value that equals that of another branch iff the two states are equal; from a common mark."""
        return signed(self, self.changes(mark))

    # -- what expressions call -------------------------------------------------------------------

    def choose(self, name: str) -> str:
        """The option of a choice in this branch; NeedChoice if none is fixed yet."""
        option = self.once.get(name) or self.options.get(name)
        if option is None:
            raise NeedChoice(name)
        return option

    def load(self, places: Places) -> str:
        """The bytes at these places; 0 where there is no memory."""
        made = ""
        for number, low, count in self._pieces(places):
            made += self._memory(number)[2][low : low + count] if number else "\0" * count
        return made

    def store(self, places: Places, data: str) -> None:
        """Put bytes at these places, in order; what has no memory is dropped."""
        at = 0
        for number, low, count in self._pieces(places):
            piece, at = data[at : at + count], at + count
            if number and piece:
                slot, obj, old, _ = self._memory(number)
                self.put(obj, slot, old[:low] + piece + old[low + len(piece) :])

    def havoc(self, places: tuple[tuple[int, int], ...]) -> None:
        """Forget what is at these places."""
        for start, length in places:
            self.store(((start, length),), UNKNOWN * length)

    def _pieces(self, places: Places) -> Iterator[tuple[int, int, int]]:
        """Places cut where memory begins and ends, as (object or 0, offset in it, bytes).

        Memory begins on a page of its own.
        """
        for first, length in places:
            start, end = first, first + length
            while start < end:
                number = self.pages.get(start // PAGE, 0)
                rest = min(end, (start // PAGE + 1) * PAGE) - start
                low = 0
                if number:
                    _, _, data, base = self._memory(number)
                    low = start - base
                    if not 0 <= low < len(data):
                        number, rest = 0, min(rest, -low) if low < 0 else rest
                    else:
                        rest = min(end - start, len(data) - low)
                yield number, low, rest
                start += rest

    def _memory(self, number: int) -> tuple[int, list[Any], str, int]:
        obj = self.objects[number]
        kind = next(k for k in self.layout.memory if number in self.live[k])
        name, first, _ = self.layout.memory[kind]
        slots = self.layout.slot[kind]
        return slots[name], obj, obj[slots[name]], obj[slots[first]]


def signed(store: Store, changes: list[Entry]) -> frozenset[tuple[Any, ...]]:
    """What :meth:`Store.signature` returns, for known changes."""
    made = set()
    for container, key, value in changes:
        if type(container) is list and container is not store.counter:
            made.add((container[0], key, value))
        elif container is store.objects:
            made.add((0, key, tuple(value) if value is not MISSING else None))
        else:
            made.add((id(container), key, None if value is MISSING else value))
    return frozenset(made)


def shared(branches: list[list[Entry]]) -> tuple[list[Entry], list[list[Entry]]]:
    """What all of some lists of changes from one state have in common, and what is left of each.

    An object that several have made alike is one object from then on.
    """
    first, *others = branches
    places = {(id(container), key): value for container, key, value in first}
    left = set(places)
    changed: list[list[Entry]] = []
    for changes in others:
        same: dict[int, Any] = {}
        for container, key, value in changes:
            if type(value) is list:
                made = places.get((id(container), key))
                if made is not None and made is not MISSING and made == value:
                    same[id(value)] = made
        told = [(same.get(id(c), c), key, same.get(id(v), v)) for c, key, v in changes] if same else changes
        changed.append(told)
        alike = set()
        for container, key, value in told:
            place = (id(container), key)
            if place in left:
                mine = places[place]
                if mine is value or (type(value) is not list and mine == value):
                    alike.add(place)
        left &= alike
    common = [e for e in first if (id(e[0]), e[1]) in left]
    return common, [[e for e in changes if (id(e[0]), e[1]) not in left] for changes in (first, *changed)]
