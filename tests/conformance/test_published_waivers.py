"""The published waivers cover the failures in the published runs, each by the waiver that is meant.

The device is not here, so a published program is played again: the fixture's answers are softhca's, and what the driver
answered behind it is read from the record.  Numbers that a device chooses (handles, addresses, queue pair numbers) are
softhca's; which queue pair is which is found by trying.  The bytes of buffers are on record in part only, so what shows
in them alone is left to ``tests/lab/test_lab_published.py``, as are programs that need a feature.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from verbs_adapters import registry
from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.waivers import Waiver, load
from verbs_conformance.waiving import Waiving
from verbs_reports import records as r
from verbs_reports.results import read
from verbs_reports.verdicts import Verdict

PUBLISHED = Path(__file__).parents[2] / "reports/published"
RXE, IWARP = ("rxe-6.1", "rxe-6.1-user", "rxe-6.12", "rxe-7.2"), ("siw-6.1", "siw-6.12", "siw-7.2")
TOLD = ("n", "state", "wr_id", "status", "opcode", "byte_len", "wc_flags", "length", "mr", "key")
"""Outputs that are taken from the record."""
EMPTY_ELEMENT = {"regress/empty-element-first", "regress/empty-element-needs-no-key"}
CRASHES = {
    "rxe-6.1-user": {"regress/unbound-without-region", "regress/unbound-window-has-another-key"},
    "rxe-7.2": {"regress/unknown-state"},
    "siw-6.1": EMPTY_ELEMENT,
    "siw-6.12": EMPTY_ELEMENT,
    "siw-7.2": EMPTY_ELEMENT | {"regress/unknown-state"},
}
"""What takes a kernel or a process down, or makes a kernel report itself."""
TELLING = {
    *("inv/stale", "qp/modify-illegal", "sq/source-fault", "fixture/pair", "regress/stale-key-invalidates"),
    *("regress/error-to-rts", "regress/iwarp-behind-a-failed-registration"),
    *("regress/iwarp-sink-without-remote-write", "regress/iwarp-sink-by-address", "regress/iwarp-read-needs-right"),
    *("regress/page-vector-too-small", "regress/page-too-small", "regress/receive-needs-local-write"),
}
"""Programs that fail on soft-iWARP by what the record has whole."""


class Recalled:
    """softhca until a number of calls is made, then what the record says; past its end it crashes."""

    def __init__(self, device: Backend, hello: Hello, lines: tuple[str, ...]) -> None:
        self.device = device
        self._hello = hello
        self.lines = lines
        self.before = sys.maxsize
        self.queue_pairs: list[int] = []
        self.numbers: dict[int, int] = {}
        self.calls = 0
        self.answers: list[Answer | Trouble] = []

    def hello(self) -> Hello:
        return self._hello

    def reset(self, seed: int) -> Trouble | None:
        self.calls = 0
        self.queue_pairs, self.answers = [], []
        return self.device.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        made = self.device.call(verb, args)
        assert isinstance(made, Answer), made
        if verb == "create_qp" and "qp_num" in made.out:
            self.queue_pairs.append(made.out["qp_num"])
        self.calls += 1
        found: Answer | Trouble = made if self.calls <= self.before else self._recalled(made, args)
        self.answers.append(found)
        return found

    def _recalled(self, made: Answer, args: Mapping[str, Any]) -> Answer | Trouble:
        number = self.calls - self.before - 1
        if number >= len(self.lines):
            return Trouble("crash", "glue", "the record ends here")
        result, _, text = self.lines[number].rsplit(" -> ", 1)[1].partition(", ")
        told = {k: _value(v) for k, v in re.findall(r"(\w+)=(\[[^]]*\]|[^,]*)", text)}
        out: dict[str, Any] = {k: v for k, v in told.items() if k not in made.out or k in TOLD}
        out = {**{k: v for k, v in made.out.items() if k in told}, **out}
        if "iova" in told:  # an address is that of the buffer
            out["iova"] = args["sg"][0]["addr"] + args.get("offset", 0)
        if "qp_num" in out:
            out["qp_num"] = self.numbers.get(told["qp_num"], 0)
        if out.get("status") != "SUCCESS" and "invalidate_rkey" in out:
            out["invalidate_rkey"] = 0
        return Answer(result, out)

    def close(self) -> None:
        self.device.close()


def _value(text: str) -> Any:
    if text.startswith("["):
        return re.findall(r"'(\w+)'", text)
    return int(text, 0) if re.fullmatch(r"\d+|0x[0-9a-f]+", text) else text


@cache
def failing(run: str) -> tuple[r.Header, dict[str, r.Program]]:
    """The head of a published run, and its programs without features that failed, be it as a waiver says."""
    results = read(PUBLISHED / run / "results.jsonl")
    shipped = {p.name for p in programs.shipped("programs") if not p.feature}
    return results.header, {p.name: p for p in results.programs if p.failure is not None and p.name in shipped}


@cache
def waivers(run: str) -> tuple[Waiver, ...]:
    """Those of the run's driver."""
    return load(PUBLISHED / f"waivers/{run.partition('-')[0]}.yaml", target.load())


