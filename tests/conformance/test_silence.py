"""What may still come, and what a silence says of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from verbs_adapters.softhca import SoftHca, options
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.target import engine, load, offered
from verbs_reports.verdicts import Verdict

HEAD = """
programs:
  - program: what-may-come
    kind: regression
    says: "What may still come, and what a silence says of it."
    api: [{api}]
    fixture: {fixture}
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
    "post_send(qp=qp0, opcode=SEND, wr_id=7, sg_list=[], signaled=true)",
    "settle()",
    "poll_cq(cq=cq0)",
    "request0 = register_memory(pd=pd0, addr=buf0.addr, length=8192, access={LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ})",
    "mr0 = get_registration(request=request0)",
    "post_send(opcode=SEND, qp=qp0, wr_id=23, sg_list=[sge(addr=mr0.iova + 16, length=48, lkey=mr0.lkey)],"
    " signaled=true, solicited=true)",
    "post_send(opcode=RDMA_READ, qp=qp0, wr_id=24, sg_list=[sge(addr=mr0.iova + 2000, length=64, lkey=0)],"
    " remote_addr=mr0.iova + 5, rkey=mr0.rkey, signaled=true, fence=false)",
    "notify_cq(cq=cq0, type=SOLICITED)",
    "post_send(opcode=SEND, qp=qp1, wr_id=27, sg_list=[sge(addr=mr0.iova + 16, length=48, lkey=mr0.lkey)],"
    " signaled=true, fence=false)",
    "post_recv(qp=qp1, wr_id=30, sg_list=[sge(addr=mr0.iova + mr0.length - 100, length=100, lkey=mr0.lkey)])",
    "settle()",
    "drain(cq=cq0)",
)
"""The failed read behind the send is what the request waits for, and comes later than the send's completion."""


FLUSHED = (
    "disconnect_qp(qp=qp1)",
    "qp2 = create_qp(pd=pd0, send_cq=cq0, recv_cq=cq0, max_send_wr=4, max_recv_wr=4)",
    "flush_qp(qp=qp2)",
    "post_send(opcode=RDMA_READ, qp=qp2, wr_id=23, sg_list=[sge(addr=mr0.iova + 2000, length=64, lkey=mr0.lkey)],"
    " remote_addr=mr0.iova + 100, rkey=mw0.held, signaled=true, fence=false)",
    "settle()",
    "drain(cq=cq0)",
)
"""What is flushed of the first queue pair stands before or behind what is flushed of the third."""


UNUSED = (
    "post_send(opcode=RDMA_WRITE_WITH_IMM, qp=qp0, wr_id=3, sg_list=[sge(addr=mr1.iova, length=64, lkey=mr1.lkey)],"
    " remote_addr=mr1.iova + 5, rkey=mr1.rkey, imm_data=16909060, signaled=true, fence=false)",
    "settle()",
    "post_send(opcode=SEND, qp=qp1, wr_id=6, sg_list=[sge(addr=mr1.iova, length=8, lkey=mr1.lkey)], signaled=true)",
    "settle()",
    "drain(cq=cq0)",
    "drain(cq=cq1)",
)
"""The region gives no remote right.  If the receive was used it completes first, else the send of that side."""


BY_THE_PEER = (
    "mr0 = alloc_fast_reg_mr(pd=pd0, max_page_list_len=4)",
    "post_recv(qp=qp0, wr_id=6, sg_list=[sge(addr=buf0.addr + 3000, length=200, lkey=pd0.local_dma_lkey)])",
    "post_recv(qp=qp1, wr_id=8, sg_list=[])",
    "dereg_mr(mr=mr0)",
    "post_send(qp=qp0, opcode=SEND, wr_id=10, sg_list=[], signaled=true)",
    "post_send(qp=qp0, opcode=SEND, wr_id=31, sg_list=[sge(addr=buf0.addr + 16, length=48, lkey=pd0.local_dma_lkey)],"
    " signaled=true, fence=false)",
    "settle()",
    "settle()",
    "drain(cq=cq0)",
    "post_send(opcode=SEND_WITH_INV, qp=qp1, wr_id=39, sg_list=[sge(addr=buf0.addr + 16, length=48,"
    " lkey=pd0.local_dma_lkey)], invalidate_rkey=tag(mr0.first, 1), signaled=true, fence=false)",
    "settle()",
    "drain(cq=cq0)",
)
"""The refused message fails its receive, and behind that flushes the send that had no receive in the first silence."""


