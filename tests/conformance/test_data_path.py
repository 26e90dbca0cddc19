"""Regression programs of features that no backend here has: the model passes them, a model with one defect does not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import verbs_spec
from verbs_conformance import build
from verbs_conformance import program as programs
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec import load, loads
from verbs_spec.document import Spec
from verbs_spec.profiles import select

SEEDS = 3
FOLDER = Path(verbs_spec.__file__).parent
FIXTURES = programs.fixtures()
PROGRAMS = {p.name: p for p in programs.shipped("programs")}

# What the defective device does instead, the program that tells, and a rule that must be among the suspects.
DEFECTS = [
    ("immediate", "r.imm = w.imm", "r.imm = w.imm + 1", "immediate-bits-arrive", "send/immediate"),
    (
        "immediate",
        "used(q, r, SUCCESS, w.bytes)",
        "used(q, r, SUCCESS, r.bytes)",
        "immediate-write-length",
        "write/immediate",
    ),
    (
        "immediate",
        "used(q, r, RECV_RDMA_ERR, 0)",
        "used(q, r, SUCCESS, 0)",
        "immediate-refused-write-is-not-received",
        "write/immediate-refused",
    ),
    (
        "atomic",
        "store(slice(sinks(w), 0, 8), w.data)",
        "store(slice(sinks(w), 0, 8), load(atomic_target(w)))",
        "atomic-old-number-comes-back",
        "atomic/swapped",
    ),
    (
        "atomic",
        "store(atomic_target(w), atomic_result(w, w.data))",
        "store(atomic_target(w), added(atomic_result(w, w.data), w.compare_add))",
        "atomic-is-done-once",
        "atomic/added",
    ),
    (
        "atomic",
        "aligned(w) and REMOTE_ATOMIC in q.access and atomic_opens(q, w)",
        "aligned(w) and REMOTE_ATOMIC in q.access and opens(remote_region(w.rkey), w.rkey, q.pd)",
        "atomic-needs-its-own-right",
        "atomic/refused",
    ),
    (
        "atomic",
        '"w.remote_addr % 8 == 0"',
        '"w.remote_addr % 4 == 0"',
        "atomic-misaligned-between-neighbours",
        "atomic/unaligned",
    ),
    (
        "inline",
        "copied(sg_list) > qp.inline_size",
        "nth(sg_list, 0).length > 7000",
        "inline-pieces-are-too-long",
        "inline/post-too-long",
    ),
    ("sq", "if not w.inlined:", "if w.bytes > 0:", "inline-buffer-is-free-at-once", ""),
    ("request_list", "id=nth(wr_ids, i), opcode=SEND", "id=nth(wr_ids, 0), opcode=SEND", "list-in-order", ""),
    ("rnr", "patience(w.qp) < 7", "patience(w.qp) < 8", "rnr-seven-is-for-ever", ""),
    ("rnr", "answer(w, RNR_RETRY_EXC_ERR)", "answer(w, SUCCESS)", "rnr-write-with-immediate", "rnr/exceeded"),
]


@cache
def whole() -> Spec:
    return load()


@cache
def engine(feature: tuple[str, ...]) -> Engine:
    return Engine(Model(select(whole(), "linux-user", "roce", feature)))


def judged(program: Program, backend: Model, seed: int) -> Judgement:
    own = engine(program.feature)
    made = ReferenceBackend(backend, build.limits(own, FIXTURES))
    return Judge(own, made, made.hello(), FIXTURES).run(program, seed)


@pytest.mark.parametrize(("name", "old", "new", "program", "suspect"), DEFECTS, ids=[d[3] for d in DEFECTS])
def test_a_defect_is_seen(name: str, old: str, new: str, program: str, suspect: str) -> None:
    chosen = PROGRAMS[f"regress/{program}"]
    assert judged(chosen, engine(chosen.feature).model, 1).verdict == Verdict.PASS
    files = {
        str(f.relative_to(FOLDER)): f.read_text("utf-8")
        for part in ("rules", "profiles")
        for f in (FOLDER / part).glob("*.yaml")
    }
    text = files[f"rules/{name}.yaml"]
    assert old in text
    files[f"rules/{name}.yaml"] = text.replace(old, new)
    defective = Model(select(loads(files), "linux-user", "roce", chosen.feature))
    found = [judged(chosen, defective, seed) for seed in range(SEEDS)]
    worst = next((f for f in found if f.verdict == Verdict.FAIL), None)
    assert worst is not None, [f.lines[-3:] for f in found]
    assert not suspect or worst.refused is None or suspect in worst.refused.suspects
