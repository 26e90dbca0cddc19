"""Under what the device is judged, and which lines each written program executes there.

Theory of operation
-------------------
A conformance run is of one device under one API.  softhca has five of them, and options for what the sources leave a
device free to do; so a mutant is judged as it would be by the runs of ``CONDITIONS``.  A program that executes none of
the changed lines cannot tell the mutant from the healthy device, which does the same each time.  So each program is
run once on the healthy device, traced, before any mutant is made; under another schedule it is taken to execute the
same lines.  What came of that is kept in a file, and made anew
when anything has changed that it depends on.

The device is imported in a process of its own, so that no mutant finds it imported.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from types import CodeType, FrameType
from typing import Any

from mutation.mutant import ROOT, SOURCES
from verbs_adapters import registry
from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value
from verbs_conformance import program as programs
from verbs_conformance.flipping import DEVICES
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.run import ROUNDS, Run, Settings
from verbs_conformance.session import Engine
from verbs_conformance.target import BUILT_IN, engine, load, offered


@dataclass(frozen=True, slots=True)
class Condition:
    """What one run judges."""

    api: str
    transport: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join((self.api, self.transport, *(f"-o {k}={v}" for k, v in self.options)))

    @property
    def all_options(self) -> dict[str, str]:
        """All that the adapter is given."""
        return {"api": self.api, "transport": self.transport, **dict(self.options)}


CONDITIONS = (
    Condition("linux-user", "roce"),
    Condition("linux-kernel", "roce"),
    Condition("networkdirect", "roce"),
    Condition("winverbs", "roce"),
    Condition("linux-kernel-2008", "ib"),
    Condition("linux-kernel", "iwarp"),
    Condition("linux-user", "roce", (("wire", "rough"),)),
    *(Condition("linux-user", "roce", tuple(options.items())) for options in DEVICES.values() if options),
)
"""The likelier to show something the sooner."""


@dataclass(frozen=True, slots=True)
class Item:
    """A written program under a condition, as it was on the healthy device."""

    condition: int
    program: str
    seed: int
    seconds: float
    fired: frozenset[str]
    lines: frozenset[tuple[str, int]] = field(repr=False)
    """Module and line."""


@dataclass(slots=True)
class Healthy:
    """What the healthy device did."""

    hello: dict[Condition, Hello] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    at_import: set[tuple[str, int]] = field(default_factory=set)
    """The lines that are executed whatever is done."""


class Unhealthy(Exception):
    """The unchanged device fails: no mutant can be judged."""


class Tracer:
    """Notes the lines of some sources that are executed while it is entered."""

    def __init__(self, folder: Path = SOURCES) -> None:
        self.folder = str(folder)
        self.lines: set[tuple[str, int]] = set()
        self._modules: dict[CodeType, str] = {}

    def __enter__(self) -> Tracer:
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_exc: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code not in self._modules:
            file = Path(code.co_filename)
            self._modules[code] = file.stem if str(file.parent) == self.folder else ""
        module = self._modules[code]
        if not module:
            return None
        lines = self.lines

        def note(inner: FrameType, _event: str, _arg: Any) -> Any:
            lines.add((module, inner.f_lineno))
            return note

        return note(frame, "call", None)  # type: ignore[no-any-return]


class Traced:
    """A backend whose calls are traced; what judges them is not, which would take most of the time."""

    def __init__(self, backend: Backend, tracer: Tracer) -> None:
        self.backend = backend
        self.tracer = tracer

    def hello(self) -> Hello:
        """Pass on."""
        return self.backend.hello()

    def reset(self, seed: int) -> Trouble | None:
        """Pass on, traced."""
        with self.tracer:
            return self.backend.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Pass on, traced."""
        with self.tracer:
            return self.backend.call(verb, args)

    def close(self) -> None:
        """Pass on."""
        self.backend.close()


def kept(conditions: Sequence[Condition], file: Path, tell: Callable[[str], None]) -> Healthy:
    """What the healthy device does under these conditions, from the file if nothing has changed since it was kept."""
    digest = _digest(conditions)
    if file.exists():
        known, found = pickle.loads(file.read_bytes())  # noqa: S301 - our own file, in the folder of our own run
        if known == digest and isinstance(found, Healthy):
            return found
    found = healthy(conditions, tell)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps((digest, found)))
    return found


def healthy(
    conditions: Sequence[Condition], tell: Callable[[str], None], only: frozenset[str] | None = None
) -> Healthy:
    """What the healthy device does under these conditions, in all written programs or in those of these names."""
    found = Healthy()
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for number, condition in enumerate(conditions):
            tell(f"the healthy device: {condition}")
            hello, items, at_import = pool.apply(_run, (number, condition, only))
            found.hello[condition] = hello
            found.items += items
            found.at_import |= at_import
    return found


def _digest(conditions: Sequence[Condition]) -> str:
    """What the healthy device's record depends on."""
    parts = [str(c) for c in conditions]
    for folder in ("adapters/verbs_adapters/softhca", "spec/verbs_spec", "reference", "conformance/verbs_conformance"):
        parts += [hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(_files(ROOT / folder))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (p for p in folder.rglob("*") if p.suffix in {".py", ".yaml"})


def _run(
    number: int, condition: Condition, only: frozenset[str] | None
) -> tuple[Hello, list[Item], set[tuple[str, int]]]:
    """Run the written programs on the healthy device, in a process that has not imported it."""
    tracer = Tracer()
    with tracer:
        device = registry.create(BUILT_IN, condition.all_options)
    at_import, hello = tracer.lines, device.hello()
    backend = Traced(device, tracer)
    judge = Judge(engine_of(condition, hello), backend, hello, programs.fixtures())
    items = []
    run = Run(judge.engine, backend, hello, Settings(condition.api, condition.transport))
    for program in run.programs():
        if only is not None and program.name not in only:
            continue
        first, *others = seeds(program)
        tracer.lines = set()
        began = process_time()
        done = judge.run(program, first)
        if done.broken:
            raise Unhealthy(f"{program.name} fails on the healthy device ({condition}, seed {first}): {done.reason}")
        seconds, fired = process_time() - began, frozenset(done.fired)
        lines = frozenset(tracer.lines - at_import)
        items += [Item(number, program.name, seed, seconds, fired, lines) for seed in (first, *others)]
    return hello, items, at_import


def engine_of(condition: Condition, hello: Hello) -> Engine:
    """The engine that judges a device under a condition."""
    return engine(condition.api, condition.transport, offered(load(), hello))


@cache
def shipped(engine: Engine) -> Mapping[str, Program]:
    """The written programs that are for a model, by name."""
    return {p.name: p for p in programs.shipped("programs") if p.under(engine.model.spec)}


def seeds(program: Program) -> Sequence[int]:
    """The schedules under which a run makes a program."""
    if program.device:
        return (program.seed if program.seed is not None else 1,)
    return (program.seed,) if program.seed is not None else range(1, ROUNDS + 1)
