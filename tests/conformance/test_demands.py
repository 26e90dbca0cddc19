"""Demands that the suite never makes: devices that differ there all pass, and one that breaks the rule beside it fails.

A device is softhca with something changed between it and the suite.  Ids are those of facts (`verbspec explain ND-1`).
Silence and time are in `test_belief_*`; numbers of events and prefixes of lists come with their features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from verbs_adapters.contract import OK, Answer, Trouble, Value
from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.judge import Judge, Judgement
from verbs_reports.verdicts import Verdict
from verbs_spec import facts

Edit = Callable[[str, Answer], Answer]
FINE = (Verdict.PASS, Verdict.CHOICE, Verdict.DEVIATION)


class Device:
    """softhca, whose answers are edited."""

    def __init__(self, api: str, edit: Edit = lambda _, answer: answer, **options: str) -> None:
        self.device = SoftHca({"api": api, **options})
        self.edit = edit
        self.hello = self.device.hello
        self.close = self.device.close
        self.reset = self.device.reset

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        answer = self.device.call(verb, args)
        return self.edit(verb, answer) if isinstance(answer, Answer) else answer


class Held(Device):
    """Completions are taken from the device together, before `when`, and handed out as `order` has them."""

    def __init__(self, api: str, order: Callable[[list[Answer]], list[Answer]], when: str = "poll_cq") -> None:
        super().__init__(api)
        self.order, self.when = order, when
        self.queues: dict[Any, list[Answer]] = {}
        self.known: list[Any] = []

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        if verb == self.when:
            for cq in [args["cq"]] if verb == "poll_cq" else self.known:
                self.take(cq)
        if verb == "poll_cq" and self.queues.get(args["cq"]):
            return self.queues[args["cq"]].pop(0)
        answer = super().call(verb, args)
        if verb == "create_cq" and isinstance(answer, Answer):
            self.known.append(answer.out["cq"])
        return answer

    def take(self, cq: Any) -> None:
        found: list[Answer] = []
        while isinstance(answer := self.device.call("poll_cq", {"cq": cq}), Answer) and answer.out.get("n"):
            found.append(answer)
        self.queues[cq] = [*self.queues.get(cq, []), *self.order(found)]


def judged(device: Device, steps: str, fixture: str, seed: int = 1) -> Judgement:
    api = device.hello().api[0]
    lkey = "mr1.lkey" if fixture == "registered-user" else "pd0.local_dma_lkey"
    steps = steps.replace("LOCAL,", f"[sge(addr=buf0.addr, length=8, lkey={lkey})],").replace(
        "KEY,", "tag(mr0.first, 1),"
    )
    text = f"program: demand\napi: [{api}]\nfixture: {fixture}\nsteps: |\n"
    (program,) = programs.parse(
        text + "".join(f"  {line.strip()}\n" for line in steps.strip().split("\n")), "demand.yaml"
    )
    engine = target.engine(api, "roce")
    return Judge(engine, device, device.hello(), programs.fixtures()).run(program, seed)


def completions(change: Mapping[str, Any]) -> Edit:
    """Change fields of failed completions."""

    def edit(verb: str, answer: Answer) -> Answer:
        failed = verb == "poll_cq" and answer.out.get("n") and answer.out["status"] not in ("SUCCESS", "WR_FLUSH_ERR")
        return Answer(answer.result, {**answer.out, **change}) if failed else answer

    return edit


def answering(verb: str, result: str) -> Edit:
    return lambda called, answer: Answer(result) if called == verb and answer.result != OK else answer


def received(found: list[Answer]) -> bool:
    return bool(found) and found[0].out["opcode"] == "RECV"


INVALIDATION = """
    post_send(qp=qp1, opcode=LOCAL_INV, invalidate_rkey=tag(mr0.first, 9), wr_id=1, signaled=true)
    settle()
    drain(cq=cq1)
    query_qp(qp=qp1)
"""
ACCESS = """
    post_send(qp=qp0, opcode=RDMA_WRITE, wr_id=1, remote_addr=buf1.addr, rkey=mr0.remote, sg_list=LOCAL, signaled=true)
    settle()
    drain(cq=cq0)
    query_qp(qp=qp0)
    query_qp(qp=qp1)
