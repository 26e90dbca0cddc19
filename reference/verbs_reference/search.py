"""Finds the states in which an observed call can have happened.

From a branch's state the search explores internal steps (``walk``) and tries the call in each state
that it meets. An explanation that another one reaches by internal steps alone after the call is
dropped: the other stands for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from verbs_reference.calls import Wanted
from verbs_reference.explanations import Capped, Found, Trial, note
from verbs_reference.footprint import ANY, CELLS, Footprint
from verbs_reference.history import Event
from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.moves import NOTHING, Move, Pending, Process
from verbs_reference.pending import Analysis
from verbs_reference.redundant import without_redundant
from verbs_reference.silence import Silence
from verbs_reference.store import NeedChoice, Store, signed
from verbs_reference.suspects import Report, suspects_of
from verbs_reference.walk import NO_DEBTS, Debts, Step, Walk

if TYPE_CHECKING:
    from verbs_reference.belief import Action, Branch


class Search:
    """The searches over one store; ``limit`` bounds the states that one call may meet."""

    def __init__(self, model: Model, analysis: Analysis, store: Store, limit: int) -> None:
        self.model = model
        self.analysis = analysis
        self.calls = analysis.calls
        self.store = store
        self.limit = limit
        self.suspects = suspects_of(analysis)
        self._left = 0
        self.slots = [model.layout.slot[f.kind][f.trigger[1]] for f in model.families]
        self._stable = {name for name, (_, stable) in model.voc.choices.items() if stable}

    # -- calls -----------------------------------------------------------------------------------

    def direct(self, code: CallCode, action: Action, branch: Branch) -> Trial | None:
        """Perform a call that nothing pending can matter to, in place; None if a search must be made."""
        cases = self._candidates(code, action)
        if not cases or (branch.debts and any(self.store.active.values())):
            return None
        if not self._is_mere_look(cases) and self._relevant(code, cases, action, branch)[1] is not None:
            return None
        trials = list(self._outcomes(code, cases, action))
        if len(trials) != 1:
            return None
        self._perform(trials[0], action)
        return trials[0]

    def _is_mere_look(self, cases: list[CallCase]) -> bool:
        """Whether one rule only can have decided, and changes nothing: if it did so here, no step matters."""
        return len(cases) == 1 and not cases[0].body

    def match(self, code: CallCode, action: Action, branch: Branch) -> list[Found]:
        """The states after the call, starting from the branch's state, which is the store's."""
        cases = self._candidates(code, action)
        if not cases:
            return []
        if self._is_mere_look(cases) and not branch.debts:
            made = list(self._try(code, cases, action, branch, [], branch.debts))
            if made:
                return made
        pending, call = self._relevant(code, cases, action, branch)
        wanted = self.calls.wanted(self.store, code, cases, action) if call is not None else None
        walk = Walk(self, pending, call, branch.debts, wanted)
        self._left = self.limit
        made = []
        walk.explore(lambda path, debts: made.extend(self._try(code, cases, action, branch, path, debts, walk)))
        return without_redundant(self, made) if len(made) > 1 else made

    def filled(self, wanted: Wanted) -> bool:
        """Whether the queue that a call looks at has got an entry."""
        slot = self.model.layout.slot[wanted.queue[0]][wanted.queue[1]]
        return bool(self.store.objects[wanted.number][slot])

    def _candidates(self, code: CallCode, action: Action) -> list[CallCase]:
        """The rules that can give this result and these outputs in some state."""
        store = self.store
        return [
            c
            for c in code.cases
            if action.result in c.returns and (c.plain is None or c.plain(store, *action.args, *action.outputs))
        ]

    def _relevant(
        self, code: CallCode, cases: list[CallCase], action: Action, branch: Branch
    ) -> tuple[Pending, Footprint | None]:
        """The footprints of all moves and of the call; none if nothing that is pending can matter to it."""
        if not any(self.store.active.values()):
            return NOTHING, None
        others: list[CallCase] = []
        if any(not c.is_cause for c in cases):
            others = [c for c in code.causes if c not in cases and c.undefined is None]
        if self.calls.is_apart(cases, others):
            return NOTHING, None
        pending = self._pending(branch)
        self.analysis.fill_coming(pending.before)  # of this branch: another may have objects that this one has not
        call = self.calls.touches(self.store, cases, others, action)
        if call.reads:
            self._drop_indifferent(code, cases, action, call)
        call.touched = call.reads | call.needs | (call.writes - {ANY})
        if not call.touched and not call.writes:
            return NOTHING, None
        return pending, call

    def _pending(self, branch: Branch) -> Pending:
        """Every step that may come in a branch, whose state is the store's."""
        if branch.pending is None:
            branch.pending = self.analysis.pending(self.store)
        return branch.pending

    def _drop_indifferent(self, code: CallCode, cases: list[CallCase], action: Action, call: Footprint) -> None:
        """Leave out what the call reads where it makes no difference whether a step has changed it.

        That is so for a field which steps only ever set to a constant, if with the constant the same
        rules explain the call as without, or none do; and if the effect does not read it."""
        candidates = []
        for atom in call.reads - call.needs:
            if atom >= 0 and atom & 3 == 1:
                number, slot = divmod(atom >> 2, CELLS)
                values = self.analysis.constants_of(self.store, number, slot)
                if values is not None and len(values) == 1:
                    candidates.append((number, slot, next(iter(values))))
        if not candidates or len(candidates) > 3 or not self._indifferent(code, cases, action, candidates):
            return
        for number, slot, _ in candidates:
            first = 4 * (number * CELLS + slot)
            call.reads -= {first, first + 1}

    def _indifferent(
        self, code: CallCode, cases: list[CallCase], action: Action, candidates: list[tuple[int, int, Any]]
    ) -> bool:
        store = self.store
        mark = len(store.journal)
        try:
            now = self._explains(code, cases, action)
            if now is None:
                return False
            for chosen in range(1, 1 << len(candidates)):
                for i, (number, slot, value) in enumerate(candidates):
                    if chosen >> i & 1:
                        store.set(number, slot, value)
                other = self._explains(code, cases, action)
                store.undo(mark)
                if other is not None and other != now:
                    return False
        except NeedChoice:
            return False
        finally:
            store.undo(mark)
        return True

    def _try(
        self,
        code: CallCode,
        cases: list[CallCase],
        action: Action,
        branch: Branch,
        path: list[Step],
        debts: Debts,
        walk: Walk | None = None,
    ) -> Iterator[Found]:
        store = self.store
        for trial in self._outcomes(code, cases, action):
            if path and walk is not None and not walk.debts and not walk.is_minimal(path):
                return
            mark = len(store.journal)
            self._perform(trial, action)
            changes = store.changes(0)
            store.undo(mark)
            fired, trail = self._fired(branch, path)
            trail = note(trial, action, fired, trail)
            rules = tuple(c.id for c in trial.ruling) if trial.deviates else ()
            yield Found(changes, signed(store, changes), fired, branch.maybe, trail, debts, list(path), rules)

    def _fired(self, branch: Branch, path: list[Step]) -> tuple[dict[str, int], Any]:
        fired, trail = dict(branch.fired), branch.trail
        for step in path:
            rule = self.model.families[step.process[0]].cases[step.case].id
            fired[rule] = fired.get(rule, 0) + 1
            trail = (trail, Event(rule, step.process, step.head, None, (*step.once, *step.fixed)))
        return fired, trail

    def _outcomes(self, code: CallCode, cases: list[CallCase], action: Action) -> Iterator[Trial]:
        """The ways in which the rules explain the result in the store's state."""
        for found, once, fixed in self._forks(lambda: self._explains(code, cases, action)):
            if found:
                yield Trial(found[0], found[1], once, fixed)

    def _explains(
        self, code: CallCode, cases: list[CallCase], action: Action
    ) -> tuple[tuple[CallCase, ...], bool] | None:
        store = self.store
        holding = [c for c in code.causes if c.undefined is None and c.guard and c.guard(store, *action.args)]
        ruling: list[CallCase] = [c for c in holding if c in cases]
        if not all(c.always for c in ruling):  # a reason that can be seen comes before one that cannot
            ruling = [c for c in ruling if not c.always]
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

    def _perform(self, trial: Trial, action: Action) -> None:
        store = self.store
        for name, option in trial.fixed:
            store.put(store.options, name, option)
        store.once = dict(trial.once)
        for case in trial.ruling:
            if case.effect is not None:
                case.effect(store, *action.args, *action.outputs)
        store.once = {}

    # -- steps -----------------------------------------------------------------------------------

    def take(self, step: Step) -> bool:
        """Take a step as it was taken before; False if it cannot run so now."""
        store = self.store
        family = self.model.families[step.process[0]]
        number = step.process[1]
        if number not in store.active[family.trigger]:
            return False
        if step.once or step.fixed:
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
        head = store.objects[process[1]][self.slots[process[0]]][0]
        try:
            case = family.pick(store, process[1])
        except NeedChoice:
            pass
        else:
            return [Step(process, case, head, (), ())] if case >= 0 else []
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

    def settle(self, branch: Branch, *, all_of_it: bool = False) -> list[Found]:
        """The branch after the device has said that it has nothing left to do: what must be done is a
        debt.

        What can happen in one way only is done at once; with ``all_of_it`` the rest too, in every way
        that matters."""
        if not any(self.store.active.values()):
            return [self._as_found(branch, [], NO_DEBTS)]
        mark = len(self.store.journal)
        self._left = self.limit
        paid = self._paid(branch.debts)
        forced, ends = self._forced()
        if ends and (not all_of_it or not any(self.store.active.values())):
            made = [self._as_found(branch, forced, NO_DEBTS)]
            self.store.undo(mark)
            return made
        pending = self.analysis.pending(self.store) if forced else self._pending(branch)
        must = [m for m in pending.prints if not self.model.families[m[0][0]].optional]
        age = max(map(abs, branch.debts.values()), default=0) + 1
        known = {m: old if m in paid else -age for m, old in branch.debts.items()}
        debts = {m: known.get(m, age) for m in must}
        made = []
        silence = Silence(self, pending, debts, forks=all_of_it)
        silence.explore(lambda path, left: made.append(self._as_found(branch, [*forced, *path], left)))
        self.store.undo(mark)
        return made

    def _paid(self, debts: Debts) -> set[Move]:
        """The debts that are paid by taking steps that are owed, as long as there are any.  What is none of them may
        have been impossible by that silence, and be possible by the next."""
        owed = {m for m, age in debts.items() if age}
        paid: set[Move] = set()
        mark = len(self.store.journal)
        while owed:
            ready = (s for process in dict.fromkeys(m[0] for m in owed) for s in self.steps(process)[:1])
            step = next((s for s in ready if (s.process, s.head) in owed), None)
            if step is None or not self.take(step):
                break
            owed.discard((step.process, step.head))
            paid.add((step.process, step.head))
        self.store.undo(mark)
        return paid

    def _forced(self) -> tuple[list[Step], bool]:
        """Take steps as long as one only can come next, and must; those taken, and whether none has to come then."""
        made: list[Step] = []
        while True:
            found = self.enabled()
            if len(found) != 1 or self.is_optional(found[0]) or not self.take(found[0]):
                return made, all(self.is_optional(s) for s in found)
            made.append(found[0])
            self.count()

    def enabled(self) -> list[Step]:
        """Every step that may come next."""
        return [
            step
            for i, family in enumerate(self.model.families)
            for number in self.store.active[family.trigger]
            for step in self.steps((i, number))
        ]

    def may_stir(self) -> bool:
        """Whether the device may do something though nothing has to be done."""
        found = self.enabled()
        return bool(found) and all(self.is_optional(s) for s in found)

    def is_optional(self, step: Step) -> bool:
        """Whether the step need never happen."""
        return self.model.families[step.process[0]].optional

    def _as_found(self, branch: Branch, path: list[Step], debts: Debts) -> Found:
        fired, trail = self._fired(branch, path)
        changes = self.store.changes(0)
        return Found(changes, signed(self.store, changes), fired, branch.maybe, trail, debts, list(path))

    # -- answers to people -----------------------------------------------------------------------

    def explain(self, code: CallCode, action: Action, branch: Branch) -> Report:
        """Why nothing explains the call: what the rules would have allowed, and which rules decided that."""
        pending, call = self._relevant(code, code.cases, action, branch)
        walk = Walk(self, pending, call, branch.debts)
        self._left = self.limit
        report = Report()
        walk.explore(lambda path, _: self.suspects.note(self.store, code, action, path, report, self._forks))
        self.suspects.rank(report, branch.trail)
        return report

    def rulings(self, code: CallCode, action: Action, branch: Branch, look: Callable[[CallCase], None]) -> None:
        """Show each rule that decides the call, in each state in which it can have been made."""

        def each() -> None:
            for case in self.suspects.ruling(self.store, code, action):
                look(case)

        def visit(_path: list[Step], _debts: Debts) -> None:
            for _ in self._forks(each):
                pass

        pending, call = self._relevant(code, code.cases, action, branch)
        self._left = self.limit
        Walk(self, pending, call, branch.debts).explore(visit)
