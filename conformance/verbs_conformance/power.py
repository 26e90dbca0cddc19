"""How soon the suite notices each fault of the built-in device.

Theory of operation
-------------------
A fault is switched on, and a device with it is judged in three manners, each until the first failure: by the written
programs as ``verbspec run`` would run them; until a number of checked calls is used up, by programs drawn with
guidance; and by programs drawn without (:mod:`verbs_conformance.undirected`).  The question about these is whether the
guided ones need at most a :data:`TIMES`-th of their calls, so they end when they have made so many times as many, or,
where the guided ones have used up their calls, as many.  Drawn programs are repeated for several seeds, one seed for
all faults before the next.  A detection is told by the number of checked calls and the processor's seconds to it, both
with the fixtures, and by the suspects.

Detections do not depend on each other, so that they are spread over processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice, takewhile
from multiprocessing import get_context

from verbs_adapters import registry
from verbs_conformance import faults
from verbs_conformance import program as programs
from verbs_conformance.driver import Driver
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.machine import Stateful
from verbs_conformance.run import Run, Settings
from verbs_conformance.target import BUILT_IN, engine, load, offered
from verbs_conformance.undirected import Undirected

MOST = 1_000
"""Checked calls of one detection by guided programs at most."""
TIMES = 5
"""So many times as many calls undirected programs may need."""
MOST_OF_ALL = 20_000
"""More calls than so many no detection has."""
SEEDS = 5
WRITTEN, GUIDED, UNDIRECTED = "written", "guided", "undirected"
DRAWN = (GUIDED, UNDIRECTED)
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


def tasks(names: Sequence[str], seeds: int, most: int) -> list[Task]:
    """What to try of these faults, the written programs first, then one seed after the other: guided programs, which
    the undirected ones follow.  What no program can show is not tried."""
    shown = [name for name in names if name not in faults.unseen()]
    made = [Task(name, WRITTEN, 1, most) for name in shown]
    for seed in range(1, seeds + 1):
        made += [Task(name, GUIDED, seed, most) for name in shown]
    return made


def rows(names: Sequence[str], todo: Sequence[Task], found: Mapping[Task, Caught | None]) -> list[Row]:
    """What came of these detections, without the seeds that were not tried for each fault."""
    made = {name: Row(name) for name in names}
    left = {(task.manner, task.seed) for task in todo if not is_known(task, found)}
    for task in todo:
        if (task.manner, task.seed) not in left:
            made[task.fault].note(task, found[task])
            if task.manner == GUIDED:
                other = compared(task, found[task])
                made[task.fault].note(other, found[other])
    return list(made.values())


def is_known(task: Task, found: Mapping[Task, Caught | None]) -> bool:
    """Whether it is known what comes of a detection, and of what it is compared with."""
    return task in found and (task.manner != GUIDED or compared(task, found[task]) in found)


def compared(task: Task, caught: Caught | None) -> Task:
    """The detection that one by guided programs is compared with, by what came of that."""
    return Task(task.fault, UNDIRECTED, task.seed, task.most if caught is None else TIMES * caught.calls)


def tried(task: Task) -> list[tuple[Task, Caught | None]]:
    """What comes of a detection, and of what it is compared with."""
    caught = detect(task)
    found = [(task, caught)]
    if task.manner == GUIDED:
        other = compared(task, caught)
        found.append((other, detect(other)))
    return found


def measure(todo: Sequence[Task], jobs: int, until: float = math.inf) -> Iterator[tuple[Task, Caught | None]]:
    """Try the detections in so many processes, and begin none when time is up; what came of each as it ends, and of
    what it is compared with."""
    left = takewhile(lambda _: time.monotonic() < until, todo)
    if jobs == 1:
        for task in left:
            yield from tried(task)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting = {pool.submit(tried, task) for task in islice(left, jobs)}
        try:
            while waiting:
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    waiting.remove(done)
                    waiting |= {pool.submit(tried, task) for task in islice(left, 1)}
                    yield from done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def detect(task: Task) -> Caught | None:
    """Judge a device with the fault until it fails or the calls are used up."""
    judge = judge_of(task.fault)
    began = time.process_time()
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
    return Caught(calls, round(time.process_time() - began, 2), done.program.name, suspects)
