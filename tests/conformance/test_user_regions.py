"""Registration in user space: what devices may do differently conforms, and each defect here is seen.

A device is softhca with something changed between it and the suite: a wrapper that edits calls and answers, so that
neither the rules nor softhca decide what the suite is tried on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from verbs_adapters.contract import OK, Answer, Backend, Trouble, Value
from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_reports.verdicts import Verdict

OTHER = 0x00A5_5A00
"""What tells the remote key of a region from its local key on a device with two."""
PAGE = 4096


class Wrapped:
    """softhca under `linux-user`, as it is."""

    def __init__(self) -> None:
        self.device: Backend = SoftHca({"api": "linux-user"})
        self.hello = self.device.hello
        self.close = self.device.close
        self.lkeys: set[int] = set()

    def reset(self, seed: int) -> Trouble | None:
        self.lkeys = set()
        return self.device.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        return self.device.call(verb, args)


class TwoKeys(Wrapped):
    """The remote key of a region is another number than its local key."""

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        if verb == "post_send" and "rkey" in args:
            args = {**args, "rkey": self.remote(int(str(args["rkey"])))}
        answer = self.device.call(verb, args)
        if verb == "reg_mr" and isinstance(answer, Answer) and answer.result == OK:
            self.lkeys.add(answer.out["lkey"])
            return Answer(OK, {**answer.out, "rkey": answer.out["rkey"] ^ OTHER})
        return answer

    def remote(self, key: int) -> int:
        return key ^ OTHER


class EitherKey(TwoKeys):
    """Defect: the local key opens a region to peers too."""

    def remote(self, key: int) -> int:
        return key if key in self.lkeys else key ^ OTHER


class Registering(Wrapped):
    """Defects of the registration: `edit` changes what the device is asked."""

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        if verb != "reg_mr":
            return self.device.call(verb, args)
        answer = self.device.call(verb, self.edit(dict(args)))
        return self.answer(answer) if isinstance(answer, Answer) else answer

    def edit(self, args: dict[str, Value]) -> dict[str, Value]:
        return args

    def answer(self, answer: Answer) -> Answer:
        return answer


class Generous(Registering):
    """Defect: remote write brings local write with it."""

    def edit(self, args: dict[str, Value]) -> dict[str, Value]:
        rights = args["access"]
        assert isinstance(rights, list)
        return {**args, "access": [*rights, "LOCAL_WRITE"] if "REMOTE_WRITE" in rights else rights}


class WholePages(Registering):
    """Defect: the bounds are those of the pages."""

    def edit(self, args: dict[str, Value]) -> dict[str, Value]:
        addr, length = int(str(args["addr"])), int(str(args["length"]))
        first, last = addr // PAGE * PAGE, (addr + length + PAGE - 1) // PAGE * PAGE
        return {**args, "addr": first, "length": last - first} if 0 < length < 2 * PAGE else args


class WrongErrno(Registering):
    """Defect: memory that is not there is answered with EIO."""

    def answer(self, answer: Answer) -> Answer:
        return Answer("EIO") if answer.result == "EFAULT" else answer


class KeptUse(Registering):
    """Defect: a registration that failed leaves a use of the protection domain."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = False

    def reset(self, seed: int) -> Trouble | None:
        self.kept = False
        return super().reset(seed)

    def answer(self, answer: Answer) -> Answer:
        self.kept = self.kept or answer.result != OK
        return answer

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        return Answer("EBUSY") if verb == "dealloc_pd" and self.kept else super().call(verb, args)


class SameKeys(Registering):
    """Defect: two live regions have one key."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Answer | None = None

    def reset(self, seed: int) -> Trouble | None:
        self.first = None
        return super().reset(seed)

    def answer(self, answer: Answer) -> Answer:
        if answer.result != OK:
            return answer
        self.first = self.first or answer
        return Answer(OK, {**answer.out, "lkey": self.first.out["lkey"], "rkey": self.first.out["rkey"]})


class LateDereg(Wrapped):
    """Defect: deregistration says so and does nothing."""

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        return Answer(OK) if verb == "dereg_mr" else self.device.call(verb, args)


def _engine() -> Engine:
    return target.engine("linux-user", "roce")


@cache
def _programs() -> dict[str, programs.Program]:
    return {p.name: p for p in programs.shipped("programs") if p.applies("linux-user", "roce") and not p.feature}


def judged(backend: Backend, program: str) -> Judgement:
    """A program judged on a backend."""
    return Judge(_engine(), backend, backend.hello(), programs.fixtures()).run(_programs()[program], 1)


USER = sorted(n for n in _programs() if n.startswith("regress/user-"))


def test_two_keys_conform() -> None:
    backend = TwoKeys()
    for name in USER:
        done = judged(backend, name)
        assert done.verdict == Verdict.PASS, (name, done.lines[done.fixture_lines :], done.reason)


def test_a_local_key_may_be_the_remote_key() -> None:
    same, other = (
        judged(Wrapped(), "regress/user-local-key-for-peers"),
        judged(TwoKeys(), "regress/user-local-key-for-peers"),
    )

    assert (same.verdict, "write/done" in same.fired) == (Verdict.PASS, True)
    assert (other.verdict, "rdma/refused" in other.fired) == (Verdict.PASS, True)


@pytest.mark.parametrize(
    ("defect", "program", "suspect"),
    [
        (EitherKey, "regress/user-local-key-for-peers", "rdma/refused"),
        (Generous, "regress/user-rights-of-a-region", "mr/reg-rights"),
        (WholePages, "regress/user-region-of-one-byte", "rdma/refused"),
        (WrongErrno, "regress/user-failed-registration-counts-nothing", "mr/reg-bad-memory"),
        (KeptUse, "regress/user-failed-registration-counts-nothing", "pd/dealloc"),
        (SameKeys, "regress/user-many-regions", "mr/reg"),
        (LateDereg, "regress/user-key-after-dereg", "rdma/refused"),
        (LateDereg, "regress/user-local-key-after-dereg", "sq/source-fault"),
        (LateDereg, "regress/user-domain-of-a-region-stays", "mr/dereg"),
    ],
)
def test_a_defect_is_seen(defect: type[Wrapped], program: str, suspect: str) -> None:
    done = judged(defect(), program)

    assert done.verdict == Verdict.FAIL, done.lines
    assert done.refused is not None
    assert suspect in done.suspects
