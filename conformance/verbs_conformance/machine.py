"""Stateful programs: hypothesis draws calls of every shape, the belief judges each answer.

The machine has one rule for each shape of the specification and is made from it: no verb is named here.  An argument
is drawn from its menu, the usual value most of the time, so that programs get far and still try what is illegal or
borderline.  A call that would break the consumer's duty is left out.  Programs start from the fixtures that hold the
most; most steps are taken while work is in flight: silence is waited for only when a rule says so, or when what is in
flight could have gone so many ways that the next call would cost too much.

A failing program comes out as a program like any other and is shrunk as such: steps are left out while it still fails.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from verbs_adapters.contract import AdapterError
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program, full_steps
from verbs_conformance.session import Outcome, Session, Step
from verbs_conformance.shapes import Menu, Shape, build, harmless
from verbs_conformance.sweep import harvest
from verbs_reference.belief import Inconclusive
from verbs_reports.verdicts import Verdict

STEPS = 40
CHUNK = 25
TANGLED = 12
"""A step that would tell more orders of what is in flight apart than about this waits for the device to be silent: that
many explanations cost too much."""
MOST_MADE = 2
"""So many objects of a kind are made beside those of the fixture; more would leave each unused."""
CROWDED = 24
"""As ``TANGLED``, for any step."""
STATES = 300
"""So many states of the device are considered for one call of a drawn program; a program that needs more is given up.
Few calls in a thousand do, and they would take most of the time: another program in their place shows more."""
DEPTHS = (2, 3, 3, 4, 6)
"""How many elements a program lets into the device's queues before it waits for silence: the orders in which they may
be executed are many, and each costs."""
SETTLE = Step("settle", {})
USUAL, NEAR = 11, 15
"""Of sixteen draws for a call so many leave every argument as usual, and the next, up to the second, all but one."""
MIXED = 10
"""Where several arguments may be unusual, so many of sixteen draws leave one as usual."""
OWN = 5
"""Of sixteen draws so many make the call of the rule; the others any call.  Hypothesis switches most rules off for a
program, and few calls alone get nowhere."""
WAITING = 3
"""Of sixteen draws for the rule that waits for silence so many do so at most; the others make any call."""
WEIGHT = 5
"""A call that gives the device work is drawn so many times as often as another."""
WORDS = st.tuples(*(st.integers(0, 0xFFFF) for _ in range(5)))
"""What is drawn for a step: twenty numbers of 0 to 15, four at a time."""


class Disagreement(Exception):
    """The backend did what the belief cannot explain; carries the judgement."""

    def __init__(self, judgement: Judgement) -> None:
        suspects = judgement.suspects or (judgement.reason,)
        super().__init__(f"suspects: {', '.join(suspects)}")
        self.judgement = judgement


class TimeUp(BaseException):
    """The budget is used up: no failure, and so nothing that hypothesis is to catch and to try again."""


def digits(words: Sequence[int]) -> list[int]:
    """The numbers of 0 to 15 in what was drawn."""
    return [word >> shift & 15 for word in words for shift in (0, 4, 8, 12)]


class Picker:
    """Turns draws of 0 to 15 into entries: one says how unusual the call is, one where, then one a menu."""

    def __init__(self, shape: Shape, draws: Sequence[int]) -> None:
        self.manner, where, *rest = draws
        self.left = iter(rest)
        free = [m.name for m in shape.menus if m.entries[0] != "each" and len(m.entries) > 1]
        self.odd = free[where % len(free)] if free else ""

    def __call__(self, menu: Menu, offered: Sequence[str]) -> str:
        if len(offered) == 1:
            return offered[0]
        draw = next(self.left)
        if menu.entries[0] == "each":
            return offered[draw % len(offered)]
        usual = menu.name != self.odd if self.manner < NEAR else draw < MIXED
        if self.manner < USUAL or usual:
            return offered[0]
        return offered[1 + draw % (len(offered) - 1)]


class Driver:
    """What one drawn program does to a backend; the machine is a thin shell around it."""

    def __init__(
        self,
        judge: Judge,
        known: Sequence[Shape],
        fixture: Program,
        number: int,
        depth: int,
        spent: Callable[[int], bool] = lambda _calls: False,
    ) -> None:
        self.judge = judge
        self.shapes = known
        self.weighed = [s for s in known for _ in range(WEIGHT if s.call in judge.engine.giving else 1)]
        self.idle = [s for s in known if s.call not in judge.engine.giving]
        self.depth = depth
        self.spent = spent
        """Whether the budget is used up, with so many calls of this program."""
        self.fixture = fixture
        self.seed = number
        self.session: Session = judge.session()
        self.made = Judgement(Program(f"stateful-{number}", (), fixture.name, "stateful"), number)
        self.steps: list[Step] = []
        self.fresh = 1
        self.made_of: dict[str, int] = {}
        self.made_before: dict[str, int] = {}
        self.kinds: frozenset[str] | None = None
        self.is_silent = True
        """Whether the device was silent just now."""

    def start(self) -> None:
        """Reset the backend and run the fixture."""
        trouble = self.judge.backend.reset(self.seed)
        if trouble is not None:
            self.made.reason, self.made.trouble = trouble.message, trouble
            self._stop(Step("reset", {}), Outcome("no answer", trouble))
        name = self.fixture.name
        before, _ = full_steps(Program("", (), name), self.judge.fixtures)
        start = self.judge.start(name, before)
        self.session = start.session
        self.made.lines += start.lines
        for step in start.left:
            self.run(step, keep=False)
        if self.made.failed_step is None:
            self.judge.over(name, start, self.made.lines)
        self.session.belief.consider(STATES)
        self.is_silent = not before or before[-1].call == SETTLE.call
        self.made.fixture_lines = len(self.made.lines)
        self.made.fixture_calls, self.made.fixture_unobserved = self.session.calls, self.session.unobserved
        for kind, _ in self.session.names.values():
            self.made_of[kind] = self.made_of.get(kind, 0) + 1
        self.made_before = dict(self.made_of)

    def can(self, shape: Shape) -> bool:
        """Whether there is an object of each kind that the shape needs."""
        if self.kinds is None:
            self.kinds = frozenset(self.session.live().values())
        return shape.needs <= self.kinds and all(
            self.made_of.get(kind, 0) < self.made_before.get(kind, 0) + MOST_MADE for kind in shape.makes
        )

    def any(self, words: Sequence[int]) -> Shape:
        """The shape of any call, those that give work more often."""
        return self.weighed[words[0] // 16 % len(self.weighed)]

    def harvest(self) -> None:
        """See all that a consumer can see."""
        engine, belief = self.judge.engine, self.session.belief
        for step in harvest(engine, self.shapes, self.session.live()) if not self.made.given_up else ():
            looks = step.call in engine.model.calls
            if not looks or (belief.tangle(step.call) <= TANGLED and not self.session.breaks_duty(step)):
                self.run(step)

    def draw(self, shape: Shape, words: Sequence[int]) -> Step | None:
        """The step of a shape, or of another one, for what was drawn; a wait for silence if it would cost too much
        now, None if it cannot be made or would break a duty.  TimeUp if the budget is used up."""
        if self.spent(self.session.calls):
            raise TimeUp
        if self.made.given_up:
            return None
        names = self.session.live()
        turn, *draws = digits(words)
        other = self.any(words)
        if turn >= OWN and self.can(other):
            shape = other
        if self._is_full(shape):
            shape = self.idle[words[1] // 16 % len(self.idle)]
            if words[2] & 1 or not self.can(shape):
                return SETTLE
        step = build(shape, names, self.fresh, self.made_of, Picker(shape, draws[3:]))
        if step is None or self.session.breaks_duty(step):
            return None
        return self.affordable(shape, step)

    def affordable(self, shape: Shape, step: Step) -> Step | None:
        """The step; a wait for silence, or None if the device is silent, where judging the step would cost too much."""
        belief = self.session.belief
        if not self.is_silent and len(belief.branches) * belief.in_flight() > CROWDED:
            return SETTLE
        if belief.tangle(shape.call) > TANGLED:
            return None if self.is_silent else SETTLE
        return step

    def _is_full(self, shape: Shape) -> bool:
        """Whether a call would give the device more work than is to be in flight at once."""
        if self.is_silent or shape.call not in self.judge.engine.giving:
            return False
        return self.session.belief.in_flight() >= max(self.depth, self.session.stuck + 2)

    def run(self, step: Step, *, keep: bool = True) -> None:
        """Run a step; Disagreement if nothing explains its outcome.

        A program for which a limit of the judge's search is too low is given up there: what it has shown until then
        holds, and no rule waits for it."""
        if self.made.given_up:
            return
        self.kinds = None
        self.is_silent = step.call == SETTLE.call
        if keep:
            self.steps.append(step)
            self.fresh += 1
        for done, outcome in self.session.run(step):
            if keep and isinstance(outcome.problem, Inconclusive):
                self.made.given_up = True
                self.made.reason = f"given up before {done}: {outcome.problem.reason}"
                self.steps.pop()
                return
            self.made.lines.append(f"{done} -> {outcome.seen}")
            if outcome.problem is not None:
                self._stop(done, outcome)
        for i in step.out:
            kind = self.session.names.get(step.out[i], ("", 0))[0]
            if keep and kind:
                self.made_of[kind] = self.made_of.get(kind, 0) + 1

    def _stop(self, step: Step, outcome: Outcome) -> None:
        self.judge.problem(self.made, step, outcome)
        raise Disagreement(self.finish())

    def finish(self) -> Judgement:
        """The judgement of what was run."""
        name = self.made.program.name
        self.made.program = Program(name, tuple(self.steps), self.fixture.name, "stateful", seed=self.seed)
        self.judge.close(self.session, self.made)
        return self.made


class Stateful:
    """Draws programs until a budget is used up, of seconds or of the ``most`` calls; ``goes_on`` is asked when one
    failed.  ``driver`` says how a program is drawn."""

    def __init__(
        self,
        judge: Judge,
        number: int,
        budget: float,
        goes_on: Callable[[], bool] = lambda: False,
        *,
        most: float = math.inf,
        driver: type[Driver] = Driver,
    ) -> None:
        self.judge = judge
        self.goes_on = goes_on
        self.seed = number
        self.until = time.monotonic() + budget
        self.most = most
        self.driver = driver
        self.calls = 0
        """The calls of all programs, those of the first that failed among them, and of none behind it."""
        self.failed = False
        spec = judge.engine.model.spec
        self.shapes = harmless(judge.engine.model)
        self.fixtures = [
            p
            for p in judge.fixtures.values()
            if p.under(spec) and len(full_steps(p, judge.fixtures)[0]) + len(p.steps) > 1
        ]
        self.done: list[Judgement] = []

    def machine(self) -> type[RuleBasedStateMachine]:
        """What draws programs of this backend and these fixtures; what they came to is in ``done``."""
        return machine_class(self.shapes, self._driver, self._finished, len(self.fixtures))

    def run(self) -> Iterator[Judgement]:
        """The judgements of all programs; ends at the first failure behind which it does not go on."""
        machine = self.machine()
        chunk = 0
        while not self._spent():
            chunk += 1
            found = self.draw_chunk(machine, self.seed * 1000 + chunk)
            yield from self.done
            self.done = []
            if found is not None:
                yield found
                if not self.goes_on():
                    return

    def draw_chunk(self, machine: type[RuleBasedStateMachine], number: int) -> Judgement | None:
        """Let hypothesis draw a number of programs; the judgement of one that failed."""
        options = settings(
            max_examples=CHUNK,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        try:
            run_state_machine_as_test(seed(number)(machine), settings=options)
        except TimeUp:
            return None
        except Flaky:  # hypothesis meets the end of the budget in what it has drawn before
            if self._spent():
                return None
            raise
        except Disagreement as e:
            self.done = []
            return e.judgement
        except AdapterError as e:
            broken = Judgement(Program(f"stateful-{number}", (), "", "stateful"), number, Verdict.ERROR)
            broken.reason = str(e)
            return broken
        return None

    def _driver(self, fixture: int, depth: int) -> Driver:
        number = self.seed * 100_003 + fixture
        return self.driver(self.judge, self.shapes, self.fixtures[fixture], number, depth, self._spent)

    def _spent(self, calls: int = 0) -> bool:
        return time.monotonic() > self.until or self.calls + calls >= self.most

    def _finished(self, driver: Driver) -> None:
        done = driver.finish()
        self.done.append(done)
        if not self.failed:  # hypothesis repeats a program that fails
            self.calls += done.calls
            self.failed = done.failed_step is not None


def machine_class(
    known: Sequence[Shape],
    make: Callable[[int, int], Any],
    finished: Callable[[Any], None],
    fixtures: int,
) -> type[RuleBasedStateMachine]:
    """A state machine with one rule a shape, which draws arguments and hands them to a driver."""

    class Machine(RuleBasedStateMachine):
        driver: Any = None

        @initialize(fixture=st.integers(0, fixtures - 1), depth=st.sampled_from(DEPTHS))
        def start(self, fixture: int, depth: int) -> None:
            self.driver = make(fixture, depth)
            self.driver.start()

        def teardown(self) -> None:
            if self.driver is not None:
                finished(self.driver)

    body: dict[str, Any] = {}
    for shape in known:
        body[shape.name] = _rule_of(shape)
    body["settle"] = rule(words=WORDS)(_wait)
    return type("Conformance", (Machine,), body)


def _wait(self: Any, words: tuple[int, ...]) -> None:
    """Silence, or seeing all that there is to see, or any call."""
    driver = self.driver
    turn, *_ = digits(words)
    if turn == 0:
        driver.harvest()
    elif turn < WAITING:
        driver.run(SETTLE)
    else:
        step = driver.draw(driver.any(words), words)
        if step is not None:
            driver.run(step)


def _rule_of(shape: Shape) -> Any:
    def act(self: Any, words: tuple[int, ...]) -> None:
        step = self.driver.draw(shape, words)
        if step is not None:
            self.driver.run(step)

    act.__name__ = shape.name
    return precondition(lambda self: self.driver.can(shape))(rule(words=WORDS)(act))
