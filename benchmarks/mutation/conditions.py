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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from mutation.mutant import SOURCES
from verbs_adapters import registry
from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value
from verbs_conformance import program as programs
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program, full_steps
from verbs_conformance.run import ROUNDS, Run, Settings
from verbs_conformance.target import BUILT_IN, engine, load, offered
from verbs_spec.profiles import capabilities, features


@dataclass(frozen=True, slots=True)
class Condition:
    """What one run judges."""

    api: str
    transport: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        told = [f"-o {k}={v}" for k, v in self.options if (k, v) not in OTHERWISE.items()]
        otherwise = ["otherwise"] * (len(told) < len(self.options))
        return " ".join((self.api, self.transport, *otherwise, *told))

    @property
    def all_options(self) -> dict[str, str]:
        """All that the adapter is given."""
        return {"api": self.api, "transport": self.transport, **dict(self.options)}


OTHERWISE = {
    "atomic_length": "LOC_LEN_ERR",
    "bad_op_status": "LOC_PROT_ERR",
    "bind_no_rights": "refuse",
    "closed_window_inv": "accept",
    "controlled_qkey": "refuse",
    "cq_events": "merged",
    "cq_slack": "3",
    "dereg_bound": "accept",
    "destroy_bound": "refuse",
    "dma_lkey": "reserved",
    "drain_event": "always",
    "empty_reg": "accept",
    "failed_send": "ERR",
    "foreign_ah": "SUCCESS",
    "idle_window_inv": "refuse",
    "inline_slack": "8",
    "key_byte": "zero",
    "list_slack": "4",
    "local_rkey": "zero",
    "long_datagram": "LOC_LEN_ERR",
    "malformed_bind": "post",
    "map_read": "execute",
    "masks": "uverbs",
    "no_channel": "refuse",
    "overrun": "sticky",
    "poison": "true",
    "post_bind_type_1": "refuse",
    "psn": "ignore",
    "purge_cqes": "true",
    "qp_slack": "2",
    "recv_check": "whole",
    "refused_imm": "WR_FLUSH_ERR",
    "reg_check": "post",
    "rereg_key": "new",
    "rereg_translation": "refuse",
    "rq_slot": "consume",
    "sge_slack": "1",
    "send_inv_failure": "silent",
    "short_receive": "use",
    "sink_qp_right": "ignore",
    "srq_limit_at_create": "take",
    "srq_modify": "one",
    "srq_slack": "2",
    "stale_handle": "accept",
    "stale_inv": "refuse",
    "unaligned_atomic": "post",
    "unread": "tell",
}
"""Of all that the sources leave free another choice than the usual one."""
TIGHT = {"max_objects": "6", "max_pages": "4", "max_qp_wr": "8", "max_cqe": "16", "pace": "lazy"}
EARLY = {"local_inv_early": "true", "no_receive": "wait", "failed_wr": "early", "pace": "eager"}
LOSSY = {"atomic_length": "REM_ACCESS_ERR", "refused_imm": "REM_ACCESS_ERR", "bad_op_status": "MW_BIND_ERR"}
LOSSY |= {"path_mtu_bound": "largest", "post_bind_type_1": "fail", "without": "SRQ_RESIZE"}


def _otherwise(api: str, transport: str, more: Mapping[str, str]) -> Condition:
    return Condition(api, transport, tuple({**OTHERWISE, **more}.items()))


CONDITIONS = (
    Condition("linux-user", "roce"),
    Condition("linux-kernel", "roce"),
    Condition("networkdirect", "roce"),
    Condition("winverbs", "roce"),
    Condition("linux-kernel-2008", "ib"),
    Condition("linux-kernel", "iwarp"),
    Condition("linux-user", "roce", (("wire", "rough"),)),
    _otherwise("linux-user", "roce", {"pace": "eager", "also": "MEM_WINDOW_TYPE_2A"}),
    _otherwise("linux-kernel", "roce", TIGHT),
    _otherwise("linux-kernel", "iwarp", EARLY),
    Condition("linux-user", "roce", (("threads", "2"),)),
    Condition("linux-user", "roce", tuple({**LOSSY, "wire": "lost-atomic-response", "first_psn": "16777213"}.items())),
    Condition("linux-user", "roce", tuple({**LOSSY, "wire": "lost-rest-of-read", "mtu": "MTU_256"}.items())),
    Condition("linux-kernel", "roce", (("local_inv_early", "true"),)),
)
"""The likelier to show something the sooner."""


@dataclass(frozen=True, slots=True)
class Item:
    """A written program under a condition, as it was on the healthy device."""

    condition: int
    program: str
    text: str
    """What tells the program, with its fixture, from another one of that name."""
    seed: int
    seconds: float
    fired: frozenset[str]
    lines: frozenset[tuple[str, int]] = field(repr=False)
    """Module and line."""
    words: frozenset[str] = field(repr=False, default=frozenset())
    """The words that the device was told and has answered."""


