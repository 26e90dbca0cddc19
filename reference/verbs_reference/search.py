"""Finds the states in which an observed call can have happened.

From a branch's state the search explores internal steps and tries the call in each state it meets.  It does not
explore all steps: a *stubborn set* around the call is enough.  The set holds the call itself; with a step that
may run, every process whose future conflicts with it; with a call or step that cannot run, every process that may
write what it waits for.  Some first step of every sequence that leads to the call is in the set, and the rest of
the sequence commutes with what is left out (Valmari's theory of stubborn sets; ``pending`` gives the footprints).

A path that contains a step which the call did not need is dropped: the branch without it stands for it.
Whether a step was needed is tried, not guessed: the path is run without it, and with it after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verbs_reference import footprint as fp

from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.pending import Analysis, Footprint, Process
from verbs_reference.store import Entry, NeedChoice, Store
from verbs_reference.suspects import Event, Report, Suspects

if TYPE_CHECKING:
    from verbs_reference.belief import Action, Branch


class Capped(Exception):
    """The search met more states than it is allowed to."""


@dataclass(slots=True)
class Found:
    """A state after the call: changes from the base, what fired, results that only a rule's outer set allows."""

    changes: list[Entry]
    signature: Any
    fired: dict[str, int]
    trail: Any
    deviates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One internal step as it was taken: process, case, and the options that were chosen for it."""

    process: Process
    case: int
    head: int
    once: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...]


Trial = tuple[tuple[CallCase, ...], bool, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]


class Search:
    """The searches over one store; ``limit`` bounds the states that one call may meet."""

    def __init__(self, model: Model, analysis: Analysis, store: Store, limit: int) -> None:
        self.model = model
        self.analysis = analysis
        self.store = store
        self.limit = limit
        self.suspects = Suspects(model, analysis)
        self._left = 0
        self._stable = {name for name, (_, stable) in model.voc.choices.items() if stable}

    # -- calls -----------------------------------------------------------------------------------

    def match(self, code: CallCode, action: Action, branch: Branch) -> list[Found]:
        """The states after the call, starting from the branch's state, which is the store's."""
        cases = [c for c in code.cases if action.result in c.returns]
        made: list[Found] = []
        if not cases:
            return made
        prints = self._relevant(code, cases, action)
        walk = _Walk(self, branch, prints[0], prints[1])
        self._left = self.limit
        walk.explore(lambda path: self._try(code, cases, action, branch, path, walk, made))
        return made

    def _relevant(
        self, code: CallCode, cases: list[CallCase], action: Action
    ) -> tuple[dict[Process, Footprint], Footprint | None]:
        """The footprints of all processes and of the call; none if nothing is pending."""
        if not any(self.store.active.values()):
            return {}, None
        read = list(cases)
        if any(not c.is_cause for c in cases):
            read += [c for c in code.causes if c not in cases and c.undefined is None]
        args = dict(zip([*code.params, *code.outputs], [*action.args, *action.outputs], strict=False))
        call = self.analysis.of_call(self.store, read, args)
        return self.analysis.footprints(self.store), call

    def _try(
        self,
        code: CallCode,
        cases: list[CallCase],
        action: Action,
        branch: Branch,
        path: list[Step],
        walk: _Walk,
        made: list[Found],
    ) -> None:
        store = self.store
        for ruling, deviates, once, fixed in self._outcomes(code, cases, action):
            mark = len(store.journal)
            self._perform(code, ruling, action, once, fixed)
            signature = store.signature(0)
            changes = store.changes(0)
            store.undo(mark)
            if path and self._needless(code, action, path, walk, ruling, once, fixed, signature):
                continue
            fired = dict(branch.fired)
            trail = branch.trail
            for step in path:
                rule = self.model.families[step.process[0]].cases[step.case].id
                fired[rule] = fired.get(rule, 0) + 1
                trail = (trail, Event(rule, step.process, step.head, None))
            for case in ruling:
                if len(ruling) == 1:
                    fired[case.id] = fired.get(case.id, 0) + 1
                trail = (trail, Event(case.id, None, 0, action))
            made.append(Found(changes, signature, fired, trail, tuple(c.id for c in ruling) if deviates else ()))

    def _outcomes(self, code: CallCode, cases: list[CallCase], action: Action) -> Iterator[Trial]:
        """The ways in which the rules explain the result in the store's state."""
        for options in self._forks(lambda: self._explains(code, cases, action)):
            found, once, fixed = options
            if found:
                yield found[0], found[1], once, fixed

    def _explains(
        self, code: CallCode, cases: list[CallCase], action: Action
    ) -> tuple[tuple[CallCase, ...], bool] | None:
        store = self.store
        holding = [c for c in code.causes if c.undefined is None and c.guard and c.guard(store, *action.args)]
        ruling: list[CallCase] = [c for c in holding if c in cases]
        if not ruling and all(c.rule.level == "may" for c in holding):
            ruling = [
                c
                for c in cases
                if not c.is_cause
                and (c.guard is None or c.guard(store, *action.args))
                and (c.outputs is None or c.outputs(store, *action.args, *action.outputs))
            ]
        if not ruling:
            return None
        return tuple(ruling), all(c.prefer and action.result not in c.prefer for c in ruling)

    def _forks(self, work: Callable[[], Any]) -> Iterator[tuple[Any, Any, Any]]:
        """Do a piece of work once for each combination of the open choices that it asks for."""
        todo: list[tuple[dict[str, str], dict[str, str]]] = [({}, {})]
        store = self.store
        while todo:
            once, fixed = todo.pop()
            store.once = {**once, **fixed}
            try:
                yield work(), tuple(once.items()), tuple(fixed.items())
            except NeedChoice as e:
                for option in reversed(self.model.voc.choices[e.name][0]):
                    if e.name in self._stable:
                        todo.append((once, {**fixed, e.name: option}))
                    else:
                        todo.append(({**once, e.name: option}, fixed))
            finally:
                store.once = {}

    def _perform(self, code: CallCode, ruling: tuple[CallCase, ...], action: Action, once: Any, fixed: Any) -> None:
        store = self.store
        for name, option in fixed:
            store.put(store.options, name, option)
        store.once = dict(once)
        for case in ruling:
            if case.effect is not None:
                case.effect(store, *action.args, *action.outputs)
        store.once = {}

    def _needless(
        self,
        code: CallCode,
        action: Action,
        path: list[Step],
        walk: _Walk,
        ruling: tuple[CallCase, ...],
        once: Any,
        fixed: Any,
        signature: Any,
    ) -> bool:
        """Whether the path has a step that can as well come after the call."""
        store = self.store
        here = store.changes(walk.root)
        store.undo(walk.root)
        try:
            return any(
                self._commutes(code, action, path, i, ruling, once, fixed, signature, walk.root)
                for i in range(len(path) - 1, -1, -1)
            )
        finally:
            store.redo(here)

    def _commutes(
        self,
        code: CallCode,
        action: Action,
        path: list[Step],
        i: int,
        ruling: tuple[CallCase, ...],
        once: Any,
        fixed: Any,
        signature: Any,
        root: int,
    ) -> bool:
        store = self.store
        try:
            if not all(self.take(step) for step in (*path[:i], *path[i + 1 :])):
                return False
            store.once = {**dict(once), **dict(fixed)}
            try:
                found = self._explains(code, list(ruling), action)
            except NeedChoice:
                return False
            finally:
                store.once = {}
            if found is None or found[0] != ruling:
                return False
            self._perform(code, ruling, action, once, fixed)
            return self.take(path[i]) and store.signature(0) == signature
        finally:
            store.undo(root)

    # -- steps -----------------------------------------------------------------------------------

    def take(self, step: Step) -> bool:
        """Take a step as it was taken before; False if it cannot run so now."""
        store = self.store
        family = self.model.families[step.process[0]]
        number = step.process[1]
        if number not in store.active[family.trigger]:
            return False
        store.once = {**dict(step.once), **dict(step.fixed)}
        try:
            if family.pick(store, number) != step.case:
                return False
            for name, option in step.fixed:
                store.put(store.options, name, option)
            family.cases[step.case].effect(store, number)
        except NeedChoice:
            return False
        finally:
            store.once = {}
        return True

    def steps(self, process: Process) -> list[Step]:
        """The ways in which a process may take its next step now; none if it cannot."""
        store = self.store
        family = self.model.families[process[0]]
        if process[1] not in store.active[family.trigger]:
            return []
        slot = self.model.layout.slot[family.kind][family.trigger[1]]
        head = store.objects[process[1]][slot][0]
        head = head if isinstance(head, int) else 0
        return [
            Step(process, case, head, once, fixed)
            for case, once, fixed in self._forks(lambda: family.pick(store, process[1]))
            if case >= 0
        ]

    def count(self) -> None:
        """Account for one state; Capped if there were too many."""
        self._left -= 1
        if self._left < 0:
            raise Capped(f"more than {self.limit} states of the device would have to be considered")

    # -- silence ---------------------------------------------------------------------------------

    def settle(self, branch: Branch) -> list[Found]:
        """The states in which the device has nothing left to do that it must do."""
        made: list[Found] = []
        prints = self.analysis.footprints(self.store) if any(self.store.active.values()) else {}
        prints = {p: f for p, f in prints.items() if not self.model.families[p[0]].optional}
        walk = _Walk(self, branch, prints, None)
        self._left = self.limit

        def arrived(path: list[Step]) -> None:
            if any(self.steps(p) for p in prints):
                return
            fired, trail = dict(branch.fired), branch.trail
            for step in path:
                rule = self.model.families[step.process[0]].cases[step.case].id
                fired[rule] = fired.get(rule, 0) + 1
                trail = (trail, Event(rule, step.process, step.head, None))
            made.append(Found(self.store.changes(0), self.store.signature(0), fired, trail))

        walk.explore(arrived)
        return made

    # -- answers to people -----------------------------------------------------------------------

    def predict(self, code: CallCode, args: tuple[Any, ...]) -> list[tuple[str, ...]]:
        """For the store's state: the rules that may decide the call, each with the results it allows."""
        made: list[tuple[str, ...]] = []
        store = self.store

        def work() -> list[tuple[str, ...]]:
            holding = [c for c in code.causes if c.guard and c.guard(store, *args)]
            rules = [c for c in holding]
            if all(c.rule.level == "may" and c.undefined is None for c in holding):
                rules += [c for c in code.successes if c.guard is None or c.guard(store, *args)]
            return [(c.id, *(sorted(c.returns) or ["undefined"])) for c in rules]

        for found, _, _ in self._forks(work):
            made.extend(found)
        return list(dict.fromkeys(made))

    def explain(self, code: CallCode, action: Action, branch: Branch) -> Report:
        """Why nothing explains the call: what the rules would have allowed, and which rules decided that."""
        prints, call = self._relevant(code, code.cases, action)
        walk = _Walk(self, branch, prints, call)
        self._left = self.limit
        report = Report()
        walk.explore(lambda path: self.suspects.note(self.store, code, action, branch.trail, path, report, self._forks))
        report.rank()
        return report


