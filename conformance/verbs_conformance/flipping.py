"""Judges recorded runs again under flips: is the flip seen, and is the flipped rule among the suspects?

Theory of operation
-------------------
The device does not change with the specification, so each program is run on it once; the answers are recorded and
played back to the judge of each flipped specification, the likeliest program first, until one is refused and the
flipped rule is among its suspects.  A ``Bench`` holds the records of one device under one API; it makes a record when
it is first asked for one.

The programs are the shipped ones; to those likeliest to show a flip that they do not show, an ending is added
(``endings``).  A flip that no program of the plain device shows may show on another one, which takes the other branch
of a choice.  What is known of such flips, and of those that nothing shows, is data: ``unflipped.yaml`` (see
:class:`Listed`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import resources
from typing import Literal

import msgspec

from verbs_adapters import registry
from verbs_adapters.contract import Answer, Backend, Hello, Trouble
from verbs_conformance import device as devices
from verbs_conformance import program
from verbs_conformance.build import limits
from verbs_conformance.endings import ended, made
from verbs_conformance.engine import Engine
from verbs_conformance.flips import Flip, apply
from verbs_conformance.homes import TRANSPORTS, Home
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.playback import Playback, Recorder
from verbs_conformance.program import Program
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_conformance.sweep import Sweep
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec.document import Spec

ADAPTER = "softhca"
DEVICE_APIS = ("linux-kernel", "linux-kernel-2008", "linux-user")
"""The APIs of softhca; under others, with features and under another transport the device is the model itself."""
PLAIN = "plain"
SEED = 1
MOST, FEW = 16, 8
"""So many programs are judged again for a flip of those likeliest to show it, and as many more of the others; few for
one that is listed as unseen."""

ENDED = 4
"""So many of the likeliest are judged with an ending too."""

DEVICES: dict[str, dict[str, str]] = {
    PLAIN: {},
    "lazy": {
        "pace": "lazy",
        "stale_inv": "refuse",
        "bad_op_status": "MW_BIND_ERR",
        "poison": "true",
        "key_byte": "zero",
    },
    "eager": {"pace": "eager", "stale_inv": "accept", "rq_slot": "consume", "dma_lkey": "reserved"},
    "overtaking": {
        "local_inv_early": "true",
        "empty_reg": "accept",
        "send_inv_failure": "silent",
        "recv_check": "whole",
        "reg_check": "post",
    },
    "roomy": {
        "cq_slack": "3",
        "qp_slack": "2",
        "list_slack": "4",
        "purge_cqes": "true",
        "bad_op_status": "LOC_PROT_ERR",
    },
}
"""The plain device and others that take other branches of what a device may choose."""


Kind = Literal["same", "wider", "untaken", "open"]


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of flips that the plain device does not show.

    ``kind`` is ``same`` (nothing that a consumer sees changes), ``wider`` (more is allowed, which a conforming device
    cannot show), ``untaken`` (softhca takes no such branch), or ``open`` (it ought to show, and no program shows it
    yet, or none so that the rule is suspected: work to be done).
    ``device`` names a device that shows an untaken branch, and ``under`` the features under which the flip is seen: the
    statement is of these, though its rule is there without them.
    """

    kind: Kind
    reason: str
    flips: tuple[str, ...]
    device: str = ""
    under: tuple[str, ...] = ()


class Branch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option of a choice: the device and the program that show that it is taken, or why softhca cannot show it."""

    choice: str
    option: str
    api: tuple[str, ...] = DEVICE_APIS[:2]
    device: str = ""
    program: str = ""
    reason: str = ""


class Exceptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of ``unflipped.yaml``."""

    flips: tuple[Listed, ...]
    branches: tuple[Branch, ...]


@cache
def exceptions() -> Exceptions:
    """What ``unflipped.yaml`` says."""
    text = resources.files("verbs_conformance").joinpath("unflipped.yaml").read_text(encoding="utf-8")
    return msgspec.yaml.decode(text, type=Exceptions)


@cache
def listed() -> dict[str, Listed]:
    """The exceptions, by the flip's name."""
    return {name: entry for entry in exceptions().flips for name in entry.flips}


def shown_by(home: Home, entry: Listed | None) -> Bench | None:
    """The bench where a listed flip is seen, if there is one."""
    if entry is not None and entry.under:
        return bench_of(Home(home.api, entry.under, home.transport))
    return bench_of(home, entry.device) if entry is not None and entry.device else None


def mistake(entry: Listed | None, result: Result) -> str:
    """What is wrong with what became of a flip, or nothing."""
    became = "" if result.named else "WRONG" if result.seen else "UNSEEN"
    if entry is None:
        return became
    return "" if became == "UNSEEN" or (became == "WRONG" and entry.kind == "open") else "STALE"


