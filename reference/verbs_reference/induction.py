"""Which invariants stand, and what z3 is asked to find out.

An ``Asker`` puts questions: can facts and assumed invariants hold together?  It keeps one symbolic
situation for each call and family, so that what the invariants say of it is worked out once.

Invariants may lean on each other.  A step of ``Induction`` assumes all that have not fallen; z3 says which
it used.  When one falls, the steps that used it are done again without it, until what stands needs only
what stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from verbs_reference import symbolic as s
from verbs_reference.counterexample import changed_lines
from verbs_reference.model import CallCode, Family, StepCase
from verbs_reference.solver import Base, State
from verbs_reference.symbolic import neg
from verbs_reference.theory import Invariant, Scope, Situation, Theory, Transition, fields_read

Verdict = Literal["proved", "refuted", "unknown"]


@dataclass(slots=True)
class Question:
    """Can these hold together?  ``assumed`` by the invariant that says so, ``facts`` always."""

    situation: Situation
    facts: list[Any]
    assumed: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """``sat`` with a model, ``unsat`` with the invariants used, or ``unknown``."""

    status: str
    question: Question
    model: Any = None
    used: frozenset[str] = frozenset()


@dataclass(slots=True)
class Fall:
    """Why an invariant does not stand."""

    verdict: Verdict
    rules: tuple[str, ...]
    lines: tuple[str, ...]


class Asker:
    """Puts questions of one theory to z3."""

    def __init__(self, theory: Theory, seconds: float) -> None:
        self.theory = theory
        self.seconds = seconds
        self._situations: dict[tuple[str, str, bool], Situation] = {}
        self._terms: dict[tuple[str, str, bool, str], Any] = {}

    def situation(self, source: CallCode | Family, scope: Scope, exact: bool) -> Situation:
        """The state before a rule of a call or family."""
        key = (source.name, str(scope), exact)
        if key not in self._situations:
            self._situations[key] = self.theory.situation(source, scope, exact)
        return self._situations[key]

    def assume(
        self, source: CallCode | Family, scope: Scope, exact: bool, wanted: Iterable[Invariant]
    ) -> dict[str, Any]:
        """What invariants say of the state before."""
        made = {}
        for invariant in wanted:
            key = (source.name, str(scope), exact, invariant.id)
            if key not in self._terms:
                self._terms[key] = invariant.term(self.situation(source, scope, exact).before)
            made[invariant.id] = self._terms[key]
        return made

    def ask(self, build: Callable[[bool], Question]) -> Answer:
        """Ask with abstract arithmetic, and exactly if that refutes."""
        answer = self._ask(build(False))
        formulas = [*answer.question.facts, *answer.question.assumed.values()]
        if answer.status == "sat" and s.uses_abstraction(formulas):
            return self._ask(build(True))
        return answer

    def _ask(self, question: Question) -> Answer:
        facts = [*question.situation.assumed(), *question.facts]
        status, model, used = s.check(facts, question.assumed, self.seconds)
        return Answer(status, question, model, used)


class Induction:
    """Finds out which invariants stand, each with those that its proof used."""

    def __init__(self, asker: Asker, scope: Scope) -> None:
        self.asker = asker
        self.scope = scope
        self.theory = asker.theory
        self.known = {i.id: i for i in self.theory.invariants}
        self.fallen: dict[str, Fall] = {}
        self.steps: dict[tuple[str, str], frozenset[str]] = {}
        """For each invariant and rule, the invariants that the proof used."""
        self.frames: dict[tuple[str, bool], tuple[Situation, State, Any]] = {}

    def closure(self, name: str) -> set[str]:
        """An invariant with all that its proof rests on."""
        found: set[str] = set()
        todo = [name]
        while todo:
            each = todo.pop()
            if each not in found:
                found.add(each)
                for (owner, _), used in self.steps.items():
                    if owner == each:
                        todo.extend(used)
        return found

    def settle(self, invariant: Invariant) -> None:
        """Prove an invariant and all that its proof rests on, or find out that it falls."""
        while True:
            todo = [self.known[n] for n in self.closure(invariant.id) if n not in self.fallen]
            ready = [self._prove(each) for each in sorted(todo, key=lambda i: i.id)]
            if all(ready):
                return

    def _prove(self, invariant: Invariant) -> bool:
        """Prove the steps that are missing; whether there was nothing to do."""
        if invariant.id in self.fallen:
            return True
        missing = [t for t in self.theory.transitions if (invariant.id, t.id) not in self.steps]
        if missing and not self._holds_initially(invariant):
            self._drop(invariant, Fall("refuted", (), ("it does not hold in the state without objects",)))
            return False
        for transition in missing:
            if not self._step(invariant, transition):
                return False
        return not missing

    def _holds_initially(self, invariant: Invariant) -> bool:
        state = State(Base(self.theory.model.layout, {}, 0))
        return invariant.term(state) is True

    def _drop(self, invariant: Invariant, fall: Fall) -> None:
        self.fallen[invariant.id] = fall
        self.steps = {
            key: used for key, used in self.steps.items() if key[0] != invariant.id and invariant.id not in used
        }

    def _step(self, invariant: Invariant, transition: Transition) -> bool:
        answer = self._preserved(invariant, transition)
        if answer is None or answer.status == "unsat":
            self.steps[invariant.id, transition.id] = answer.used if answer else frozenset()
            return True
        if answer.status == "unknown":
            lines: tuple[str, ...] = (f"z3 gave no answer for {transition.id} within {self.asker.seconds:g} seconds",)
            self._drop(invariant, Fall("unknown", (transition.id,), lines))
            return False
        situation, after, _ = self.frames[transition.id, answer.question.situation.base.exact]
        read = invariant.reads() | _guard_reads(transition)
        lines = (f"not preserved by {transition.id}", *changed_lines(situation, after, answer.model, read))
        self._drop(invariant, Fall("refuted", (transition.id,), lines))
        return False

    def _preserved(self, invariant: Invariant, transition: Transition) -> Answer | None:
        """Ask for a state in which the rule breaks the invariant; None if it writes nothing that matters."""
        situation, after, _ = self._frame(transition, False)
        old = situation.before.changed
        writes = {place[:2] for place, value in after.changed.items() if old.get(place) is not value}
        if not writes & invariant.reads():
            return None
        answer = self._ask(invariant, transition, self._guess(invariant))
        if answer.status == "unsat":
            return answer
        return self._ask(invariant, transition, {i.id for i in self.theory.invariants} - set(self.fallen))

    def _guess(self, invariant: Invariant) -> set[str]:
        """The invariants that its proof will need, to judge by the steps that are done: fewer are quicker."""
        used = {name for (owner, _), names in self.steps.items() if owner == invariant.id for name in names}
        return used | {invariant.id}

    def _ask(self, invariant: Invariant, transition: Transition, names: set[str]) -> Answer:
        wanted = [i for i in self.theory.invariants if i.id in names]

        def build(exact: bool) -> Question:
            situation, after, guard = self._frame(transition, exact)
            assumed = self.asker.assume(transition.source, self.scope, exact, wanted)
            return Question(situation, [guard, neg(invariant.term(after))], assumed)

        return self.asker.ask(build)

    def _frame(self, transition: Transition, exact: bool) -> tuple[Situation, State, Any]:
        key = (transition.id, exact)
        if key not in self.frames:
            situation = self.asker.situation(transition.source, self.scope, exact)
            guard = self.theory.guard(transition, situation)
            self.frames[key] = (situation, self.theory.after(transition, situation), guard)
        return self.frames[key]


def _guard_reads(transition: Transition) -> set[tuple[str, str]]:
    case = transition.case
    tree = case.when_tree if isinstance(case, StepCase) else case.guard_tree
    return fields_read(tree) if tree is not None else set()
