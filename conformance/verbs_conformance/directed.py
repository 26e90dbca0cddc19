"""Directed programs: for every rule a shortest program that fires it, searched on the specification alone.

From each fixture the search runs the usual calls of all harmless shapes and those that differ from them in one
argument, breadth first, on an ``Imagination``.  After a call the device either works until it has nothing left to do,
or is left with the work in flight.  The first program after which a rule has fired is that rule's witness; for a cause
of failure the cause must hold alone.  On a device of which something is said (``device``), the witness says it too,
and what else it hangs on.  Every witness ends with what a consumer can see: silence, the completions, the memory, the
states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from verbs_conformance.device import Said, read
from verbs_conformance.engine import Engine
from verbs_conformance.imagined import Imagination
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program, full_steps
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_conformance.shapes import Shape, harmless, usual_and_near
from verbs_conformance.step import Step, pattern
from verbs_reference.model import Model
from verbs_reference.store import Entry
from verbs_reports.verdicts import Verdict
from verbs_spec.document import Spec

MAX_DEPTH = 3
SEEDS = 3
"""Schedules of the model under which a witness must fire its rule."""
TRIES = 40
"""How many programs are tried for one rule before one that only may fire it is taken."""


@dataclass(slots=True)
class State:
    """A state of the search: the steps that lead to it and the changes from the fixture's state."""

    steps: tuple[Step, ...]
    names: dict[str, tuple[str, int]]
    counts: dict[str, int]
    fresh: int
    changes: list[Entry]
    pending: bool


