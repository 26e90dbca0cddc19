"""Programs drawn without guidance, which the guided ones of :mod:`verbs_conformance.driver` are measured against.

The fixtures, the oracle and the budget are the same, and so are the menus of the calls: but each call of the
specification is as likely as any other, and so is each entry of each menu.  Nothing is weighed, nothing is left in
flight on purpose and nothing is looked at before the end.  Silence is one more call to draw; besides, it is waited for
only where judging the call would cost too much.
"""

from __future__ import annotations

from collections.abc import Sequence

from verbs_conformance.driver import SETTLE, Driver
from verbs_conformance.novelty import Novelty
from verbs_conformance.picking import one_of
from verbs_conformance.plans import Plan
from verbs_conformance.program import Program
from verbs_conformance.shapes import Menu, Shape, build
from verbs_conformance.step import Step


class Uniform:
    """Picks each entry of a menu as often as any other."""

    def __init__(self, draws: Sequence[int]) -> None:
        self.left = iter(draws)

    def __call__(self, _menu: Menu, offered: Sequence[str]) -> str:
        return offered[(next(self.left) * 16 + next(self.left)) % len(offered)]


class Undirected(Driver):
    """A driver that makes any call with any arguments."""

    @classmethod
    def beginning(
        cls, fixtures: Sequence[Program], _plans: Sequence[Plan], _novelty: Novelty, draws: Sequence[int]
    ) -> tuple[Program, Plan | None]:
        """Any fixture, and no plan."""
        return one_of(fixtures, draws), None

    def any(self, draws: Sequence[int]) -> Shape:
        """The shape of any call, each as often as any other."""
        calls = sorted({s.call for s in self.shapes})
        call = calls[(draws[0] << 4 | draws[1]) % len(calls)]
        own = [s for s in self.shapes if s.call == call]
        return own[(draws[2] << 4 | draws[3]) % len(own)]

    def harvest(self) -> None:
        """Wait for silence."""
        self.go_on()
        self.run(SETTLE)

    def end(self) -> None:
        """Nothing is looked at."""

    def draw(self, shape: Shape, draws: Sequence[int]) -> Step | None:
        """A step of any call, whatever rule hypothesis has chosen; TimeUp if the budget is used up."""
        self.go_on()
        if self.made.given_up:
            return None
        shape = self.any(draws)
        if not self.can(shape):
            return None
        step = build(shape, self.live(), self.fresh, self.made_of, Uniform(draws[4:]))
        if step is None or self.session.breaks_duty(step):
            return None
        return self.affordable(step)
