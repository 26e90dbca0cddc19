"""A read whose answer is lost is done again: what it brings then is no failure, unless a fence forbids it.

softhca loses the answers; see decision 153.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.target import engine
from verbs_reports.verdicts import Verdict

SEEDS = range(12)
LATE = "sq/asked-again"
SHORT, LONG = 64, 600  # of one packet, of three
PROGRAM = """
programs:
  - program: overtaken
    kind: regression
    says: "What a read brings is neither what was there before nor what came later."
    api: [linux-user]
    fixture: registered-user
    steps: |
      post_recv(qp=qp1, wr_id=9, sg_list=[])
"""
READ = (
    "post_send(qp=qp0, opcode=RDMA_READ, wr_id=1, sg_list=[sge(addr=buf0.addr + 4096, length={length}, lkey=mr1.lkey)],"
    " remote_addr=mr0.iova, rkey=mr0.rkey, signaled=true)"
)
WRITE = (
    "post_send(qp=qp0, opcode=RDMA_WRITE, wr_id=2, sg_list=[sge(addr=buf0.addr + 8192, length=600, lkey=mr1.lkey)],"
    " remote_addr=mr0.iova, rkey=mr0.rkey, signaled=true, fence={fence})"
)
SEND = "post_send(qp=qp0, opcode=SEND, wr_id=2, sg_list=[], signaled=true)"
LATER = {
    "write": [WRITE.format(fence="false")],
    "change by the peer": [SEND, *["poll_cq(cq=cq1)"] * 4, "write_buffer(buf=buf1, offset=100, data=pattern1)"],
    "look": [SEND, *["poll_cq(cq=cq1)"] * 4, "read_buffer(buf=buf0, offset=4096, length=64)"],
}
"""What happens after the read was posted; the peer polls until it has the message, or not."""
END = ["settle()", "drain(cq=cq0)", "read_buffer(buf=buf0, offset=4096, length=600)"]


@cache
def model() -> Engine:
    return engine("linux-user", "roce")


def overtaken(length: int, later: list[str]) -> Program:
    text = PROGRAM + "".join(f"      {line}\n" for line in (READ.format(length=length), *later, *END))
    (made,) = programs.parse(text, "overtaken.yaml")
    return made


def verdicts(program: Program, **options: str) -> Counter[tuple[Verdict, bool]]:
    """How often each verdict came, and whether the read was done again for certain."""
    backend = SoftHca({"active_mtu": "MTU_256", "api": "linux-user", "transport": "roce", **options})
    judge = Judge(model(), backend, backend.hello(), programs.fixtures())
    done = [judge.run(program, seed) for seed in SEEDS]
    return Counter((d.verdict, LATE in d.fired) for d in done)


@pytest.mark.parametrize("later", LATER)
def test_an_answer_that_is_lost_is_asked_for_again(later: str) -> None:
    came = verdicts(overtaken(SHORT, LATER[later]), wire="lost-read-response")
    assert {verdict for verdict, _ in came} == {Verdict.PASS}
    assert came[Verdict.PASS, True] > 0


@pytest.mark.parametrize("wire", ["lost-read-response", "lost-rest-of-read"])
def test_of_a_long_one_a_part_may_be_older(wire: str) -> None:
    came = verdicts(overtaken(LONG, LATER["write"]), wire=wire)
    assert {verdict for verdict, _ in came} == {Verdict.PASS}
    assert came[Verdict.PASS, True] > 0


def test_a_fence_keeps_the_order() -> None:
    program = overtaken(SHORT, [WRITE.format(fence="true")])
    assert verdicts(program, wire="lost-read-response") == {(Verdict.PASS, False): len(SEEDS)}
    came = verdicts(program, wire="lost-read-response", fault="fence-ignored")
    assert any(verdict is Verdict.FAIL for verdict, _ in came)


def test_where_nothing_changed_it_brings_the_same() -> None:
    fault = "rest-of-read-begins-anew"
    came = verdicts(overtaken(LONG, [SEND]), wire="lost-rest-of-read", fault=fault)
    assert {verdict for verdict, _ in came} == {Verdict.FAIL}
