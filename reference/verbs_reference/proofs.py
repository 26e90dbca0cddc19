"""What is proved of a specification, and how each verdict is come by.

``prove`` yields one result for each of

    partition NAME      the cases of a family of steps, or the successes of a call where no cause holds,
                        leave no state without a case (hole) and none with two (overlap)
    inductive ID        an invariant holds without objects and every rule, with its ghosts, preserves it
    possible RULE       some state lets the rule apply

Each is a question to z3: can the negation hold?  ``unsat`` proves, ``sat`` refutes with the values found,
anything else, a time-out above all, is ``unknown``.  Where arithmetic was abstracted, ``sat`` is asked
again exactly.

Invariants may lean on each other.  A step of induction assumes all that stand; z3 says which it used.  When
one falls, the steps that used it are done again without it, until what stands needs only what stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any, Literal

from verbs_reference import symbolic as s
from verbs_reference.counterexample import changed_lines, known_lines
from verbs_reference.model import CallCode, Family, Model
from verbs_reference.solver import Base, State
from verbs_reference.symbolic import conj, disj, neg
from verbs_reference.theory import Invariant, Scope, Situation, Theory, Transition, bars, fields_read

Verdict = Literal["proved", "refuted", "unknown"]
SECONDS = 20.0
"""The time for one question."""


@dataclass(frozen=True, slots=True)
class Result:
    """One theorem's verdict.  ``rules`` are those that a counterexample concerns, ``lines`` show it."""

    name: str
    verdict: Verdict
    scope: str
    seconds: float
    rules: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


def prove(
    model: Model,
    select: Iterable[str] = (),
    scope: Scope | None = None,
    seconds: float = SECONDS,
) -> Iterator[Result]:
    """Prove what the patterns select (all without any), one result at a time.

    A pattern matches a whole name (``partition sq/*``) or the part behind its first blank (``sq/*``).
    """
    patterns = list(select)
    prover = Prover(Theory(model), scope or Scope(), seconds)
    for name, work in prover.theorems():
        if not patterns or any(fnmatchcase(n, p) for p in patterns for n in (name, name.split(" ", 1)[1])):
            yield work()


def names(model: Model) -> list[str]:
    """The theorems of a model."""
    return [name for name, _ in Prover(Theory(model), Scope(), SECONDS).theorems()]


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


class Prover:
    """Proves theorems of one theory in one scope; remembers which invariants stand."""

    def __init__(self, theory: Theory, scope: Scope, seconds: float) -> None:
        self.theory = theory
        self.scope = scope
        self.seconds = seconds
        self.induction = Induction(self)

    def theorems(self) -> Iterator[tuple[str, Callable[[], Result]]]:
        """Names, with what proves them."""
        for invariant in self.theory.invariants:
            yield f"inductive {invariant.id}", lambda i=invariant: self.inductive(i)
        for source in (*self.theory.model.families, *self.theory.model.calls.values()):
            if len(cases_of(source)) > 1 or isinstance(source, Family):
                yield f"partition {source.name}", lambda x=source: self.partition(x)
        for transition in self.theory.transitions:
            yield f"possible {transition.id}", lambda t=transition: self.possible(t)

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

    def invariants(self, situation: Situation, wanted: Iterable[Invariant]) -> dict[str, Any]:
        """What invariants say of the state before."""
        return {i.id: i.term(situation.before) for i in wanted}

    # -- theorems --------------------------------------------------------------------------------

    def inductive(self, invariant: Invariant) -> Result:
        """Whether an invariant stands."""
        start = time.perf_counter()
        self.induction.settle(invariant)
        fall = self.induction.fallen.get(invariant.id)
        spent = time.perf_counter() - start
        name = f"inductive {invariant.id}"
        if fall is None:
            uses = sorted(self.induction.closure(invariant.id) - {invariant.id})
            return Result(name, "proved", str(self.scope), spent, uses=tuple(uses))
        return Result(name, fall.verdict, str(self.scope), spent, fall.rules, fall.lines)

    def partition(self, source: CallCode | Family) -> Result:
        """Whether cases neither leave a hole nor overlap."""
        start = time.perf_counter()

        def build(exact: bool, wanted: Iterable[Invariant]) -> Question:
            situation = self.theory.situation(source, self.scope, exact)
            whens = self._whens(source, situation)
            pairs = [conj(a, b) for a, b in combinations(whens.values(), 2)]
            wrong = disj(neg(disj(*whens.values())), *pairs)
            return Question(situation, [wrong], self.invariants(situation, wanted))

        def verdict(answer: Answer) -> Result:
            spent = time.perf_counter() - start
            found = _VERDICTS[answer.status]
            rules, lines = self._overlap(source, answer) if found == "refuted" else ((), ())
            uses = tuple(sorted(answer.used))
            return Result(f"partition {source.name}", found, str(self.scope), spent, rules, lines, uses)

        first = self.ask(lambda exact: build(exact, ()))
        if first.status == "unsat" or not self.theory.invariants:
            return verdict(first)
        standing = self.induction.standing()
        return verdict(self.ask(lambda exact: build(exact, standing)))

    def _whens(self, source: CallCode | Family, situation: Situation) -> dict[str, Any]:
        if isinstance(source, Family):
            return {case.id: situation.value(case.when_tree) for case in source.cases}
        barred = [c for c in source.causes if any(bars(c, case) for case in source.successes)]
        situation.facts += [neg(situation.value(c.guard_tree)) for c in barred if c.guard_tree is not None]
        return {
            case.id: True if case.guard_tree is None else situation.value(case.guard_tree)
            for case in source.successes
        }

    def _overlap(self, source: CallCode | Family, answer: Answer) -> tuple[tuple[str, ...], tuple[str, ...]]:
        situation = answer.question.situation
        whens = self._whens(source, situation)
        holding = tuple(name for name, when in whens.items() if s.decode(answer.model, when))
        title = f"overlap of {', '.join(holding)}" if holding else f"hole in {source.name}: no case applies"
        trees = [c.when_tree for c in source.cases] if isinstance(source, Family) else [
            c.guard_tree for c in source.cases if c.guard_tree is not None
        ]
        read = set().union(*(fields_read(t) for t in trees))
        if isinstance(source, Family):
            read |= {field for t in source.lets.values() for field in fields_read(t)} | {source.trigger}
        return holding or (source.name,), (title, *known_lines(situation, answer.model, read))

    def possible(self, transition: Transition) -> Result:
        """Whether a rule can apply in a state in which the invariants hold."""
        start = time.perf_counter()
        standing = self.induction.standing()

        def build(exact: bool) -> Question:
            situation = self.theory.situation(transition.source, self.scope, exact)
            guard = self.theory.guard(transition, situation)
            return Question(situation, [guard], self.invariants(situation, standing))

        answer = self.ask(build)
        verdict: Verdict = {"sat": "proved", "unsat": "refuted"}.get(answer.status, "unknown")  # type: ignore[assignment]
        dead = verdict == "refuted"
        lines = ("no state of the scope lets it apply, by its own guard and these invariants: "
                 f"{', '.join(sorted(answer.used)) or 'none'}",) if dead else ()
        spent = time.perf_counter() - start
        return Result(f"possible {transition.id}", verdict, str(self.scope), spent, (transition.id,) if dead else (), lines)


