"""Attributes, shared receive queues and events: what shows each fault, and what a correct device answers."""

from __future__ import annotations

from typing import Any

from softhca_case import Case
from softhca_rig import ALL, PAGE, Rig

USER: dict[str, Any] = {"api": "linux-user"}


# -- attributes and draining ------------------------------------------------------------------------------
def masked(rig: Rig, state: str, *mask: str, **values: Any) -> str:
    return rig.result("modify_qp", qp=rig.a, state=state, mask=list(mask), **{"peer": rig.b, "access": [], **values})


def told(rig: Rig, *mask: str) -> Any:
    return rig.do("query_qp", qp=rig.a, mask=list(mask))


def unmasked_access(rig: Rig) -> Any:
    return masked(rig, "RTS", "STATE", access=["REMOTE_READ"]), len(told(rig, "ACCESS_FLAGS")["access"])


def unmasked_state(rig: Rig) -> Any:
    return masked(rig, "ERR", "MIN_RNR_TIMER"), rig.state(rig.a)


def all_signalled(rig: Rig) -> Any:
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 1, "max_recv_wr": 1}
    rig.a = rig.do("create_qp", pd=rig.pd, sq_sig_all=True, **fields)["qp"]
    return told(rig)["sq_sig_all"]


def large_path(rig: Rig) -> Any:
    rig.move(rig.a, "RESET")
    rig.move(rig.a, "INIT")
    return rig.result("modify_qp", qp=rig.a, state="RTR", peer=rig.b, access=[], path_mtu="MTU_2048")


def send_in_drained(rig: Rig) -> Any:
    rig.move(rig.a, "SQD")
    rig.send(rig.a, 1)
    rig.recv(rig.b, 1)
    return rig.sent(), rig.got()


def drain(rig: Rig) -> Any:
    rig.send(rig.a, 1)
    rig.recv(rig.b, 1)
    rig.do("poll_cq", cq=rig.scq)
    rig.move(rig.a, "SQD")
    rig.do("settle")
    return told(rig)["sq_draining"], names(rig)


# -- completion events ------------------------------------------------------------------------------------
def names(rig: Rig) -> list[str]:
    """Asynchronous events, acknowledged."""
    found = []
    while (out := rig.do("get_async_event"))["n"]:
        rig.do("ack_async_event", async_event=out["async_event"])
        found.append(out["event"])
    return found


def told_by(rig: Rig, *steps: str) -> Any:
    """How many events come when both sides of a connection use one queue with a channel, and these steps are done."""
    channel = rig.do("create_comp_channel")["channel"]
    cq = rig.do("create_cq", cqe=16, channel=channel)["cq"]
    rig.scq = rig.rcq = cq
    rig.a, rig.b = rig.new_qp(rig.pd), rig.new_qp(rig.pd)
    rig.connect(rig.a, rig.b)
    found = 0
    for step in steps:
        if step.startswith("arm"):
            rig.do("req_notify_cq", cq=cq, solicited_only=step == "arm solicited")
        elif step == "entry":  # of the send that waits, or of a message
            rig.post(rig.a, "RDMA_WRITE", sg_list=[], remote_addr=0, rkey=0)
        elif step == "solicited write":
            rig.post(rig.a, "RDMA_WRITE", sg_list=[], remote_addr=0, rkey=0, solicited=True)
        elif step == "failure":
            rig.move(rig.a, "ERR")
            rig.send(rig.a, 1)
        elif step == "poll":
            rig.do("poll_cq", cq=cq)
        elif step == "resize":
            rig.do("resize_cq", cq=cq, cqe=8)
        else:
            assert step == "take"
            found += rig.do("get_cq_event", channel=channel)["n"]
        rig.do("settle")
    while rig.do("get_cq_event", channel=channel)["n"]:
        found += 1
    return found


def events(*steps: str) -> Any:
    return lambda rig: told_by(rig, *steps)


def destroy_told(rig: Rig) -> Any:
    channel = rig.do("create_comp_channel")["channel"]
    cq = rig.do("create_cq", cqe=16, channel=channel)["cq"]
    rig.scq, rig.a = cq, 0
    qp = rig.new_qp(rig.pd)
    rig.move(qp, "INIT")
    rig.move(qp, "ERR")
    rig.do("req_notify_cq", cq=cq, solicited_only=False)
    rig.send(qp, 1)
    rig.do("settle")
    rig.do("destroy_qp", qp=qp)
    return channel, cq