"""
QUEUES = """
    cq2 = create_cq(hca=hca0, cqe=16)
    qp2 = create_qp(pd=pd0, send_cq=cq2, recv_cq=cq2, max_send_wr=4, max_recv_wr=4)
    qp3 = create_qp(pd=pd0, send_cq=cq2, recv_cq=cq2, max_send_wr=4, max_recv_wr=4)
    modify_qp(qp=qp2, state=INIT, access={LOCAL_WRITE})
    modify_qp(qp=qp3, state=INIT, access={LOCAL_WRITE})
    post_recv(qp=qp2, wr_id=1, sg_list=[])
    post_recv(qp=qp2, wr_id=2, sg_list=[])
    post_recv(qp=qp3, wr_id=3, sg_list=[])
    post_recv(qp=qp3, wr_id=4, sg_list=[])
    modify_qp(qp=qp2, state=ERR)
    modify_qp(qp=qp3, state=ERR)
    settle()
    drain(cq=cq2)
"""
GONE = """
    post_recv(qp=qp1, wr_id=1, sg_list=[])
    post_recv(qp=qp1, wr_id=2, sg_list=[])
    post_send(qp=qp0, opcode=SEND, wr_id=3, sg_list=[], signaled=true)
    post_send(qp=qp0, opcode=SEND, wr_id=4, sg_list=[], signaled=true)
    settle()
    GOES
    drain(cq=cq0)
    drain(cq=cq1)
"""
EARLY = """
    post_send(qp=qp1, opcode=REG_MR, wr_id=1, mr=mr0, key=KEY, access={LOCAL_WRITE, REMOTE_WRITE}, signaled=true)
    post_send(qp=qp0, opcode=RDMA_WRITE, wr_id=2, remote_addr=buf1.addr, rkey=KEY, sg_list=LOCAL, signaled=true)
    settle()
    drain(cq=cq0)
    drain(cq=cq1)
