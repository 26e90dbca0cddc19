"""Objects, queue pair states and posting: what shows each fault, and what a correct device answers."""

from __future__ import annotations

from typing import Any

from softhca_case import GOOD, OFF, Case
from softhca_rig import PAGE, Rig


def free_used_pd(rig: Rig) -> Any:
    return rig.result("dealloc_pd", pd=rig.pd), rig.result("alloc_mr", pd=rig.pd, max_num_sg=1)


def destroy_used_cq(rig: Rig) -> Any:
    return rig.result("destroy_cq", cq=rig.scq)


def free_pd_after_failed_alloc(rig: Rig) -> Any:
    pd = rig.do("alloc_pd")["pd"]
    return rig.result("alloc_mr", pd=pd, max_num_sg=0), rig.result("dealloc_pd", pd=pd)


def destroy_cq_after_failed_create(rig: Rig) -> Any:
    cq = rig.do("create_cq", cqe=1)["cq"]
    failed = rig.result("create_qp", pd=rig.pd, send_cq=cq, recv_cq=cq, max_send_wr=2**20, max_recv_wr=1)
    return failed, rig.result("destroy_cq", cq=cq)


def fresh_state(rig: Rig) -> Any:
    return rig.state(rig.new_qp(rig.pd))


def rts_to_rts(rig: Rig) -> Any:
    return rig.move(rig.a, "RTS")


def unknown_state(rig: Rig) -> Any:
    return rig.move(rig.a, "SQX"), rig.state(rig.a)


def receive_posted_in_init(rig: Rig) -> Any:
    for qp in (rig.a, rig.b):
        rig.move(qp, "INIT")
    rig.recv(rig.b, 7, rig.sge(PAGE, 8))
    for state in ("RTR", "RTS"):
        rig.move(rig.a, state, rig.b)
        rig.move(rig.b, state, rig.a)
    rig.send(rig.a, 1, rig.sge(0, 8))
    return rig.got()


def reset_twice(rig: Rig) -> Any:
    return rig.move(rig.a, "RESET"), rig.move(rig.a, "RESET"), rig.move(rig.a, "INIT")


def init_to_rts(rig: Rig) -> Any:
    rig.move(rig.a, "INIT")
    return rig.move(rig.a, "RTS"), rig.state(rig.a)


def refused_modify(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.access = ()
    refused = rig.move(rig.b, "INIT")
    rig.write(key, PAGE, 8)
    return refused, rig.sent()


def fill_the_queue(rig: Rig) -> Any:
    return [rig.send(rig.a, wr_id) for wr_id in range(3)]  # of 2; none is polled


def sge_after_empty_sge(rig: Rig) -> Any:
    rig.put(0, b"payload!")
    rig.recv(rig.b, 1, rig.sge(PAGE, 8))
    rig.send(rig.a, 1, rig.sge(0, 0), rig.sge(0, 8))
    rig.do("settle")
    return rig.get(PAGE, 8)


def unsignalled_rounds(rig: Rig) -> Any:
    results = []
    for _ in range(3):
        results.append(rig.write(0, 0, 0, signaled=False))
        results.append(rig.write(0, 0, 0))
        rig.sent()
    return results


def refused_send_runs(rig: Rig) -> Any:
    rig.move(rig.a, "INIT")
    refused = rig.write(0, 0, 0)
    rig.move(rig.b, "INIT")
    for state in ("RTR", "RTS"):
        rig.move(rig.a, state, rig.b)
        rig.move(rig.b, state, rig.a)
    return refused, rig.sent()


def queues_after_their_pairs(rig: Rig) -> Any:
    for qp in (rig.a, rig.b):
        rig.do("destroy_qp", qp=qp)
    return rig.result("destroy_cq", cq=rig.scq)


def told_sizes(rig: Rig) -> Any:
    made = rig.do("create_qp", pd=rig.pd, send_cq=rig.scq, recv_cq=rig.rcq, max_send_wr=3, max_recv_wr=5)
    return made["max_send_wr_actual"], made["max_recv_wr_actual"]


def read_of_an_unreliable_pair(rig: Rig) -> Any:
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4, "qp_type": "UC"}
    rig.a, rig.b = (rig.do("create_qp", pd=rig.pd, **fields)["qp"] for _ in range(2))
    rig.connect(rig.a, rig.b)
    return rig.post(rig.a, "RDMA_READ", sg_list=[], remote_addr=0, rkey=0)


def send_nothing(rig: Rig) -> Any:
    return rig.send(rig.a, 1)


CASES: dict[str, Case] = {
    "no-elements-refused": Case(send_nothing, "0"),
    "destroyed-pair-keeps-queues": Case(queues_after_their_pairs, "0"),
    "told-sizes-are-junk": Case(told_sizes, (3, 5)),
    "unknown-opcode-disappears": Case(read_of_an_unreliable_pair, "EINVAL", {"api": "linux-user"}),
    "pd-freed-under-children": Case(free_used_pd, ("EBUSY", "0")),
    "refused-destroy-frees-handle": Case(free_used_pd, ("EBUSY", "0")),
    "cq-destroyed-under-qp": Case(destroy_used_cq, "EBUSY"),
    "failed-alloc-leaks-pd-reference": Case(free_pd_after_failed_alloc, ("EINVAL", "0")),
    "failed-create-leaks-cq-reference": Case(destroy_cq_after_failed_create, ("EINVAL", "0")),
    "new-qp-starts-in-init": Case(fresh_state, "RESET", OFF),
    "rts-to-rts-refused": Case(rts_to_rts, "0"),
    "unknown-state-is-error": Case(unknown_state, ("EINVAL", "RTS")),
    "init-receives-lost": Case(receive_posted_in_init, [(7, "SUCCESS")], OFF),
    "reset-twice-breaks-init": Case(reset_twice, ("0", "0", "0"), OFF),
    "illegal-moves-accepted": Case(init_to_rts, ("EINVAL", "INIT"), OFF),
    "refused-modify-takes-access": Case(refused_modify, ("EINVAL", GOOD)),
    "full-queue-hidden": Case(fill_the_queue, ["0", "0", "ENOMEM"], {"depth": 2}),
    "queue-holds-one-less": Case(fill_the_queue, ["0", "0", "ENOMEM"], {"depth": 2}),
    "empty-sge-ends-the-list": Case(sge_after_empty_sge, b"payload!"),
    "unsignalled-slots-never-freed": Case(unsignalled_rounds, ["0"] * 6, {"depth": 3}),
    "refused-post-stays-queued": Case(refused_send_runs, ("EINVAL", []), OFF),
    "post-before-rts-accepted": Case(refused_send_runs, ("EINVAL", []), OFF),
}
"""By fault."""