class Directed:
    """The search from one fixture."""

    def __init__(
        self,
        engine: Engine,
        fixture: Program,
        known: Mapping[str, Program],
        limits: dict[str, Any],
        said: Said = (),
    ) -> None:
        self.engine = engine
        self.model: Model = engine.model
        self.fixture = fixture
        self.fixtures = known
        self.limits = limits
        self.said = said
        self.world = Imagination(self.model, 0, limits, read(self.model, said))
        self.shapes: list[Shape] = harmless(self.model)
        self.names: dict[str, tuple[str, int]] = {}
        self.history: set[str] = set()
        """The rules that the fixture fires."""
        for step in sum(full_steps(fixture, known), ()):
            self.history.update(self.perform(step, self.names))
        self.judges: dict[Said, Judge] = {}
        self.tried: dict[str, int] = {}
        self.tentative: dict[str, Program] = {}
        """Witnesses that depend on how an open choice is taken, for rules that have no other."""
        self.world.store.journal.clear()

    # -- running ---------------------------------------------------------------------------------

    def perform(self, step: Step, names: dict[str, tuple[str, int]]) -> list[str]:
        """Perform one step on the world; the rules that fired."""
        self.world.fired = []
        if step.call == "settle":
            self.world.quiesce()
            return self.world.fired
        if step.call == "drain":
            self._drain(step, names)
        else:
            code = self.model.calls[step.call]
            _, outputs, cases = self.world.call(code, self.values(step, names))
            for i, made in enumerate(code.creates):
                name = step.out.get(f"#{i}")
                number = outputs[list(code.outputs).index(made)]
                if name and cases and not cases[0].is_cause and number in self.world.store.objects:
                    names[name] = (code.outputs[made].name, number)
            self.world.fired = [c.id for c in cases]
        return self.world.fired

    def _drain(self, step: Step, names: dict[str, tuple[str, int]]) -> None:
        call, counter = self.engine.polling
        code = self.model.calls[call]
        fired = []
        for _ in range(64):
            _, outputs, cases = self.world.call(code, self.values(Step(call, step.args), names))
            fired += [c.id for c in cases]
            if not outputs[list(code.outputs).index(counter)]:
                break
        self.world.fired = fired

    def values(self, step: Step, names: dict[str, tuple[str, int]]) -> tuple[Any, ...]:
        """The step's arguments as values."""
        made = []
        code = self.model.calls[step.call]
        for name, want in code.params.items():
            text = step.args.get(name)
            if text is None:
                made.append(self.model.left_out(code, name))
            elif want.tag == "bytes":
                made.append(pattern(text))
            else:
                function, numbers = self.engine.argument(text, want, names)
                made.append(function(self.world.store, *numbers))
        return tuple(made)

    # -- searching -------------------------------------------------------------------------------

    def search(self, wanted: set[str], depth: int = MAX_DEPTH) -> Iterator[Program]:
        """Programs for wanted rules, shortest first; what is found is taken out of ``wanted``."""
        tentative: dict[str, Program] = {}
        level = [State((), dict(self.names), _counts(self.names), 1, [], False)]
        seen: set[Any] = set()
        for _ in range(depth):
            following: list[State] = []
            for state in level:
                if not wanted:
                    return
                yield from self._expand(state, wanted, following, seen, tentative)
            level = following
        for rule in [r for r in tentative if r in wanted]:
            self.tentative[rule] = tentative[rule]

    def _expand(
        self,
        state: State,
        wanted: set[str],
        following: list[State],
        seen: set[Any],
        tentative: dict[str, Program],
    ) -> Iterator[Program]:
        store = self.world.store
        root = len(store.journal)
        store.redo(state.changes)
        here = len(store.journal)
        for shape in self.shapes:
            kinds = {name: kind for name, (kind, number) in state.names.items() if store.objects[number][1]}
            for step in usual_and_near(shape, kinds, state.fresh, state.counts):
                for next_state, fired in self._outcomes(state, step):
                    for rule in [r for r in dict.fromkeys(fired) if r in wanted]:
                        if self.tried.get(rule, 0) > TRIES:
                            continue
                        self.tried[rule] = self.tried.get(rule, 0) + 1
                        program = self.program(rule, rule, next_state.steps, next_state.names)
                        if (self.world.consulted and not self.said) or not self.fires(program):
                            tentative.setdefault(rule, program)
                            continue
                        program = self.explicit(program)
                        wanted.discard(rule)
                        yield program
                    key = self._outline(root)
                    if key not in seen and not any(r in self.blocking for r in fired):
                        seen.add(key)
                        next_state.changes = store.changes(root)
                        following.append(next_state)
                store.undo(here)
        store.undo(root)

    def _outcomes(self, state: State, step: Step) -> Iterator[tuple[State, list[str]]]:
        """What the step comes to, first with the work in flight, then with the device at rest."""
        code = self.model.calls[step.call]
        if code.name == self.engine.polling[0]:
            return
        args = self.values(step, state.names)
        self.world.consulted.clear()
        causes = self.world.causes(code, args)
        if len(causes) > 1 or (causes and causes[0].undefined is not None):
            if len(causes) == 1:
                yield replace(state, steps=(*state.steps, step)), [causes[0].id]
            return
        names = dict(state.names)
        fired = self.perform(step, names)
        steps = (*state.steps, step)
        counts = _counts(names)
        fresh = state.fresh + ("wr_id" in step.args)
        pending = bool(self.world.runnable())
        yield State(steps, names, counts, fresh, [], pending), list(fired)
        if pending:
            done = [*fired, *self.perform(Step("settle", {}), names)]
            rest = tuple(self.draining(names))
            for drain in rest:
                done += self.perform(drain, names)
            yield State((*steps, Step("settle", {}), *rest), names, counts, fresh, [], False), done

    def _outline(self, root: int) -> Any:
        """The state without numbers and contents: two states of one outline are not both searched from."""
        made: list[tuple[int, int, object]] = []
        for number, slot, value in self.world.store.signature(root):
            if isinstance(value, bool) or (isinstance(value, str) and len(value) < 32) or value is None:
                made.append((number, slot, value))
            elif isinstance(value, tuple):
                made.append((number, slot, len(value)))
        return frozenset(made)

    def judge(self, said: Said = ()) -> Judge:
        """A judge of programs on the model of a device."""
        if said not in self.judges:
            backend = ReferenceBackend(self.model, self.limits, device=read(self.model, said))
            self.judges[said] = Judge(self.engine, backend, backend.hello(), self.fixtures)
        return self.judges[said]

    def fires(self, program: Program, more: Said = ()) -> bool:
        """Whether the program fires its rule for certain, under several schedules, as far as a consumer can tell; on
        its device, of which more may be said."""
        judge = self.judge((*program.device, *more))
        return all(
            (done := judge.run(program, seed)).verdict == Verdict.PASS and program.target in done.fired
            for seed in range(SEEDS)
        )

    def explicit(self, program: Program) -> Program:
        """A program that says of its device all that it hangs on: the choices that were asked when it ran and of which
        another option keeps it from firing its rule."""
        if not self.said:
            return program
        backend = self.judge(program.device).backend
        assert isinstance(backend, ReferenceBackend)
        more: list[tuple[str, str]] = []
        for name in sorted(backend.world.consulted - dict(program.device).keys()):
            options, _ = self.model.voc.choices[name]
            fine = [str(o) for o in options if self.fires(program, ((name, str(o)),))]
            if len(fine) < len(options) and fine:
                more.append((name, fine[0]))
        return replace(program, device=(*program.device, *more))

    @property
    def blocking(self) -> frozenset[str]:
        """Rules after which a program does not go on: the consumer broke its duty."""
        return frozenset(c.id for d in self.model.calls.values() for c in d.causes if c.undefined is not None)

    # -- programs --------------------------------------------------------------------------------

    def program(
        self, name: str, target: str, steps: Iterable[Step], names: dict[str, tuple[str, int]] | None = None
    ) -> Program:
        """A program of these steps, ended by what a consumer can see."""
        own = tuple(steps)
        names = names if names is not None else self.names
        store = self.world.store
        live = {k: v for k, v in names.items() if store.objects[v[1]][1]}
        blocked = target in self.blocking
        end: tuple[Step, ...] = ()
        if not blocked:
            end = (Step("settle", {}), *self.draining(live), *self.observing(live))
            while own and own[-1] in end:
                own = own[:-1]
        return Program(
            name=name,
            steps=(*own, *end),
            fixture=self.fixture.name,
            target=target,
            says=rule_text(self.model.spec, target),
            api=(self.model.spec.selected or ("", ""))[:1],
            device=self.said,
            feature=self.model.spec.features,
        )

    def draining(self, names: Mapping[str, tuple[str, int]]) -> list[Step]:
        """A drain of each queue."""
        call, _ = self.engine.polling
        param, kind = next(iter(self.model.calls[call].params.items()))
        return [Step("drain", {param: name}) for name, (k, _) in names.items() if k == kind.name]

    def observing(self, names: Mapping[str, tuple[str, int]]) -> list[Step]:
        """A step of each call that only looks, for each object."""
        made = []
        for shape in self.shapes:
            code = self.model.calls[shape.call]
            if code.outputs and not any(c.body for c in code.cases) and shape.call != self.engine.polling[0]:
                own = code.params[shape.menus[0].name].name
                for name in (x for x, (k, _) in names.items() if k == own):
                    kinds = {name: own}
                    made += list(usual_and_near(shape, kinds, 0, {}))[:1]
        return made


def _counts(names: Mapping[str, tuple[str, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind, _ in names.values():
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def rule_text(spec: Spec, rule: str) -> str:
    """What a rule says, as the program that was searched for it says it; nothing if there is no such rule."""
    return str(spec.rules[rule].says).strip() if rule in spec.rules else ""