@dataclass(slots=True)
class Healthy:
    """What the healthy device did."""

    hello: dict[Condition, Hello] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    at_import: set[tuple[str, int]] = field(default_factory=set)
    """The lines that are executed whatever is done."""


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

        note(frame, "call", None)
        return note


class Traced:
    """A backend whose calls are traced; what judges them is not, which would take most of the time."""

    def __init__(self, backend: Backend, tracer: Tracer) -> None:
        self.backend = backend
        self.tracer = tracer
        self.words: set[str] = set()

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
            answer = self.backend.call(verb, args)
        said = args.items(), (answer.result, answer.out) if isinstance(answer, Answer) else ()
        self.words.update(words(said))
        return answer

    def close(self) -> None:
        """Pass on."""
        self.backend.close()


def words(value: Any) -> Iterator[str]:
    """The texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from words(tuple(value.items()))
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for each in value:
            yield from words(each)


def kept(conditions: Sequence[Condition], file: Path, tell: Callable[[str], None]) -> Healthy:
    """What the healthy device does under these conditions; what the file has of it already is not done again."""
    digest = _digest(conditions)
    before = found = Healthy()
    if file.exists():
        of, known = pickle.loads(file.read_bytes())  # noqa: S301 - our own file, in the folder of our own run
        if of == digest and isinstance(known, Healthy):
            before = known
    file.parent.mkdir(parents=True, exist_ok=True)
    for found in healthy(conditions, tell, before=before):
        if len(found.items) > len(before.items):
            file.write_bytes(pickle.dumps((digest, found)))
    return found


def healthy(
    conditions: Sequence[Condition],
    tell: Callable[[str], None],
    only: frozenset[str] | None = None,
    before: Healthy | None = None,
) -> Iterator[Healthy]:
    """What the healthy device does in all written programs, or in those of these names, as each condition is added."""
    found = Healthy()
    for number, condition in enumerate(conditions):
        known = [i for i in before.items if i.condition == number] if before is not None else []
        tell(f"the healthy device: {condition}")
        if before is not None and condition in before.hello:
            engine_of(condition, before.hello[condition])  # here, so that it need not be made twice
        with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
            hello, items, at_import, failed = pool.apply(_run, (number, condition, only, known))
        for each in failed:
            tell(f"left out: {each}")
        found.hello[condition] = hello
        found.items += items
        found.at_import |= at_import
        yield found


def _digest(conditions: Sequence[Condition]) -> str:
    """What the lines that a program executes depend on, besides the program."""
    parts = [str(c.all_options) for c in conditions]
    parts += [p.read_text(encoding="utf-8") for p in sorted(SOURCES.glob("*.py"))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _run(
    number: int, condition: Condition, only: frozenset[str] | None, known: Sequence[Item]
) -> tuple[Hello, list[Item], set[tuple[str, int]], list[str]]:
    """Run the written programs that are not known on the healthy device, in a process that has not imported it."""
    tracer = Tracer()
    with tracer:
        device = registry.create(BUILT_IN, condition.all_options)
        hello = device.hello()
        registry.create(BUILT_IN, condition.all_options).close()  # as a run does when all is done
    at_import = tracer.lines
    backend = Traced(device, tracer)
    judge = Judge(engine_of(condition, hello), backend, hello, programs.fixtures())
    items, failed = [], []
    run = Run(judge.engine, backend, hello, Settings(condition.api, condition.transport))
    for program in run.programs():
        if only is not None and program.name not in only:
            continue
        text = _text(program)
        same = [i for i in known if i.program == program.name and i.text == text]
        if same:
            items += same
            continue
        first, *others = seeds(program)
        tracer.lines, backend.words = set(), set()
        done = judge.run(program, first)
        if done.broken:
            failed.append(f"{program.name} fails, seed {first}: {', '.join(done.suspects)} {done.reason}")
            continue
        lines, fired = frozenset(tracer.lines - at_import), frozenset(done.fired)
        made = Item(number, program.name, text, first, done.seconds, fired, lines, frozenset(backend.words))
        items += [made, *(replace(made, seed=seed) for seed in others)]
    return hello, items, at_import, failed


def _text(program: Program) -> str:
    before, _ = full_steps(program, programs.fixtures())
    return hashlib.sha256("\n".join((program.to_yaml(), *map(str, before))).encode()).hexdigest()


def engine_of(condition: Condition, hello: Hello) -> Engine:
    """The engine that judges a device under a condition, with all features that it declares, drafts among them."""
    spec = load()
    declared = [f for f in features(spec) if not set(capabilities(spec, f)).isdisjoint(hello.capabilities)]
    return engine(condition.api, condition.transport, offered(spec, hello, declared))


@cache
def shipped(engine: Engine) -> Mapping[str, Program]:
    """The written programs that are for a model, by name."""
    return {p.name: p for p in programs.shipped("programs") if p.under(engine.model.spec)}


def seeds(program: Program) -> Sequence[int]:
    """The schedules under which a run makes a program."""
    if program.device:
        return (program.seed if program.seed is not None else 1,)
    return (program.seed,) if program.seed is not None else range(1, ROUNDS + 1)
