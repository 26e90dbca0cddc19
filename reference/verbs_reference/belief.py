"""What may have happened: the set of model states that explain everything observed so far.

Theory of operation
-------------------
The belief is a set of *branches*.  A branch is a model state that is consistent with all observations;
internal steps that no observation has needed yet have not been taken in it.  So one branch stands for every
state that internal steps lead to from it.  That is exact only if a consumer's call is matched not just
in the branch's own state but in every state that differs for this call, and no step is ever assumed to
come later than it may have.  The search in ``search`` finds those states: it explores internal steps that can
matter to the call, directly or through a chain of conflicts, in every order that can matter.  The brute-force
checker of ``tests/`` closes the belief instead, and agrees.

State is one store, updated in place.  A branch is the list of changes that leads to it from the common base;
what all branches have changed alike is the base's.

Choices that the sources leave open fork the search when a rule first asks.  A stable one is then fixed for
the backend; the options that no branch holds any more are ruled out.

Verdicts are made from what the branches have in common: a rule has *certainly* fired if it fired in each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from verbs_reference.explanations import Capped, Found, note
from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.moves import Pending
from verbs_reference.pending import Analysis
from verbs_reference.search import Search
from verbs_reference.store import Entry, Store, shared
from verbs_reference.twin import twin
from verbs_reference.walk import NO_DEBTS, Debts

Fired = dict[str, int]
EXPLAINED = 8
"""So many branches are asked why they refuse; what they say differs little."""


@dataclass(frozen=True, slots=True)
class Action:
    """A call with arguments in the model's terms and what was observed of it."""

    call: str
    args: tuple[Any, ...]
    result: str = "0"
    outputs: tuple[Any, ...] = ()


@dataclass(slots=True)
class Branch:
    """One explanation: changes from the base, how often each rule fired, and the order of firings."""

    changes: list[Entry] = field(default_factory=list)
    fired: Fired = field(default_factory=dict)
    maybe: frozenset[str] = frozenset()
    trail: Any = None
    debts: Debts = field(default_factory=lambda: NO_DEBTS)
    pending: Pending | None = None
    """What may still happen in this state; None if nobody has asked."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No branch explains the observation; what would have been allowed is for :meth:`Belief.rulings`.

    ``suspects`` are all rules that had a part in it, nearest first."""

    action: Action
    suspects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConsumerError:
    """The consumer broke its duty: by this rule, and these objects are not judged from now on."""

    rule: str
    objects: frozenset[int]


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """A limit of the search was reached."""

    reason: str


