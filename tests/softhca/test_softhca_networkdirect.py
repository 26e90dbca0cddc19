"""NetworkDirect: its words, its connections, and its windows."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE
from test_softhca_overlapped import ND, WindowsRig

GOOD = [(1, "SUCCESS")]
START, LENGTH = PAGE + 100, 1000  # of the window


class NdRig(WindowsRig):
    """b has a region and a window into it."""

    def __init__(self, access: tuple[str, ...] = ALL, **options: Any) -> None:
        super().__init__(ND, **options)
        self.source = self.registered(0, PAGE, access=())["lkey"]
        self.made = self.registered(PAGE, 2 * PAGE, access=access)
        self.window: int = self.do("create_memory_window", pd=self.pd)["mw"]

    def fresh(self) -> int:
        return self.new_qp(self.pd)

    def bind(self, **more: Any) -> tuple[str, int]:
        where = {"addr": self.addr + START, "length": LENGTH, "access": ["REMOTE_WRITE"]}
        args = {"qp": self.b, "wr_id": 50, "mr": self.made["mr"], "mw": self.window, **where, **self.flags(), **more}
        answer = self.call("bind_memory_window", **args)
        return answer.result, answer.out.get("rkey", 0)

    def invalidate(self, **more: Any) -> str:
        args = {"qp": self.b, "mw": self.window, "wr_id": 60, **self.flags(), **more}
        return self.result("invalidate_memory_window", **args)

    def flags(self) -> dict[str, bool]:
        return {"signaled": True, "fence": False}

    def wrote(self, key: int, offset: int = START, length: int = 8) -> list[tuple[int, str]]:
        sges = [self.sge(0, length, self.source)]
        self.post(self.a, "RDMA_WRITE", sg_list=sges, remote_addr=self.addr + offset, rkey=key)
        return self.sent()


def test_a_bound_window() -> None:
    rig = NdRig(access=("LOCAL_WRITE",))
    result, key = rig.bind()
    assert (result, rig.sent()) == ("0", [(50, "SUCCESS")])
    assert rig.wrote(key) == GOOD
    assert rig.result("deregister_memory_region", region=rig.made["region"]) == "ND_DEVICE_BUSY"
    assert rig.invalidate() == "0"
    assert rig.sent() == [(60, "SUCCESS")]
    result, other = rig.bind()
    assert (result, rig.sent()) == ("0", [(50, "SUCCESS")])
    assert other != key
    assert rig.wrote(key) == [(1, "ND_ACCESS_VIOLATION")]


@pytest.mark.parametrize("transport", ["roce", "iwarp"])
def test_releasing_a_queue_pair_cannot_fail(transport: str) -> None:
    rig = NdRig(transport=transport, destroy_bound="refuse")
    assert rig.bind()[0] == "0"
    assert rig.sent() == [(50, "SUCCESS")]
    assert rig.result("destroy_qp", qp=rig.b) == "0"


def test_what_bind_refuses() -> None:
    rig = NdRig(access=("REMOTE_READ",))
    assert rig.bind()[0] == "ND_ACCESS_VIOLATION"
    assert rig.bind(qp=rig.fresh())[0] == "ND_CONNECTION_INVALID"
    assert rig.bind(access=["REMOTE_READ"])[0] == "0"
    assert rig.sent() == [(50, "SUCCESS")]
    assert rig.bind(access=["REMOTE_READ"])[0] == "0"
    assert rig.sent() == [(50, "ND_INVALID_DEVICE_REQUEST")]  # it is bound


def test_a_binding_that_failed_is_not_in_the_way_of_the_next() -> None:
    rig = NdRig(access=("LOCAL_WRITE",), stale_handle="refuse")
    assert rig.bind(addr=rig.addr - 1)[0] == "0"
    assert rig.sent() == [(50, "ND_INVALID_DEVICE_REQUEST")]
    assert rig.bind(qp=rig.a)[0] == "0"
    assert rig.sent() == [(50, "SUCCESS")]


@pytest.mark.parametrize("status", ["LOC_QP_OP_ERR", "MW_BIND_ERR", "LOC_PROT_ERR"])
def test_what_invalidate_refuses(status: str) -> None:
    rig = NdRig(bad_op_status=status)
    assert rig.invalidate(qp=rig.fresh()) == "ND_CONNECTION_INVALID"
    assert rig.invalidate(signaled=False) == "0"
    assert rig.sent() == [(60, "ND_INVALID_DEVICE_REQUEST")]  # it is not bound


def test_a_window_released_gives_its_domain_back() -> None:
    rig = NdRig()
    pd = rig.do("alloc_pd")["pd"]
    window = rig.do("create_memory_window", pd=pd)["mw"]
    assert rig.result("dealloc_pd", pd=pd) == "ND_DEVICE_BUSY"
    rig.do("release_memory_window", mw=window)
    assert rig.result("dealloc_pd", pd=pd) == "0"


# -- connections -----------------------------------------------------------------------------------
def test_a_queue_pair_that_is_not_connected_takes_receives_alone() -> None:
    rig = NdRig()
    first, second = rig.fresh(), rig.fresh()
    assert rig.recv(first, 1) == "0"
    assert rig.send(second, 1) == "ND_CONNECTION_INVALID"
    assert rig.result("disconnect_qp", qp=first) == "ND_CONNECTION_INVALID"
    assert rig.result("connect_qp", qp=first, peer=first) == "ND_INVALID_PARAMETER"
    assert rig.result("connect_qp", qp=first, peer=rig.b) == "ND_CONNECTION_ACTIVE"
    assert rig.result("connect_qp", qp=second, peer=first) == "0"
    assert rig.send(second, 1) == "0"
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)


def test_disconnecting_flushes_both_sides() -> None:
    rig = NdRig()
    rig.recv(rig.a, 1)
    rig.recv(rig.b, 2)
    assert rig.result("disconnect_qp", qp=rig.a) == "0"
    assert sorted(rig.got()) == [(1, "ND_CANCELED"), (2, "ND_CANCELED")]
    assert rig.result("disconnect_qp", qp=rig.a) == "0"
    assert rig.result("connect_qp", qp=rig.a, peer=rig.b) == "ND_INVALID_PARAMETER"


def test_what_came_through_before_is_taken() -> None:
    rig = NdRig(pace="eager")
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1)
    rig.do("disconnect_qp", qp=rig.a)
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)


def test_flushing_is_one_sided() -> None:
    rig = NdRig()
    rig.recv(rig.a, 1)
    rig.recv(rig.b, 2)
    assert rig.result("flush_qp", qp=rig.a) == "0"
    assert rig.got() == [(1, "ND_CANCELED")]


def test_words_of_posting() -> None:
    rig = NdRig(depth=1)
    assert rig.recv(rig.a, 1) == "0"
    assert rig.recv(rig.a, 1) == "ND_NO_MORE_ENTRIES"
    assert rig.send(rig.a, 1, *[rig.sge(0, 1, rig.source)] * 3) == "ND_DATA_OVERRUN"
    assert rig.send(rig.a, 1) == "0"
    assert rig.send(rig.a, 2) == "ND_NO_MORE_ENTRIES"


@pytest.mark.parametrize(
    ("length", "sent", "got"), [(4, "ND_REMOTE_ERROR", "ND_BUFFER_OVERFLOW"), (8, "SUCCESS", "SUCCESS")]
)
def test_words_of_completions(length: int, sent: str, got: str) -> None:
    rig = NdRig()
    rig.recv(rig.b, 1, rig.sge(PAGE, length, rig.made["lkey"]))
    rig.send(rig.a, 1, rig.sge(0, 8, rig.source))
    assert (rig.sent(), rig.got()) == ([(1, sent)], [(1, got)])


def test_modify_qp_is_not_there() -> None:
    rig = NdRig()
    assert rig.move(rig.a, "RESET") == "EOPNOTSUPP"
    assert rig.hca.hello().api == (ND,)
    assert rig.hca.hello().capabilities == ("MEM_WINDOW",)