class _Walk:
    """Explores the states of a stubborn set from the store's state, and undoes everything."""

    def __init__(
        self, search: Search, branch: Branch, prints: dict[Process, Footprint], call: Footprint | None
    ) -> None:
        self.search = search
        self.store = search.store
        self.prints = prints
        self.call = call
        self.branch = branch
        self.root = len(self.store.journal)
        self.seen: set[Any] = set()
        self.touched = {p: f.reads | f.writes | f.needs for p, f in prints.items()}
        self._conflicts: dict[Process, list[Process]] = {}

    def explore(self, visit: Callable[[list[Step]], None]) -> None:
        """Visit each state once, with a path that leads there."""
        self._from([], visit)

    def _from(self, path: list[Step], visit: Callable[[list[Step]], None]) -> None:
        self.search.count()
        visit(path)
        if not self.prints:
            return
        mark = len(self.store.journal)
        for process in self._stubborn():
            for step in self.search.steps(process):
                if self.search.take(step):
                    key = self.store.signature(self.root)
                    if key not in self.seen:
                        self.seen.add(key)
                        self._from([*path, step], visit)
                self.store.undo(mark)

    def _stubborn(self) -> list[Process]:
        """The processes of the stubborn set that may run now."""
        enabled = {p: bool(self.search.steps(p)) for p in self.prints}
        if self.call is None:
            first = next((p for p, can in enabled.items() if can), None)
            todo = [first] if first is not None else []
        else:
            todo = [p for p in self.prints if self._meets_call(p)]
        chosen: dict[Process, None] = dict.fromkeys(todo)
        while todo:
            process = todo.pop()
            more = self._in_conflict(process) if enabled[process] else self._suppliers(process)
            for other in more:
                if other not in chosen:
                    chosen[other] = None
                    todo.append(other)
        return [p for p in chosen if enabled[p]]

    def _meets_call(self, process: Process) -> bool:
        assert self.call is not None
        own = self.prints[process]
        return fp.conflict(self.store, own.writes, self.call.reads | self.call.writes) or fp.conflict(
            self.store, self.call.writes, self.touched[process]
        )

    def _in_conflict(self, process: Process) -> list[Process]:
        own = self.prints[process]
        return [
            other
            for other, theirs in self.prints.items()
            if other != process
            and (
                fp.conflict(self.store, own.writes, self.touched[other])
                or fp.conflict(self.store, theirs.writes, self.touched[process])
            )
        ]

    def _suppliers(self, process: Process) -> list[Process]:
        needs = self.prints[process].needs | self.prints[process].reads
        return [
            other
            for other, theirs in self.prints.items()
            if other != process and fp.conflict(self.store, theirs.writes, needs)
        ]


