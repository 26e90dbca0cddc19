"""What was impossible in a silence is not owed when a call makes it possible afterwards."""

from __future__ import annotations

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.target import engine, load, offered
from verbs_reports.verdicts import Verdict

WAITS = """
programs:
  - program: receive-behind-a-silence
    kind: regression
    says: "A send that had no receive in the silence need not be executed by the first call behind the receive."
    api: [linux-kernel]
    fixture: registered
    steps: |
"""
STEPS = (
    "post_send(opcode=SEND_WITH_INV, qp=qp0, wr_id=1, sg_list=[sge(addr=buf1.addr, length=48,"
    " lkey=pd0.local_dma_lkey)], invalidate_rkey=tag(mr0.first, 1), signaled=true)",
    "post_send(opcode=RDMA_WRITE_WITH_IMM, qp=qp0, wr_id=2, sg_list=[sge(addr=buf0.addr, length=64,"
    " lkey=pd0.local_dma_lkey)], remote_addr=mr0.map_iova + 5, rkey=tag(mr0.first, 1), imm_data=1, signaled=true)",
    "settle()",
    "post_recv(qp=qp1, wr_id=6, sg_list=[sge(addr=buf1.addr, length=8, lkey=pd0.local_dma_lkey)])",
    "modify_qp(qp=qp1, peer=qp1.peer, access={REMOTE_WRITE, REMOTE_READ}, state=RTS)",
)
"""The receive is too short, so that the peer fails once the send is executed: it is asked whether it has."""


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_a_send_that_had_no_receive_may_wait_on(pace: str) -> None:
    backend = SoftHca({"api": "linux-kernel", "transport": "roce", "no_receive": "wait", "pace": pace})
    hello = backend.hello()
    judge = Judge(engine("linux-kernel", "roce", offered(load(), hello)), backend, hello, programs.fixtures())
    (program,) = programs.parse(WAITS + "".join(f"      {line}\n" for line in STEPS), "silence.yaml")

    done = judge.run(program, 1)

    assert (done.verdict, done.reason) == (Verdict.PASS, "")