class Belief:
    """Judges one program's calls against a model; with ``suspects`` off no refusal says who is to blame."""

    def __init__(
        self, model: Model, analysis: Analysis, *, cap: int = 512, steps: int = 20_000, suspects: bool = True
    ) -> None:
        self.model = model
        self.store: Store = model.store()
        self.search = Search(model, analysis, self.store, steps)
        self.branches = [Branch()]
        self.largest = 1
        self.cap = cap
        self.explained = EXPLAINED if suspects else 0
        self.tainted: set[int] = set()
        self._lively = {kind for kind, _ in analysis.stepped}
        self.deviations: dict[str, int] = {}
        self.time = 0
        self._numbers = 1_000_000
        self._history: tuple[int, list[tuple[Fired, frozenset[str]]]] = (-1, [])

    def fork(self) -> Belief:
        """A belief of its own that holds the same; what cannot change is shared."""
        made = copy.copy(self)
        made.store, changes = twin(self.store, [b.changes for b in self.branches])
        made.search = Search(self.model, self.search.analysis, made.store, self.search.limit)
        made.branches = [
            Branch(own, b.fired.copy(), b.maybe, b.trail, b.debts, b.pending)
            for b, own in zip(self.branches, changes, strict=True)
        ]
        made.tainted = self.tainted.copy()
        made.deviations = self.deviations.copy()
        made._history = (-1, [])
        return made

    # -- what a driver asks ----------------------------------------------------------------------

    def number(self) -> int:
        """A number for an object that a call is about to make."""
        self._numbers += 1
        return self._numbers

    def fixed(self, choice: str) -> frozenset[str]:
        """The options of a stable choice that remain possible, empty if nothing asked for it."""
        found: set[str] = set()
        for branch in self.branches:
            option = self._in(branch, lambda: self.store.options.get(choice))
            if option is None:
                return frozenset()
            found.add(option)
        return frozenset(found)

    def certain(self, *, thorough: bool = True) -> Fired:
        """How often each rule fired at least, whatever happened; if not thorough, without what only silence tells."""
        rows = [fired for fired, _ in (self._histories() if thorough else self._told())]
        return {r: k for r in rows[0] if (k := min(row.get(r, 0) for row in rows))}

    def possible(self, *, thorough: bool = True) -> frozenset[str]:
        """The rules that fired in some explanation; if not thorough, without what only silence tells."""
        told = self._histories() if thorough else self._told()
        return frozenset(r for fired, maybe in told for r in (*fired, *maybe))

    def _told(self) -> list[tuple[Fired, frozenset[str]]]:
        return [(b.fired, b.maybe) for b in self.branches]

    def _histories(self) -> list[tuple[Fired, frozenset[str]]]:
        """What fired in each explanation, and what fired in some that are otherwise like it."""
        if self._history[0] == self.time:
            return self._history[1]
        made: list[tuple[Fired, frozenset[str]]] = []
        for branch in self.branches:
            if branch.debts or self._in(branch, self.search.may_stir):
                with suppress(Capped, RecursionError):  # what is known already stands then
                    found = self._in(branch, lambda b=branch: self.search.settle(b, all_of_it=True))
                    made.extend((f.fired, f.maybe) for f in found)
                    continue
                made.append((branch.fired, branch.maybe))
            else:
                made.append((branch.fired, branch.maybe))
        self._history = (self.time, made)
        return made

    def evaluate(self, function: Any, *args: Any) -> Any:
        """The value of a compiled expression in the first branch."""
        return self._in(self.branches[0], lambda: function(self.store, *args))

    def unobserved(self) -> bool:
        """Whether the device may still do something, in the first branch."""
        return bool(self._in(self.branches[0], lambda: any(self.store.active.values())))

    # -- observations ----------------------------------------------------------------------------

    def observe(self, action: Action) -> Refused | Inconclusive | None:
        """Take one call and its result into account; the consumer's duty is asked for with :meth:`duty`
        before."""
        self.time += 1
        code = self.model.calls[action.call]
        if self.tainted and self._is_unjudged(code, action):
            return None
        if len(self.branches) == 1 and self._directly(code, action):
            return None
        try:
            made = [f for b in self.branches for f in self._in(b, lambda b=b: self.search.match(code, action, b))]
        except (Capped, RecursionError) as e:
            return Inconclusive(str(e))
        if not made:
            return self._refuse(code, action)
        self._note_deviations(made)
        return self._replace(made)

    def settle(self) -> Refused | Inconclusive | None:
        """The device says that it has nothing left to do."""
        self.time += 1
        try:
            made = [f for b in self.branches for f in self._in(b, lambda b=b: self.search.settle(b))]
        except (Capped, RecursionError) as e:
            return Inconclusive(str(e))
        if not made:
            raise AssertionError("a settled state is always reached: steps only take from queues")
        return self._replace(made)

    def rulings(self, action: Action, look: Callable[[CallCase], None]) -> None:
        """Show each rule that decides a call, whatever was seen of it, in each state in which it can have been
        made.

        The store is in that state while ``look`` runs; an option that it asks for forks, so it may be shown
        a rule again.  Few branches are looked at, and where a limit is reached, what was shown is not all."""
        code = self.model.calls[action.call]
        for branch in self.branches[:EXPLAINED]:
            with suppress(Capped):
                self._in(branch, lambda b=branch: self.search.rulings(code, action, b, look))

    def tangle(self, call: str) -> int:
        """About how many explanations a call may leave: what is in the device's queues, in all branches, if the
        call tells apart how far the device has got; otherwise 0."""
        return len(self.branches) * self.in_flight() if call in self.search.calls.tangling else 0

    def consider(self, states: int) -> None:
        """Consider so many states of the device for a call from now on; a call that needs more is inconclusive."""
        self.search.limit = states

    def in_flight(self) -> int:
        """How many elements stand in the queues that the device takes from, in the first branch."""
        slots = self.model.layout.slot
        return self.evaluate(  # type: ignore[no-any-return]
            lambda store: sum(
                len(store.objects[number][slots[kind][name]])
                for (kind, name), busy in store.active.items()
                for number in busy
            )
        )

    # -- machinery -------------------------------------------------------------------------------

    def _directly(self, code: CallCode, action: Action) -> bool:
        """Perform in place a call that only one explanation can have, and no search is needed for."""
        branch = self.branches[0]
        trial = self.search.direct(code, action, branch)
        if trial is None:
            return False
        if self.store.journal:
            self.store.journal.clear()
            branch.pending = None
        branch.trail = note(trial, action, branch.fired, branch.trail)
        if trial.deviates:
            for case in trial.ruling:
                self.deviations[case.id] = self.deviations.get(case.id, 0) + 1
        return True

    def _in(self, branch: Branch, work: Any) -> Any:
        """Do something in a branch's state; the base is as before afterwards."""
        mark = len(self.store.journal)
        self.store.redo(branch.changes)
        try:
            return work()
        finally:
            self.store.undo(mark)

    def _replace(self, made: Sequence[Found]) -> Inconclusive | None:
        """Make what the search found the belief; equal states are one branch."""
        kept: dict[Any, Branch] = {}
        for f in made:
            key = (f.signature, frozenset(f.debts.items())) if f.debts else f.signature
            old = kept.get(key)
            if old is None:
                kept[key] = Branch(f.changes, f.fired, f.maybe, f.trail, f.debts)
            elif old.fired != f.fired or old.maybe != f.maybe:
                old.maybe = old.maybe | f.maybe | old.fired.keys() | f.fired.keys()
                old.fired = {r: min(k, f.fired[r]) for r, k in old.fired.items() if r in f.fired}
        if len(kept) > self.cap:
            return Inconclusive(f"more than {self.cap} explanations of what was observed")
        self.branches = list(kept.values())
        self.largest = max(self.largest, len(self.branches))
        common, rest = shared([b.changes for b in self.branches])
        self.store.redo(common)
        self.store.journal.clear()
        for branch, changes in zip(self.branches, rest, strict=True):
            branch.changes = changes
        return None

    def duty(self, action: Action) -> ConsumerError | None:
        """Whether the consumer breaks its duty with this call, in some branch; nothing changes."""
        cases = [c for c in self.model.calls[action.call].causes if c.undefined is not None]
        broken: ConsumerError | None = None
        for branch in self.branches if cases else ():
            place, found = self._in(branch, partial(self._breaks, cases, action))
            if found is not None:
                broken = ConsumerError(cases[place].id, frozenset(x for x in found if x > 0))
                cases = cases[:place]
        return broken

    def _breaks(self, cases: list[CallCase], action: Action) -> tuple[int, tuple[int, ...] | None]:
        """The first rule by which the call breaks a duty in the store's state, and the objects."""
        for place, case in enumerate(cases):
            found = self._objects(case, action)
            if found is not None:
                return place, found
        return len(cases), None

    def _objects(self, case: CallCase, action: Action) -> tuple[int, ...] | None:
        assert case.guard is not None
        assert case.undefined is not None
        if not case.guard(self.store, *action.args):
            return None
        return tuple(case.undefined(self.store, *action.args))

    def taint(self, numbers: Iterable[int]) -> frozenset[int]:
        """Mark objects as not judged from now on, and what is connected with them, all memory included.

        References connect, both ways, but not beyond an object that no internal step ever changes: two
        regions do not depend on each other because they are of one protection domain."""
        links = self._in(self.branches[0], self._links)
        todo = [x for x in numbers if x > 0]
        while todo:
            number = todo.pop()
            if number not in self.tainted:
                self.tainted.add(number)
                if self._kind(number) in self._lively:
                    todo.extend(links.get(number, ()))
        for kind in self.model.layout.memory:
            self.tainted.update(self.store.live[kind])
        return frozenset(self.tainted)

    def _kind(self, number: int, *, gone: bool = False) -> str:
        kind = next((kind for kind, live in self.store.live.items() if number in live), "")
        return kind or (self.store.ended.get(number, "") if gone else "")

    def _links(self) -> dict[int, set[int]]:
        links: dict[int, set[int]] = {}
        layout = self.model.layout
        for kind, live in self.store.live.items():
            fields = [
                (layout.slot[kind][f], i.type.tag == "ref")
                for f, i in self.model.voc.objects[kind].items()
                if i.type.tag == "ref" or (i.type.tag == "queue" and i.type.elem and i.type.elem.tag == "ref")
            ]
            for number in live:
                for slot, single in fields:
                    value = self.store.objects[number][slot]
                    for other in (value,) if single else value:
                        if other > 0:
                            links.setdefault(number, set()).add(other)
                            links.setdefault(other, set()).add(number)
        return links

    def _is_unjudged(self, code: CallCode, action: Action) -> bool:
        """Whether the call is about objects that are not judged any more; what it makes is not judged
        either.

        A call that finds one of several objects is judged, where some are not judged, if it found another."""
        kinds = zip(code.params.values(), action.args, strict=True)
        outputs = dict(zip(code.outputs, action.outputs, strict=False))
        if not any(kind.tag == "ref" and value in self.tainted for kind, value in kinds):
            sought = {code.outputs[name].name for name in code.found}
            found = {outputs.get(name, 0) for name in code.found} - {0}
            if not any(self._kind(number, gone=True) in sought for number in self.tainted) or (
                found and not found & self.tainted
            ):
                return False
        for name in code.creates:
            number = outputs.get(name, 0)
            if number > 0:
                defaults = self.model.layout.defaults[code.outputs[name].name]
                self.store.objects[number] = [number, False, *defaults]
                self.tainted.add(number)
        return True

    def _note_deviations(self, made: Sequence[Found]) -> None:
        """A result outside of what a rule prefers, in every explanation."""
        common = set.intersection(*(set(f.deviates) for f in made))
        for rule in common:
            self.deviations[rule] = self.deviations.get(rule, 0) + 1

    def _refuse(self, code: CallCode, action: Action) -> Refused:
        """That nothing explains the call stands, also where saying why would take too many states: then other branches
        say it, or the rules of the call itself are what there is to suspect."""
        scores: dict[str, tuple[int, ...]] = {}
        for branch in self.branches[: self.explained]:
            with suppress(Capped, RecursionError):
                report = self._in(branch, lambda b=branch: self.search.explain(code, action, b))
                for rule, rank in report.ranks.items():
                    scores[rule] = min(scores.get(rule, rank), rank)
        if not scores:
            scores = {case.id: (at,) for at, case in enumerate(code.successes)}
        return Refused(action, tuple(sorted(scores, key=lambda r: scores[r])))
