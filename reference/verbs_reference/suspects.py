"""Who is to blame when nothing explains an observation.

The rules that decided a refused call are found from the end.  The test that failed looked at some
fields; the firing that last wrote such a field is a suspect; then come the firings that wrote what that
value was made of, and those that wrote what the firing's guard looked at.  A rule that should have
written a field and did not is a suspect too: one that fired since and was about the same object, or at
last one that fired lately.  Nearest causes come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verbs_reference import nodes as n
from verbs_reference.history import Cell, Event, Firing, History, Part, Texts
from verbs_reference.model import CallCase, CallCode, Family, Model
from verbs_reference.pending import Analysis
from verbs_reference.store import NeedChoice, Store

if TYPE_CHECKING:
    from verbs_reference.belief import Action
    from verbs_reference.walk import Step

DEPTH = 7
AHEAD = 3
"""So many rounds of steps that must run are looked at."""
STATES = 12
"""So many states at most are looked at in detail: those in which the least is wrong."""
LIBERTY = 6
"""So much farther away are the rules of a state that takes more liberties than another one as near."""
Rank = tuple[int, int, int]
Missed = tuple[bool, int, int]
"""How far a rule is from what was seen: another result, minus the output test's parts that hold, those that fail."""


@dataclass(slots=True)
class _Near:
    """A state in which a rule comes near to the observation."""

    missed: Missed
    case: CallCase
    wrong: list[n.Expr]
    path: list[Step]
    cells: list[tuple[Cell, Part]]
    entry: Any
    ready: list[str]


@dataclass(slots=True)
class Report:
    """The rules that came near, and suspects; rank (depth, distance) for each."""

    near: list[_Near] = field(default_factory=list)
    ranks: dict[str, Rank] = field(default_factory=dict)
    suspects: list[str] = field(default_factory=list)

    def add(self, rule: str, rank: Rank) -> None:
        """Note a suspect; the nearest rank counts."""
        if rule not in self.ranks or rank < self.ranks[rule]:
            self.ranks[rule] = rank


