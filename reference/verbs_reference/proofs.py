"""What is proved of a specification, and how each verdict is come by.

``prove`` yields one result for each of

    partition NAME      the cases of a family of steps, or the successes of a call where no cause holds,
                        leave no state without a case (hole) and none with two (overlap)
    inductive ID        an invariant holds without objects and every rule, with its ghosts, preserves it
    possible RULE       some state lets the rule apply
    needed RULE         in some state a cause of failure allows what no other cause that holds allows: without the rule
                        that would not be allowed

Each is a question to z3: can the negation hold?  ``unsat`` proves, ``sat`` refutes with the values found,
anything else, a time-out above all, is ``unknown``.  Where arithmetic was abstracted, ``sat`` is asked
again exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import combinations
from typing import Any

from verbs_reference import symbolic as s
from verbs_reference.counterexample import known_lines
from verbs_reference.induction import Answer, Asker, Induction, Question, Verdict
from verbs_reference.model import CallCase, CallCode, Family, Model
from verbs_reference.symbolic import conj, disj, neg
from verbs_reference.theory import Invariant, Scope, Situation, Theory, Transition, bars, fields_read

__all__ = ["Result", "Scope", "Verdict", "names", "prove"]

SECONDS = 20.0
"""The time for one question."""
SMALL = Scope(others=1, cells=1)
"""Where an example of a state is looked for first."""


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


class Prover:
    """Proves theorems of one theory in one scope; remembers which invariants stand."""

    def __init__(self, theory: Theory, scope: Scope, seconds: float) -> None:
        self.theory = theory
        self.scope = scope
        self.asker = Asker(theory, seconds)
        self.induction = Induction(self.asker, scope)

    def theorems(self) -> Iterator[tuple[str, Callable[[], Result]]]:
        """Names, with what proves them."""
        for invariant in self.theory.invariants:
            yield f"inductive {invariant.id}", partial(self.inductive, invariant)
        for source in self.theory.sources:
            if len(cases_of(source)) > 1 or isinstance(source, Family):
                yield f"partition {source.name}", partial(self.partition, source)
        for transition in self.theory.transitions:
            yield f"possible {transition.id}", partial(self.possible, transition)
        for transition in self.theory.transitions:
            if covering(transition):
                yield f"needed {transition.id}", partial(self.needed, transition)

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

    def _supported(self, build: Callable[[bool, list[Invariant]], Question]) -> Answer:
        """Ask with all invariants that have not fallen.

        What is possible with more invariants than stand is possible anyway; what is impossible is so for
        good when those that it rests on are proved.
        """
        known = self.induction.known
        while True:
            fallen = self.induction.fallen
            wanted = [i for i in self.theory.invariants if i.id not in fallen]
            answer = self.asker.ask(lambda exact, wanted=wanted: build(exact, wanted))  # type: ignore[misc]
            for name in sorted(answer.used):
                self.induction.settle(known[name])
            if not answer.used & set(self.induction.fallen):
                return answer

    def partition(self, source: CallCode | Family) -> Result:
        """Whether cases neither leave a hole nor overlap."""
        start = time.perf_counter()

        def build(exact: bool, wanted: Iterable[Invariant]) -> Question:
            situation = self.asker.situation(source, self.scope, exact)
            barred, whens = self._whens(source, situation)
            pairs = [conj(a, b) for a, b in combinations(whens.values(), 2)]
            wrong = disj(neg(disj(*whens.values())), *pairs)
            return Question(situation, [*barred, wrong], self.asker.assume(source, self.scope, exact, wanted))

        answer = self.asker.ask(lambda exact: build(exact, ()))
        if answer.status != "unsat":
            answer = self._supported(build)
        found = _VERDICTS[answer.status]
        rules, lines = self._wrong(source, answer) if found == "refuted" else ((), ())
        spent = time.perf_counter() - start
        uses = tuple(sorted(answer.used))
        return Result(f"partition {source.name}", found, str(self.scope), spent, rules, lines, uses)

    def _whens(self, source: CallCode | Family, situation: Situation) -> tuple[list[Any], dict[str, Any]]:
        """That no cause keeps a call from succeeding, and when each case applies."""
        if isinstance(source, Family):
            return [], {case.id: situation.value(case.when_tree) for case in source.cases}
        causes = [c for c in source.causes if any(bars(c, case) for case in source.successes)]
        barred = [neg(situation.value(c.guard_tree)) for c in causes if c.guard_tree is not None]
        return barred, {
            case.id: True if case.guard_tree is None else situation.value(case.guard_tree) for case in source.successes
        }

    def _wrong(self, source: CallCode | Family, answer: Answer) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The rules that a hole or an overlap concerns, and the values."""
        situation = answer.question.situation
        _, whens = self._whens(source, situation)
        holding = tuple(name for name, when in whens.items() if s.decode(answer.model, when))
        title = f"overlap of {' and '.join(holding)}" if holding else f"hole in {source.name}: no case applies"
        lines = known_lines(situation, answer.model, _reads(source))
        return holding or (source.name,), (title, *lines)

    def possible(self, transition: Transition) -> Result:
        """Whether a rule can apply in a state in which the invariants hold."""
        start = time.perf_counter()

        def build(exact: bool, wanted: Iterable[Invariant], scope: Scope) -> Question:
            situation = self.asker.situation(transition.source, scope, exact)
            guard = self.theory.guard(transition, situation)
            return Question(situation, [guard], self.asker.assume(transition.source, scope, exact, wanted))

        lines = "no state of the scope lets it apply, by its own guard and these invariants"
        return self._found(f"possible {transition.id}", transition, build, lines, start)

    def needed(self, transition: Transition) -> Result:
        """Whether a cause can hold where no other cause allows all that it allows."""
        start = time.perf_counter()

        def build(exact: bool, wanted: Iterable[Invariant], scope: Scope) -> Question:
            situation = self.asker.situation(transition.source, scope, exact)
            guards = [c.guard_tree for c in covering(transition) if c.guard_tree is not None]
            alone = [self.theory.guard(transition, situation), *(neg(situation.value(g)) for g in guards)]
            return Question(situation, alone, self.asker.assume(transition.source, scope, exact, wanted))

        lines = f"it is redundant: where it holds, {' or '.join(c.id for c in covering(transition))} allows the same"
        return self._found(f"needed {transition.id}", transition, build, lines, start)

    def _found(
        self,
        name: str,
        transition: Transition,
        build: Callable[[bool, Iterable[Invariant], Scope], Question],
        otherwise: str,
        start: float,
    ) -> Result:
        """Whether there is such a state, looked for in the smallest scope first."""
        wanted = self.theory.invariants
        if self.asker.ask(lambda exact: build(exact, wanted, SMALL)).status == "sat":
            return Result(name, "proved", str(SMALL), time.perf_counter() - start)
        answer = self._supported(lambda exact, wanted: build(exact, wanted, self.scope))
        spent = time.perf_counter() - start
        if answer.status != "unsat":
            return Result(name, "proved" if answer.status == "sat" else "unknown", str(self.scope), spent)
        blame = ", ".join(sorted(answer.used)) or "none"
        lines = (f"{otherwise}: {blame}",)
        return Result(name, "refuted", str(self.scope), spent, (transition.id,), lines)


