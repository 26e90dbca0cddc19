"""How long a run will take: said once, from what was measured, and only where it matters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from verbs_conformance.judge import Judgement
from verbs_conformance.pace import LEARNING, LEAST, SAMPLE, Pace, span
from verbs_conformance.program import Program
from verbs_conformance.run import Settings

DONE = Judgement(Program("p", ()), 1)


@dataclass
class Planned:
    """A run of so many programs of five steps each."""

    programs: int
    settings: Settings = field(default_factory=lambda: Settings("api", "transport", budget=7))
    draws: bool = True

    def steps(self, _program: Program) -> int:
        return 5

    def planned(self, *, quick: bool = False) -> list[int]:
        return [5] * (self.programs // 10 if quick else self.programs)


def told(run: Any, seconds: float, programs: int = 3 * LEAST) -> list[str]:
    """What is said when each program takes so long; the first takes a minute."""
    now = [0.0]
    pace = Pace(run, clock=lambda: now[0])
    said = []
    for number in range(programs):
        now[0] += seconds if number else 60
        said.append(pace.told(DONE))
    return said


def test_a_long_run_is_announced_once_with_its_pace() -> None:
    said = told(Planned(1000), 0.5)

    (text,) = [s for s in said if s]
    assert said.index(text) == LEAST + LEARNING / 0.5
    assert "about 8 min (1000 programs, 5000 steps; 100 ms a step over 10 programs)" in text
    assert "then 7 s for drawn programs" in text
    assert "with --quick about 50 s" in text


def test_a_quick_backend_is_measured_longer() -> None:
    said = told(Planned(10_000), 0.125, 100)

    assert [i for i, s in enumerate(said) if s] == [(LEARNING + SAMPLE) / 0.125]


def test_nothing_is_said_of_a_short_run() -> None:
    assert not any(told(Planned(50), 0.5))


def test_a_quick_run_is_not_told_to_be_quick() -> None:
    run = Planned(1000, Settings("api", "transport", quick=True), draws=False)

    text = "".join(told(run, 0.5))

    assert "about 8 min" in text
    assert "--quick" not in text
    assert "drawn" not in text


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")])
def test_a_time_is_told_for_people(seconds: float, text: str) -> None:
    assert span(seconds) == text