_VERDICTS: dict[str, Verdict] = {"unsat": "proved", "sat": "refuted", "unknown": "unknown"}


def cases_of(source: CallCode | Family) -> list[Any]:
    """The cases that must partition."""
    return list(source.cases if isinstance(source, Family) else source.successes)


class Induction:
    """Finds out which invariants stand, each with those that its proof used."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self.theory = prover.theory
        self.known = {i.id: i for i in self.theory.invariants}
        self.fallen: dict[str, Fall] = {}
        self.steps: dict[tuple[str, str], frozenset[str]] = {}
        """For each invariant and rule, the invariants that the proof used."""
        self.frames: dict[tuple[str, bool], tuple[Situation, State, Any]] = {}
        self.terms: dict[tuple[str, bool, str], Any] = {}

    def standing(self) -> list[Invariant]:
        """All invariants that stand."""
        for invariant in self.theory.invariants:
            self.settle(invariant)
        return [i for i in self.theory.invariants if i.id not in self.fallen]

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
            if all([self._prove(each) for each in sorted(todo, key=lambda i: i.id)]):
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
            lines = (f"z3 gave no answer for {transition.id} within {self.prover.seconds:g} seconds",)
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
        standing = [i for i in self.theory.invariants if i.id not in self.fallen]

        def build(exact: bool) -> Question:
            situation, after, guard = self._frame(transition, exact)
            broken = neg(invariant.term(after))
            assumed = {i.id: self._term(transition, exact, situation, i) for i in standing}
            return Question(situation, [guard, broken], assumed)

        return self.prover.ask(build)

    def _term(self, transition: Transition, exact: bool, situation: Situation, invariant: Invariant) -> Any:
        key = (transition.id, exact, invariant.id)
        if key not in self.terms:
            self.terms[key] = invariant.term(situation.before)
        return self.terms[key]

    def _frame(self, transition: Transition, exact: bool) -> tuple[Situation, State, Any]:
        key = (transition.id, exact)
        if key not in self.frames:
            situation = self.theory.situation(transition.source, self.prover.scope, exact)
            guard = self.theory.guard(transition, situation)
            self.frames[key] = (situation, self.theory.after(transition, situation), guard)
        return self.frames[key]


def _guard_reads(transition: Transition) -> set[tuple[str, str]]:
    case = transition.case
    tree = getattr(case, "when_tree", None) or getattr(case, "guard_tree", None)
    return fields_read(tree) if tree is not None else set()