_VERDICTS: dict[str, Verdict] = {"unsat": "proved", "sat": "refuted", "unknown": "unknown"}


def cases_of(source: CallCode | Family) -> list[Any]:
    """The cases that must partition."""
    return list(source.cases if isinstance(source, Family) else source.successes)


def covering(transition: Transition) -> list[CallCase]:
    """The causes that allow, where they hold, all that a cause of the same call allows; none for another rule.

    A cause that changes something, or that is the consumer's, is not covered by one that only refuses.
    """
    case, source = transition.case, transition.source
    if not isinstance(source, CallCode) or not isinstance(case, CallCase) or not case.is_cause:
        return []
    if case.undefined is not None or case.body or case.always:
        return []
    others = [c for c in source.causes if c is not case and c.undefined is None and not c.body]
    firm = [c for c in others if case.rule.level == "may" or c.rule.level != "may"]
    return [c for c in firm if c.returns >= case.returns]


def _reads(source: CallCode | Family) -> set[tuple[str, str]]:
    if isinstance(source, Family):
        trees = [c.when_tree for c in source.cases] + list(source.lets.values())
        trees += [source.domain_tree] if source.domain_tree is not None else []
        return {source.trigger, *(field for tree in trees for field in fields_read(tree))}
    guards = [c.guard_tree for c in source.cases if c.guard_tree is not None]
    return {field for tree in guards for field in fields_read(tree)}