@dataclass(frozen=True)
class Record:
    """A program's run on a healthy device: ``rules`` may have fired, those in ``own`` not in the fixture alone;
    ``breach`` says that it ended because the consumer broke its duty."""

    program: Program
    hello: Hello
    answers: list[Answer | Trouble]
    rules: frozenset[str]
    own: frozenset[str]
    breach: bool


@dataclass(frozen=True)
class Result:
    """What became of a flip: the program that shows it, if one does, and the suspects.

    ``named`` says that the flipped rule is a suspect.  Where the flip moves a duty of the consumer, and so
    shows by a consumer error that comes or does not come, nobody is suspected, and the rule counts as named.
    """

    flip: Flip
    program: str = ""
    suspects: tuple[str, ...] = ()
    named: bool = False
    judged: int = 0

    @property
    def seen(self) -> bool:
        """Whether some program shows it."""
        return bool(self.program)


class Bench:
    """The records of one device under the profiles of one home, and the trials of flips on them."""

    def __init__(self, home: Home, device: str = PLAIN) -> None:
        self.home = home
        self.device = device
        self.is_model = home.api not in DEVICE_APIS or bool(home.features) or home.transport != TRANSPORTS[0]
        self.options = {**DEVICES[device], "api": home.api, "transport": home.transport}
        self.fixtures = program.fixtures()
        self._runs: dict[tuple[tuple[str, str], ...], _Runs] = {}
        self._ends: dict[str, Record] = {}
        self._plain: dict[str, Record] = {}

    @property
    def spec(self) -> Spec:
        """The specification under the profiles."""
        return self.home.spec

    @cached_property
    def engine(self) -> Engine:
        """Its model."""
        return Engine(Model(self.spec))

    def _backend(self, each: Program) -> Backend:
        """The device for a program: the model, if nothing else is there or the program says what the device does."""
        if not self.is_model and not each.device:
            return registry.create(ADAPTER, self.options)
        device = devices.read(self.engine.model, each.device)
        return ReferenceBackend(self.engine.model, limits(self.engine, self.fixtures), device=device)

    @cached_property
    def records(self) -> list[Record]:
        """The shipped programs of the profiles, each run once; with features, those that need one of them."""
        shipped = program.shipped("programs")
        there = (p for p in shipped if p.under(self.spec) and (p.feature or not self.home.features))
        return [self._run(each).record(each) for each in there]

    def _run(self, each: Program) -> _Runs:
        """What runs a program, with all others that are for such a device."""
        if each.device not in self._runs:
            self._runs[each.device] = _Runs(self.engine, self._backend(each), self.fixtures)
        return self._runs[each.device]

    def _featureless(self, rules: Set[str], most: int) -> Iterator[Record]:
        """Records of the programs likeliest to show a flip of those that need no feature."""
        for record in self._without_features.likely(rules, most)[:most] if self._without_features else ():
            each = record.program
            if each.name not in self._plain:
                self._plain[each.name] = self._run(each).record(each)
            yield self._plain[each.name]

    def _ended(self, record: Record) -> Record:
        """The record of a program with its ending."""
        name = record.program.name
        if name not in self._ends:
            self._ends[name] = whole = self._run(record.program).record(
                ended(self._sweep, record.program), partial(made, self._sweep)
            )
            done = _again(Judge(self.engine, Playback(whole.hello), whole.hello, self.fixtures), whole)
            assert done.refused is None, f"{name} with its ending: {done.refused}"
            assert not _duty_moved(whole, done), f"{name} with its ending: {done.reason}"
        return self._ends[name]

    @cached_property
    def _without_features(self) -> Bench | None:
        """A run has the programs that need no feature too: they show which rules work."""
        return bench_of(Home(self.home.api, (), self.home.transport)) if self.home.features else None

    @cached_property
    def _sweep(self) -> Sweep:
        return Sweep(self.engine, self.fixtures)

    def likely(self, rules: Set[str], most: int = MOST) -> list[Record]:
        """The records most likely to show a flip of some rules, of those in which one of them may have fired.

        First those made for it, those in which it fired after the fixture, and the shortest; then those that end
        with a breach of duty, and of the others some of each length."""
        found = [r for r in self.records if not rules.isdisjoint(r.rules)]
        found.sort(key=lambda r: (r.program.target not in rules, rules.isdisjoint(r.own), len(r.answers)))
        rest = found[most:]
        breaches = [r for r in rest if r.breach][:most]
        others = [r for r in rest if not r.breach]
        return found[:most] + breaches + others[:: max(1, -(-len(others) // most))]

    def passed_without(self, rules: Set[str]) -> dict[str, int]:
        """In how many programs each rule fired of those that a flip of these rules cannot fail."""
        every = (*self.records, *(self._without_features.records if self._without_features else ()))
        without = (r for r in every if rules.isdisjoint(r.rules))
        return dict(Counter(fired for r in without for fired in r.rules))

    def trial(self, flip: Flip, most: int = MOST) -> Result:
        """Judge again until a program shows the flip and has its rule suspected; ``most`` says how many are tried.

        One that shows it and has others suspected decides only where no other does better: a run reports them all."""
        engine = Engine(Model(apply(self.spec, flip), self.engine.model), self.engine)
        judges: dict[int, Judge] = {}
        passed = self.passed_without(flip.rules)
        shown = blamed = Result(flip)
        likely = self.likely(flip.rules, most)
        ends = (self._ended(record) for record in likely[:ENDED] if not record.breach)
        for judged, record in enumerate(itertools.chain(likely, self._featureless(flip.rules, most), ends), 1):
            judge = judges.get(id(record.hello))
            if judge is None:
                judge = judges[id(record.hello)] = Judge(engine, Playback(record.hello), record.hello, self.fixtures)
                judge.passed = passed
            done = _again(judge, record)
            if done.refused is not None:
                named = not flip.rules.isdisjoint(done.suspects)
                if named:
                    return Result(flip, record.program.name, done.suspects, named, judged)
                blamed = blamed if blamed.seen else Result(flip, record.program.name, done.suspects, named, judged)
                continue
            if "prefer" in flip.changes and flip.rule in done.deviations:
                return Result(flip, record.program.name, (flip.rule,), True, judged)
            if "undefined" in flip.changes and flip.rule not in done.fired:
                return Result(flip, record.program.name, (), True, judged)
            if not shown.seen and _duty_moved(record, done):
                shown = Result(flip, record.program.name, (), True, judged)
        return shown if shown.seen else blamed

    # -- choices ---------------------------------------------------------------------------------

    def takes(self, choice: str, option: str, name: str) -> bool:
        """Whether a program shows that the device takes an option: without it nothing explains the run."""
        found = next(p for p in program.shipped("programs") if p.name == name and p.under(self.spec))
        each = dataclasses.replace(found, device=())  # this device, whatever the program takes one to be
        record = _Runs(self.engine, self._backend(each), self.fixtures).record(each)
        old = self.spec.choices[choice]
        left = dataclasses.replace(old, options=tuple(o for o in old.options if str(o) != option))
        spec = dataclasses.replace(self.spec, choices={**self.spec.choices, choice: left})
        engine = Engine(Model(spec), self.engine)
        return _again(Judge(engine, Playback(record.hello), record.hello, self.fixtures), record).refused is not None


@cache
def bench_of(home: Home, device: str = PLAIN) -> Bench:
    """The bench of a device under some profiles."""
    return Bench(home, device)


class _Runs:
    """Runs programs on one device and records them."""

    def __init__(self, engine: Engine, backend: Backend, fixtures: Mapping[str, Program]) -> None:
        self.backend = Recorder(backend)
        self.hello = backend.hello()
        self.judge = Judge(engine, self.backend, self.hello, fixtures)
        self._before: dict[str, Judgement] = {}

    def record(self, each: Program, told: Callable[[Program, list[str]], Program] = lambda p, _: p) -> Record:
        """A program's run, of the program that is ``told`` by its lines."""
        done = self.judge.run(each, SEED)
        assert not done.broken, f"{each.name} fails on a healthy device: {done.refused or done.reason}"
        each = told(each, done.lines[done.fixture_lines :])
        answers, rules = self.backend.answers, {*done.fired, *done.possible}
        if each.fixture not in self._before:
            self._before[each.fixture] = self.judge.run(dataclasses.replace(each, steps=()), SEED)
        known = self._before[each.fixture].fired
        own = {r for r in rules if done.fired.get(r, 0) > known.get(r, 0) or r not in known}
        breach = done.failed_step is not None
        return Record(each, self.hello, answers, frozenset(rules), frozenset(own), breach)


def _again(judge: Judge, record: Record) -> Judgement:
    """A record judged again."""
    assert isinstance(judge.backend, Playback)
    judge.backend.answers = record.answers
    return judge.run(record.program, SEED)


def _duty_moved(record: Record, done: Judgement) -> bool:
    """Whether a breach of duty came that had not been there, or calls were made that the record does not have.

    A program that decides nothing shows nothing."""
    if done.verdict is Verdict.INCONCLUSIVE:
        return False
    return done.trouble is not None or (done.failed_step is not None and not record.breach)
