"""Outputs and parameters that may be absent: what the contract says of them, the specification says too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from verbs_adapters.contract import VERBS, Answer, Hello, Trouble, Value
from verbs_adapters.contract.verb import DEVICE
from verbs_conformance import build
from verbs_conformance import program as programs
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec import load
from verbs_spec.profiles import select

SPEC = load()
FIXTURES = programs.fixtures()
ENGINE = Engine(Model(select(SPEC, "linux-user", "roce", ("immediate-data",))))
LIMITS = build.limits(ENGINE, FIXTURES)
PROGRAM = next(p for p in programs.shipped("programs") if p.name == "regress/immediate-bits-arrive")


class Edited(ReferenceBackend):
    """The model, but for what it answers to one verb."""

    edit: Mapping[str, Any]
    lost: frozenset[str] = frozenset()
    asked: list[Mapping[str, Value]]

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        self.asked.append(args)
        answer = super().call(verb, args)
        if verb != "poll_cq" or isinstance(answer, Trouble) or "WITH_IMM" not in answer.out.get("wc_flags", ()):
            return answer
        return Answer(answer.result, {k: v for k, v in {**answer.out, **self.edit}.items() if k not in self.lost})


def judged(edit: Mapping[str, Any], lost: frozenset[str] = frozenset()) -> tuple[Verdict, tuple[str, ...], Edited]:
    backend = Edited(ENGINE.model, LIMITS)
    backend.edit, backend.lost, backend.asked = edit, lost, []
    hello: Hello = backend.hello()
    done = Judge(ENGINE, backend, hello, FIXTURES).run(PROGRAM, 1)
    return done.verdict, done.suspects, backend


@pytest.mark.parametrize(
    ("edit", "lost", "verdict"),
    [
        ({}, frozenset(), Verdict.PASS),
        ({"imm_data": 67305985}, frozenset(), Verdict.FAIL),  # the bytes in another order
        ({}, frozenset({"imm_data"}), Verdict.FAIL),
        ({"wc_flags": []}, frozenset(), Verdict.FAIL),
        ({"opcode": "RECV_RDMA_WITH_IMM"}, frozenset(), Verdict.FAIL),
        ({"byte_len": 0}, frozenset(), Verdict.FAIL),
    ],
)
def test_immediate_data(edit: Mapping[str, Any], lost: frozenset[str], verdict: Verdict) -> None:
    found, suspects, _ = judged(edit, lost)
    assert found == verdict
    assert (verdict == Verdict.PASS) or {"cq/poll-recv", "send/immediate"} & set(suspects)


def test_what_a_program_does_not_give_is_not_passed() -> None:
    """A backend that has no such parameter is never given it, a flag that is off included."""
    *_, backend = judged({})
    posts = [args for args in backend.asked if args.get("opcode") == "SEND_WITH_IMM"]
    assert [args["imm_data"] for args in posts] == [16909060, 0]
    assert all("imm_data" not in args for args in backend.asked if "opcode" not in args)


def test_what_may_be_absent_is_what_the_contract_says() -> None:
    """Every verb's optional parameters, and the outputs that no single other one decides, as far as rules have them."""
    wrong = []
    for name, call in SPEC.calls.items():
        shape = VERBS.get(str(name))
        if shape is None:
            continue
        wrong += [f"{name}: {p}" for p, t in call.params.items() if t.endswith("?") and p not in shape.optional]
        for output, kind in call.outputs.items():
            if kind.startswith("found "):
                continue  # an object that is not named is null
            if kind.endswith("?") != (shape.sometimes.get(str(output)) == DEVICE):
                wrong.append(f"{name} -> {output}")
    assert wrong == []
