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
from verbs_reference.pending import Analysis, Footprint, Move, Pending, Process
from verbs_reference.store import Entry, NeedChoice, Store
from verbs_reference.suspects import Event, Report, Suspects

if TYPE_CHECKING:
    from verbs_reference.belief import Action, Branch


NOTHING = Pending({}, {})


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
        triggers = [f.trigger for f in model.families]
        self.takers = [[j for j, t in enumerate(triggers) if t == mine] for mine in triggers]
        self._stable = {name for name, (_, stable) in model.voc.choices.items() if stable}

    # -- calls -----------------------------------------------------------------------------------

    def match(self, code: CallCode, action: Action, branch: Branch) -> list[Found]:
        """The states after the call, starting from the branch's state, which is the store's."""
        cases = self._candidates(code, action)
        made: list[Found] = []
        if not cases:
            return made
        prints = self._relevant(code, cases, action)
        walk = _Walk(self, branch, prints[0], prints[1])
        self._left = self.limit
        trials: list[tuple[Trial, list[Step], Found]] = []
        walk.explore(lambda path: trials.extend(self._try(code, cases, action, branch, path)))
        for trial, path, found in trials:
            if not path or not self._needless(code, action, path, walk.root, trial, found.signature):
                made.append(found)
        return made

    def _candidates(self, code: CallCode, action: Action) -> list[CallCase]:
        """The rules that can give this result and these outputs in some state."""
        store = self.store
        return [
            c
            for c in code.cases
            if action.result in c.returns and (c.plain is None or c.plain(store, *action.args, *action.outputs))
        ]

    def _relevant(
        self, code: CallCode, cases: list[CallCase], action: Action
    ) -> tuple[Pending, Footprint | None]:
        """The footprints of all processes and of the call; none if nothing that is pending can matter to it."""
        if not any(self.store.active.values()):
            return NOTHING, None
        others: list[CallCase] = []
        if any(not c.is_cause for c in cases):
            others = [c for c in code.causes if c not in cases and c.undefined is None]
        args = dict(zip([*code.params, *code.outputs], [*action.args, *action.outputs], strict=False))
        call = self.analysis.of_call(self.store, cases, others, args)
        self._drop_indifferent(code, cases, action, call)
        call.reads |= call.needs
        if not call.reads and not call.writes:
            return NOTHING, None
        return self.analysis.pending(self.store), call

    def _drop_indifferent(self, code: CallCode, cases: list[CallCase], action: Action, call: Footprint) -> None:
        """Leave out what the call reads where it makes no difference whether a step has changed it.

        That is so for a field which steps only ever set to a constant, if with the constant the same rules explain
        the call as without, or none do; and if the effect does not read it.
        """
        kinds = self.model.layout.kinds
        candidates = []
        for number, slot, part in call.reads - call.needs:
            if part != "V":
                continue
            kind = next((k for k in kinds if number in self.store.live[k]), None)
            name = next((f for f, s in self.model.layout.slot[kind].items() if s == slot), "") if kind else ""
            values = self.analysis.internal.get((kind or "", name))
            if values is not None and len(values) == 1:
                candidates.append((number, slot, next(iter(values))))
        if not candidates or len(candidates) > 3:
            return
        store = self.store
        mark = len(store.journal)
        try:
            now = self._explains(code, cases, action)
            if now is None:
                return
            for chosen in range(1, 1 << len(candidates)):
                for i, (number, slot, value) in enumerate(candidates):
                    if chosen >> i & 1:
                        store.set(number, slot, value)
                other = self._explains(code, cases, action)
                store.undo(mark)
                if other is not None and other != now:
                    return
        except NeedChoice:
            return
        finally:
            store.undo(mark)
        call.reads -= {(number, slot, "V") for number, slot, _ in candidates}

    def _try(
        self, code: CallCode, cases: list[CallCase], action: Action, branch: Branch, path: list[Step]
    ) -> Iterator[tuple[Trial, list[Step], Found]]:
        store = self.store
        for trial in self._outcomes(code, cases, action):
            ruling, deviates, once, fixed = trial
            mark = len(store.journal)
            self._perform(ruling, action, once, fixed)
            signature, changes = store.signature(0), store.changes(0)
            store.undo(mark)
            fired, trail = self._fired(branch, path)
            for case in ruling:
                if len(ruling) == 1:
                    fired[case.id] = fired.get(case.id, 0) + 1
                trail = (trail, Event(case.id, None, 0, action))
            rules = tuple(c.id for c in ruling) if deviates else ()
            yield trial, path, Found(changes, signature, fired, trail, rules)

    def _fired(self, branch: Branch, path: list[Step]) -> tuple[dict[str, int], Any]:
        fired, trail = dict(branch.fired), branch.trail
        for step in path:
            rule = self.model.families[step.process[0]].cases[step.case].id
            fired[rule] = fired.get(rule, 0) + 1
            trail = (trail, Event(rule, step.process, step.head, None))
        return fired, trail

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

    def _perform(self, ruling: tuple[CallCase, ...], action: Action, once: Any, fixed: Any) -> None:
        store = self.store
        for name, option in fixed:
            store.put(store.options, name, option)
        store.once = dict(once)
        for case in ruling:
            if case.effect is not None:
                case.effect(store, *action.args, *action.outputs)
        store.once = {}

    def _needless(
        self, code: CallCode, action: Action, path: list[Step], root: int, trial: Trial, signature: Any
    ) -> bool:
        """Whether the path has a step that can as well come after the call; the store is at the root."""
        return any(
            self._commutes(code, action, path, i, root, trial, signature) for i in range(len(path) - 1, -1, -1)
        )

    def _commutes(
        self, code: CallCode, action: Action, path: list[Step], i: int, root: int, trial: Trial, signature: Any
    ) -> bool:
        store = self.store
        ruling, _, once, fixed = trial
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
            self._perform(ruling, action, once, fixed)
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
        pending = self.analysis.pending(self.store) if any(self.store.active.values()) else NOTHING
        must = {m: f for m, f in pending.prints.items() if not self.model.families[m[0][0]].optional}
        walk = _Walk(self, branch, Pending(must, pending.before), None)
        processes = {m[0] for m in must}
        self._left = self.limit

        def arrived(path: list[Step]) -> None:
            if any(self.steps(p) for p in processes):
                return
            fired, trail = self._fired(branch, path)
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

    def __init__(self, search: Search, branch: Branch, pending: Pending, call: Footprint | None) -> None:
        self.search = search
        self.store = search.store
        self.prints = pending.prints
        self.before = pending.before
        self.call = call
        self.branch = branch
        self.root = len(self.store.journal)
        self.seen: set[Any] = set()
        self.touched = {
            m: f.reads | f.writes | {p for p in f.needs if p[2] != "E"} for m, f in self.prints.items()
        }
        self._conflicts: dict[Move, list[Move]] = {}
        self._takers = search.takers
        self._slots = [
            search.model.layout.slot[f.kind][f.trigger[1]] for f in search.model.families
        ]

    def explore(self, visit: Callable[[list[Step]], None]) -> None:
        """Visit each state once, with a path that leads there."""
        self._from([], visit)

    def _from(self, path: list[Step], visit: Callable[[list[Step]], None]) -> None:
        self.search.count()
        visit(path)
        if not self.prints:
            return
        mark = len(self.store.journal)
        for step in self._stubborn():
            if self.search.take(step):
                key = self.store.signature(self.root)
                if key not in self.seen:
                    self.seen.add(key)
                    self._from([*path, step], visit)
            self.store.undo(mark)

    def _stubborn(self) -> list[Step]:
        """The steps of the stubborn set that may run now."""
        chosen: dict[Move, None] = {}
        steps: list[Step] = []
        todo = self._first()
        while todo:
            move = todo.pop()
            if move in chosen:
                continue
            chosen[move] = None
            process, element = move
            queue = self.store.objects[process[1]][self._slots[process[0]]]
            if not queue or queue[0] != element:
                if element in queue or (queue and self._may_arrive(move)):
                    todo.extend(((f, process[1]), queue[0]) for f in self._takers[process[0]])
                elif not queue:
                    todo.extend(self.before.get(move, ()))
                continue
            found = self.search.steps(process)
            steps += found
            todo.extend(self._in_conflict(move) if found else self._suppliers(move))
        return steps

    def _may_arrive(self, move: Move) -> bool:
        """Whether the element can still come to the queue; if not, the transition is over or will never be."""
        for source in self.before.get(move, ()):
            process, element = source
            if element in self.store.objects[process[1]][self._slots[process[0]]] or self._may_arrive(source):
                return True
        return False

    def _first(self) -> list[Move]:
        """The transitions that meet the call; when only silence is asked for, any one that may run."""
        if self.call is not None:
            return [m for m in self.prints if self._meets_call(m)]
        for process in dict.fromkeys(m[0] for m in self.prints):
            if self.search.steps(process):
                return [(process, self.store.objects[process[1]][self._slots[process[0]]][0])]
        return []

    def _meets_call(self, move: Move) -> bool:
        assert self.call is not None
        own = self.prints[move]
        return fp.conflict(self.store, own.writes, self.call.reads | self.call.writes) or fp.conflict(
            self.store, self.call.writes, self.touched[move]
        )

    def _in_conflict(self, move: Move) -> list[Move]:
        known = self._conflicts.get(move)
        if known is None:
            own = self.prints.get(move)
            known = [] if own is None else [
                other
                for other, theirs in self.prints.items()
                if other[0] != move[0]
                and (
                    fp.conflict(self.store, own.writes, self.touched[other])
                    or fp.conflict(self.store, theirs.writes, self.touched[move])
                )
            ]
            self._conflicts[move] = known
        return known

    def _suppliers(self, move: Move) -> list[Move]:
        own = self.prints.get(move)
        needs = own.needs if own is not None else set()
        return [
            other
            for other, theirs in self.prints.items()
            if other[0] != move[0] and fp.conflict(self.store, theirs.writes, needs)
        ]