def destroy_with_taken_event(rig: Rig) -> Any:
    channel, cq = destroy_told(rig)
    return rig.do("get_cq_event", channel=channel)["n"], rig.result("destroy_cq", cq=cq)


def destroy_with_waiting_event(rig: Rig) -> Any:
    channel, cq = destroy_told(rig)
    return rig.result("destroy_cq", cq=cq), rig.do("get_cq_event", channel=channel)["n"]


def peer_told(rig: Rig) -> Any:
    return told(rig, "DEST_QPN")["dest_qp_num"] == rig.qpn[rig.b]


def crowded(rig: Rig) -> Any:
    for wr_id in range(3):
        rig.post(rig.a, "RDMA_WRITE", wr_id, sg_list=[], remote_addr=0, rkey=0)
    rig.do("settle")
    return rig.result("resize_cq", cq=rig.scq, cqe=2), len(rig.poll_all(rig.scq))


# -- shared receive queues --------------------------------------------------------------------------------
def shared(rig: Rig, max_wr: int = 4) -> int:
    """A shared queue; `b` takes from it and `a` sends to it."""
    srq = int(rig.do("create_srq", pd=rig.pd, max_wr=max_wr)["srq"])
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4, "srq": srq}
    rig.b = rig.do("create_qp", pd=rig.pd, **fields)["qp"]
    rig.a = rig.new_qp(rig.pd)
    rig.connect(rig.a, rig.b)
    return srq


def share(rig: Rig, srq: int, *wr_ids: int) -> None:
    for wr_id in wr_ids:
        rig.do("post_srq_recv", srq=srq, wr_id=wr_id, sg_list=[])


def limit(rig: Rig, srq: int, value: int) -> None:
    rig.do("modify_srq", srq=srq, mask=["LIMIT"], srq_limit=value)


def destroy_used_srq(rig: Rig) -> Any:
    return rig.result("destroy_srq", srq=shared(rig))


def refused_resize(rig: Rig) -> Any:
    srq = shared(rig)
    refused = rig.result("modify_srq", srq=srq, mask=["MAX_WR", "LIMIT"], max_wr=2, srq_limit=3)
    return refused, rig.do("query_srq", srq=srq)["srq_limit"]


def resize(rig: Rig) -> Any:
    srq = shared(rig)
    rig.do("modify_srq", srq=srq, mask=["MAX_WR"], max_wr=2)
    return rig.do("query_srq", srq=srq)["max_wr"]


def reach_limit(left: int, sent: int) -> Any:
    """Three receives, a limit, and so many sends."""

    def scenario(rig: Rig) -> Any:
        srq = shared(rig)
        share(rig, srq, 1, 2, 3)
        limit(rig, srq, left)
        for wr_id in range(sent):
            rig.send(rig.a, wr_id)
        rig.do("settle")
        return names(rig)

    return scenario


def receive_of_its_own(rig: Rig) -> Any:
    shared(rig)
    return rig.recv(rig.b, 1)


def free_pd_of_shared(rig: Rig) -> Any:
    pd = rig.do("alloc_pd")["pd"]
    rig.do("create_srq", pd=pd, max_wr=1)
    return rig.result("dealloc_pd", pd=pd)


def in_order(rig: Rig) -> Any:
    share(rig, shared(rig), 1, 2)
    rig.send(rig.a, 1)
    return rig.got()


def taken_by_one_that_goes(rig: Rig) -> Any:
    """Whether a receive is used again that a message was acknowledged for."""
    srq = shared(rig)
    share(rig, srq, 1)
    rig.send(rig.a, 1)
    while not rig.do("poll_cq", cq=rig.scq)["n"]:  # each lets a little happen
        pass
    rig.do("destroy_qp", qp=rig.b)
    seen = len(rig.got())
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4, "srq": srq}
    rig.b, rig.a = rig.do("create_qp", pd=rig.pd, **fields)["qp"], rig.new_qp(rig.pd)
    rig.connect(rig.a, rig.b)
    rig.send(rig.a, 2)
    return len(rig.got()) > 0 and not seen


def error_on_shared(rig: Rig) -> Any:
    shared(rig)
    rig.move(rig.b, "ERR")
    return names(rig)


