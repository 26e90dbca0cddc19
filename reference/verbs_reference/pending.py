"""What the device may still do: the transitions that may come, and the places that each may read and
write.

A *process* is one family of internal steps at one object: (position of the family, object number).  A
*move* is a process working on one element: one that stands in the queue which the process takes, or
that other moves may push there.  For each move each case is impossible until every part of its guard
holds now or reads a field that some possible case may write (with the values that it may write, where
these are constants).  What the possible cases touch is the move's footprint.  It holds for every future
of the state until the consumer's next call, which is what the search needs to leave independent moves
alone.  ``statics`` holds what does not depend on the state, ``basis`` says which states need no analysis of their
own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import product
from typing import Any

from verbs_reference import footprint as fp
from verbs_reference.basis import Basis, Rows, Seen, Watch, same
from verbs_reference.calls import Calls
from verbs_reference.footprint import ANY, CELLS, SOME, Footprint
from verbs_reference.model import Model
from verbs_reference.moves import NOTHING, Move, Pending, Process
from verbs_reference.statics import CaseFacts, FamilyFacts, Memory, Statics, Test
from verbs_reference.store import NeedChoice, Store

MOST = 64
"""So many combinations of values are tried for a guard's part; beyond it is taken to be possible."""
KNOWN = 1000
"""What stands in the queues of so many states is remembered, with the moves that were found."""
MOVES = 20_000
"""So many moves are remembered, with what they touch."""
ALIKE = 8
"""Of one of these so many are remembered that differ in other things."""


@dataclass(slots=True)
class _Row:
    """A case of a move with the places that it designates."""

    move: Move
    case: CaseFacts
    tests: list[tuple[Test, frozenset[int]]]
    reads: set[int]
    writes: set[int]
    cells: frozenset[int]
    depends: list[frozenset[int]]
    assigns: list[tuple[int, Callable[..., Any]]]


Cases = tuple[set[int], set[int], list[_Row]]
"""What a move reads in any case, what being enabled needs, and the cases that its element admits."""


class Analysis(Statics):
    """The static part, once a model; and what it says of a state."""

    def __init__(self, model: Model, like: Analysis | None = None) -> None:
        super().__init__(model, like)
        self._rows: dict[Move, list[tuple[Any, list[Seen], Cases]]] = {}
        """By move: what decides what it touches, the objects that were looked at for it, and what it touches."""
        self.slots = [model.layout.slot[f.kind][f.trigger[1]] for f in model.families]
        self._names = {kind: {s: f for f, s in slots.items()} for kind, slots in model.layout.slot.items()}
        self._looked_at: Rows = Rows(self, like._looked_at if like is not None and self.like is like else None)
        self._known: dict[Any, list[tuple[Basis, Pending]]] = {}
        self.calls: Calls = Calls(self, like.calls if like is not None and self.like is like else None)
        self.suspects: Any = None

    def constants_of(self, store: Store, number: int, slot: int) -> set[object] | None:
        """The constants that steps may set a field to; None if it may become anything, or nothing is
        known."""
        for kind, live in store.live.items():
            if number in live:
                return self.internal.get((kind, self._names[kind].get(slot, "")))
        return None

    def pending(self, store: Store) -> Pending:
        """Every move that may come before the consumer's next call, with its footprint."""
        queues = self._queues(store)
        for basis, made in self._known.get(queues, ()):
            if basis.holds(store):
                self.fill_coming(made.before)
                return made
        watch = Watch(store)
        before = self._moves(watch)
        made = _Fixpoint(self, watch, before).run() if before else NOTHING
        _remember(self._known, KNOWN, queues, (watch.basis(self._looked_at), made))
        return made

    def _queues(self, store: Store) -> tuple[Any, ...]:
        """What stands in the queues that steps take from."""
        return tuple(
            (i, number, store.objects[number][slot])
            for i, (facts, slot) in enumerate(zip(self.families, self.slots, strict=True))
            for number in store.active[facts.trigger]
        )

    # -- which moves -----------------------------------------------------------------------------

    def _moves(self, store: Store) -> dict[Move, list[Move]]:
        """The moves that may come, each with those that bring its element to its queue."""
        found: dict[Move, list[Move]] = {}
        todo: list[tuple[Move, Move | None]] = [(m, None) for m in self._present(store)]
        coming: dict[tuple[int, int], list[Any]] = {}
        passing: dict[tuple[int, int], list[tuple[Move, Process]]] = {}
        while todo:
            move, source = todo.pop()
            before = found.get(move)
            if before is None:
                before = found[move] = []
                (index, number), element = move
                place = (number, self.slots[index])
                coming.setdefault(place, []).append(element)
                todo.extend(
                    ((to, element), by) for by, to in passing.get(place, ()) if self._may_come(store, to, element)
                )
                for to, given, queue in self._following(store, move):
                    if queue is not None:
                        passing.setdefault(queue, []).append((move, to))
                    elements = (*given, *coming.get(queue, ())) if queue is not None else given
                    todo.extend(((to, e), move) for e in elements if self._may_come(store, to, e))
            if source is not None and source not in before:
                before.append(source)
        return found

    def _may_come(self, store: Store, process: Process, element: Any) -> bool:
        steady = self.families[process[0]].steady
        return steady is None or bool(steady(store, process[1], element))

    def _present(self, store: Store) -> Iterator[Move]:
        for i, facts in enumerate(self.families):
            for number in store.active[facts.trigger]:
                for element in store.objects[number][self.slots[i]]:
                    if facts.steady is None or facts.steady(store, number, element):
                        yield ((i, number), element)

    def _following(self, store: Store, move: Move) -> Iterator[tuple[Process, tuple[Any, ...], tuple[int, int] | None]]:
        """The processes to whose queues a move may push, the elements, and the queue from whose head they come, if they
        do: more may come there."""
        (index, number), element = move
        facts = self.families[index]
        admitted: dict[int, bool] = {}
        for j, target in facts.targets:
            if target.case not in admitted:
                constant = facts.cases[target.case].constant
                admitted[target.case] = constant is None or bool(constant(store, element))
            to = target.path(store, number, element) if admitted[target.case] else 0
            if to <= 0:
                continue
            if target.queue is not None:
                holder = target.queue[0](store, number, element)
                if holder > 0:
                    yield (j, to), store.objects[holder][target.queue[1]], (holder, target.queue[1])
            else:
                yield (j, to), (element if target.value is None else target.value(store, number, element),), None

    # -- what they touch -------------------------------------------------------------------------

    def fill_coming(self, moves: Iterable[Move]) -> None:
        """Tell the designators what may come to each queue."""
        coming: dict[tuple[int, int], dict[Any, None]] = {}
        for (index, number), element in moves:
            coming.setdefault((number, self.slots[index]), {})[element] = None
        self.designators.coming.clear()
        for place, elements in coming.items():
            self.designators.coming[place] = tuple(elements)

    def rows(self, store: Watch, move: Move) -> Cases:
        """For a move: what it reads in any case, what being enabled needs, and the cases that its element
        admits."""
        (index, number), element = move
        facts = self.families[index]
        moving = facts.moving(store, number, element) if facts.moving is not None else None
        for decides, seen, cases in self._rows.get(move, ()):
            if decides == moving and same(store.state, seen):
                store.note(seen)
                return cases
        made: Cases
        made, seen = store.alone(self._looked_at, lambda: self._make_rows(store, move, facts))
        _remember(self._rows, MOVES, move, (moving, seen, made))
        store.note(seen)
        return made

    def _make_rows(self, store: Store, move: Move, facts: FamilyFacts) -> Cases:
        (index, number), element = move
        head = {4 * (number * CELLS + self.slots[index])}
        needs: set[int] = set()
        for need in facts.needs:
            if need.admits is None or need.admits(store, element):
                needs |= need.reads(store, number, element)
                head |= need.depends(store, number, element)
        rows = [
            _row(store, move, case, facts)
            for case in facts.cases
            if case.constant is None or case.constant(store, element)
        ]
        return head, needs, rows


