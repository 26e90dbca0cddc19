"""Completion channels, resizing completion queues, and asynchronous events."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import Rig


class Told(Rig):
    """As Rig, but `rcq` and `scq` tell one channel."""

    def __init__(self, seed: int = 0, cqe: int = 64, **options: Any) -> None:
        super().__init__(seed, api="linux-user", connect=False, **options)
        self.channel = self.do("create_comp_channel")["channel"]
        self.scq, self.rcq = (self.do("create_cq", cqe=cqe, channel=self.channel)["cq"] for _ in range(2))
        self.a, self.b = self.new_qp(self.pd), self.new_qp(self.pd)
        self.connect(self.a, self.b)

    def arm(self, cq: int, *, solicited: bool = False) -> None:
        self.do("req_notify_cq", cq=cq, solicited_only=solicited)

    def told(self) -> list[int]:
        """What the channel has, taken and acknowledged."""
        self.do("settle")
        found = []
        while (out := self.do("get_cq_event", channel=self.channel))["n"]:
            found.append(out["cq"])
            self.do("ack_cq_events", cq=out["cq"], nevents=1)
        return found

    def message(self, **more: Any) -> None:
        self.recv(self.b, 1)
        self.send(self.a, 1, **more)
        self.do("settle")

    def events(self) -> list[dict[str, Any]]:
        found = []
        while (out := self.do("get_async_event"))["n"]:
            self.do("ack_async_event", async_event=out.pop("async_event"))
            found.append({name: value for name, value in out.items() if name != "n"})
        return found


@pytest.mark.parametrize(
    ("armed", "solicited", "told"),
    [
        ([], True, False),
        ([False], False, True),
        ([True], False, False),
        ([True], True, True),
        ([False, True], False, True),  # no downgrade
        ([True, False], False, True),  # but an upgrade
    ],
)
def test_arming(armed: list[bool], solicited: bool, told: bool) -> None:
    rig = Told()
    for only in armed:
        rig.arm(rig.rcq, solicited=only)
    rig.message(solicited=solicited)
    assert rig.told() == ([rig.rcq] if told else [])
    rig.message(solicited=True)
    assert rig.told() == ([rig.rcq] if armed and not told else [])  # one event for an arming


def test_entries_that_are_there_tell_nothing_and_failures_are_solicited() -> None:
    rig = Told()
    rig.message(solicited=True)
    rig.arm(rig.rcq)
    rig.arm(rig.scq, solicited=True)
    assert rig.told() == []
    rig.send(rig.a, 2)  # succeeds: a send is never solicited
    rig.recv(rig.b, 2)
    assert rig.told() == [rig.rcq]
    rig.move(rig.a, "ERR")
    rig.send(rig.a, 3)
    assert rig.told() == [rig.scq]


def test_events_keep_the_queue_and_queues_keep_the_channel() -> None:
    rig = Told()
    cq = rig.do("create_cq", cqe=4, channel=rig.channel)["cq"]
    rig.arm(rig.rcq)
    rig.message()
    assert rig.do("get_cq_event", channel=rig.channel) == {"n": 1, "cq": rig.rcq}
    assert rig.result("destroy_cq", cq=rig.rcq) == "EDEADLK"
    assert rig.result("ack_cq_events", cq=rig.rcq, nevents=2) == "EINVAL"
    assert rig.result("ack_cq_events", cq=rig.rcq, nevents=1) == "0"
    assert rig.result("ack_cq_events", cq=rig.rcq, nevents=1) == "EINVAL"
    assert rig.result("destroy_cq", cq=rig.rcq) == "EBUSY"
    assert rig.result("destroy_comp_channel", channel=rig.channel) == "EBUSY"
    rig.arm(rig.rcq)
    rig.message()
    for qp in (rig.a, rig.b):
        rig.do("destroy_qp", qp=qp)
    for gone in (cq, rig.scq, rig.rcq):
        assert rig.result("destroy_cq", cq=gone) == "0"
    assert rig.do("get_cq_event", channel=rig.channel) == {"n": 0}  # its queue is gone
    assert rig.result("destroy_comp_channel", channel=rig.channel) == "0"
    assert rig.result("create_cq", cqe=4, channel=rig.channel) == "EINVAL"


@pytest.mark.parametrize(("no_channel", "result"), [("accept", "0"), ("refuse", "EINVAL")])
def test_a_queue_without_a_channel_can_be_armed_or_not(no_channel: str, result: str) -> None:
    rig = Rig(api="linux-user", no_channel=no_channel)
    assert rig.result("req_notify_cq", cq=rig.rcq, solicited_only=False) == result
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1)
    assert rig.got() == [(1, "SUCCESS")]


@pytest.mark.parametrize(("cq_events", "count"), [("each", 2), ("merged", 1)])
def test_an_event_while_one_waits_is_told_too_or_left_out(cq_events: str, count: int) -> None:
    rig = Told(cq_events=cq_events)
    for _ in range(2):
        rig.arm(rig.rcq)
        rig.message()
    assert rig.told() == [rig.rcq] * count
    rig.arm(rig.rcq)
    rig.message()
    assert rig.told() == [rig.rcq]


@pytest.mark.parametrize(("unread", "told"), [("quiet", 0), ("tell", 1)])
def test_arming_a_queue_that_holds_entries(unread: str, told: int) -> None:
    rig = Told(unread=unread)
    rig.message()
    rig.arm(rig.rcq)
    assert len(rig.told()) == told


def test_resizing_keeps_the_entries() -> None:
    rig = Told(cqe=4, max_cqe="64", cq_slack="1")
    for _ in range(3):
        rig.message()
    for cqe in (0, 2, 65):
        assert rig.result("resize_cq", cq=rig.rcq, cqe=cqe) == "EINVAL"
    assert rig.do("resize_cq", cq=rig.rcq, cqe=3) == {"cqe_actual": 4}
    assert rig.do("resize_cq", cq=rig.scq, cqe=64) == {"cqe_actual": 65}
    assert [len(rig.poll_all(cq)) for cq in (rig.rcq, rig.scq)] == [3, 3]
    assert rig.result("resize_cq", cq=9999, cqe=3) == "EINVAL"


def test_overrun_is_told_once_for_the_queue_and_for_the_queue_pair() -> None:
    rig = Told(cqe=1)
    rig.message()
    rig.events()
    rig.message()
    told = rig.events()
    assert {"event": "CQ_ERR", "cq": rig.scq} in told
    assert {"event": "CQ_ERR", "cq": rig.rcq} in told
    assert {"event": "QP_FATAL", "qp": rig.a} in told
    rig.send(rig.a, 3)
    rig.do("settle")
    assert rig.events() == []


def test_a_refused_access_is_told_to_the_responder() -> None:
    rig = Told()
    rig.post(rig.a, "RDMA_READ", sg_list=[], remote_addr=0, rkey=1)  # no bytes: not checked
    assert rig.sent() == [(1, "SUCCESS")]
    rig.events()
    region = rig.do("reg_mr", pd=rig.pd, addr=rig.addr, length=64, access=["LOCAL_WRITE"])
    fields = {"remote_addr": rig.addr, "rkey": region["rkey"], "sg_list": [rig.sge(0, 8, region["lkey"])]}
    rig.post(rig.a, "RDMA_WRITE", 2, **fields)
    assert rig.sent() == [(2, "REM_ACCESS_ERR")]
    assert rig.events() == [{"event": "QP_ACCESS_ERR", "qp": rig.b}]


def test_communication_is_established_once_and_only_in_rtr() -> None:
    rig = Told()
    rig.message()
    assert rig.events() == []
    for qp in (rig.a, rig.b):
        rig.move(qp, "RESET")
    for state in ("INIT", "RTR"):
        for qp, peer in ((rig.a, rig.b), (rig.b, rig.a)):
            rig.move(qp, state, peer)
    rig.move(rig.a, "RTS")
    rig.message()
    rig.message()
    assert rig.events() == [{"event": "COMM_EST", "qp": rig.b}]


def test_events_taken_keep_their_element_and_events_not_taken_go_with_it() -> None:
    rig = Told(cqe=1)
    rig.message()
    rig.message()
    while (taken := rig.do("get_async_event"))["event"] != "QP_FATAL":
        rig.do("ack_async_event", async_event=taken["async_event"])
    number = taken["async_event"]
    assert rig.result("ack_async_event", async_event=number + 1) == "EINVAL"
    qp, other = (rig.a, rig.b) if taken["qp"] == rig.a else (rig.b, rig.a)
    assert rig.result("destroy_qp", qp=qp) == "EDEADLK"
    assert rig.result("destroy_qp", qp=other) == "0"
    assert rig.result("ack_async_event", async_event=number) == "0"
    assert rig.result("ack_async_event", async_event=number) == "EINVAL"
    assert rig.result("destroy_qp", qp=qp) == "0"
    assert {event["event"] for event in rig.events()} <= {"CQ_ERR"}


def test_without_the_features_there_are_no_verbs() -> None:
    rig = Rig(api="linux-user", without="COMPLETION_CHANNELS,RESIZE_CQ,ASYNCHRONOUS_EVENTS")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_comp_channel", {}),
        ("create_cq", {"cqe": 1, "channel": 0}),
        ("resize_cq", {"cq": rig.scq, "cqe": 1}),
        ("get_async_event", {}),
    ]
    for verb, args in calls:
        assert rig.result(verb, **args) == "EOPNOTSUPP"
    assert rig.send(rig.a, 1, solicited=True) == "EOPNOTSUPP"
