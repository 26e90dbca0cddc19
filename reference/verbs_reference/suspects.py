"""Who is to blame when nothing explains an observation.

The rules that decided a refused call are found from the end.  The test that failed looked at some
fields; the firing that last wrote such a field is a suspect; then come the firings that wrote what that
value was made of, and those that wrote what the firing's guard looked at.  A rule that should have
written a field and did not is a suspect too: one that fired since and was about the same object, or at
last one that fired lately.  Nearest causes come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verbs_reference import nodes as n
from verbs_reference.history import Cell, Event, Firing, History, Part, Texts
from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.pending import Analysis
from verbs_reference.store import NeedChoice, Store

if TYPE_CHECKING:
    from verbs_reference.belief import Action
    from verbs_reference.walk import Step

DEPTH = 7
STATES = 12
"""So many states at most are looked at in detail: those in which the least is wrong."""
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
        report.near.sort(key=lambda x: (x.missed, -len(x.path)))
        history = self._history(trail)
        for near in report.near[:STATES]:
            penalty = 0 if near.missed == report.near[0].missed else 20
            report.add(near.case.id, (penalty, 0, 0))
            firings = self._firings(history, near.path)
            self._follow(near.cells, near.entry, firings, report, penalty)
            for rule in near.ready:
                report.add(rule, (39 + penalty, 0, 0))
            self._lately(firings, report, penalty)
        report.suspects = sorted(report.ranks, key=lambda r: report.ranks[r])

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
        """The rules of steps that may run, and have not led to what was seen."""
        made = []
        for family in self.model.families:
            for number in store.active[family.trigger]:
                try:
                    case = family.pick(store, number)
                except NeedChoice:
                    continue
                if case >= 0 and not family.optional:
                    made.append(family.cases[case].id)
        return made

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
        trees = wrong or [c.guard_tree for c in code.cases if c.guard_tree is not None and self._bears(c, case, action)]
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
