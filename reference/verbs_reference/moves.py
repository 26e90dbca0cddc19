"""The moves that may come before the consumer's next call, and how they depend on each other.

A *process* is one family of internal steps at one object: (position of the family, object number).  A *move* is a
process working on one element.  A set of moves is a number, with a bit for each move's place, so that the search joins
and cuts sets at the cost of an addition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from verbs_reference.footprint import Footprint

Process = tuple[int, int]
Move = tuple[Process, Any]
"""A transition: a process works on one element."""


@dataclass(slots=True)
class Pending:
    """The moves that may come: their footprints, and for each those that bring its element to its queue.

    A set of moves is a number, with a bit for each place in ``moves``.
    """

    prints: dict[Move, Footprint]
    before: dict[Move, list[Move]]
    slots: list[int]
    """By family: where the queue stands that it takes from."""
    guards: dict[Move, list[frozenset[int]]] = field(default_factory=dict)
    """The fields that decide whether a move can come at all, those of cases that are impossible as it is among them."""
    moves: list[Move] = field(default_factory=list)
    places: dict[Move, int] = field(default_factory=dict)
    conflicts: dict[int, int] = field(default_factory=dict)
    """By place of a move: those that must not be exchanged with it; computed when asked for."""
    suppliers: dict[int, int] = field(default_factory=dict)
    """By place of a move: those that may bring about what it needs."""
    silent: dict[tuple[bool, int], int] = field(default_factory=dict)
    """As ``conflicts``, as far as it matters to silence."""
    optional: int | None = None
    """Those that need never happen; computed when asked for."""
    sources: list[int] = field(default_factory=list)
    """By place of a move: those that bring its element to its queue."""
    takers: dict[tuple[int, int, Any], int] = field(default_factory=dict)
    """By object, slot of a queue and element: the moves that take it from there."""
    works: list[tuple[int, int, Any]] = field(default_factory=list)
    """By place of a move: the key to those that take the same element from the same queue."""

    def __post_init__(self) -> None:
        self.moves = list(self.prints)
        self.places = {m: i for i, m in enumerate(self.moves)}
        self.sources = [self.bits(self.before.get(m, ())) for m in self.moves]
        for place, ((family, number), element) in enumerate(self.moves):
            key = (number, self.slots[family], element)
            self.works.append(key)
            self.takers[key] = self.takers.get(key, 0) | 1 << place

    def bits(self, moves: Iterable[Move]) -> int:
        """The set of these moves, without what may not come."""
        made = 0
        for m in moves:
            place = self.places.get(m)
            if place is not None:
                made |= 1 << place
        return made

    def conflicting(self, place: int) -> int:
        """The moves of other processes for which and the move at this place the order matters."""
        known = self.conflicts.get(place)
        if known is None:
            own = self.prints[self.moves[place]]
            process = self.moves[place][0]
            known = 0
            for i, (other, theirs) in enumerate(self.prints.items()):
                # prints are in the order of places
                if other[0] != process and not (
                    own.writes.isdisjoint(theirs.touched) and theirs.writes.isdisjoint(own.touched)
                ):
                    known |= 1 << i
            self.conflicts[place] = known
        return known

    def supplying(self, place: int) -> int:
        """The moves of other processes that may write what the move at this place needs."""
        known = self.suppliers.get(place)
        if known is None:
            needs, process = self.prints[self.moves[place]].needs, self.moves[place][0]
            known = 0
            for i, (other, theirs) in enumerate(self.prints.items() if needs else ()):
                if other[0] != process and not theirs.writes.isdisjoint(needs):
                    known |= 1 << i
            self.suppliers[place] = known
        return known


NOTHING = Pending({}, {}, [])
