"""Shared receive queues: slots, sharing, limit, resizing, and the end of a queue pair that uses one."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import Rig


class Shared(Rig):
    """As Rig, but `b` and `c` take their receives from one shared queue, and `a` and `d` send to them."""

    def __init__(self, max_wr: int = 4, seed: int = 0, **options: Any) -> None:
        super().__init__(seed, api="linux-user", connect=False, **options)
        self.srq = self.do("create_srq", pd=self.pd, max_wr=max_wr)["srq"]
        self.b, self.c = (self.new_shared() for _ in range(2))
        self.d = self.new_qp(self.pd)
        self.connect(self.a, self.b)
        self.connect(self.d, self.c)

    def new_shared(self) -> int:
        made = self.do(
            "create_qp", pd=self.pd, send_cq=self.scq, recv_cq=self.rcq, max_send_wr=4, max_recv_wr=0, srq=self.srq
        )
        self.qpn[made["qp"]] = made["qp_num"]
        return int(made["qp"])

    def share(self, *wr_ids: int) -> list[str]:
        return [self.result("post_srq_recv", srq=self.srq, wr_id=wr_id, sg_list=[]) for wr_id in wr_ids]

    def events(self) -> list[tuple[str, Any]]:
        found = []
        while (out := self.do("get_async_event"))["n"]:
            found.append((out["event"], out.get("srq") or out.get("qp") or out.get("cq")))
            self.do("ack_async_event", async_event=out["async_event"])
        return [event for event in found if event[0] != "COMM_EST"]

    def modify(self, **values: int) -> str:
        names = {"max_wr": "MAX_WR", "srq_limit": "LIMIT"}
        return self.result("modify_srq", srq=self.srq, mask=[names[name] for name in values], **values)


def test_two_queue_pairs_take_from_one_queue_in_order() -> None:
    rig = Shared()
    assert rig.share(1, 2) == ["0", "0"]
    rig.send(rig.a, 10)
    rig.do("settle")
    rig.send(rig.d, 11)
    rig.do("settle")
    got = [(out["wr_id"], out["qp_num"]) for out in rig.poll_all(rig.rcq)]
    assert got == [(1, rig.qpn[rig.b]), (2, rig.qpn[rig.c])]


@pytest.mark.parametrize("seed", range(8))
def test_a_message_that_finds_the_queue_empty_waits_for_a_receive(seed: int) -> None:
    rig = Shared(seed=seed)
    rig.send(rig.a, 10)
    rig.send(rig.d, 11)
    assert rig.sent() == []
    rig.share(1)
    assert len(rig.sent()) == 1
    rig.share(2)
    assert len(rig.sent()) == 1
    assert sorted(wr_id for wr_id, _ in rig.got()) == [1, 2]


@pytest.mark.parametrize(("rq_slot", "free"), [("poll", "ENOMEM"), ("consume", "0")])
def test_a_slot_is_free_when_the_completion_is_polled_or_before(rq_slot: str, free: str) -> None:
    rig = Shared(max_wr=1, rq_slot=rq_slot)
    assert rig.share(1, 2) == ["0", "ENOMEM"]
    rig.send(rig.a, 10)
    rig.do("settle")
    assert rig.share(2) == [free]
    rig.got()
    assert rig.share(3) == ["0" if free == "ENOMEM" else "ENOMEM"]


@pytest.mark.parametrize("how", ["reset", "destroy"])
@pytest.mark.parametrize("purge_cqes", ["false", "true"])
def test_slots_come_back_when_a_queue_pair_goes(how: str, purge_cqes: str) -> None:
    rig = Shared(max_wr=1, purge_cqes=purge_cqes)
    rig.share(1)
    rig.send(rig.a, 10)
    rig.do("settle")
    rig.move(rig.b, "RESET")
    if how == "destroy":
        rig.do("destroy_qp", qp=rig.b)
    rig.got()
    assert rig.share(2, 3) == ["0", "ENOMEM"]


def test_the_queue_outlives_a_queue_pair_in_error() -> None:
    rig = Shared()
    rig.share(1)
    rig.move(rig.b, "ERR")
    assert rig.got() == []
    assert rig.events() == [("QP_LAST_WQE_REACHED", rig.b)]
    rig.send(rig.d, 11)
    assert (rig.sent(), rig.got()) == ([(11, "SUCCESS")], [(1, "SUCCESS")])


def test_the_limit_is_told_once_when_fewer_are_left() -> None:
    rig = Shared()
    rig.share(1, 2, 3)
    assert rig.modify(srq_limit=2) == "0"
    rig.send(rig.a, 10)
    rig.do("settle")
    assert rig.events() == []  # two are left
    rig.send(rig.a, 11)
    rig.send(rig.a, 12)
    rig.do("settle")
    assert rig.events() == [("SRQ_LIMIT_REACHED", rig.srq)]
    assert rig.do("query_srq", srq=rig.srq) == {"max_wr": 4, "max_sge": 2, "srq_limit": 0}


def test_resizing_keeps_what_is_there_and_changes_nothing_when_refused() -> None:
    rig = Shared(max_wr=4)
    rig.share(1, 2)
    assert rig.modify(max_wr=1) == "EINVAL"
    assert rig.modify(max_wr=3, srq_limit=4) == "EINVAL"
    assert rig.modify(max_wr=0) == "EINVAL"
    assert rig.do("query_srq", srq=rig.srq)["max_wr"] == 4
    assert rig.modify(max_wr=2) == "0"
    assert rig.share(3) == ["ENOMEM"]
    assert rig.modify(max_wr=3, srq_limit=3) == "0"
    assert rig.share(3, 4) == ["0", "ENOMEM"]


def test_the_length_asked_for_is_compared_with_the_limit() -> None:
    rig = Shared(max_wr=4, srq_slack="2")
    rig.share(1, 2, 3)
    assert rig.modify(srq_limit=3) == "0"
    assert [rig.modify(max_wr=2), rig.modify(max_wr=3)] == ["EINVAL", "0"]


def test_a_device_may_take_one_attribute_at_a_time() -> None:
    rig = Shared(srq_modify="one")
    assert rig.modify(max_wr=3, srq_limit=2) == "EINVAL"
    assert [rig.modify(max_wr=3), rig.modify(srq_limit=2)] == ["0", "0"]


def test_what_is_refused() -> None:
    rig = Shared(max_srq_wr="8", max_srq_sge="2")
    for wrong in ({"max_wr": 0}, {"max_wr": 9}, {"max_sge": 3}):
        assert rig.result("create_srq", **{"pd": rig.pd, "max_wr": 4, **wrong}) == "EINVAL"
    assert rig.recv(rig.b, 1) == "EINVAL"
    assert rig.result("destroy_srq", srq=rig.srq) == "EBUSY"
    for qp in (rig.b, rig.c):
        rig.do("destroy_qp", qp=qp)
    assert rig.result("destroy_srq", srq=rig.srq) == "0"
    assert rig.share(1) == ["EINVAL"]
    other = rig.do("alloc_pd")["pd"]
    srq = rig.do("create_srq", pd=other, max_wr=1)["srq"]
    assert rig.result("dealloc_pd", pd=other) == "EBUSY"
    rig.do("destroy_srq", srq=srq)
    assert rig.result("dealloc_pd", pd=other) == "0"


def test_a_device_without_resizing_refuses_it_and_one_without_shared_queues_has_none() -> None:
    rig = Shared(without="SRQ_RESIZE")
    assert rig.modify(max_wr=3) == "EINVAL"
    assert rig.modify(srq_limit=3) == "0"
    plain = Rig(api="linux-user", without="SRQ")
    assert plain.result("create_srq", pd=plain.pd, max_wr=1) == "EOPNOTSUPP"


@pytest.mark.parametrize(("take", "limit", "above"), [("ignore", 0, "0"), ("take", 2, "EINVAL")])
def test_the_limit_at_creation_is_irrelevant_or_taken(take: str, limit: int, above: str) -> None:
    rig = Shared(srq_limit_at_create=take)
    srq = rig.do("create_srq", pd=rig.pd, max_wr=4, srq_limit=2)["srq"]
    assert rig.do("query_srq", srq=srq)["srq_limit"] == limit
    assert rig.result("create_srq", pd=rig.pd, max_wr=4, srq_limit=5) == above
