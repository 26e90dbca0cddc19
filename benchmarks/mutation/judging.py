"""Makes a device of a changed source and judges it, in a process of its own.

Theory of operation
-------------------
The process is forked from one that has loaded the specification and all engines, but not the device.  It imports the
device with the changed source in the place of its module's; no file is written.  Then it judges the device as a
conformance run would: first the written programs that execute the changed lines on the healthy device, each once
before any a second time under another condition or schedule; then drawn programs, under the conditions under which
most written ones do.  The first failure ends it, and so does the end of its processor time.  A device that ends with an
exception of its own has failed too, but is told apart.  One whose call does not return in time is timed out.
"""

from __future__ import annotations

import gc
import math
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic, process_time
from types import CodeType, FrameType
from typing import Any

from mutation.conditions import CONDITIONS, Condition, Healthy, Item, engine_of, shipped
from mutation.mutant import PACKAGE, SOURCES, Mutant
from verbs_adapters import registry
from verbs_conformance import program as programs
from verbs_conformance.build import limits
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.machine import Stateful
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_conformance.target import BUILT_IN

KILLED, CRASHED, TIMED_OUT, SURVIVED, NOT_EXECUTED = "killed", "crashed", "timed out", "survived", "not executed"
SECONDS = 20.0
"""Of processor time, for one mutant."""
DRAWN = 0.4
"""The share of it that is kept for drawn programs."""
HANG = 5.0
"""Of processor time, after which a program that has not ended never will; written ones take a hundredth of a second."""
WAIT = 60.0
"""Seconds after which a process that has used no processor time is ended: it waits for what will not come."""
MEMORY = 4 << 30
LATER = 1000
"""More than a program is made times: those that use nothing that was changed come behind all that do."""


@dataclass(slots=True)
class Outcome:
    """What came of a mutant."""

    verdict: str
    by: str = ""
    """The program that told it, with its seed and its condition."""
    suspects: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    programs: int = 0
    """How many written programs were run, of those that execute the changed lines."""
    calls: int = 0
    """Checked calls of drawn programs."""
    unfired: tuple[str, ...] = ()
    """Rules that no program fires any more: a run would have told that they were not decided."""


class Changed(MetaPathFinder, InspectLoader):
    """Imports one module from another source."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> ModuleSpec | None:
        """The module, if it is the changed one."""
        return spec_from_loader(fullname, self) if fullname == f"{PACKAGE}.{self.mutant.module}" else None

    def is_package(self, _fullname: str) -> bool:
        """No module with others in it is changed."""
        return False

    def get_source(self, _fullname: str) -> str:
        """The changed source."""
        return self.mutant.source

    def get_code(self, _fullname: str) -> CodeType:
        """The changed source, compiled."""
        return compile(self.mutant.source, str(SOURCES / f"{self.mutant.module}.py"), "exec", dont_inherit=True)


@dataclass(slots=True)
class Bench:
    """Judges mutants; ``seconds`` of processor time for each."""

    healthy: Healthy
    conditions: Sequence[Condition] = CONDITIONS
    seconds: float = SECONDS
    hang: float = HANG

    def order(self, mutant: Mutant) -> list[Item]:
        """The written programs that execute what was changed, the likeliest to show it first."""
        places = {(mutant.module, line) for line in mutant.lines}
        every = not places or not places.isdisjoint(self.healthy.at_import)
        found = [i for i in self.healthy.items if every or not places.isdisjoint(i.lines)]
        times = Counter(word for item in found for word in mutant.words & item.words)

        def key(item: Item) -> tuple[float, ...]:
            rarest = min((times[word] for word in mutant.words & item.words), default=math.inf)
            return (mutant.used.isdisjoint(item.lines), rarest, item.seed, item.condition, item.seconds)

        found.sort(key=key)
        again: Counter[str] = Counter()
        ranked: list[tuple[int, int, Item]] = []
        for item in found:
            ranked.append((again[item.program] + LATER * mutant.used.isdisjoint(item.lines), len(ranked), item))
            again[item.program] += 1
        return [item for _, _, item in sorted(ranked, key=lambda r: r[:2])]

    def judge_all(self, mutants: Sequence[Mutant], jobs: int) -> Iterator[tuple[Mutant, Outcome]]:
        """What comes of each mutant, as it ends, so many at a time."""
        for engine in {engine_of(condition, hello) for condition, hello in self.healthy.hello.items()}:
            _warm(engine)
        gc.freeze()
        running: dict[Connection, _Process] = {}
        todo = list(reversed(mutants))
        while todo or running:
            while todo and len(running) < jobs:
                mutant = todo.pop()
                items = self.order(mutant)
                if not items:
                    yield mutant, Outcome(NOT_EXECUTED)
                    continue
                process = _Process(self, mutant, items)
                running[process.answer] = process
            done = wait(list(running), timeout=1.0)
            for answer in [a for a, p in running.items() if a in done or p.is_late]:
                process = running.pop(answer)
                yield process.mutant, process.outcome()


def _warm(engine: Engine) -> None:
    """Let an engine do what it does once, with the model in the place of the device."""
    model = ReferenceBackend(engine.model, limits(engine, programs.fixtures()))
    Judge(engine, model, model.hello(), programs.fixtures()).run(next(iter(shipped(engine).values())), 1)


class _Process:
    """A mutant that is being judged."""

    def __init__(self, bench: Bench, mutant: Mutant, items: list[Item]) -> None:
        context = get_context("fork")
        self.mutant = mutant
        self._used, self._since = b"", monotonic()
        self.answer, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_judge, args=(bench, mutant, items, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def is_late(self) -> bool:
        """Whether it has used no processor time for so long that it will not end."""
        try:
            used = b" ".join(Path(f"/proc/{self._process.pid}/stat").read_bytes().rpartition(b")")[2].split()[11:13])
        except FileNotFoundError:
            return False  # it has ended, and its answer is there
        if used != self._used:
            self._used, self._since = used, monotonic()
        return monotonic() - self._since > WAIT

    def outcome(self) -> Outcome:
        """What it has found; the process is ended."""
        try:
            found = self.answer.recv() if self.answer.poll() else Outcome(TIMED_OUT, reason="did not answer")
        except EOFError:
            found = Outcome(CRASHED, reason="the process ended")
        self._process.kill()
        self._process.join()
        assert isinstance(found, Outcome)
        return found


def _judge(bench: Bench, mutant: Mutant, items: list[Item], answer: Connection) -> None:
    """Judge a mutant, in its process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]  # whoever started this may have used the device as it is
    sys.meta_path.insert(0, Changed(mutant))
    trial = _Trial(bench, mutant, items)

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        if trial.ends_drawing():
            return
        answer.send(trial.told(Outcome(TIMED_OUT, by=trial.now)))
        os._exit(0)

    signal.signal(signal.SIGPROF, give_up)
    answer.send(trial.told(trial.outcome()))
    answer.close()
    os._exit(0)


