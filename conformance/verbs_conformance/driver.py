"""What one drawn program does to a backend, whoever draws the numbers that it is made of.

A drawn number chooses the call and an entry of each menu, the usual one most of the time, so that programs get far and
still try what is illegal or borderline.  Several such steps are made, and the one that is least like what was made
before is taken (:mod:`verbs_conformance.novelty`).  A call that would break the consumer's duty is left out.  Most
steps are taken while work is in flight: silence is waited for only when it is drawn, or when what is in flight could
have gone so many ways that the next call would cost too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from verbs_conformance.chance import SIZE, Chance
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.novelty import Novelty, Outline
from verbs_conformance.picking import Picker, one_of, parts
from verbs_conformance.plans import Plan, renumbered
from verbs_conformance.program import Program, full_steps
from verbs_conformance.session import Outcome, Session
from verbs_conformance.shapes import Shape, build
from verbs_conformance.step import Step
from verbs_conformance.sweep import ends, harvest
from verbs_reference.belief import Inconclusive
from verbs_reference.model import CallCode

TANGLED = 6
"""A step that would tell more orders of what is in flight apart than about this waits for the device to be silent: that
many explanations cost too much."""
MOST_MADE = 2
"""So many objects of a kind are made beside those of the fixture; more would leave each unused."""
CROWDED = 12
"""As ``TANGLED``, for any step."""
STATES = 150
"""So many states of the device are considered for one call of a drawn program; a program that needs more is given up.
Few calls in a thousand do, and they would take most of the time: another program in their place shows more."""
DEPTHS = (2, 3, 3, 4, 6)
"""How many elements a program lets into the device's queues before it waits for silence: the orders in which they may
be executed are many, and each costs."""
SETTLE = Step("settle", {})
TAME = 24
"""The first steps of a program, so many of them, have usual arguments: what is out of order early ends most of what
could come."""
OWN = 5
"""Of sixteen draws so many make the call of the rule; the others any call.  Hypothesis switches most rules off for a
program, and few calls alone get nowhere."""
WEIGHT = 5
"""A call that gives the device work is drawn so many times as often as another."""
FAVOURED = 8
"""Of sixteen calls a program makes so many more often than the others."""
ENDED = 4
"""Of sixteen calls that would destroy something so many are considered: little can be done with what is gone."""
SETTLED = 8
"""Of sixteen times that enough work is in flight so many wait for silence; else a call is made that gives no more."""
PLANNED = 12
"""Of sixteen steps so many follow a plan."""
TAKEN_APART = 8
"""Of sixteen programs so many destroy at the end what they have made."""
WAITING = 3
"""Of sixteen draws for the rule that waits for silence so many do so at most; the others make any call."""


class Disagreement(Exception):
    """The backend did what the belief cannot explain; carries the judgement."""

    def __init__(self, judgement: Judgement) -> None:
        suspects = judgement.suspects or (judgement.reason,)
        super().__init__(f"suspects: {', '.join(suspects)}")
        self.judgement = judgement


class TimeUp(BaseException):
    """The budget is used up: no failure, and so nothing that hypothesis is to catch and to try again."""


def _fetches(code: CallCode) -> bool:
    """Whether a call says how many things it found, and which objects they are about."""
    return code.gives_nothing(dict.fromkeys(code.outputs, 0)) and bool(code.creates or code.found)


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
        plans: Sequence[Plan] = (),
        first: Plan | None = None,
    ) -> None:
        self.judge = judge
        self.shapes = known
        self.chance = Chance(number, depth)
        favoured = self._favoured()
        self.weighed = [s for s in favoured for _ in range(WEIGHT if s.call in judge.engine.giving else 1)]
        self.idle = [s for s in favoured if s.call not in judge.engine.giving]
        calls = judge.engine.model.calls
        self.ending = {
            name: (next(iter(code.params.values())).name, ends(code)) for name, code in calls.items() if ends(code)
        }
        """The calls that destroy something, each with its kind and the parameter that names it."""
        self.fetching = [s for s in known if _fetches(calls[s.call])]
        """The shapes of calls that ask what has happened, but for what is drained."""
        self.depth = depth
        self.spent = spent
        """Whether the budget is used up, with so many calls of this program."""
        self.novelty = novelty
        self.plans = plans
        self.plan: Plan | None = first
        self.left: tuple[Step, ...] = () if first is None else first.steps
        """The plan that is followed, and what is left of it."""
        self.straight = first is not None
        """Whether the first plan is followed, with nothing between its steps."""
        self.numbers = {
            s.call: frozenset(m.name for m in s.menus if m.entries[0] == "fresh")
            for s in known
            if any(m.entries[0] == "fresh" for m in s.menus)
        }
        """The parameters of a call that take a number which was not used before."""
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
        self.is_seen = False
        """Whether all that can be seen was seen, and nothing was done since."""

    @classmethod
    def beginning(
        cls, fixtures: Sequence[Program], plans: Sequence[Plan], novelty: Novelty, draws: Sequence[int]
    ) -> tuple[Program, Plan | None]:
        """The fixture that a program stands on, and the plan that it follows first."""
        homes = {fixture.name: fixture for fixture in fixtures}
        known = [plan for plan in plans if plan.home in homes]
        if not known:
            return one_of(fixtures, draws), None
        plan = one_of(novelty.least(known), draws)
        return homes[plan.home], plan

    def _favoured(self) -> list[Shape]:
        """The shapes of the calls that this program makes most: about half of all, so that it gets far with them."""
        calls = sorted({s.call for s in self.shapes})
        draws = [draw for _ in range(0, len(calls), SIZE) for draw in self.chance.stir(())]
        kept = {call for call, draw in zip(calls, draws, strict=False) if draw < FAVOURED}
        giving = self.judge.engine.giving
        for some in (giving, frozenset(calls) - giving):
            kept |= some if kept.isdisjoint(some) else set()
        return [s for s in self.shapes if s.call in kept]

    def start(self) -> None:
        """Reset the backend and run the fixture."""
        self.novelty.begin()
        if self.plan is not None:
            self.novelty.note((), (self.plan.target,))
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

    def any(self, draws: Sequence[int]) -> Shape:
        """The shape of any call, those that give work more often."""
        return one_of(self.weighed, draws)

    def step(self, shape: Shape, words: Sequence[int]) -> None:
        """Make a step of a shape, or of another one, for what was drawn."""
        self._draw(shape, self.chance.stir(words))

    def wait(self, words: Sequence[int]) -> None:
        """Silence, or seeing all that there is to see, or any call."""
        turn, *draws = self.chance.stir(words)
        if turn == 0 and not self.is_seen:
            self.harvest()
        elif turn < WAITING and not self.is_silent:
            self.run(SETTLE)
        else:
            self._draw(self.any(draws), draws)

    def end(self) -> None:
        """What a program that did not fail ends with."""
        if self.made.failed_step is not None:
            return
        self.harvest()
        if self.chance.stir(())[0] < TAKEN_APART and not self.made.given_up:
            self._take_apart()

    def _take_apart(self) -> None:
        """Destroy what is there, the oldest first, which is refused for what is in use, then the newest first: what a
        refusal has harmed shows, and what is still counted as used."""
        enders = {kind: (call, param) for call, (kind, param) in self.ending.items()}
        made = list(self.live())
        for name in (*made, *reversed(made)):
            call, param = enders.get(self.live().get(name, ""), ("", ""))
            step = Step(call, {param: name})
            if call and not self.session.breaks_duty(step):
                self.go_on()
                self.run(step)

    def _draw(self, shape: Shape, draws: Sequence[int]) -> None:
        step = self.draw(shape, draws)
        if step is not None:
            self.run(step)

    def go_on(self) -> None:
        """TimeUp if the budget is used up."""
        if self.spent(self.session.calls):
            raise TimeUp

    def harvest(self) -> None:
        """See all that a consumer can see; TimeUp if the budget is used up."""
        self.go_on()
        engine, belief = self.judge.engine, self.session.belief
        steps = harvest(engine, self.shapes, self.live()) if not self.made.given_up else ()
        last = {(step.call, next(iter(step.args.values()), "")): step for step in steps}
        for step in last.values():  # of several ways to look at an object the last, which shows the most
            if belief.tangle(step.call) <= TANGLED and not self.session.breaks_duty(step):
                self.run(step)
        for shape in (*self.fetching, *self.fetching):
            made = build(shape, self.live(), self.fresh, self.made_of, lambda _menu, offered: offered[-1])
            if made is not None and belief.tangle(made.call) <= TANGLED and not self.session.breaks_duty(made):
                self.run(made)
        self.is_seen = True

    def draw(self, shape: Shape, draws: Sequence[int]) -> Step | None:
        """The step of a shape, or of another one, for what was drawn; a wait for silence if it would cost too much
        now, None if it cannot be made or would break a duty.  TimeUp if the budget is used up."""
        self.go_on()
        if self.made.given_up:
            return None
        self.straight = self.straight and bool(self.left)
        if self.straight or draws[-1] < PLANNED:
            planned = self._planned(draws)
            if planned is not None:
                return planned
        found = [c for c in (self._candidate(shape, part) for part in parts(draws)) if c is not None]
        outlines = [self.novelty.outline(self.session, *each) for each in found]
        for place in self.novelty.ranked(self.last, outlines):
            if found[place][1] is SETTLE or not self.session.breaks_duty(found[place][1]):
                step = self.affordable(found[place][1])
                if step is found[place][1]:
                    self.novelty.note(self.last, outlines[place])
                    self.last = outlines[place]
                return step
        return None

    def _planned(self, draws: Sequence[int]) -> Step | None:
        """The next step of a plan, or a wait for silence before it; None if it cannot be made."""
        if not self.left:
            live = self.live().items()
            fit = [plan for plan in self.plans if plan.needs <= live]
            own = [plan for plan in fit if plan.home == self.fixture.name] or fit
            if not own:
                return None
            self.plan = one_of(self.novelty.least(own), draws)
            self.novelty.note((), (self.plan.target,))
            self.left = self.plan.steps
        assert self.plan is not None
        step = renumbered(self.left[0], self.numbers.get(self.left[0].call, frozenset()), self.fresh)
        if not self.plan.wants(step) <= self.live().keys() or not self.session.sensible(step):
            self.left = ()
            return None
        ready = SETTLE if self._is_full(step.call) else self.affordable(step)
        if ready is step:
            self.left = self.left[1:]
        return ready

    def _candidate(self, shape: Shape, draws: Sequence[int]) -> tuple[Shape, Step] | None:
        """A step for which there are objects, and its shape."""
        other = self.any(draws[1:])
        if draws[0] >= OWN and self.can(other):
            shape = other
        if shape.call in self.ending and draws[5] >= ENDED:
            return None
        if self._is_full(shape.call):
            if draws[4] < SETTLED:
                return shape, SETTLE
            shape = one_of(self.idle, draws[6:])
        if not self.can(shape):
            return None
        picker = Picker(shape, draws[9:], tame=len(self.steps) < TAME)
        step = build(shape, self.live(), self.fresh, self.made_of, picker)
        return None if step is None else (shape, step)

    def affordable(self, step: Step) -> Step | None:
        """The step; a wait for silence, or None if the device is silent, where judging the step would cost too much."""
        belief = self.session.belief
        if not self.is_silent and len(belief.branches) * belief.in_flight() > CROWDED:
            return SETTLE
        if belief.tangle(step.call) > TANGLED:
            return None if self.is_silent else SETTLE
        return step

    def _is_full(self, call: str) -> bool:
        """Whether a call would give the device more work than is to be in flight at once."""
        if self.is_silent or call not in self.judge.engine.giving:
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
        self.is_seen = False
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
