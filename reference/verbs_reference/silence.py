"""What a device that has nothing left to do has done.

What can have happened in one way only is taken at once; the rest stays a debt (``walk``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verbs_reference.moves import Pending
from verbs_reference.walk import NO_DEBTS, Debts, Key, Step, Visit, Walk

if TYPE_CHECKING:
    from verbs_reference.search import Search


class Silence(Walk):
    """Takes debts until nothing is left, or until several things could come next."""

    def __init__(self, search: Search, pending: Pending, debts: Debts, *, forks: bool) -> None:
        super().__init__(search, pending, None, debts)
        self.forks = forks
        self._looked_at: set[int] = set()
        for made in pending.prints.values() if forks else ():
            self._looked_at |= made.reads | made.needs

    def _in_conflict(self, place: int) -> int:
        """When the order of what nobody looks at does not matter, two writes of it do not conflict."""
        known = self.pending.silent.get((self.forks, place))
        if known is None:
            move = self.moves[place]
            own = self.prints[move]
            writes = own.writes & self._looked_at if self.forks else own.writes
            looked = own.reads | own.needs
            known = self.pending.bits(
                other
                for other, theirs in self.prints.items()
                if other[0] != move[0] and not (writes.isdisjoint(theirs.touched) and theirs.writes.isdisjoint(looked))
            )
            self.pending.silent[(self.forks, place)] = known
        return known

    def _alive(self, debts: Debts) -> Debts:
        return debts  # what cannot be paid holds nothing up here

    def _from(self, path: list[Step], debts: Debts, key: Key, visit: Visit) -> None:
        self.search.count()
        steps, must = self._next(debts)
        if not must:
            visit(path, NO_DEBTS)
            if not self.forks:
                return
        elif len(steps) > 1 and not self.forks:
            visit(path, {m: age for m, age in debts.items() if self._remains(m)})
            return
        self._branch(steps, debts, path, key, visit)

    def _next(self, debts: Debts) -> tuple[list[Step], bool]:
        """The steps of the smallest stubborn set with one that must happen, and whether there is any; if not, the
        device may be silent, and steps that need never happen are all that is left."""
        best: list[Step] = []
        must = False
        for process in dict.fromkeys(m[0] for m in self.debts):
            queue = self.store.objects[process[1]][self._slots[process[0]]]
            if queue:
                steps = self.stubborn(self.pending.bits([(process, queue[0])]), debts)[0]
                needed = any(not self.search.is_optional(s) for s in steps)
                if needed and len(steps) == 1:
                    return steps, True
                if (needed, -len(steps)) > (must, -len(best)) or not best:
                    best, must = steps, needed
        return best, must
