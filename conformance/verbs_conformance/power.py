"""How soon the suite notices each fault of the built-in device.

Theory of operation
-------------------
A fault is switched on, and a device with it is judged in three manners, each until the first failure: by the written
programs as ``verbspec run`` would run them, and, until a number of checked calls is used up, by programs drawn with
guidance and by programs drawn without (:mod:`verbs_conformance.undirected`).  Drawn programs are repeated for several
seeds.  A detection is told by the number of checked calls and the seconds to it, both with the fixtures, and by the
suspects.

Detections do not depend on each other, so that they are spread over processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import median

from verbs_adapters import registry
from verbs_conformance import faults
from verbs_conformance import program as programs
from verbs_conformance.driver import Driver
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.machine import Stateful
from verbs_conformance.run import Run, Settings
from verbs_conformance.target import BUILT_IN, engine, load, offered
from verbs_conformance.undirected import Undirected

MOST = 20_000
"""Checked calls of one detection by drawn programs at most."""
SEEDS = 5
WRITTEN, GUIDED, UNDIRECTED = "written", "guided", "undirected"
_DRIVERS = {GUIDED: Driver, UNDIRECTED: Undirected}


@dataclass(frozen=True, slots=True)
class Task:
    """One detection to try."""

    fault: str
    manner: str
    seed: int
    most: int


@dataclass(frozen=True, slots=True)
class Caught:
    """How a fault showed."""

    calls: int
    seconds: float
    program: str
    suspects: tuple[str, ...]


@dataclass(slots=True)
class Row:
    """What came of the detections of one fault; None where the calls were used up."""

    fault: str
    written: Caught | None = None
    guided: dict[int, Caught | None] = field(default_factory=dict)
    undirected: dict[int, Caught | None] = field(default_factory=dict)

    def note(self, task: Task, caught: Caught | None) -> None:
        """Take over what came of a task."""
        if task.manner == WRITTEN:
            self.written = caught
        else:
            getattr(self, task.manner)[task.seed] = caught

    @property
    def is_right(self) -> bool:
        """Whether the written programs told the fault, with a right rule among the suspects."""
        return self.written is not None and bool(faults.pins()[self.fault].rules & set(self.written.suspects))


def middle(found: dict[int, Caught | None], of: Callable[[Caught], float]) -> float:
    """The median over the seeds; what was not caught counts as infinite."""
    return median(of(c) if c is not None else math.inf for c in found.values()) if found else math.inf


def tasks(names: Sequence[str], seeds: int, most: int) -> list[Task]:
    """The detections of these faults, those of the written programs first."""
    made = [Task(name, WRITTEN, 1, most) for name in names]
    for seed in range(1, seeds + 1):
        made += [Task(name, manner, seed, most) for name in names for manner in (GUIDED, UNDIRECTED)]
    return made


def measure(todo: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Caught | None]]:
    """Try the detections in so many processes; what came of each as it ends."""
    if jobs == 1:
        for task in todo:
            yield task, detect(task)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting = {pool.submit(detect, task): task for task in todo}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def detect(task: Task) -> Caught | None:
    """Judge a device with the fault until it fails or the calls are used up."""
    judge = judge_of(task.fault)
    began = time.perf_counter()
    calls = 0
    if task.manner == WRITTEN:
        for done in _written(judge):
            calls += done.calls
            if done.broken:
                return _caught(done, calls, began)
        return None
    drawing = Stateful(judge, task.seed, math.inf, most=task.most, driver=_DRIVERS[task.manner])
    for done in drawing.run():
        if done.broken:
            return _caught(done, drawing.calls, began)
    return None


def judge_of(fault: str, *, healthy: bool = False) -> Judge:
    """A judge of the built-in device with this fault, under the API and the features of the program that pins it.

    A healthy device has all that the fault needs and not the fault."""
    pin = faults.pins().get(fault)
    pinned = [p for p in programs.shipped("programs") if pin is not None and p.name == pin.program]
    asked = pinned[0].feature if pinned else ()
    api = next((a for p in pinned for a in p.api), "linux-user" if asked else "linux-kernel")
    broken = {} if healthy else {"fault": fault}
    backend = registry.create(BUILT_IN, {"api": api, **faults.known()[fault].needs, **broken})
    hello = backend.hello()
    judged = engine(hello.api[0], hello.transport[0], offered(load(), hello, asked))
    return Judge(judged, backend, hello, programs.fixtures())


def _written(judge: Judge) -> Iterator[Judgement]:
    api, transport = judge.engine.model.spec.selected or ("", "")
    run = Run(judge.engine, judge.backend, judge.hello, Settings(api, transport))
    for program, seed in run.written():
        done = run.judge.run(program, seed)
        yield done
        run.judge.acquit(done)


def _caught(done: Judgement, calls: int, began: float) -> Caught:
    suspects = done.suspects or ((faults.CRASH,) if done.trouble is not None else ())
    return Caught(calls, round(time.perf_counter() - began, 3), done.program.name, suspects)
