"""How fast the suite checks calls, next to a bare hypothesis machine in the same run.

``python benchmarks/bench_suite.py [SECONDS] [--data FILE]`` prints, for softhca under linux-user
with every feature that it has:

* checked calls per second of the directed and regression programs;
* of those among them that need no feature, how fast they are judged by all rules next to the rules without features,
  in turns: what more rules cost a program that does not use them;
* checked calls per second of the stateful programs, and their steps per second as a share of those of a machine
  with the same rules, arguments and preconditions (which hold here) whose bodies do nothing.

Seconds are of CPU time of this process, the device included, so that what else the machine does counts little.  With
``--data`` the figures stand in that file afterwards, beside those of other benchmarks.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

from verbs_adapters.softhca import SoftHca
from verbs_conformance import heap
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.machine import Stateful, machine_class
from verbs_conformance.power_figures import keep
from verbs_conformance.program import Program
from verbs_conformance.shapes import Shape
from verbs_conformance.target import engine, load, offered
from verbs_reports.verdicts import Verdict

API, TRANSPORT = "linux-user", "roce"
TURNS = 5
"""How often the two judges of one comparison take turns."""


class Nothing:
    """A driver that can do everything, draws and does nothing; counts the steps."""

    steps = 0

    def start(self) -> None:
        """Nothing."""

    def can(self, _shape: Shape) -> bool:
        """Always."""
        return True

    def step(self, _shape: Shape, _words: Any) -> None:
        """Count."""
        Nothing.steps += 1

    def wait(self, _words: Any) -> None:
        """Count."""
        Nothing.steps += 1

    def end(self) -> None:
        """Nothing."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("seconds", type=float, nargs="?", default=10.0)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    core, whole = judge_with(features=False), judge_with(features=True)
    heap.keep()
    found: dict[str, float] = {"directed": directed(whole, asked.seconds)}
    widened(core, whole, asked.seconds)
    found |= stateful(whole, asked.seconds)
    if asked.data:
        keep(asked.data, "suite", found)


def judge_with(*, features: bool) -> Judge:
    """A judge of softhca by the rules without features, or with those of every feature that it has."""
    backend = SoftHca({"api": API, "transport": TRANSPORT})
    hello = backend.hello()
    judged = engine(API, TRANSPORT, offered(load(), hello) if features else ())
    return Judge(judged, backend, hello, programs.fixtures())


def suited(judge: Judge) -> list[Program]:
    """The directed and regression programs of a judge's rules that end well; each is run once, which warms caches."""
    found = [p for p in programs.shipped("programs") if p.under(judge.engine.model.spec) and not p.device]
    return [p for p in found if judge.run(p, 0).verdict == Verdict.PASS]


def rounds(judge: Judge, found: list[Program], seconds: float, seed: int = 0) -> tuple[int, float]:
    """Run the programs again and again until time is up; the checked calls and the processor's seconds."""
    began, calls = time.process_time(), 0
    while time.process_time() - began < seconds:
        seed += 1
        for program in found:
            calls += judge.run(program, seed).calls
    return calls, time.process_time() - began


def directed(judge: Judge, seconds: float) -> int:
    """How fast the shipped programs are judged: calls per second."""
    found = suited(judge)
    calls, took = rounds(judge, found, seconds)
    print(f"directed: {calls / took:.0f} checked calls per second ({len(found)} programs)")
    return round(calls / took)


def widened(core: Judge, whole: Judge, seconds: float) -> None:
    """How fast the programs without features are judged by fewer and by more rules, in turns."""
    names = {p.name for p in suited(whole)}
    found = [p for p in suited(core) if p.name in names]
    rates: dict[str, list[float]] = {"core": [], "whole": []}
    for turn in range(TURNS):
        for name, judge in (("core", core), ("whole", whole)):
            calls, took = rounds(judge, found, seconds / TURNS, seed=turn * 1000)
            rates[name].append(calls / took)
    few, many = (len(j.engine.model.spec.rules) for j in (core, whole))
    slow, fast = median(rates["whole"]), median(rates["core"])
    print(
        f"same {len(found)} programs: {slow:.0f} checked calls per second by {many} rules, {fast:.0f} by {few};",
        end=" ",
    )
    print(f"{fast:.0f} by {few}; ratio {slow / fast:.2f}")


def stateful(judge: Judge, seconds: float) -> dict[str, float]:
    """Draw chunks of programs and of those of the bare machine in turns; a first short run warms the caches.  The steps
    per second of both, and the share."""
    for _ in Stateful(judge, 7, 2.0).run():
        pass
    job = Stateful(judge, 1, 1e9)
    machine = machine_class(job.shapes, lambda _fixture, _depth: Nothing(), lambda _driver: None)
    whole, spent = job.machine(), {"whole": 0.0, "bare": 0.0}
    calls, drawn, steps, unobserved, belief, chunk = 0, 0, 0, 0, 1, 0
    while min(spent.values()) < seconds:
        chunk, job.done, began = chunk + 1, [], time.process_time()
        job.novelty.learn()
        assert job.draw_chunk(whole, chunk) is None, "the device is healthy"
        for done in job.done:
            calls += done.calls
            drawn += done.calls - done.fixture_calls
            steps += len(done.program.steps)
            unobserved += done.unobserved - done.fixture_unobserved
            belief = max(belief, done.belief)
        turn = time.process_time()
        spent["whole"] += turn - began
        while spent["bare"] < spent["whole"]:
            chunk, began = chunk + 1, time.process_time()
            job.draw_chunk(machine, chunk)
            spent["bare"] += time.process_time() - began
    rate, bare = steps / spent["whole"], Nothing.steps / spent["bare"]
    checked, unseen = calls / spent["whole"], unobserved / drawn
    print(f"stateful: {checked:.0f} checked calls per second, {unseen:.0%} of those drawn with work unobserved")
    print(f"stateful: {rate:.0f} steps per second; bare machine {bare:.0f}; share {rate / bare:.0%}")
    print(f"stateful: largest belief {belief}")
    return {"stateful": round(rate), "bare": round(bare), "share": round(rate / bare, 3)}


if __name__ == "__main__":
    main()
