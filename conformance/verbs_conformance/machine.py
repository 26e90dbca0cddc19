"""Stateful programs: hypothesis draws calls of every shape, the belief judges each answer.

The machine has one rule for each shape of the specification and is made from it: no verb is named here.  What a rule
does with the numbers drawn for it is the driver's (:mod:`verbs_conformance.driver`).  Programs start from the fixtures
that hold the most.

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
from verbs_conformance.chance import Chance
from verbs_conformance.driver import DEPTHS, Disagreement, Driver, TimeUp
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.novelty import Novelty
from verbs_conformance.plans import plans
from verbs_conformance.program import Program, full_steps
from verbs_conformance.shapes import Shape, harmless
from verbs_reports.verdicts import Verdict

STEPS = 40
CHUNK = 10
"""Programs of one round; of longer ones hypothesis makes most by repeating parts of others."""
BEGINNINGS = 0x10000
"""So many numbers decide how a program begins."""
WORDS = st.tuples(*(st.integers(0, 0xFFFF) for _ in range(5)))
"""What is drawn for a step: twenty numbers of 0 to 15, four at a time."""


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
        self.novelty = Novelty(judge.engine.model)
        self.plans = plans(judge.engine, judge.fixtures)
        self.calls = 0
        """The calls of all programs, those of the first that failed among them, and of none behind it."""
        self.broke: Judgement | None = None
        """The first program of a chunk that failed."""
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
        return machine_class(self.shapes, self._driver, self._finished)

    def run(self) -> Iterator[Judgement]:
        """The judgements of all programs; ends at the first failure behind which it does not go on."""
        machine = self.machine()
        chunk = 0
        while not self._spent():
            chunk += 1
            self.novelty.learn()
            found = self.draw_chunk(machine, self.seed * 1000 + chunk)
            yield from self.done
            self.done = []
            if found is not None:
                yield found
                if not self.goes_on():
                    return

    def draw_chunk(self, machine: type[RuleBasedStateMachine], number: int) -> Judgement | None:
        """Let hypothesis draw a number of programs; the judgement of the first that failed.

        Hypothesis makes such a program again, and what it has drawn before.  A device need not do the same each time:
        then it says that the test is flaky, which ends the chunk and takes nothing back.
        """
        self.broke = None
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
        except (TimeUp, Flaky, Disagreement):
            return self.broke
        except AdapterError as e:
            broken = Judgement(Program(f"stateful-{number}", (), "", "stateful"), number, Verdict.ERROR)
            broken.reason = str(e)
            return broken
        return None

    def _driver(self, beginning: int, depth: int) -> Driver:
        number = self.seed * 100_003 + beginning
        self.novelty.begin()
        start, first = self.driver.beginning(self.fixtures, self.plans, self.novelty, Chance(number).stir(()))
        return self.driver(self.judge, self.shapes, start, number, depth, self._spent, self.novelty, self.plans, first)

    def _spent(self, calls: int = 0) -> bool:
        return time.monotonic() > self.until or self.calls + calls >= self.most

    def _finished(self, driver: Driver) -> None:
        if self.broke is not None:
            return  # it is made again
        done = driver.finish()
        self.calls += done.calls
        if done.failed_step is None:
            self.done.append(done)
        else:
            self.broke = done


def machine_class(
    known: Sequence[Shape],
    make: Callable[[int, int], Any],
    finished: Callable[[Any], None],
) -> type[RuleBasedStateMachine]:
    """A state machine with one rule a shape, which draws arguments and hands them to a driver."""

    class Machine(RuleBasedStateMachine):
        driver: Any = None

        @initialize(beginning=st.integers(0, BEGINNINGS - 1), depth=st.sampled_from(DEPTHS))
        def start(self, beginning: int, depth: int) -> None:
            self.driver = make(beginning, depth)
            self.driver.start()

        def teardown(self) -> None:
            if self.driver is not None:
                try:
                    self.driver.end()
                finally:
                    finished(self.driver)

    body: dict[str, Any] = {}
    for shape in known:
        body[shape.name] = _rule_of(shape)
    body["settle"] = rule(words=WORDS)(lambda self, words: self.driver.wait(words))
    return type("Conformance", (Machine,), body)


def _rule_of(shape: Shape) -> Any:
    def act(self: Any, words: tuple[int, ...]) -> None:
        self.driver.step(shape, words)

    act.__name__ = shape.name
    return precondition(lambda self: self.driver.can(shape))(rule(words=WORDS)(act))