"""


@pytest.mark.parametrize("status", ["LOC_QP_OP_ERR", "MW_BIND_ERR", "LOC_PROT_ERR", "LOC_ACCESS_ERR"])
def test_no_status_without_an_enumerator(status: str) -> None:  # ND-1
    device = Device("linux-kernel", completions({"status": status}))
    assert judged(device, INVALIDATION, "registered").verdict in FINE


def test_but_a_failed_invalidation_fails() -> None:
    for status in ("SUCCESS", "REM_ACCESS_ERR"):
        device = Device("linux-kernel", completions({"status": status}))
        assert judged(device, INVALIDATION, "registered").verdict == Verdict.FAIL


@pytest.mark.parametrize(
    "poison",
    [
        {"opcode": "RECV"},
        {"opcode": "SEND"},
        {"byte_len": 7777},
        {"wc_flags": ["WITH_INVALIDATE"], "invalidate_rkey": 5},
    ],
)
def test_nothing_of_a_failed_completion_but_its_status(poison: Mapping[str, Any]) -> None:
    assert judged(Device("linux-user", completions(poison)), ACCESS, "registered-user").verdict in FINE


def test_but_a_failed_completion_names_its_request() -> None:
    for wrong in ({"wr_id": 9}, {"qp_num": 0x99}):
        device = Device("linux-user", completions(wrong))
        assert judged(device, ACCESS, "registered-user").verdict == Verdict.FAIL


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_no_exact_size_of_a_completion_queue(more: int) -> None:  # ND-2
    def edit(verb: str, answer: Answer) -> Answer:
        if verb != "create_cq" or answer.result != OK:
            return answer
        return Answer(OK, {**answer.out, "cqe_actual": answer.out["cqe_actual"] + more})

    assert judged(Device("linux-user", edit), "cq2 = create_cq(hca=hca0, cqe=5)", "pair").verdict in FINE


def test_but_a_completion_queue_is_not_smaller() -> None:
    def edit(verb: str, answer: Answer) -> Answer:
        return Answer(OK, {**answer.out, "cqe_actual": 4}) if verb == "create_cq" else answer

    assert judged(Device("linux-user", edit), "cq2 = create_cq(hca=hca0, cqe=5)", "device").verdict == Verdict.FAIL


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3), (2, 0, 3, 1)])
def test_no_order_between_queue_pairs(order: tuple[int, ...]) -> None:  # ND-2
    device = Held("linux-user", lambda found: [found[i] for i in order] if len(found) == 4 else found)
    assert judged(device, QUEUES, "pair").verdict in FINE


def test_but_the_order_of_one_queue() -> None:
    device = Held("linux-user", lambda found: [found[i] for i in (1, 0, 2, 3)] if len(found) == 4 else found)
    assert judged(device, QUEUES, "pair").verdict == Verdict.FAIL


def test_no_use_of_a_key_before_its_registration_has_completed() -> None:  # ND-3
    """What a device makes of it is either: the write comes before the registration, or after."""
    seen = set()
    for seed in range(1, 40):
        done = judged(Device("linux-kernel"), EARLY, "region", seed)
        assert done.verdict in FINE, done.lines
        seen |= {
            status
            for status in ("SUCCESS", "REM_ACCESS_ERR")
            if any(f"status={status}" in x and "wr_id=2" in x for x in done.lines)
        }
    assert seen == {"SUCCESS", "REM_ACCESS_ERR"}


@pytest.mark.parametrize("result", ["EBUSY", "EINVAL"])
@pytest.mark.parametrize(("verb", "step"), [("destroy_cq", "destroy_cq(cq=cq0)"), ("dealloc_pd", "dealloc_pd(pd=pd0)")])
def test_no_errno_of_what_is_busy(verb: str, step: str, result: str) -> None:  # ND-4
    assert judged(Device("linux-user", answering(verb, result)), step, "pair").verdict in FINE


def test_but_what_is_busy_is_refused_with_one_of_them() -> None:
    for verb, step in (("destroy_cq", "destroy_cq(cq=cq0)"), ("dealloc_pd", "dealloc_pd(pd=pd0)")):
        assert judged(Device("linux-user", answering(verb, "EPERM")), step, "pair").verdict == Verdict.FAIL


@pytest.mark.parametrize("end", ["destroy_qp(qp=qp1)", "modify_qp(qp=qp1, state=RESET)"])
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_no_completions_of_a_queue_pair_that_is_gone_nor_their_absence(end: str, kept: int) -> None:  # ND-5
    device = Held("linux-user", lambda found: found[:kept] if received(found) else found, end.partition("(")[0])
    assert judged(device, GONE.replace("GOES", end), "pair").verdict in FINE


def test_but_none_comes_twice() -> None:
    device = Held("linux-user", lambda found: [*found[:1], *found] if received(found) else found, "destroy_qp")
    assert judged(device, GONE.replace("GOES", "destroy_qp(qp=qp1)"), "pair").verdict == Verdict.FAIL


def test_a_refused_access_is_one_failure_of_two_queue_pairs() -> None:  # ND-6
    done = judged(Device("linux-user"), ACCESS, "registered-user")
    assert done.verdict == Verdict.PASS
    assert [x.split("state=")[1] for x in done.lines if x.startswith("query_qp")] == ["ERR", "ERR"]


def test_but_one_that_stays_is_a_failure_and_only_one() -> None:
    def edit(verb: str, answer: Answer) -> Answer:
        return Answer(OK, {**answer.out, "state": "RTS"}) if verb == "query_qp" else answer

    done = judged(Device("linux-user", edit), ACCESS, "registered-user")
    assert done.verdict == Verdict.FAIL
    assert done.failed_step is not None
    assert str(done.failed_step) == "query_qp(qp=qp0)"
    assert sum(x.startswith("query_qp") for x in done.lines) == 1


def test_the_facts_name_these_demands() -> None:
    named = {f for f in facts.load().facts if f.startswith("ND-")}
    text = Path(__file__).read_text(encoding="utf-8")
    later = {"ND-7"}  # comes with its feature
    assert {f for f in named if f"# {f}" in text} == named - later
