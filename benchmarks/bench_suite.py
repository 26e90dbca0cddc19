"""How fast the suite checks calls, next to a bare hypothesis machine in the same run.

``python benchmarks/bench_suite.py [SECONDS]`` prints, for softhca under linux-kernel:

* checked calls per second of the directed and regression programs;
* checked calls per second of the stateful programs, and their steps per second as a share of those of a machine
  with the same rules, arguments and preconditions (which hold here) whose bodies do nothing.

Seconds are of CPU time of this process, the device included, so that what else the machine does counts little.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.machine import Stateful, machine_class
from verbs_conformance.session import Engine, Step
from verbs_conformance.shapes import Shape
from verbs_reference.model import Model
from verbs_spec.loader import load
from verbs_spec.profiles import select


class Nothing:
    """A driver that can do everything, draws and does nothing; counts the steps."""

    steps = 0

    def start(self) -> None:
        """Nothing."""

    def can(self, _shape: Shape) -> bool:
        """Always."""
        return True

    def any(self, _words: Any) -> Shape | None:
        """No shape."""

    def draw(self, _shape: Shape | None, _draws: Any) -> Step:
        """A step, the same each time."""
        return Step("", {})

    def harvest(self) -> None:
        """Count."""
        Nothing.steps += 1

    def run(self, _step: Step) -> None:
        """Count."""
        Nothing.steps += 1


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    engine = Engine(Model(select(load(), "linux-kernel", "roce")))
    backend = SoftHca({})
    judge = Judge(engine, backend, backend.hello(), programs.fixtures())
    directed(judge, seconds)
    stateful(judge, seconds)


def directed(judge: Judge, seconds: float) -> None:
    """Run the shipped programs until time is up."""
    found = [p for p in programs.shipped("programs") if p.under(judge.engine.model.spec)]
    for program in found:
        judge.run(program, 0)
    began, calls, seed = time.process_time(), 0, 0
    while time.process_time() - began < seconds:
        seed += 1
        for program in found:
            calls += judge.run(program, seed).calls
    print(f"directed: {calls / (time.process_time() - began):.0f} checked calls per second")


def stateful(judge: Judge, seconds: float) -> None:
    """Run drawn programs, then the bare machine, each for the same time; a first short run warms the caches."""
    for _ in Stateful(judge, 7, 2.0).run():
        pass
    began, calls, drawn, steps, unobserved, belief = time.process_time(), 0, 0, 0, 0, 1
    for done in Stateful(judge, 1, seconds).run():
        calls += done.calls
        drawn += done.calls - done.fixture_calls
        steps += len(done.program.steps)
        unobserved += done.unobserved - done.fixture_unobserved
        belief = max(belief, done.belief)
    took = time.process_time() - began
    job = Stateful(judge, 1, seconds)
    machine = machine_class(job.shapes, lambda _fixture, _depth: Nothing(), lambda _driver: None, len(job.fixtures))
    began, chunk = time.process_time(), 0
    while time.process_time() - began < seconds:
        chunk += 1
        job.draw_chunk(machine, chunk)
    bare = Nothing.steps / (time.process_time() - began)
    share = unobserved / drawn
    print(f"stateful: {calls / took:.0f} checked calls per second, {share:.0%} of those drawn with work unobserved")
    print(f"stateful: {steps / took:.0f} steps per second; bare machine {bare:.0f}; share {steps / took / bare:.0%}")
    print(f"stateful: largest belief {belief}")


if __name__ == "__main__":
    main()