def told_before_reported(rig: Rig) -> Any:
    """Whether a receive is reported after the event that says that it was the last, and a poll that finds none."""
    share(rig, shared(rig), 1, 2)
    for wr_id in (1, 2):
        rig.send(rig.a, wr_id)
    for _ in range(3):  # each lets a little happen
        rig.do("poll_cq", cq=rig.scq)
    rig.move(rig.b, "ERR")
    told, found = names(rig), rig.do("poll_cq", cq=rig.rcq)["n"]
    return bool(told) and not found and bool(rig.got())


def error_alone(rig: Rig) -> Any:
    rig.move(rig.b, "ERR")
    return names(rig)


def established(*states: str) -> Any:
    def scenario(rig: Rig) -> Any:
        for qp in (rig.a, rig.b):
            rig.move(qp, "RESET")
        for state in ("INIT", "RTR"):
            rig.move(rig.a, state, rig.b)
            rig.move(rig.b, state, rig.a)
        rig.move(rig.a, "RTS")
        for state in states:
            rig.move(rig.b, state)
        for wr_id in (1, 2):
            rig.recv(rig.b, wr_id)
            rig.send(rig.a, wr_id)
        rig.do("settle")
        return names(rig)

    return scenario


def excess(rig: Rig) -> Any:
    return masked(rig, "RTS", "STATE", "MAX_DEST_RD_ATOMIC")


def too_deep(rig: Rig) -> Any:
    return rig.result("create_cq", cqe=2**20)


def cleaned(rig: Rig) -> Any:
    for qp in (rig.a, rig.b):
        rig.post(qp, "RDMA_WRITE", qp, sg_list=[], remote_addr=0, rkey=0)
    rig.do("settle")
    rig.do("destroy_qp", qp=rig.b)
    return [out["wr_id"] for out in rig.poll_all(rig.scq)] == [rig.a]


def of_nobody(rig: Rig) -> Any:
    rig.post(rig.a, "RDMA_WRITE", sg_list=[], remote_addr=0, rkey=0)
    rig.do("settle")
    for qp in (rig.a, rig.b):
        rig.do("destroy_qp", qp=qp)
    return len(rig.poll_all(rig.scq))


def two_elements(rig: Rig) -> Any:
    region = rig.do("reg_mr", pd=rig.pd, addr=rig.addr, length=2 * PAGE, access=["LOCAL_WRITE"])["lkey"]
    srq = shared(rig)
    rig.put(0, bytes(range(1, 9)))
    rig.do("post_srq_recv", srq=srq, wr_id=1, sg_list=[rig.sge(PAGE, 4, region), rig.sge(PAGE + 8, 4, region)])
    rig.send(rig.a, 1, rig.sge(0, 8, region))
    return rig.got(), rig.get(PAGE, 12).hex()


def named(rig: Rig) -> Any:
    shared(rig)
    rig.move(rig.b, "ERR")
    return rig.do("get_async_event").get("qp") == rig.b


def failed_then_armed(rig: Rig) -> Any:
    """Whether an event comes of the second of two failures, asked for when the first was polled."""
    return told_by(rig, "failure", "poll", "arm", "failure")


def destroy_pair(rig: Rig, *steps: str) -> Any:
    """Destroy a queue pair that an event names; first take the event, or afterwards."""
    shared(rig)
    rig.move(rig.b, "ERR")
    found = rig.do("get_async_event")["n"] if "take" in steps else 0
    return rig.result("destroy_qp", qp=rig.b), found, rig.do("get_async_event")["n"]


def destroy_pair_with_taken_event(rig: Rig) -> Any:
    return destroy_pair(rig, "take")


def just_full(rig: Rig) -> Any:
    for wr_id in (1, 2):
        rig.post(rig.a, "RDMA_WRITE", wr_id, sg_list=[], remote_addr=0, rkey=0)
    rig.do("settle")
    return names(rig)


def receive_after_refused_resize(rig: Rig) -> Any:
    srq = shared(rig)
    share(rig, srq, 1, 2)
    refused = rig.result("modify_srq", srq=srq, mask=["MAX_WR"], max_wr=1)
    rig.send(rig.a, 1)
    return refused, rig.got()


def two_messages_for_a_receive(rig: Rig) -> Any:
    srq = shared(rig)
    share(rig, srq, 1)
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4, "srq": srq}
    rig.do("create_qp", pd=rig.pd, **fields)
    for wr_id in (1, 2):
        rig.send(rig.a, wr_id)
    return rig.got()


