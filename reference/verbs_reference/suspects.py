"""Who is to blame when nothing explains an observation.

The rules that decided a refused call are found from the end: the test that failed read some places; the
step that last wrote such a place is a suspect, as is a step that looked at the place since and left it; then
the places that these steps read are followed in turn.  Nearest causes come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verbs_reference import footprint as fp
from verbs_reference import nodes as n
from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.pending import Analysis, Process
from verbs_reference.store import NeedChoice, Store

if TYPE_CHECKING:
    from verbs_reference.belief import Action
    from verbs_reference.search import Step

DEPTH = 6
Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Event:
    """A rule that fired: in a process on the head of its queue, or for a call."""

    rule: str
    process: Process | None
    head: int
    action: Action | None


@dataclass(slots=True)
class Report:
    """What would have been allowed, and suspects; rank (depth, distance) for each."""

    allowed: list[str] = field(default_factory=list)
    ranks: dict[str, tuple[int, int]] = field(default_factory=dict)
    suspects: list[str] = field(default_factory=list)

    def add(self, rule: str, rank: tuple[int, int]) -> None:
        """Note a suspect; the nearest rank counts."""
        if rule not in self.ranks or rank < self.ranks[rule]:
            self.ranks[rule] = rank

    def rank(self) -> None:
        """Order the suspects, nearest first."""
        self.suspects = sorted(self.ranks, key=lambda r: self.ranks[r])


class Suspects:
    """Finds suspects for one model."""

    def __init__(self, model: Model, analysis: Analysis) -> None:
        self.model = model
        self.analysis = analysis
        self._steps = {c.id: (f, c) for f in model.families for c in f.cases}
        self._calls = {c.id: (d, c) for d in model.calls.values() for c in d.cases}

    def note(
        self,
        store: Store,
        code: CallCode,
        action: Action,
        trail: Any,
        path: list[Step],
        report: Report,
        forks: Callable[[Callable[[], Any]], Iterator[tuple[Any, Any, Any]]],
    ) -> None:
        """Add what the rules say in the store's state, reached by this path."""
        events = [
            Event(self.model.families[s.process[0]].cases[s.case].id, s.process, s.head, None) for s in path
        ]
        for ruling, _, _ in forks(lambda: self._ruling(store, code, action)):
            for case in ruling:
                wrong = self._wrong(store, case, code, action)
                text = self._allows(store, case, code, action, wrong)
                if text not in report.allowed:
                    report.allowed.append(text)
                report.add(case.id, (0, 0))
                env = self._call_env(code, action)
                self._follow(store, self._cells(store, wrong or self._trees(case), env), events, trail, report)

    def _ruling(self, store: Store, code: CallCode, action: Action) -> list[CallCase]:
        holding = [c for c in code.causes if c.guard and c.undefined is None and c.guard(store, *action.args)]
        if all(c.rule.level == "may" for c in holding):
            holding += [c for c in code.successes if c.guard is None or c.guard(store, *action.args)]
        return holding

    def _trees(self, case: CallCase) -> list[n.Expr]:
        return [t for t in (case.guard_tree,) if t is not None]

    def _wrong(self, store: Store, case: CallCase, code: CallCode, action: Action) -> list[n.Expr]:
        """The parts of the output test that the observation fails."""
        if case.outputs_tree is None or action.result not in case.returns:
            return []
        names = [*code.params, *code.outputs]
        wrong = []
        for part in n.conjuncts(case.outputs_tree):
            test = self.model.compiler.expression(part, names)
            try:
                if not test(store, *action.args, *action.outputs):
                    wrong.append(part)
            except NeedChoice:
                continue
        return wrong

    def _allows(
        self, store: Store, case: CallCase, code: CallCode, action: Action, wrong: list[n.Expr]
    ) -> str:
        names = [*code.params, *code.outputs]
        results = " or ".join(sorted(case.returns))
        facts = []
        for part in wrong:
            fact = n.show(part)
            if isinstance(part, n.Compare):
                value = self.model.compiler.expression(part.right, names)(store, *action.args, *action.outputs)
                left = self.model.compiler.expression(part.left, names)(store, *action.args, *action.outputs)
                fact = f"{n.show(part.left)} {part.op} {_short(value)} (seen: {_short(left)})"
            facts.append(fact)
        return f"{case.id}: {results}" + (f" with {' and '.join(facts)}" if facts else "")

    # -- following places back -------------------------------------------------------------------

    def _call_env(self, code: CallCode, action: Action) -> fp.Env:
        values = zip([*code.params, *code.outputs], [*action.args, *action.outputs], strict=False)
        return {k: frozenset((v,)) for k, v in values}

    def _cells(self, store: Store, trees: list[n.Expr], env: fp.Env) -> set[Cell]:
        found: set[Cell] = set()
        for tree in trees:
            for access in fp.reads(tree):
                found |= self._resolve(store, access, env)
        return found

    def _resolve(self, store: Store, access: fp.Access, env: fp.Env) -> set[Cell]:
        if access.part not in "MA" and (access.obj.type.name, access.field) not in self.analysis.changing:
            return set()
        try:
            return {(p[0], p[1]) for p in self.analysis.resolver.places(store, access, env)}
        except (KeyError, TypeError):
            return set()

    def _follow(self, store: Store, cells: set[Cell], events: list[Event], trail: Any, report: Report) -> None:
        history = list(reversed(events))
        while trail is not None:
            trail, event = trail
            history.append(event)
        touched = [self._touched(store, e) for e in history]
        seen: set[Cell] = set()
        frontier = {(cell, 0) for cell in cells}
        for depth in range(1, DEPTH):
            following: set[tuple[Cell, int]] = set()
            for cell, start in frontier:
                if cell in seen:
                    continue
                seen.add(cell)
                for i in range(start, len(history)):
                    reads, writes = touched[i]
                    if cell in writes or cell in reads:
                        report.add(history[i].rule, (depth if cell in writes else depth + 1, i))
                    if cell in writes:
                        following |= {(c, i) for c in reads | writes}
                        break
            frontier = following

    def _touched(self, store: Store, event: Event) -> tuple[set[Cell], set[Cell]]:
        reads: set[Cell] = set()
        writes: set[Cell] = set()
        if event.process is not None:
            family, case = self._steps[event.rule]
            env: fp.Env = {
                family.var: frozenset((event.process[1],)),
                family.head_var: frozenset((event.head,)),
            }
            accesses = [*self.analysis.guards(family, case), *self.analysis.effects(family, case)]
        else:
            assert event.action is not None
            code, call_case = self._calls[event.rule]
            env = self._call_env(code, event.action)
            accesses = [a for t in self._trees(call_case) for a in fp.reads(t)]
            accesses += list(fp.effects(call_case.body))
        for access in accesses:
            (writes if access.writes else reads).update(self._resolve(store, access, env))
        return reads, writes


def _short(value: object) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    if isinstance(value, str) and (len(value) > 32 or not value.isprintable()):
        raw = bytes(min(ord(c), 255) for c in value)
        text = raw[:24].hex() + ("..." if len(raw) > 24 else "")
    return text


