"""Explores the states that can matter to a call, by stubborn sets.

The set holds the call itself; with a move that may run now, every move whose future conflicts with it;
with one that cannot run, every move that may bring about what it waits for.  Some first step of every
sequence that leads to the call is in the set, and the rest of the sequence commutes with what is left
out (Valmari's theory of stubborn sets; ``pending`` gives the footprints).

What silence says is kept as a *debt*: the moves that were pending when the device said that it had
nothing left to do had all happened by then, in any order, but none of them needs to be taken before
something depends on it.  A call, and a move that came up later, wait for the debts that conflict with
them, unless these cannot run either.  A move that could have happened by then only after a step that need
never happen is owed to nothing, and waits for no debt: nobody knows when that step was taken.

When a call is answered by an entry of a queue that is empty, moves that would put another entry there
come later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from verbs_reference import footprint as fp
from verbs_reference.calls import Wanted
from verbs_reference.footprint import Footprint
from verbs_reference.moves import Move, Pending, Process
from verbs_reference.statics import CaseFacts

if TYPE_CHECKING:
    from verbs_reference.search import Search

Debts = Mapping[Move, int]
"""Moves that had happened when the device was silent, with the number of the silence; 0 if they may have happened in
one, and below 0 if they may have happened in one before that by which they had."""
NO_DEBTS: Debts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Step:
    """One internal step as it was taken: process, case, the head, and the options that were chosen for it."""

    process: Process
    case: int
    head: Any
    once: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...]


Key = tuple[int, int]
"""Hashes of a state, from the root, and of which rules fired how often."""
Visit = Callable[[list[Step], Debts], None]


@dataclass(slots=True)
class _Reach:
    """What is known of moves in one state: those that are out of question, and those from which a step is reached."""

    out: int
    live: int = 0


class Walk:
    """One exploration from the store's state; everything is undone afterwards."""

    def __init__(
        self,
        search: Search,
        pending: Pending,
        call: Footprint | None,
        debts: Debts,
        wanted: Wanted | None = None,
    ) -> None:
        self.search = search
        self.store = search.store
        self.pending = pending
        self.prints = pending.prints
        self.before = pending.before
        self.moves = pending.moves
        self.places = pending.places
        self.wanted = wanted
        self.debts = debts
        self.seen: set[Key] = set()
        self.forked = False
        self._meeting = 0
        self._pushing: list[tuple[int, list[int]]] = []
        self._call = call or Footprint()
        self._meet(self._call)
        self._now: dict[Process, list[Step]] = {}
        self._slots = search.slots
        self._facts = search.analysis.families
        self._barred = self._find_barred() if wanted is not None else 0

    def explore(self, visit: Visit) -> None:
        """Visit each state in which the call may be tried, once for each set of steps that leads there."""
        self._from([], self.debts, (0, 0), visit)

    def _from(self, path: list[Step], debts: Debts, key: Key, visit: Visit) -> None:
        self.search.count()
        after = self._released(debts, self._owed_to_call(debts)) if debts else debts
        if after is not None:
            visit(path, self._alive(after) if after else after)
        if self.prints:
            self._branch(*self.stubborn(self._first(), debts), path, key, visit)

    def _branch(self, steps: list[Step], debts: Debts, path: list[Step], key: Key, visit: Visit) -> None:
        """Go on with each of some steps."""
        self.forked = self.forked or len(steps) > 1
        store = self.store
        mark = len(store.journal)
        alive = self._alive(debts) if debts and any(map(self.search.is_optional, steps)) else debts
        for step in steps:
            left = alive if self.search.is_optional(step) else debts
            self._now = {}
            if self.search.take(step):
                longer = [*path, step]
                if not self.forked:
                    self._from(longer, left, key, visit)
                else:
                    state = (key[0] ^ store.delta(mark), key[1] + hash((step.process[0], step.case, "rule")))
                    if state not in self.seen:
                        self.seen.add(state)
                        self._from(longer, left, state, visit)
            store.undo(mark)
            self._now = {}

    # -- stubborn sets ---------------------------------------------------------------------------

    def stubborn(self, first: int, debts: Debts) -> tuple[list[Step], Debts]:
        """The steps of a stubborn set that may run now, and the debts that are left if debts held a move
        up in vain."""
        out = self._out(debts)
        steps: list[Step] = []
        todo = first & ~out
        objects = self.store.objects
        pending = self.pending
        works, takers = pending.works, pending.takers
        while todo:
            bit = todo & -todo
            todo ^= bit
            out |= bit  # what was chosen is not looked at again
            place = bit.bit_length() - 1
            number, slot, element = works[place]
            queue = objects[number][slot]
            if not queue:
                todo = (todo | pending.sources[place]) & ~out
                continue
            if queue[0] != element:
                if element in queue or self._may_arrive(self.moves[place]):
                    todo = (todo | takers.get((number, slot, queue[0]), 0)) & ~out
                continue
            move = self.moves[place]
            found = self._allowed(move, self._steps(move[0]))
            if found and debts:
                older = self._older_debts(place, debts)
                left = self._released(debts, older) if older else debts
                if left is None:
                    todo = (todo | self.pending.bits(older)) & ~out
                    continue
                debts = left
            steps += found
            todo = (todo | (self._in_conflict(place) if found else pending.supplying(place))) & ~out
        return steps, debts

    def _younger(self, debts: Debts, age: int) -> int:
        """The moves that cannot have happened by a silence of this age: those that are no debts, and debts of younger
        ones but for what may have happened before."""
        return ~self.pending.bits(m for m, a in debts.items() if a <= age)

    def _steps(self, process: Process) -> list[Step]:
        """The ways in which a process may take its next step now; several sets are made in one state."""
        found = self._now.get(process)
        if found is None:
            found = self._now[process] = self.search.steps(process)
        return found

    def _may_arrive(self, move: Move) -> bool:
        """Whether the element can still come to the queue; if not, the move is over or will never be."""
        for source in self.before.get(move, ()):
            process, element = source
            if element in self.store.objects[process[1]][self._slots[process[0]]] or self._may_arrive(source):
                return True
        return False

    def _first(self) -> int:
        """The moves that meet the call."""
        made = self._meeting
        for bit, places in self._pushing:
            if any(self._is_empty(cell) for cell in places):
                made |= bit
        return made

    def _is_empty(self, cell: int) -> bool:
        number, slot = divmod(cell, fp.CELLS)
        return number not in self.store.objects or not self.store.objects[number][slot]

    def _meet(self, call: Footprint) -> None:
        """Find the moves that meet the call, and those that do while some queue is empty."""
        for place, own in enumerate(self.prints.values()):
            common = (own.writes & call.touched) | (call.writes & own.touched)
            if any(a < 0 or a & 3 != 2 for a in common):
                self._meeting |= 1 << place
            elif common:
                self._pushing.append((1 << place, [a >> 2 for a in common]))
        self._meet_debts(call)

    def _meet_debts(self, call: Footprint) -> None:
        """Find the debts that the call may make possible: what was impossible in the silence is none any more."""
        changed = {a >> 2 for a in call.writes if a >= 0}
        for move in self.debts if changed else ():
            if not all(map(changed.isdisjoint, self.pending.guards.get(move, ()))):
                self._meeting |= self.pending.bits((move,))

    def _in_conflict(self, place: int) -> int:
        return self.pending.conflicting(place)

    def is_minimal(self, path: list[Step]) -> bool:
        """Whether each step of a path matters to a later one or to the call.

        If not, the path without it is met too, and leads to the same with that step after the call.
        """
        meeting = self._first()
        places = [self.places[(s.process, s.head)] for s in path]
        moves = self.moves
        for i, place in enumerate(places):
            if meeting >> place & 1 or not self.prints[moves[place]].writes.isdisjoint(self._call.touched):
                continue
            conflicts = self._in_conflict(place)
            move = moves[place]
            if not any(
                conflicts >> p & 1
                or moves[p][0] == move[0]
                or move in self.before.get(moves[p], ())
                or self.pending.supplying(p) >> place & 1
                for p in places[i + 1 :]
            ):
                return False
        return True

    # -- what silence says -----------------------------------------------------------------------

    def _remains(self, move: Move) -> bool:
        process, element = move
        return element in self.store.objects[process[1]][self._slots[process[0]]] or self._may_arrive(move)

    def _owed_to_call(self, debts: Debts) -> list[Move]:
        meeting = self._first()
        return [m for m, age in debts.items() if age and meeting & self.pending.bits((m,)) and self._remains(m)]

    def _older_debts(self, place: int, debts: Debts) -> list[Move]:
        """The debts that a move must wait for; steps that need never happen are not held up."""
        move = self.moves[place]
        if self.search.model.families[move[0][0]].optional:
            return []
        age = debts.get(move, len(debts) + 1)
        if age <= 0:
            return []
        conflicts = self._in_conflict(place)
        return [
            m for m, a in debts.items() if 0 < abs(a) < age and conflicts & self.pending.bits((m,)) and self._remains(m)
        ]

    def _released(self, debts: Debts, held: list[Move]) -> Debts | None:
        """The debts without those that cannot be paid; None if some of those that hold something up can."""
        if not held:
            return debts
        out = self._younger(debts, max(abs(debts[m]) for m in held))
        if self._reaches(self.pending.bits(held), _Reach(out)):
            return None
        return {m: age for m, age in debts.items() if m not in held}

    def _alive(self, debts: Debts) -> Debts:
        """The debts that can be paid as it is.

        A call comes after the silence, and a step that need never happen may come after it as well; neither brings
        back what could not happen without it.  What such a step could have brought about is kept as what may have."""
        known = {age: _Reach(self._younger(debts, age)) for age in {abs(a) for a in debts.values()}}
        perhaps = _Reach(~self.pending.bits(debts) & ~self._optional()) if self._optional() else None
        left: dict[Move, int] = {}
        for move, age in debts.items():
            if self._remains(move):
                first = self.pending.bits((move,))
                if age and self._reaches(first, known[abs(age)]):
                    left[move] = age
                elif perhaps is not None and self._reaches(first, perhaps):
                    left[move] = 0
        return left if any(left.values()) else NO_DEBTS  # where nothing is owed nothing needs to wait

    def _optional(self) -> int:
        """The moves that need never happen."""
        if self.pending.optional is None:
            families = self.search.model.families
            self.pending.optional = self.pending.bits(m for m in self.moves if families[m[0][0]].optional)
        return self.pending.optional

    def _reaches(self, first: int, known: _Reach) -> bool:
        """Whether a stubborn set around a move, or some, holds a step that may run now, without the moves that are out:
        nothing else can have happened by the time of a debt.

        From what a set without such a step holds none is reached, so that all of it is out for the next move.
        """
        pending = self.pending
        done, todo = known.out, first & ~known.out
        if todo & known.live:
            return True
        while todo:
            bit = todo & -todo
            todo ^= bit
            done |= bit
            place = bit.bit_length() - 1
            number, slot, element = pending.works[place]
            queue = self.store.objects[number][slot]
            if not queue:
                todo = (todo | pending.sources[place]) & ~done
            elif queue[0] != element:
                if element in queue or self._may_arrive(self.moves[place]):
                    todo = (todo | pending.takers.get((number, slot, queue[0]), 0)) & ~done
            elif self._steps(self.moves[place][0]):
                known.live |= first | bit
                return True
            else:
                todo = (todo | pending.supplying(place)) & ~done
            if todo & known.live:
                known.live |= first
                return True
        known.out = done
        return False

    # -- what can answer a poll ------------------------------------------------------------------

    def _out(self, debts: Debts) -> int:
        """The moves that need no look: those that can only put a wrong entry there, but for what is owed: it may be
        found that this cannot happen any more, or that it happened behind the entry."""
        if not debts:
            return self._barred
        return 0 if self._is_filled() else self._barred & ~self.pending.bits(debts)

    def _is_filled(self) -> bool:
        """Whether the entry is there: what comes behind it may be owed, and is wrong no more."""
        return self.wanted is not None and self.search.filled(self.wanted)

    def _find_barred(self) -> int:
        """The moves that can do nothing but put a wrong entry into the queue."""
        return self.pending.bits(
            m for m, own in self.prints.items() if own.cases and all(self._is_wrong(m, case) for case in own.cases)
        )

    def _is_wrong(self, move: Move, case: CaseFacts) -> bool:
        assert self.wanted is not None
        number, element = move[0][1], move[1]
        for push in case.pushes:
            if push.queue == self.wanted.queue and push.path(self.store, number, element) == self.wanted.number:
                parts = {i: f(self.store, number, element) for i, f in push.parts.items()}
                return self.wanted.excludes(self.store, parts)
        return False

    def _allowed(self, move: Move, steps: list[Step]) -> list[Step]:
        if self.wanted is None or not steps or self._is_filled():
            return steps
        cases = self._facts[move[0][0]].cases
        return [s for s in steps if not cases[s.case].pushes or not self._is_wrong(move, cases[s.case])]
