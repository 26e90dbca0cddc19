"""Judges recorded runs again under flips: is the flip seen, and is the flipped rule among the suspects?

Theory of operation
-------------------
The device does not change with the specification, so each program is run on it once; the answers are recorded and
played back to the judge of each flipped specification, the likeliest program first, until one is refused.  A
``Bench`` holds the records of one device under one API; it makes a record when it is first asked for one.

A flip that no program of the plain device shows may show on another one, which takes the other branch of a choice.
What is known of such flips, and of those that nothing shows, is data: ``unflipped.yaml`` (see :class:`Listed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from typing import Literal

import msgspec

from verbs_adapters import registry
from verbs_adapters.contract import Answer, Trouble
from verbs_conformance import program
from verbs_conformance.flips import Flip, apply, flips
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.playback import Playback, Recorder
from verbs_conformance.program import Program
from verbs_conformance.session import Engine
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec.document import Spec
from verbs_spec.loader import load
from verbs_spec.profiles import select

APIS = ("linux-kernel", "linux-kernel-2008")
TRANSPORT = "roce"
ADAPTER = "softhca"
PLAIN = "plain"
SEED = 1
MOST = 32
"""So many programs are judged again for a flip of those likeliest to show it, and as many more of the others."""

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
    yet: work to be done).
    ``device`` names a device that shows an untaken branch.
    """

    kind: Kind
    reason: str
    flips: tuple[str, ...]
    api: tuple[str, ...] = APIS
    device: str = ""


class Branch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option of a choice: the device and the program that show that it is taken, or why softhca cannot show it."""

    choice: str
    option: str
    api: tuple[str, ...] = APIS
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


def listed(api: str) -> dict[str, Listed]:
    """The exceptions that hold for an API, by the flip's name."""
    return {name: entry for entry in exceptions().flips if api in entry.api for name in entry.flips}


def mistake(entry: Listed | None, result: Result, device: str) -> str:
    """What is wrong with what became of a flip, or nothing."""
    became = "" if result.named else "WRONG" if result.seen else "UNSEEN"
    if entry is None or device != PLAIN:
        return became
    return "" if became == "UNSEEN" else "STALE"


@dataclass(frozen=True)
class Record:
    """A program's run on a healthy device: ``rules`` may have fired, those in ``own`` not in the fixture alone;
    ``breach`` says that it ended because the consumer broke its duty."""

    program: Program
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
    """The records of one device under one API, and the flips that are tried on them."""

    def __init__(self, api: str, device: str = PLAIN) -> None:
        self.api = api
        self.device = device
        self.options = {**DEVICES[device], "api": api, "transport": TRANSPORT}
        self.fixtures = program.fixtures()
        self.hello = registry.create(ADAPTER, self.options).hello()
        self.backend = Playback(self.hello)

    @cached_property
    def spec(self) -> Spec:
        """The specification under the profiles."""
        return select(load(), self.api, TRANSPORT)

    @cached_property
    def engine(self) -> Engine:
        """Its model."""
        return Engine(Model(self.spec))

    @cached_property
    def flips(self) -> list[Flip]:
        """Its flips."""
        return flips(self.spec)

    @cached_property
    def records(self) -> list[Record]:
        """Every shipped program of the profiles, run once."""
        backend = Recorder(registry.create(ADAPTER, self.options))
        judge = Judge(self.engine, backend, self.hello, self.fixtures)
        made = []
        before: dict[str, Judgement] = {}
        for each in program.shipped("programs"):
            if each.under(self.spec):
                done = judge.run(each, SEED)
                assert not done.broken, f"{each.name} fails on the healthy device {self.device}: {done.refused}"
                answers, rules = backend.answers, {*done.fired, *done.possible}
                if each.fixture not in before:
                    before[each.fixture] = judge.run(replace(each, steps=()), SEED)
                known = before[each.fixture].fired
                own = {r for r in rules if done.fired.get(r, 0) > known.get(r, 0) or r not in known}
                breach = done.failed_step is not None
                made.append(Record(each, answers, frozenset(rules), frozenset(own), breach))
        backend.close()
        return made

    def likely(self, rules: Set[str]) -> list[Record]:
        """The records most likely to show a flip of some rules, of those in which one of them may have fired.

        First those made for it, those in which it fired after the fixture, and the shortest; then those that end
        with a breach of duty, and of the others some of each length."""
        found = [r for r in self.records if not rules.isdisjoint(r.rules)]
        found.sort(key=lambda r: (r.program.target not in rules, rules.isdisjoint(r.own), len(r.answers)))
        rest = found[MOST:]
        breaches = [r for r in rest if r.breach]
        others = [r for r in rest if not r.breach]
        return found[:MOST] + breaches + others[:: max(1, len(others) // MOST)]

    def passed_without(self, rules: Set[str]) -> dict[str, int]:
        """In how many programs each rule fired of those that a flip of these rules cannot fail."""
        without = (r for r in self.records if rules.isdisjoint(r.rules))
        return dict(Counter(fired for r in without for fired in r.rules))

    def trial(self, flip: Flip) -> Result:
        """Judge again until a program shows the flip."""
        judge = Judge(
            Engine(Model(apply(self.spec, flip), self.engine.model), self.engine),
            self.backend,
            self.hello,
            self.fixtures,
        )
        judge.passed = self.passed_without(flip.rules)
        shown = Result(flip)
        for judged, record in enumerate(self.likely(flip.rules), 1):
            self.backend.answers = record.answers
            done = judge.run(record.program, SEED)
            if done.refused is not None:
                return Result(
                    flip, record.program.name, done.suspects, not flip.rules.isdisjoint(done.suspects), judged
                )
            if "prefer" in flip.changes and flip.rule in done.deviations:
                return Result(flip, record.program.name, (flip.rule,), True, judged)
            if "undefined" in flip.changes and flip.rule not in done.fired:
                return Result(flip, record.program.name, (), True, judged)
            if not shown.seen and _duty_moved(record, done):
                shown = Result(flip, record.program.name, (), True, judged)
        return shown

    # -- choices ---------------------------------------------------------------------------------

    def takes(self, choice: str, option: str, name: str) -> bool:
        """Whether a program shows that the device takes an option: without it nothing explains the run."""
        each = next(p for p in program.shipped("programs") if p.name == name and p.applies(self.api, TRANSPORT))
        recorder = Recorder(registry.create(ADAPTER, self.options))
        Judge(self.engine, recorder, self.hello, self.fixtures).run(each, SEED)
        recorder.close()
        old = self.spec.choices[choice]
        left = replace(old, options=tuple(o for o in old.options if str(o) != option))
        spec = replace(self.spec, choices={**self.spec.choices, choice: left})
        self.backend.answers = recorder.answers
        judge = Judge(Engine(Model(spec), self.engine), self.backend, self.hello, self.fixtures)
        return judge.run(each, SEED).refused is not None


def _duty_moved(record: Record, done: Judgement) -> bool:
    """Whether a breach of duty came that had not been there, or calls were made that the record does not have.

    A program that decides nothing shows nothing."""
    if done.verdict is Verdict.INCONCLUSIVE:
        return False
    return done.trouble is not None or (done.failed_step is not None and not record.breach)