def covered(run: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Published failures, each with the waivers that cover it."""
    header, records = failing(run)
    engine = target.engine(header.api, header.transport)
    device = registry.create("softhca", {"api": header.api, "transport": header.transport})
    facts = msgspec.structs.asdict(header.device)
    hello = Hello(
        contract="1",
        api=(header.api,),
        transport=(header.transport,),
        capabilities=header.capabilities,
        limits=header.limits,
        **facts,
    )
    fixtures = programs.fixtures()
    shipped = {
        p.name: p for p in programs.shipped("programs") if p.applies(header.api, header.transport) and not p.feature
    }
    waiving = Waiving(waivers(run), engine, device, hello, fixtures)
    return {name: _covers(waiving, engine, device, hello, shipped[name], records[name]) for name in names}


def _covers(
    waiving: Waiving, engine: Engine, device: Backend, hello: Hello, program: Program, record: r.Program
) -> list[str]:
    lines = tuple(s for s in record.steps if f"= {engine.opening}(" not in s)  # which no backend is asked
    backend = Recalled(device, hello, lines)
    judge = Judge(engine, backend, hello, waiving.fixtures)
    judge.run(replace(program, steps=()), record.seed)
    before = backend.before = backend.calls
    seen = list(dict.fromkeys(int(n) for s in record.steps for n in re.findall(r"qp_num=(\d+)", s)))
    for order in permutations(list(backend.queue_pairs), len(seen)):
        backend.numbers = dict(zip(seen, order, strict=True))
        done = judge.run(program, record.seed)
        if done.verdict is Verdict.FAIL and done.refused is not None and backend.calls - before == len(lines):
            found = waiving.covering(done, backend.answers)
            if found:
                return [str(w.name) for w in found]
    return []


def _own(run: str, *, plain: bool = False) -> dict[str, set[str]]:
    """The programs of a run's waivers, of these perhaps those without features, each with the waivers that it shows."""
    header, _ = failing(run)
    facts = msgspec.structs.asdict(header.device)
    hello = Hello(contract="1", api=(header.api,), transport=(header.transport,), **facts)
    found: dict[str, set[str]] = {}
    for waiver in waivers(run):
        if waiver.applies(hello, header.api, header.transport):
            for program in waiver.runs(header.api, header.transport):
                if plain and program.feature:
                    continue
                found.setdefault(program.name, set()).add(str(waiver.name))
    return found


@pytest.mark.parametrize("run", RXE)
def test_every_published_failure_of_soft_roce_is_covered(run: str) -> None:
    found = covered(run, failing(run)[1])

    assert found
    assert [name for name, by in found.items() if not by] == []
    for program, meant in _own(run, plain=True).items():
        assert meant <= set(found[program]), program


@pytest.mark.parametrize("run", IWARP)
def test_each_waiver_of_soft_iwarp_covers_what_it_is_for(run: str) -> None:
    wanted = {program: meant for program, meant in _own(run).items() if program in TELLING}

    found = covered(run, wanted)

    assert len(wanted) > 5
    for program, meant in wanted.items():
        assert meant <= set(found[program]), program


@pytest.mark.parametrize("run", [*RXE, *IWARP])
def test_a_published_run_leaves_nothing_but_crashes(run: str) -> None:
    results = read(PUBLISHED / run / "results.jsonl")
    left = [p for p in results.programs if p.verdict in {Verdict.FAIL, Verdict.ERROR, Verdict.UNEXPECTED_PASS}]

    assert results.footer is not None
    assert {w.waiver for w in results.waivers} == {name for names in _own(run).values() for name in names}
    assert {w.verdict for w in results.waivers} == {Verdict.WAIVED}
    assert all(p.trouble is not None and p.trouble.kind == "crash" for p in left)
    assert {p.name for p in left} == CRASHES.get(run, set())
    assert (results.footer.verdict is Verdict.FAIL) == bool(left)