class Suspects:
    """Finds suspects for one model."""

    def __init__(self, model: Model, analysis: Analysis) -> None:
        self.model = model
        self.analysis = analysis
        self.texts = Texts(model)
        self._kinds: dict[int, str] = {}
        """The objects of the explanation that is looked at."""

    def note(
        self,
        store: Store,
        code: CallCode,
        action: Action,
        path: list[Step],
        report: Report,
        forks: Callable[[Callable[[], Any]], Iterator[tuple[Any, Any, Any]]],
    ) -> None:
        """Add what the rules say in the store's state, reached by this path."""
        for ruling, _, _ in forks(lambda: self.ruling(store, code, action)):
            for case in ruling:
                wrong = self._wrong(store, case, code, action)
                missed = self._missed(case, action, wrong)
                cells, entry = self._looked_at(store, code, case, action, wrong)
                report.near.append(_Near(missed, case, wrong, list(path), cells, entry, self._ready(store)))

    def rank(self, report: Report, trail: Any) -> None:
        """Order the suspects, nearest first."""
        report.near.sort(key=lambda x: (x.missed, self._liberties(x), -len(x.path)))
        history = self._history(trail)
        live = history.store.live if history is not None else {}
        self._kinds = {number: kind for kind, numbers in live.items() for number in numbers}
        for near in report.near[:STATES]:
            penalty = 0 if near.missed == report.near[0].missed else 20
            penalty += LIBERTY if self._liberties(near) > self._liberties(report.near[0]) else 0
            report.add(near.case.id, (penalty, 0, 0))
            firings = self._firings(history, near.path)
            self._follow(near.cells, near.entry, firings, report, penalty)
            for rule in near.ready:
                report.add(rule, (39 + penalty, 0, 0))
            self._lately(firings, report, penalty)
        report.suspects = sorted(report.ranks, key=lambda r: report.ranks[r])

    def _liberties(self, near: _Near) -> int:
        """How many steps that need not come lead to a state: what only adds explanations is rarely to blame."""
        return sum(self.model.families[s.process[0]].optional for s in near.path)

    def _lately(self, firings: list[Firing], report: Report, penalty: int) -> None:
        """What fired last, steps before calls, and what that depended on."""
        last = sorted(range(min(len(firings), 12)), key=lambda i: (not firings[i].is_step, i))
        for place, i in enumerate(last):
            report.add(firings[i].rule, (40 + penalty, place, 0))
        for i in last[:2]:
            cells = {c for rows in firings[i].writes.values() for _, sources in rows for c in sources}
            self._follow([(c, None) for c in sorted(cells)], None, firings[i + 1 :], report, 38 + penalty)

    def _history(self, trail: Any) -> History | None:
        """What led to the branch; None if something was not judged, and its part is missing."""
        events: list[Event] = []
        while trail is not None:
            trail, event = trail
            events.append(event)
        history = History(self.texts, self.analysis)
        try:
            history.run(reversed(events))
        except (KeyError, IndexError, NeedChoice):
            return None
        return history

    def _firings(self, history: History | None, path: list[Step]) -> list[Firing]:
        if history is None:
            return []
        try:
            return history.with_path(Event(self._rule(s), s.process, s.head, None, (*s.once, *s.fixed)) for s in path)
        except (KeyError, IndexError, NeedChoice):
            return []

    def _rule(self, step: Step) -> str:
        return self.model.families[step.process[0]].cases[step.case].id

    def _ready(self, store: Store) -> list[str]:
        """The rules of steps that must run, one after the other, and do not lead to what was seen.

        The search leaves steps out that do not bear on the call, and a step bears on nothing if its effect is
        missing."""
        made: list[str] = []
        mark = len(store.journal)
        for _ in range(AHEAD):
            found = list(self._must(store))
            made += [family.cases[case].id for family, _, case in found]
            for family, number, _ in found:
                if number not in store.active[family.trigger]:
                    continue  # a step before it has emptied its queue
                try:
                    case = family.pick(store, number)
                    if case >= 0:
                        family.cases[case].effect(store, number)
                except NeedChoice:
                    continue
        store.undo(mark)
        return made

    def _must(self, store: Store) -> Iterator[tuple[Family, int, int]]:
        """The steps that must run, each with its process and case."""
        for family in self.model.families:
            for number in store.active[family.trigger] if not family.optional else ():
                try:
                    case = family.pick(store, number)
                except NeedChoice:
                    continue
                if case >= 0:
                    yield family, number, case

    # -- what the rules say ----------------------------------------------------------------------

    def ruling(self, store: Store, code: CallCode, action: Action) -> list[CallCase]:
        """The rules that decide a call in the store's state, whatever was seen of it."""
        holding = [c for c in code.causes if c.guard and c.undefined is None and c.guard(store, *action.args)]
        if all(c.rule.level == "may" for c in holding):
            holding += [c for c in code.successes if c.guard is None or c.guard(store, *action.args)]
        return holding

    def _missed(self, case: CallCase, action: Action, wrong: list[n.Expr]) -> Missed:
        parts = n.conjuncts(case.outputs_tree) if case.outputs_tree is not None else []
        return action.result not in case.returns, len(wrong) - len(parts), len(wrong)

    def _wrong(self, store: Store, case: CallCase, code: CallCode, action: Action) -> list[n.Expr]:
        """The parts of the output test that the observation fails."""
        if case.outputs_tree is None or action.result not in case.returns:
            return []
        names = [*code.params, *code.outputs]
        wrong = []
        for part in n.conjuncts(case.outputs_tree):
            test = self.texts.function(part, tuple(names))
            try:
                if not test(store, *action.args, *action.outputs):
                    wrong.append(part)
            except NeedChoice:
                continue
        return wrong

    def _looked_at(
        self, store: Store, code: CallCode, case: CallCase, action: Action, wrong: list[n.Expr]
    ) -> tuple[list[tuple[Cell, Part]], Any]:
        """The fields behind what is wrong, with the part of the entry that is wrong; and that entry."""
        env = dict(zip([*code.params, *code.outputs], [*action.args, *action.outputs], strict=False))
        history = History(self.texts, self.analysis)
        guards = [c.guard_tree for c in code.cases if c.guard_tree is not None and self._bears(c, case, action)]
        found, entry = self._fields(store, history, env, wrong)
        return (found, entry) if found else self._fields(store, history, env, guards)

    def _fields(
        self, store: Store, history: History, env: dict[str, Any], trees: Iterable[n.Expr]
    ) -> tuple[list[tuple[Cell, Part]], Any]:
        found: list[tuple[Cell, Part]] = []
        entry: Any = None
        for tree in trees:
            parts = _parts(self.model, tree)
            for cell in sorted(history.cells(tree, env, store)):
                value = store.objects[cell[0]][cell[1]]
                if isinstance(value, tuple) and value and parts:
                    entry = value[0]
                    found += [(cell, part) for part in parts]
                else:
                    found.append((cell, None))
        return found, entry

    def _bears(self, other: CallCase, case: CallCase, action: Action) -> bool:
        """Whether another rule's guard says why this one decided: it is this one, or allows what was seen."""
        return other is case or (action.result in other.returns and action.result not in case.returns)

    # -- following fields back -------------------------------------------------------------------

    def _follow(
        self, cells: list[tuple[Cell, Part]], entry: Any, firings: list[Firing], report: Report, penalty: int
    ) -> None:
        """Follow fields back: what values were made of at the next depth, what guards looked at a little
        later."""
        levels: dict[int, list[tuple[Cell, Part, int]]] = {1: [(cell, part, 0) for cell, part in cells]}
        seen: set[tuple[Cell, Part]] = set()
        for depth in range(1, DEPTH):
            for cell, part, start in levels.get(depth, ()):
                if (cell, part) in seen:
                    continue
                seen.add((cell, part))
                for i in self._writers(cell, part, start, firings, entry):
                    firing = firings[i]
                    report.add(firing.rule, (penalty + 2 * depth, 0, i))
                    sources = {c for p, found in firing.writes[cell] if part in {None, p} for c in found} - {cell}
                    levels.setdefault(depth + 1, []).extend((c, None, i + 1) for c in sorted(sources))
                    later = depth + (3 if sources else 1)
                    levels.setdefault(later, []).extend((c, None, i + 1) for c in sorted(firing.control - sources))
                if part is None:
                    for i in self._idle(cell, start, firings):
                        report.add(firings[i].rule, (penalty + 2 * depth + 1, 0, i))
                        levels.setdefault(depth + 2, []).extend((c, None, i + 1) for c in sorted(firings[i].control))
                self._bystanders(cell, start, firings, report, penalty + 2 * depth)

    def _writers(self, cell: Cell, part: Part, start: int, firings: list[Firing], entry: Any) -> Iterator[int]:
        """Which firing wrote a field last; of a queue's entry, which pushed it; of a count, all that counted."""
        for i in range(start, len(firings)):
            firing = firings[i]
            if cell not in firing.writes or (part is not None and firing.pushed.get(cell) != entry):
                continue
            yield i
            if not any(cell in cells for _, cells in firing.writes[cell]):
                return

    def _idle(self, cell: Cell, start: int, firings: list[Firing]) -> Iterator[int]:
        """Firings since a field was written that might have written it, as a rule of their family does, and did not."""
        for i in range(start, len(firings)):
            firing = firings[i]
            if cell in firing.writes:
                if not any(cell in cells for _, cells in firing.writes[cell]):
                    return
            elif self._might(firing, cell):
                yield i

    def _might(self, firing: Firing, cell: Cell) -> bool:
        """Whether a rule of the firing's family writes the field, and this firing wrote it in no object."""
        kind = self._kinds.get(cell[0], "")
        if (kind, cell[1]) not in self.texts.written(firing.rule):
            return False
        return not any(c[1] == cell[1] and self._kinds.get(c[0], "") == kind for c in firing.writes)

    def _bystanders(self, cell: Cell, start: int, firings: list[Firing], report: Report, depth: int) -> None:
        """Firings since the field was written that looked at it, or were about its object, and left it."""
        for i in range(start, len(firings)):
            firing = firings[i]
            if cell in firing.writes:
                if not any(cell in cells for _, cells in firing.writes[cell]):
                    return
            elif cell in firing.control:
                report.add(firing.rule, (depth + 2, i + 1, 0))
            elif cell[0] in firing.about:
                report.add(firing.rule, (depth + 3, i, 0))


def suspects_of(analysis: Analysis) -> Suspects:
    """The finder for a model; made once, for it keeps what it compiles."""
    if analysis.suspects is None:
        analysis.suspects = Suspects(analysis.model, analysis)
    made: Suspects = analysis.suspects
    return made


def _parts(model: Model, tree: n.Expr) -> list[int]:
    """The parts of a record that an expression looks at."""
    return sorted(
        {
            list(model.voc.records[e.record.type.name]).index(e.field)
            for e in n.walk(tree)
            if isinstance(e, n.Part) and isinstance(e.record, n.Builtin)
        }
    )
