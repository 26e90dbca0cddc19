"""What a call costs does not depend on how many objects there are.

Time would depend on the machine; the number of functions that a call runs does not.
"""

from __future__ import annotations

import sys
from typing import Any

from softhca_rig import Rig

FEW, MANY = 10, 3000


def crowded(count: int) -> Rig:
    """A device with so many objects of each kind besides those of the rig, all of them in use."""
    rig = Rig(api="linux-user", pace="eager")
    channel = rig.do("create_comp_channel")["channel"]
    srq = rig.do("create_srq", pd=rig.pd, max_wr=4)["srq"]
    fields = {"pd": rig.pd, "send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 2, "max_recv_wr": 2}
    for _ in range(count):
        pair = [rig.do("create_qp", **fields, srq=srq)["qp"] for _ in range(2)]
        rig.connect(pair[0], pair[1])
        rig.do("create_cq", cqe=2, channel=channel)
        rig.do("create_srq", pd=rig.pd, max_wr=2)
        rig.do("reg_mr", pd=rig.pd, addr=rig.addr, length=64, access=["LOCAL_WRITE"])
        rig.do("alloc_pd")
    return rig


def functions(rig: Rig, verb: str, args: dict[str, Any]) -> int:
    """How many functions a call runs, those of the engine's steps among them."""
    count = 0

    def seen(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        answer = rig.hca.call(verb, args)
    finally:
        sys.setprofile(None)
    assert getattr(answer, "result", "") == "0", (verb, args, answer)
    return count


def costs(count: int) -> dict[str, int]:
    rig = crowded(count)
    fields = {"pd": rig.pd, "send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 2, "max_recv_wr": 2}
    srq = rig.do("create_srq", pd=rig.pd, max_wr=4)["srq"]
    channel = rig.do("create_comp_channel")["channel"]
    new = rig.do("create_qp", **fields)["qp"]
    region = rig.do("reg_mr", pd=rig.pd, addr=rig.addr, length=64, access=["LOCAL_WRITE"])
    send = {"opcode": "SEND", "signaled": True, "fence": False, "sg_list": [], "qp": rig.a, "wr_id": 1}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("post_recv", {"qp": rig.b, "wr_id": 1, "sg_list": []}),
        ("post_srq_recv", {"srq": srq, "wr_id": 1, "sg_list": []}),
        ("req_notify_cq", {"cq": rig.rcq, "solicited_only": False}),
        ("post_send", send),
        ("poll_cq", {"cq": rig.scq}),
        ("get_cq_event", {"channel": channel}),
        ("get_async_event", {}),
        ("query_qp", {"qp": rig.a, "mask": ["CAP"]}),
        ("modify_qp", {"qp": rig.a, "state": "RTS", "peer": rig.b, "access": []}),
        ("modify_qp", {"qp": rig.a, "state": "ERR", "peer": 0, "access": []}),
        ("create_qp", fields),
        ("destroy_qp", {"qp": new}),
        ("dereg_mr", {"mr": region["mr"]}),
        ("destroy_srq", {"srq": srq}),
        ("settle", {}),
    ]
    return {f"{at} {verb}": functions(rig, verb, args) for at, (verb, args) in enumerate(calls)}


def test_calls_cost_the_same_among_many_objects() -> None:
    costs(FEW)  # what is made once has been made
    assert costs(MANY) == costs(FEW)