class _Trial:
    """The judging of one mutant."""

    def __init__(self, bench: Bench, mutant: Mutant, items: list[Item]) -> None:
        self.bench = bench
        self.mutant = mutant
        self.items = items
        self.now = "its making"
        self.began = process_time()
        self.judges: dict[int, Judge] = {}
        self.programs = 0
        self.calls = 0
        self.fired: set[str] = set()
        self.drawing: Stateful | None = None

    def told(self, outcome: Outcome) -> Outcome:
        """The outcome with the figures."""
        outcome.seconds = round(process_time() - self.began, 2)
        outcome.programs, outcome.calls = self.programs, self.calls
        return outcome

    def outcome(self) -> Outcome:
        """Judge until the first failure or until the time is used up."""
        try:
            return self._written() or self._drawn() or self._ended()
        except MemoryError:
            return Outcome(TIMED_OUT, by=self.now, reason="used up its memory")
        except Exception as e:
            return Outcome(CRASHED, by=self.now, reason=f"{type(e).__name__}: {e}"[:200])

    def _left(self) -> float:
        return self.bench.seconds - (process_time() - self.began)

    def _watch(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def _written(self) -> Outcome | None:
        for item in self.items:
            if self._left() < DRAWN * self.bench.seconds:
                break
            self.now = f"{item.program} ({self.bench.conditions[item.condition]}, seed {item.seed})"
            self._watch(self.bench.hang)
            judge = self._judge_of(item.condition)
            done = judge.run(shipped(judge.engine)[item.program], item.seed)
            self._watch(0)
            self.programs += 1
            self.fired |= done.fired.keys()
            if done.broken:
                return self._failed(done)
        return None

    def _drawn(self) -> Outcome | None:
        """Drawn programs, half of the time under the condition under which most written programs execute the change."""
        often = [c for c, _ in Counter(i.condition for i in self.items).most_common(2)]
        for place, number in enumerate(often):
            self.now = f"drawn programs ({self.bench.conditions[number]})"
            self.drawing = Stateful(self._judge_of(number), 1, math.inf)
            self._watch(self._left() / (len(often) - place))
            for done in self.drawing.run():
                self.calls += done.calls
                if done.broken:
                    return self._failed(done)
            self._watch(0)
        return None

    def _ended(self) -> Outcome:
        """Close the devices, as a run does when all is done; one may fail at that."""
        self.now = "its end"
        for judge in self.judges.values():
            judge.backend.close()
        return Outcome(SURVIVED, unfired=self._unfired())

    def ends_drawing(self) -> bool:
        """End the drawing of programs, whose time is up, if that has not been done; what hangs then will never end."""
        if self.drawing is None or self.drawing.until < math.inf:
            return False
        self.drawing.until = 0.0
        self._watch(self.bench.hang)
        return True

    def _failed(self, done: Judgement) -> Outcome:
        verdict = KILLED if done.refused is not None or done.trouble is not None else CRASHED
        return Outcome(verdict, by=self.now, suspects=done.suspects, reason=done.reason[:200])

    def _judge_of(self, number: int) -> Judge:
        if number not in self.judges:
            condition = self.bench.conditions[number]
            backend = registry.create(BUILT_IN, condition.all_options)
            hello = backend.hello()
            self.judges[number] = Judge(engine_of(condition, hello), backend, hello, programs.fixtures())
        return self.judges[number]

    def _unfired(self) -> tuple[str, ...]:
        """Rules that were fired on the healthy device by what was run here, and are not any more by anything."""
        if self.programs < len(self.items):
            return ()
        own = {(i.condition, i.program, i.seed) for i in self.items}
        others = {r for i in self.bench.healthy.items if (i.condition, i.program, i.seed) not in own for r in i.fired}
        before = {rule for item in self.items for rule in item.fired}
        return tuple(sorted(before - others - self.fired))
