"""Runs one program on a backend and says what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from verbs_adapters.contract import AdapterError, Backend, Hello, Trouble
from verbs_conformance import acquittal, allowed
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.prefix import Prefixes, Start
from verbs_conformance.program import Program, full_steps
from verbs_conformance.session import Outcome, Session
from verbs_conformance.step import Step
from verbs_reference.belief import ConsumerError, Inconclusive, Refused
from verbs_reports.verdicts import Verdict

LONG = 12
"""Programs with more steps are shrunk by whole stretches first."""
STRETCHES = (16, 8, 4, 2, 1)


@dataclass(slots=True)
class Judgement:
    """What came of one program."""

    program: Program
    seed: int
    verdict: Verdict = Verdict.PASS
    calls: int = 0
    unobserved: int = 0
    belief: int = 1
    lines: list[str] = field(default_factory=list)
    fixture_lines: int = 0
    fixture_calls: int = 0
    fixture_unobserved: int = 0
    fired: dict[str, int] = field(default_factory=dict)
    possible: dict[str, int] = field(default_factory=dict)
    deviations: dict[str, int] = field(default_factory=dict)
    choices: dict[str, frozenset[str]] = field(default_factory=dict)
    failed_step: Step | None = None
    refused: Refused | None = None
    suspects: tuple[str, ...] = ()
    """The suspects to name, of all that the refusal ranks."""
    allowed: tuple[str, ...] = ()
    """What the refused call would have been allowed to answer."""
    trouble: Trouble | None = None
    reason: str = ""
    given_up: bool = False
    """Whether a drawn program ended early because judging it further costs too much."""
    seconds: float = 0.0
    waivers: dict[str, str] = field(default_factory=dict)
    """The waivers that cover what failed, each with its rule."""
    amended: bool = False
    """Whether waivers cover an earlier failure, so that this was judged by a specification that they amend."""

    @property
    def broken(self) -> bool:
        """Whether the backend did something that no rule allows, or did not answer."""
        return self.verdict in {Verdict.FAIL, Verdict.ERROR}

    @property
    def undecided(self) -> bool:
        """Whether the program says nothing of the backend: a limit was reached, or it broke a duty itself."""
        return self.verdict in {Verdict.INCONCLUSIVE, Verdict.CONSUMER_ERROR}


class Judge:
    """Judges programs against one backend; the backend is reset for each program.

    Unless ``resumes`` is off, what programs on one fixture have in common is judged once, see ``prefix``."""

    def __init__(
        self,
        engine: Engine,
        backend: Backend,
        hello: Hello,
        fixtures: Mapping[str, Program],
        *,
        cap: int = 512,
        allow_undefined: bool = False,
        resumes: bool = True,
    ) -> None:
        self.engine = engine
        self.backend = backend
        self.hello = hello
        self.fixtures = fixtures
        self.cap = cap
        self.allow_undefined = allow_undefined
        self.passed: dict[str, int] = {}
        """In how many programs that passed each rule fired, or may have; see :meth:`acquit`."""
        self._prefixes = Prefixes() if resumes else None

    def acquit(self, done: Judgement) -> None:
        """Note what a program has shown to work, if everything in it was explained."""
        if done.verdict == Verdict.PASS:
            for rule in {*done.fired, *done.possible}:
                self.passed[rule] = self.passed.get(rule, 0) + 1

    def session(self) -> Session:
        """A session with nothing done in it."""
        return Session(self.engine, self.backend, self.hello, cap=self.cap, allow_undefined=self.allow_undefined)

    def run(self, program: Program, seed: int) -> Judgement:
        """Run a program from a fresh device; BadProgram if the program itself is wrong."""
        made = Judgement(program, seed)
        began = time.perf_counter()
        before, own = full_steps(program, self.fixtures)
        session = self.session()
        try:
            trouble = self.backend.reset(seed)
            if trouble is not None:
                self._trouble(made, trouble)
            else:
                start = self.start(program.prefix, before)
                session = start.session
                self._steps(start, made, own)
        except AdapterError as e:
            made.verdict, made.reason = Verdict.ERROR, f"the adapter was used wrongly or cannot go on: {e}"
        self.close(session, made)
        made.seconds = time.perf_counter() - began
        return made

    def start(self, fixture: str, before: tuple[Step, ...]) -> Start:
        """Where a program on a fixture, which has these steps, begins; the backend has just been reset."""
        if self._prefixes is None:
            return Start(self.session(), before)
        return self._prefixes.start(fixture, before, self.backend, self.session)

    def over(self, fixture: str, start: Start, lines: list[str]) -> None:
        """The steps of the fixture are done and explained; these lines tell of them."""
        if self._prefixes is not None:
            self._prefixes.passed(fixture, start, lines)

    def _steps(self, start: Start, made: Judgement, own: tuple[Step, ...]) -> None:
        session = start.session
        made.lines += start.lines
        for step in start.left:
            if not self._step(session, made, step):
                return
        if made.failed_step is None:
            self.over(made.program.prefix, start, made.lines)
        if own:
            made.fixture_lines = len(made.lines)
        for i, step in enumerate(own):
            if i > 0 and not _goes_on(session, made.program, step):
                continue
            if not self._step(session, made, step):
                return

    def _step(self, session: Session, made: Judgement, step: Step) -> bool:
        """Do one step; whether the program goes on."""
        try:
            came = session.run(step)
        except BadProgram as e:
            raise BadProgram(f"program {made.program.name}, step {step}: {e}") from None
        for done, outcome in came:
            made.lines.append(f"{done} -> {outcome.seen}")
            if outcome.problem is not None:
                self.problem(made, done, outcome)
                if not (isinstance(outcome.problem, ConsumerError) and self.allow_undefined):
                    return False
        return True

    def problem(self, made: Judgement, step: Step, outcome: Outcome) -> None:
        """Take note of why a program ended early."""
        made.failed_step = step
        match outcome.problem:
            case Trouble() as trouble:
                self._trouble(made, trouble)
            case Refused() as refused:
                made.verdict, made.refused = Verdict.FAIL, refused
                passed = dict(made.program.passed) or self.passed
                made.suspects = acquittal.named(refused.suspects, passed)
            case ConsumerError(rule=rule):
                expected = rule == made.program.target or made.program.kind == "sweep"
                made.verdict = Verdict.PASS if expected else Verdict.CONSUMER_ERROR
                made.reason = f"the consumer breaks its duty here: {rule}"
                made.fired[rule] = made.fired.get(rule, 0) + 1
            case Inconclusive(reason=reason):
                made.verdict, made.reason = Verdict.INCONCLUSIVE, reason
            case None:
                pass

    def _trouble(self, made: Judgement, trouble: Trouble) -> None:
        made.trouble = trouble
        made.verdict = Verdict.FAIL if trouble.whose == "backend" else Verdict.ERROR
        made.reason = trouble.message

    def close(self, session: Session, made: Judgement) -> None:
        """Take over what the session has counted.

        What a drawn program's last calls leave open is not worked out: the rules that it fired are many, and none of
        them is a witness's."""
        thorough = made.program.kind != "stateful"
        if made.refused is not None:
            made.allowed = allowed.lines(session.belief, made.refused.action, session.given)
        made.calls, made.unobserved = session.calls, session.unobserved
        made.belief = session.belief.largest
        for rule, count in session.belief.certain(thorough=thorough).items():
            made.fired[rule] = made.fired.get(rule, 0) + count
        made.possible = {r: 1 for r in sorted(session.belief.possible(thorough=thorough)) if r not in made.fired}
        made.deviations = dict(session.belief.deviations)
        if made.verdict == Verdict.PASS and made.deviations:
            made.verdict = Verdict.DEVIATION
        for name, (_, stable) in self.engine.model.voc.choices.items():
            left = session.belief.fixed(name) if stable else frozenset()
            if left:
                made.choices[name] = left


def _goes_on(session: Session, program: Program, step: Step) -> bool:
    """Whether a step is done: not where a swept call, or a device that is not as the program takes it to be, has left
    nothing that it could be done to."""
    if program.kind == "sweep":
        return session.can(step)
    return not program.device or session.sensible(step, program.target)


def shrink(judge: Judge, failed: Judgement, *, tries: int = 200, stop: Callable[[], bool] = lambda: False) -> Judgement:
    """A shorter program that fails in the same way: steps are left out as long as it still does.

    Of a long program whole stretches are tried first: what connects a pair anew can go at once, or not at all."""
    if failed.refused is None or failed.failed_step is None:
        return failed
    wanted = failed.refused.suspects[:1]
    best = failed
    steps = list(failed.program.steps)
    for size in STRETCHES if len(steps) > LONG else (1,):
        end = len(steps)
        while end > 0 and tries > 0 and not stop():
            begin = max(end - size, 0)
            tries -= 1
            shorter = replace(failed.program, steps=tuple(steps[:begin] + steps[end:]))
            end = begin
            try:
                again = judge.run(shorter, failed.seed)
            except BadProgram:
                continue
            if again.refused is not None and again.refused.suspects[:1] == wanted:
                best = again
                steps = list(shorter.steps)
    return best