READING = (
    "post_send(qp=qp0, opcode=RDMA_READ, wr_id=2, sg_list=[sge(addr=mr0.iova, length=64, lkey=mr0.lkey)],"
    " remote_addr=mr0.iova + 100, rkey=mr0.rkey, signaled=true)",
    "rereg_mr(mr=mr0, flags={CHANGE_ACCESS}, access={REMOTE_WRITE})",
    "read_buffer(buf=buf1, offset=0, length=buf1.length)",
    "settle()",
    "drain(cq=cq0)",
)


REFUSED = (
    "post_send(qp=qp1, opcode=REG_MR, wr_id=1, mr=mr0, key=tag(mr0.first, 1),"
    " access={LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ}, signaled=true)",
    "post_send(qp=qp1, opcode=LOCAL_INV, wr_id=2, invalidate_rkey=tag(mr0.first, 1), fence=true)",
    "settle()",
    "post_send(qp=qp1, opcode=REG_MR, wr_id=3, mr=mr0, key=tag(mr0.first, 2),"
    " access={LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ}, signaled=true)",
    "poll_cq(cq=cq0)",
    "post_recv(qp=qp1, wr_id=4, sg_list=[sge(addr=buf1.addr + 8192, length=64, lkey=qp1.pd.local_dma_lkey)])",
    "post_recv(qp=qp1, wr_id=5, sg_list=[sge(addr=buf0.addr + 3000, length=200, lkey=qp1.pd.local_dma_lkey)])",
    "post_send(qp=qp0, opcode=RDMA_WRITE, wr_id=6, sg_list=[sge(addr=buf0.addr, length=64,"
    " lkey=qp0.pd.local_dma_lkey)], remote_addr=mr0.map_iova, rkey=tag(mr0.first, 1), signaled=true)",
    "settle()",
    "post_recv(qp=qp0, wr_id=7, sg_list=[sge(addr=buf1.addr + 3400, length=100, lkey=qp0.pd.local_dma_lkey)])",
    "post_send(qp=qp0, opcode=SEND_WITH_INV, wr_id=8, sg_list=[sge(addr=buf0.addr, length=64,"
    " lkey=qp0.pd.local_dma_lkey)], invalidate_rkey=0, signaled=true)",
    "settle()",
    "settle()",
    "poll_cq(cq=cq0)",
)
"""On iWARP a write may be done when it is handed over, or fail: that it is complete by the first silence is owed, and
that its queue pair fails may be only by the last."""


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_a_send_that_had_no_receive_may_wait_on(pace: str) -> None:
    assert judged("registered", STEPS, {"api": "linux-kernel", "no_receive": "wait", "pace": pace}) == (
        Verdict.PASS,
        "",
    )


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_what_a_request_waited_for_comes_behind_what_is_polled(pace: str) -> None:
    assert judged("pair", NOTIFIED, {"api": "winverbs", "pace": pace}) == (Verdict.PASS, "")


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_what_need_not_happen_may_have_happened_before_the_silence(pace: str) -> None:
    assert judged("narrow-window-nd", FLUSHED, {"api": "networkdirect", "pace": pace}) == (Verdict.PASS, "")


@pytest.mark.parametrize("refused_imm", options.OPTIONS["refused_imm"].known)
def test_what_is_owed_in_one_way_only_is_looked_at(refused_imm: str) -> None:
    assert judged("unreliable-immediate-user", UNUSED, {"api": "linux-user", "refused_imm": refused_imm}) == (
        Verdict.PASS,
        "",
    )


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_where_a_choice_decides_which_memory_is_touched_all_may_be(pace: str) -> None:
    how = {"api": "linux-user", "pace": pace}
    assert judged("registered-user", READING, how, "rereg-mr") == (Verdict.PASS, "")


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_what_may_have_happened_before_a_later_silence_leads_to_what_had_by_the_first(pace: str) -> None:
    how = {"api": "linux-kernel", "transport": "iwarp", "pace": pace}
    assert judged("region", REFUSED, how) == (Verdict.PASS, "")


@pytest.mark.parametrize("pace", ["eager", "lazy", "random"])
def test_what_is_possible_by_the_second_silence_may_come_behind_what_is_new(pace: str) -> None:
    assert judged("pair", BY_THE_PEER, {"api": "linux-kernel-2008", "pace": pace}) == (Verdict.PASS, "")


def judged(fixture: str, steps: Iterable[str], how: dict[str, str], *asked: str) -> tuple[Verdict, str]:
    backend = SoftHca({"transport": "roce", **how})
    hello = backend.hello()
    judge = Judge(
        engine(how["api"], hello.transport[0], offered(load(), hello, asked)), backend, hello, programs.fixtures()
    )
    (program,) = programs.parse(
        HEAD.format(api=how["api"], fixture=fixture) + "".join(f"      {line}\n" for line in steps), "silence.yaml"
    )
    done = judge.run(program, 1)
    return done.verdict, done.reason