def _remember(known: dict[Any, list[Any]], most: int, key: Any, entry: Any) -> None:
    """Keep an entry beside the last few of its key; where there are too many keys, all are forgotten."""
    if key not in known and len(known) >= most:
        known.clear()
    alike = known.setdefault(key, [])
    if len(alike) >= ALIKE:
        alike.pop(0)
    alike.append(entry)


def _row(store: Store, move: Move, case: CaseFacts, facts: FamilyFacts) -> _Row:
    number, element = move[0][1], move[1]

    def atoms(function: Callable[..., set[int]] | None) -> set[int]:
        return function(store, number, element) if function is not None else set()

    tests = [(test, fp.cells(atoms(test.reads))) for test in facts.domain]
    guard: set[int] = set()
    for test in case.tests:
        found = atoms(test.reads)
        tests.append((test, fp.cells(found)))
        guard |= found
    assigns = [(cell, value) for function, value in case.assigns for cell in fp.cells(atoms(function))]
    reads, writes = guard | atoms(case.reads), atoms(case.writes)
    depends = [fp.cells(atoms(m.depends)) for m in case.memory]
    return _Row(move, case, tests, reads, writes, fp.cells(writes), depends, assigns)


class _Fixpoint:
    """Which cases are possible, given what the others may write."""

    def __init__(self, analysis: Analysis, store: Watch, before: dict[Move, list[Move]]) -> None:
        self.analysis = analysis
        self.store = store
        self.before = before
        self.written: dict[int, set[Any] | None] = {}
        self.waiting: dict[int, list[_Row]] = {}
        self.todo: list[_Row] = []

    def run(self) -> Pending:
        """All moves with their footprints."""
        prints: dict[Move, Footprint] = {}
        guards: dict[Move, list[frozenset[int]]] = {}
        self.analysis.fill_coming(self.before)
        for move in self.before:
            head, needs, rows = self.analysis.rows(self.store, move)
            prints[move] = Footprint(set(head), set(), needs)
            guards[move] = [cells for row in rows for _, cells in row.tests]
            self.todo.extend(rows)
        possible: dict[int, _Row] = {}
        while self.todo:
            row = self.todo.pop()
            if id(row) not in possible and self._is_possible(row):
                possible[id(row)] = row
                self._write(row)
        for row in possible.values():
            self._add(prints[row.move], row)
        agreed = {ANY}
        for cell, values in self.written.items():
            if values is not None and len(values) == 1:
                agreed.update((4 * cell, 4 * cell + 1, 4 * cell + 2))
        for made in prints.values():
            made.seal(agreed)
        return Pending(prints, self.before, self.analysis.slots, guards)

    def _is_possible(self, row: _Row) -> bool:
        """Whether the case can apply, with some element at the head of another queue that it looks at."""
        if row.case.looks is not None:
            path, slot = row.case.looks
            number = path(self.store, row.move[0][1], row.move[1])
            if number > 0 and number * CELLS + slot in self.written:
                made = False
                for _ in self._heads(number, slot):
                    made = made or self._passes(row, number * CELLS + slot)
                return made
        return self._passes(row)

    def _passes(self, row: _Row, fixed: int = -1) -> bool:
        number, element = row.move[0][1], row.move[1]
        for test, cells in row.tests:
            try:
                if test.holds(self.store, number, element):
                    continue
            except NeedChoice:
                continue
            hit = [c for c in cells if c in self.written and c != fixed]
            if not hit or not self._can_hold(test, number, element, hit):
                for cell in cells:
                    self.waiting.setdefault(cell, []).append(row)
                return False
        return True

    def _can_hold(self, test: Test, number: int, element: Any, hit: list[int]) -> bool:
        """Whether the test holds with some of the values that these fields may get."""
        choices: list[list[Any]] = []
        count = 1
        for cell in hit:
            values = self.written[cell]
            if values is None:
                return True
            obj, slot = divmod(cell, CELLS)
            choices.append([self.store.objects[obj][slot], *values])
            count *= len(choices[-1])
        return count > MOST or any(self._holds(test, number, element, hit, v) for v in product(*choices))

    def _holds(self, test: Test, number: int, element: Any, hit: list[int], values: tuple[Any, ...]) -> bool:
        objects = self.store.objects
        places = [divmod(cell, CELLS) for cell in hit]
        old = [objects[o][s] for o, s in places]
        for (o, s), value in zip(places, values, strict=True):
            objects[o][s] = value
        try:
            return bool(test.holds(self.store, number, element))
        except NeedChoice:
            return True
        finally:
            for (o, s), value in zip(places, old, strict=True):
                objects[o][s] = value

    def _write(self, row: _Row) -> None:
        """Note what a possible case writes, and look again at the cases that wait for it."""
        constant: dict[int, set[Any]] = {}
        for cell, value in row.assigns:
            constant.setdefault(cell, set()).add(value(self.store, row.move[0][1], row.move[1]))
        for cell in row.cells:
            values = constant.get(cell)
            known = self.written.get(cell, _UNKNOWN)
            if known is None or (values is not None and known is not _UNKNOWN and values <= known):
                continue
            if values is None or known is _UNKNOWN:
                self.written[cell] = values
            else:
                self.written[cell] = known | values
            self.todo.extend(self.waiting.pop(cell, ()))

    def _add(self, made: Footprint, row: _Row) -> None:
        made.cases.append(row.case)
        made.reads |= row.reads
        made.writes |= row.writes
        if not row.case.memory:
            return
        for memory, depends in zip(row.case.memory, row.depends, strict=True):
            made.reads.add(SOME)
            if memory.writes:
                made.writes.add(ANY)
            into = made.writes if memory.writes else made.reads
            places = self._places(row, memory, depends & self.written.keys())
            if places is None:
                into.add(SOME if memory.writes else ANY)
            else:
                into |= places

    def _places(self, row: _Row, memory: Memory, hit: Set[int]) -> set[int] | None:
        """The blocks that an access to memory may touch; None if they cannot be told, as where a choice decides."""
        if memory.places is None:
            return None
        try:
            return self._touched(row, memory.places, hit)
        except NeedChoice:
            return None

    def _touched(self, row: _Row, places: Callable[..., Any], hit: Set[int]) -> set[int] | None:
        number, element = row.move[0][1], row.move[1]
        if not hit:
            return fp.blocks(places(self.store, number, element))
        if row.case.looks is None:
            return None
        owner, slot = row.case.looks[0](self.store, number, element), row.case.looks[1]
        if hit != {owner * CELLS + slot}:
            return None
        made: set[int] = set()
        for _ in self._heads(owner, slot):
            made |= fp.blocks(places(self.store, number, element))
        return made

    def _heads(self, number: int, slot: int) -> Iterator[None]:
        """Let a queue hold nothing, and each element that may be its head, one after the other."""
        obj = self.store.objects[number]
        old = obj[slot]
        coming = self.analysis.designators.coming.get((number, slot), ())
        try:
            for queue in [(), *((e,) for e in dict.fromkeys((*old, *coming)))]:
                obj[slot] = queue
                yield
        finally:
            obj[slot] = old


_UNKNOWN: Any = object()
