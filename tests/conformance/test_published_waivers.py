"""The published waivers of soft-RoCE cover every failure in its published runs, each by the waiver that is meant.

The device is not here, so a published program is played again: the fixture's answers are softhca's, and what the driver
answered behind it is read from the record.  Numbers that a device chooses (handles, addresses, queue pair numbers) are
softhca's; which queue pair is which is found by trying.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
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
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.session import Engine
from verbs_conformance.waivers import load
from verbs_conformance.waiving import Waiving
from verbs_reports import records as r
from verbs_reports.results import read
from verbs_reports.verdicts import Verdict

PUBLISHED = Path(__file__).parents[2] / "reports/published"
WAIVERS = PUBLISHED / "waivers/rxe.yaml"
KERNELS = ("6.1", "6.12", "7.2")
TOLD = ("n", "state", "wr_id", "status", "opcode", "byte_len", "wc_flags", "length", "mr", "key")
"""Outputs that are taken from the record."""


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
def failing(kernel: str) -> tuple[r.Header, tuple[r.Program, ...]]:
    results = read(PUBLISHED / f"rxe-{kernel}/results.jsonl")
    return results.header, tuple({p.name: p for p in results.programs if p.failure is not None}.values())


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def covered(kernel: str) -> Iterator[tuple[str, list[str]]]:
    """Each published failure with the waivers that cover it."""
    header, records = failing(kernel)
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
    shipped = {p.name: p for p in programs.shipped("programs") if p.applies(header.api, header.transport)}
    waiving = Waiving(load(WAIVERS, target.load()), engine, device, hello, fixtures)
    for record in records:
        yield record.name, _covers(waiving, engine, device, hello, shipped[record.name], record)


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


def test_every_published_failure_is_covered(kernel: str) -> None:
    found = dict(covered(kernel))

    assert found
    assert [name for name, by in found.items() if not by] == []
    api, transport = failing(kernel)[0].api, failing(kernel)[0].transport
    for waiver in load(WAIVERS, target.load()):
        facts = failing(kernel)[0].device
        applies = kernel in waiver.conditions["kernel"]
        assert facts.kernel.startswith(kernel)
        if applies and waiver.under(api, transport):
            for program in waiver.runs(api, transport):
                assert str(waiver.name) in found[program.name], waiver.name
