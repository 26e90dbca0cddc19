"""How long a run will take, once its first programs have shown the backend's pace.

The steps of every directed, regression and sweep program are known before the run; the time that one takes is measured
over some programs, reset and judging included, but not over the very first: the device starts with one, and the
judge learns with each new kind of step.  Nothing is said of a run that is over soon.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from verbs_conformance.judge import Judgement
from verbs_conformance.run import Run
from verbs_reports.text import plural

LEARNING = 2.0
"""Seconds after the first program's end that are not measured."""
SAMPLE = 3.0
"""Seconds that are measured before anything is said, at least."""
LEAST = 10
"""Programs that are measured, at least."""
SOON = 30.0
"""A run that takes less than this in all is not announced."""


class Pace:
    """Watches the first programs of a run."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        self.run = run
        self.clock = clock
        self.ready = 0.0
        self.began = 0.0
        self.steps = 0
        self.programs = 0
        self.is_told = False

    def told(self, done: Judgement) -> str:
        """The estimate, once, after the program that ends the sample; nothing before, behind, or for a short run."""
        if self.is_told:
            return ""
        now = self.clock()
        self.ready = self.ready or now + LEARNING
        if not self.began:
            self.began = now if now >= self.ready else 0.0
            return ""
        self.steps += self.run.steps(done.program)
        self.programs += 1
        spent = now - self.began
        if spent < SAMPLE or self.programs < LEAST:
            return ""
        self.is_told = True
        planned = self.run.planned()
        total = sum(planned) * spent / self.steps
        if total < SOON:
            return ""
        pace = f"{1000 * spent / self.steps:.3g} ms a step over {plural(self.programs, 'program')}"
        text = f"this will take about {span(total)} ({len(planned)} programs, {sum(planned)} steps; {pace})"
        if self.run.draws:
            text += f", then {self.run.settings.budget:.0f} s for drawn programs"
        quick = sum(self.run.planned(quick=True)) * spent / self.steps
        return text if self.run.settings.quick else f"{text}; with --quick about {span(quick)}"


def span(seconds: float) -> str:
    """A time for people: 40 s, 12 min, 2.5 h."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
