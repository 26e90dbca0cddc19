"""What a device that has nothing left to do has done.

What can have happened in one way only is taken at once; the rest stays a debt (``walk``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verbs_reference.pending import Move, Pending
from verbs_reference.walk import NO_DEBTS, Debts, Key, Step, Visit, Walk

if TYPE_CHECKING:
    from verbs_reference.search import Search


class Silence(Walk):
    """Takes debts until nothing is left, or until several things could come next."""

    def __init__(self, search: Search, pending: Pending, debts: Debts, *, forks: bool) -> None:
        super().__init__(search, pending, None, debts)
        self.forks = forks
        self._looked_at: set[int] = set()
        for made in pending.prints.values():
            self._looked_at |= made.reads | made.needs

    def _in_conflict(self, move: Move) -> list[Move]:
        """When the order of what nobody looks at does not matter, two writes of it do not conflict."""
        known = self._conflicts.get(move)
        if known is None:
            own = self.prints[move]
            writes = own.writes & self._looked_at if self.forks else own.writes
            known = self._conflicts[move] = [
                other
                for other, theirs in self.prints.items()
                if other[0] != move[0]
                and not (writes.isdisjoint(theirs.touched) and theirs.writes.isdisjoint(own.reads | own.needs))
            ]
        return known

    def _from(self, path: list[Step], debts: Debts, key: Key, visit: Visit) -> None:
        self.search.count()
        steps = self._next(debts)
        if not steps or (len(steps) > 1 and not self.forks):
            visit(path, {m: age for m, age in debts.items() if self._remains(m)} if steps else NO_DEBTS)
        else:
            self._branch(steps, debts, path, key, visit)

    def _next(self, debts: Debts) -> list[Step]:
        """The steps of the smallest stubborn set that has any."""
        best: list[Step] = []
        for process in dict.fromkeys(m[0] for m in self.debts):
            queue = self.store.objects[process[1]][self._slots[process[0]]]
            if queue:
                steps = self.stubborn([(process, queue[0])], debts)[0]
                if len(steps) == 1:
                    return steps
                if steps and (not best or len(steps) < len(best)):
                    best = steps
        return best
