"""Explores the states that can matter to a call, by stubborn sets.

The set holds the call itself; with a move that may run now, every move whose future conflicts with it;
with one that cannot run, every move that may bring about what it waits for.  Some first step of every
sequence that leads to the call is in the set, and the rest of the sequence commutes with what is left
out (Valmari's theory of stubborn sets; ``pending`` gives the footprints).

What silence says is kept as a *debt*: the moves that were pending when the device said that it had
nothing left to do had all happened by then, in any order, but none of them needs to be taken before
something depends on it.  A call, and a move that came up later, wait for the debts that conflict with
them, unless these cannot run either.

When a call is answered by an entry of a queue that is empty, moves that would put another entry there
come later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from verbs_reference import footprint as fp
from verbs_reference.calls import Wanted
from verbs_reference.footprint import Footprint
from verbs_reference.pending import Move, Pending, Process
from verbs_reference.statics import CaseFacts

if TYPE_CHECKING:
    from verbs_reference.search import Search

Debts = Mapping[Move, int]
"""Moves that had happened when the device was silent, with the number of the silence."""
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
        self.prints = pending.prints
        self.before = pending.before
        self.wanted = wanted
        self.debts = debts
        self.seen: set[Key] = set()
        self.forked = False
        self._conflicts: dict[Move, list[Move]] = {}
        self._supplies: dict[Move, list[Move]] = {}
        self._meeting: list[Move] = []
        self._pushing: list[tuple[Move, list[int]]] = []
        self._call = call or Footprint()
        self._meet(self._call)
        self._takers = search.takers
        self._slots = search.slots
        self._facts = search.analysis.families
        self._barred = self._find_barred() if wanted is not None else set()

    def explore(self, visit: Visit) -> None:
        """Visit each state in which the call may be tried, once for each set of steps that leads there."""
        self._from([], self.debts, (0, 0), visit)

    def _from(self, path: list[Step], debts: Debts, key: Key, visit: Visit) -> None:
        self.search.count()
        after = self._released(debts, self._owed_to_call(debts), max(debts.values())) if debts else debts
        if after is not None:
            visit(path, after)
        if self.prints:
            self._branch(*self.stubborn(self._first(), debts), path, key, visit)

    def _branch(self, steps: list[Step], debts: Debts, path: list[Step], key: Key, visit: Visit) -> None:
        """Go on with each of some steps."""
        self.forked = self.forked or len(steps) > 1
        store = self.store
        mark = len(store.journal)
        for step in steps:
            if self.search.take(step):
                longer = [*path, step]
                if not self.forked:
                    self._from(longer, debts, key, visit)
                else:
                    state = (key[0] ^ store.delta(mark), key[1] + hash((step.process[0], step.case, "rule")))
                    if state not in self.seen:
                        self.seen.add(state)
                        self._from(longer, debts, state, visit)
            store.undo(mark)

    # -- stubborn sets ---------------------------------------------------------------------------

    def stubborn(self, first: Iterable[Move], debts: Debts, *, owed: int = 0) -> tuple[list[Step], Debts]:
        """The steps of a stubborn set that may run now, and the debts that are left if debts held a move
        up in vain.

        ``owed``, if not 0, restricts the set to debts up to that silence.
        """
        chosen: set[Move] = set()
        steps: list[Step] = []
        todo = list(first)
        while todo:
            move = todo.pop()
            if (
                move in chosen
                or move not in self.prints
                or (debts.get(move, owed + 1) > owed if owed else move in self._barred)
            ):
                continue
            chosen.add(move)
            process, element = move
            queue = self.store.objects[process[1]][self._slots[process[0]]]
            if not queue or queue[0] != element:
                todo.extend(self._to_wait_for(move, queue))
                continue
            found = self.search.steps(process)
            if not owed:
                found = self._allowed(move, found)
            if found and debts and not owed:
                older = self._older_debts(move, debts)
                left = self._released(debts, older, self._age(move, debts) - 1) if older else debts
                if left is None:
                    todo.extend(older)
                    continue
                debts = left
            steps += found
            todo.extend(self._in_conflict(move) if found else self._suppliers(move))
        return steps, debts

    def _to_wait_for(self, move: Move, queue: tuple[Any, ...]) -> list[Move]:
        """What must come first so that the element gets to the head of its queue."""
        process, element = move
        if element in queue or (queue and self._may_arrive(move)):
            return [(((f, process[1]), queue[0])) for f in self._takers[process[0]]]
        return [] if queue else self.before.get(move, [])

    def _may_arrive(self, move: Move) -> bool:
        """Whether the element can still come to the queue; if not, the move is over or will never be."""
        for source in self.before.get(move, ()):
            process, element = source
            if element in self.store.objects[process[1]][self._slots[process[0]]] or self._may_arrive(source):
                return True
        return False

    def _first(self) -> list[Move]:
        """The moves that meet the call."""
        made = list(self._meeting)
        for move, places in self._pushing:
            if any(self._is_empty(cell) for cell in places):
                made.append(move)
        return made

    def _is_empty(self, cell: int) -> bool:
        number, slot = divmod(cell, fp.CELLS)
        return number not in self.store.objects or not self.store.objects[number][slot]

    def _meet(self, call: Footprint) -> None:
        """Find the moves that meet the call, and those that do while some queue is empty."""
        for move, own in self.prints.items():
            common = (own.writes & call.touched) | (call.writes & own.touched)
            if any(a < 0 or a & 3 != 2 for a in common):
                self._meeting.append(move)
            elif common:
                self._pushing.append((move, [a >> 2 for a in common]))

    def _in_conflict(self, move: Move) -> list[Move]:
        known = self._conflicts.get(move)
        if known is None:
            own = self.prints.get(move)
            known = (
                []
                if own is None
                else [
                    other
                    for other, theirs in self.prints.items()
                    if not (own.writes.isdisjoint(theirs.touched) and theirs.writes.isdisjoint(own.touched))
                    and other[0] != move[0]
                ]
            )
            self._conflicts[move] = known
        return known

    def _suppliers(self, move: Move) -> list[Move]:
        known = self._supplies.get(move)
        if known is None:
            own = self.prints.get(move)
            known = self._supplies[move] = (
                []
                if own is None or not own.needs
                else [
                    o
                    for o, theirs in self.prints.items()
                    if o[0] != move[0] and not theirs.writes.isdisjoint(own.needs)
                ]
            )
        return known

    def is_minimal(self, path: list[Step]) -> bool:
        """Whether each step of a path matters to a later one or to the call.

        If not, the path without it is met too, and leads to the same with that step after the call.
        """
        meeting = set(self._first())
        moves = [(s.process, s.head) for s in path]
        for i, move in enumerate(moves):
            if move in meeting or not self.prints[move].writes.isdisjoint(self._call.touched):
                continue
            conflicts = self._in_conflict(move)
            if not any(
                m in conflicts or m[0] == move[0] or move in self.before.get(m, ()) or move in self._suppliers(m)
                for m in moves[i + 1 :]
            ):
                return False
        return True

    # -- what silence says -----------------------------------------------------------------------

    def _remains(self, move: Move) -> bool:
        process, element = move
        return element in self.store.objects[process[1]][self._slots[process[0]]] or self._may_arrive(move)

    def _owed_to_call(self, debts: Debts) -> list[Move]:
        return [m for m in self._first() if m in debts and self._remains(m)]

    def _older_debts(self, move: Move, debts: Debts) -> list[Move]:
        """The debts that a move must wait for; steps that need never happen are not held up."""
        if self.search.model.families[move[0][0]].optional:
            return []
        age = self._age(move, debts)
        return [m for m in self._in_conflict(move) if debts.get(m, age) < age and self._remains(m)]

    @staticmethod
    def _age(move: Move, debts: Debts) -> int:
        """The silence by which a move had happened; of one that came up later, a number behind all."""
        return debts.get(move, max(debts.values(), default=0) + 1)

    def _released(self, debts: Debts, held: list[Move], silence: int) -> Debts | None:
        """The debts without those that cannot be paid; None if some of those that hold something up can.

        What had happened by one silence did not wait for what came up after it, so only debts up to the
        given one count: else a move would wait for a debt that the move itself pays.
        """
        if not held:
            return debts
        if self.stubborn(held, debts, owed=silence)[0]:
            return None
        return {m: age for m, age in debts.items() if m not in held}

    # -- what can answer a poll ------------------------------------------------------------------

    def _find_barred(self) -> set[Move]:
        """The moves that can do nothing but put a wrong entry into the queue."""
        return {m for m, own in self.prints.items() if own.cases and all(self._is_wrong(m, case) for case in own.cases)}

    def _is_wrong(self, move: Move, case: CaseFacts) -> bool:
        assert self.wanted is not None
        number, element = move[0][1], move[1]
        for push in case.pushes:
            if push.queue == self.wanted.queue and push.path(self.store, number, element) == self.wanted.number:
                parts = {i: f(self.store, number, element) for i, f in push.parts.items()}
                return self.wanted.excludes(self.store, parts)
        return False

    def _allowed(self, move: Move, steps: list[Step]) -> list[Step]:
        if self.wanted is None or not steps or self.search.filled(self.wanted):
            return steps
        cases = self._facts[move[0][0]].cases
        return [s for s in steps if not cases[s.case].pushes or not self._is_wrong(move, cases[s.case])]
