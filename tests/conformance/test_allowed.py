"""A failure says what was allowed in the verbs' terms, and what it says is what the belief accepts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import full_steps
from verbs_conformance.session import Session
from verbs_reference.belief import Refused


def engine() -> Engine:
    return target.engine("linux-kernel", "roce")


def judge(fault: str) -> Judge:
    backend = SoftHca({"fault": fault})
    return Judge(engine(), backend, backend.hello(), programs.fixtures())


def failing(fault: str, name: str) -> Judgement:
    program = next(p for p in programs.shipped("programs") if p.name == name)
    done = judge(fault).run(program, 1)
    assert done.refused is not None
    return done


@pytest.mark.parametrize(
    ("fault", "name", "line"),
    [
        ("byte-len-zero", "cq/poll-empty", "byte_len 64 (cq/poll-recv); seen 0"),
        ("cq-destroyed-under-qp", "cq/destroy-busy", "EBUSY or EINVAL (cq/destroy-busy); seen success"),
        ("cq-holds-one-less", "regress/queue-holds-all", "state RTS (qp/query); seen ERR"),
        (
            "data-ignores-key-byte",
            "regress/id-of-a-refusal",
            "status REM_ACCESS_ERR or RETRY_EXC_ERR (cq/poll-error); seen SUCCESS",
        ),
        (
            "data-ignores-key-byte",
            "regress/silent-failure",
            "n 1, wr_id 1, status REM_ACCESS_ERR or RETRY_EXC_ERR, qp_num 257 (cq/poll-error); seen n 0",
        ),
    ],
)
def test_the_line(fault: str, name: str, line: str) -> None:
    assert failing(fault, name).allowed == (line,)


def replayed(done: Judgement, fault: str) -> Session:
    """A session that stands just before the refused call."""
    at = judge(fault)
    session = at.session()
    at.backend.reset(done.seed)
    before, own = full_steps(done.program, at.fixtures)
    for step in (*before, *own):
        for _, outcome in session.run(step):
            if isinstance(outcome.problem, Refused):
                return session
    raise AssertionError("the program does not fail again")


@pytest.mark.parametrize("name", ["reg/valid", "reg/foreign"])
def test_the_belief_takes_what_is_said_to_be_allowed_and_nothing_else(name: str) -> None:
    fault = {"reg/valid": "reg-of-valid-accepted", "reg/foreign": "wr-id-lost-on-error"}[name]
    done = failing(fault, name)
    assert done.refused is not None
    action = done.refused.action
    outputs = engine().model.calls[action.call].outputs
    (output, words), *others = [line.split(" (")[0].split(" ", 1) for line in done.allowed]
    assert not others
    place = list(outputs).index(output)
    kind = outputs[output]
    said = {str(w) for part in words.split(", ") for w in part.split(" or ")}
    tried = engine().model.voc.enums[kind.name] if kind.tag == "enum" else range(20)

    taken = set()
    for value in tried:
        session = replayed(done, fault)
        seen = (*action.outputs[:place], value, *action.outputs[place + 1 :])
        if session.belief.observe(replace(action, outputs=seen)) is None:
            taken.add(str(value))

    assert taken == said


@pytest.mark.parametrize("fault", ["empty-sge-ends-the-list", "key-byte-fixed-at-alloc"])
def test_no_formula_is_shown(fault: str) -> None:
    at = judge(fault)
    lines: list[str] = []
    for program in programs.shipped("programs"):
        if program.kind == "regression" and program.under(at.engine.model.spec):
            lines += at.run(program, 1).allowed
        if len(lines) > 8:
            break

    assert lines
    for line in lines:
        assert len(line) <= 120, line
        assert not any(sign in line for sign in ("==", " and (", "head(", "load(")), line
