"""What a silence says is owed: not what a call makes possible afterwards, nor what can come only behind an entry that was polled."""

from __future__ import annotations

from collections.abc import Iterable

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
WAITED = """
programs:
  - program: request-behind-a-silence
    kind: regression
    says: "A request of notification was completed in the silence by what stands behind the entry that is polled."
    api: [winverbs]
    fixture: pair
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


NOTIFIED = (
    "post_recv(qp=qp1, wr_id=2, sg_list=[])",
    "request0 = register_memory(pd=pd0, addr=buf0.addr, length=8192, access={LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ})",
    "mr0 = get_registration(request=request0)",
    "post_send(opcode=SEND, qp=qp0, wr_id=3, sg_list=[], signaled=true)",
    "post_send(opcode=RDMA_READ, qp=qp0, wr_id=4, sg_list=[sge(addr=mr0.iova, length=64, lkey=0)],"
    " remote_addr=mr0.iova, rkey=mr0.rkey, signaled=true)",
    "notify_cq(cq=cq0, type=SOLICITED)",
    "settle()",
    "drain(cq=cq0)",
)
"""The failed read behind the send is what the request waits for, and comes later than the send's completion."""


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_a_send_that_had_no_receive_may_wait_on(pace: str) -> None:
    assert judged(WAITS, STEPS, {"api": "linux-kernel", "no_receive": "wait", "pace": pace}) == (Verdict.PASS, "")


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_what_a_request_waited_for_comes_behind_what_is_polled(pace: str) -> None:
    assert judged(WAITED, NOTIFIED, {"api": "winverbs", "pace": pace}) == (Verdict.PASS, "")


def judged(head: str, steps: Iterable[str], options: dict[str, str]) -> tuple[Verdict, str]:
    backend = SoftHca({**options, "transport": "roce"})
    hello = backend.hello()
    judge = Judge(engine(options["api"], "roce", offered(load(), hello)), backend, hello, programs.fixtures())
    (program,) = programs.parse(head + "".join(f"      {line}\n" for line in steps), "silence.yaml")
    done = judge.run(program, 1)
    return done.verdict, done.reason
