"""What one drawn program does to a backend, whoever draws the numbers that it is made of.

A drawn number chooses the call and an entry of each menu, the usual one most of the time, so that programs get far and
still try what is illegal or borderline.  Several such steps are made, and the one that is least like what was made
before is taken (:mod:`verbs_conformance.novelty`).  A call that would break the consumer's duty is left out.  Most
steps are taken while work is in flight: silence is waited for only when it is drawn, or when what is in flight could
have gone so many ways that the next call would cost too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.novelty import Novelty, Outline
from verbs_conformance.program import Program, full_steps
from verbs_conformance.session import Outcome, Session
from verbs_conformance.shapes import Menu, Shape, build
from verbs_conformance.step import Step
from verbs_conformance.sweep import harvest
from verbs_reference.belief import Inconclusive

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
WEIGHT = 5
"""A call that gives the device work is drawn so many times as often as another."""
TRIES = 4
"""So many steps are drawn for one, of which the one least like what was made before is taken."""


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
        spent: Callable[[int], bool],
        novelty: Novelty,
    ) -> None:
        self.judge = judge
        self.shapes = known
        self.weighed = [s for s in known for _ in range(WEIGHT if s.call in judge.engine.giving else 1)]
        self.idle = [s for s in known if s.call not in judge.engine.giving]
        self.depth = depth
        self.spent = spent
        """Whether the budget is used up, with so many calls of this program."""
        self.novelty = novelty
        self.last: Outline = ()
        """The step before, as the novelty counts it."""
        self.fixture = fixture
        self.seed = number
        self.session: Session = judge.session()
        self.made = Judgement(Program(f"stateful-{number}", (), fixture.name, "stateful"), number)
        self.steps: list[Step] = []
        self.fresh = 1
        self.made_of: dict[str, int] = {}
        self.made_before: dict[str, int] = {}
        self._live: dict[str, str] | None = None
        self._can: dict[str, bool] = {}
        """What is known since the last step: the live objects with their kinds, and which shapes can be made."""
        self.is_silent = True
        """Whether the device was silent just now."""

    def start(self) -> None:
        """Reset the backend and run the fixture."""
        self.novelty.begin()
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

    def live(self) -> dict[str, str]:
        """The names of live objects with their kinds."""
        if self._live is None:
            self._live = self.session.live()
        return self._live

    def can(self, shape: Shape) -> bool:
        """Whether there is an object of each kind that the shape needs, and not too many of what it makes."""
        known = self._can.get(shape.name)
        if known is None:
            known = self._can[shape.name] = shape.needs <= set(self.live().values()) and all(
                self.made_of.get(kind, 0) < self.made_before.get(kind, 0) + MOST_MADE for kind in shape.makes
            )
        return known

    def any(self, words: Sequence[int]) -> Shape:
        """The shape of any call, those that give work more often."""
        return self.weighed[words[0] // 16 % len(self.weighed)]

    def go_on(self) -> None:
        """TimeUp if the budget is used up."""
        if self.spent(self.session.calls):
            raise TimeUp

    def harvest(self) -> None:
        """See all that a consumer can see; TimeUp if the budget is used up."""
        self.go_on()
        engine, belief = self.judge.engine, self.session.belief
        for step in harvest(engine, self.shapes, self.live()) if not self.made.given_up else ():
            looks = step.call in engine.model.calls
            if not looks or (belief.tangle(step.call) <= TANGLED and not self.session.breaks_duty(step)):
                self.run(step)

    def draw(self, shape: Shape, words: Sequence[int]) -> Step | None:
        """The step of a shape, or of another one, for what was drawn; a wait for silence if it would cost too much
        now, None if it cannot be made or would break a duty.  TimeUp if the budget is used up."""
        self.go_on()
        if self.made.given_up:
            return None
        found = [c for c in (self._candidate(shape, (*words[i:], *words[:i])) for i in range(TRIES)) if c is not None]
        outlines = [self.novelty.outline(self.session, *each) for each in found]
        for place in self.novelty.ranked(self.last, outlines):
            if not self.session.breaks_duty(found[place][1]):
                step = self.affordable(*found[place])
                if step is found[place][1]:
                    self.novelty.note(self.last, outlines[place])
                    self.last = outlines[place]
                return step
        return None

    def _candidate(self, shape: Shape, words: Sequence[int]) -> tuple[Shape, Step] | None:
        """A step for which there are objects, and its shape."""
        turn, *draws = digits(words)
        other = self.any(words)
        if turn >= OWN and self.can(other):
            shape = other
        if self._is_full(shape):
            shape = self.idle[words[1] // 16 % len(self.idle)]
        step = (
            build(shape, self.live(), self.fresh, self.made_of, Picker(shape, draws[3:])) if self.can(shape) else None
        )
        return None if step is None else (shape, step)

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
        self._live, self._can = None, {}
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