LIMITED = ["SRQ_LIMIT_REACHED"]
CASES: dict[str, Case] = {
    "unmasked-attributes-taken": Case(unmasked_access, ("0", len(ALL)), USER),
    "state-without-its-bit": Case(unmasked_state, ("0", "RTS"), USER),
    "signalling-not-told": Case(all_signalled, True, USER),
    "any-path-mtu": Case(large_path, "EINVAL", {**USER, "port_mtu": "MTU_1024"}),
    "drained-queue-still-sends": Case(send_in_drained, ([], []), USER),
    "draining-never-ends": Case(drain, (False, []), USER),
    "drain-event-unasked": Case(drain, (False, []), USER),
    "resize-disarms": Case(events("arm", "resize", "entry"), 1, USER),
    "arming-again-disarms": Case(events("arm", "arm", "entry"), 1, USER),
    "old-entries-tell": Case(events("entry", "arm"), 0, USER),
    "arming-lasts": Case(events("arm", "entry", "entry"), 1, USER),
    "failures-are-not-solicited": Case(events("arm solicited", "failure"), 1, USER),
    "sends-are-solicited": Case(events("arm solicited", "solicited write"), 0, USER),
    "last-poll-disarms": Case(events("entry", "arm", "poll", "entry"), 1, USER),
    "taking-an-event-disarms": Case(events("arm", "entry", "arm", "take", "entry"), 2, USER),
    "arming-is-lowered": Case(events("arm", "arm solicited", "entry"), 1, USER),
    "unacknowledged-events-hold-nothing": Case(destroy_with_taken_event, (1, "EDEADLK"), USER),
    "events-outlive-their-queue": Case(destroy_with_waiting_event, ("0", 0), USER),
    "shrink-loses-entries": Case(crowded, ("EINVAL", 3), USER),
    "last-receive-told-early": Case(told_before_reported, False, USER),
    "peer-number-cut": Case(peer_told, True, USER),
    "excess-attributes-taken": Case(excess, "EINVAL", USER),
    "too-deep-queue-accepted": Case(too_deep, "EINVAL", USER),
    "cleaning-hands-out-twice": Case(cleaned, True, {**USER, "purge_cqes": "true"}),
    "queue-of-nobody-is-empty": Case(of_nobody, 1, USER),
    "arming-waits-for-a-poll": Case(events("arm", "entry"), 1, USER),
    "srq-receive-has-one-element": Case(two_elements, ([(1, "SUCCESS")], "010203040000000005060708"), USER),
    "arming-unseen": Case(events("arm", "entry"), 1, USER),
    "failed-entry-spoils-arming": Case(failed_then_armed, 1, USER),
    "unacknowledged-events-of-a-pair-hold-nothing": Case(destroy_pair_with_taken_event, ("EDEADLK", 1, 0), USER),
    "events-outlive-their-pair": Case(destroy_pair, ("0", 0, 0), USER),
    "full-queue-tells-overrun": Case(just_full, [], {**USER, "cqe": 2}),
    "refused-resize-drops-receives": Case(receive_after_refused_resize, ("EINVAL", [(1, "SUCCESS")]), USER),
    "srq-receive-taken-twice": Case(two_messages_for_a_receive, [(1, "SUCCESS")], USER),
    "event-names-nothing": Case(named, True, USER),
    "last-receive-told-twice": Case(error_on_shared, ["QP_LAST_WQE_REACHED"], USER),
    "srq-destroyed-under-qp": Case(destroy_used_srq, "EBUSY", USER),
    "refused-resize-takes-limit": Case(refused_resize, ("EINVAL", 0), USER),
    "srq-resize-ignored": Case(resize, 2, USER),
    "limit-is-told-as-error": Case(reach_limit(2, 2), LIMITED, USER),
    "srq-dropped-at-create": Case(receive_of_its_own, "EINVAL", USER),
    "srq-does-not-hold-its-pd": Case(free_pd_of_shared, "EBUSY", USER),
    "limit-told-again": Case(reach_limit(3, 2), LIMITED, USER),
    "limit-told-at-equal": Case(reach_limit(2, 1), [], USER),
    "srq-last-in-first-out": Case(in_order, [(1, "SUCCESS")], USER),
    "destroy-returns-taken-receives": Case(taken_by_one_that_goes, False, USER),
    "last-receive-untold": Case(error_on_shared, ["QP_LAST_WQE_REACHED"], USER),
    "last-receive-without-srq": Case(error_alone, [], USER),
    "established-in-rts": Case(established("RTS"), [], USER),
    "established-for-every-message": Case(established(), ["COMM_EST"], USER),
}
