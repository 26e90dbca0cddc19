"""Lists of elements, inline data, and lists of requests."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import PAGE, Rig

GOOD = [(1, "SUCCESS")]


class SizedRig(Rig):
    """Two more queue pairs, connected, of asked sizes: c sends to d."""

    def __init__(self, *, send_sge: int = 2, recv_sge: int = 2, inline: int = 64, **options: Any) -> None:
        super().__init__(connect=False, **options)
        self.asked = {"max_send_sge": send_sge, "max_recv_sge": recv_sge, "max_inline_data": inline}
        (self.c, self.granted), (self.d, _) = self.sized(), self.sized()
        self.connect(self.c, self.d)

    def create(self, **sizes: int) -> dict[str, Any]:
        queues = {"send_cq": self.scq, "recv_cq": self.rcq, "max_send_wr": 4, "max_recv_wr": 4}
        return {"pd": self.pd, **queues, **sizes}

    def sized(self) -> tuple[int, dict[str, Any]]:
        made = self.do("create_qp", **self.create(**self.asked))
        self.qpn[made["qp"]] = made["qp_num"]
        return made["qp"], made

    def sent_list(self, verb: str, qp: int, *sges: dict[str, int], **more: Any) -> int:
        made = self.do(verb, qp=qp, wr_ids=list(range(1, len(sges) + 1)), sg_list=list(sges), **more)
        accepted: int = made["accepted"]
        return accepted


def test_sizes_are_answered_those_of_inline_data_if_they_were_asked() -> None:
    rig = SizedRig(send_sge=5, recv_sge=0, inline=10, sge_slack="3", inline_slack="6")
    names = ("max_send_sge_actual", "max_recv_sge_actual", "max_inline_data_actual")
    assert [rig.granted[name] for name in names] == [8, 3, 16]
    other = rig.do("create_qp", **rig.create())
    assert [other.get(name) for name in names] == [5, 5, None]


@pytest.mark.parametrize(
    ("name", "limit"), [("max_send_sge", "max_sge"), ("max_recv_sge", "max_sge"), ("max_inline_data", "max_inline")]
)
def test_too_much_is_refused_and_counts_nothing(name: str, limit: str) -> None:
    options: dict[str, Any] = {limit: "5"}
    rig = Rig(**options)
    queues = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4}
    pd = rig.do("alloc_pd")["pd"]
    assert rig.result("create_qp", pd=pd, **queues, **{name: 6}) == "EINVAL"
    assert rig.result("dealloc_pd", pd=pd) == "0"
    assert rig.result("create_qp", pd=rig.pd, **queues, **{name: 5}) == "0"


def test_as_many_elements_as_were_granted() -> None:
    rig = SizedRig(send_sge=4, recv_sge=3)
    rig.put(0, bytes(range(16)))
    pieces = [rig.sge(12, 4), rig.sge(0, 0), rig.sge(0, 3), rig.sge(7, 2)]
    sinks = [rig.sge(PAGE, 1), rig.sge(2 * PAGE, 5), rig.sge(3 * PAGE, 9)]
    assert rig.recv(rig.d, 1, *sinks, rig.sge(0, 1)) == "EINVAL"
    assert rig.recv(rig.d, 1, *sinks) == "0"
    assert rig.send(rig.c, 1, *pieces, rig.sge(0, 1)) == "EINVAL"
    assert rig.send(rig.c, 1, *pieces) == "0"
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)
    assert rig.get(PAGE, 1) + rig.get(2 * PAGE, 5) + rig.get(3 * PAGE, 3) == bytes([12, 13, 14, 15, 0, 1, 2, 7, 8])


def test_no_elements_at_all() -> None:
    rig = SizedRig(send_sge=0, recv_sge=0)
    assert rig.send(rig.c, 1, rig.sge(0, 1)) == "EINVAL"
    assert rig.recv(rig.d, 1) == "0"
    assert rig.send(rig.c, 1) == "0"
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)


def test_sinks_of_a_read() -> None:
    rig = SizedRig(send_sge=4, max_sge_rd="3")
    assert rig.hca.hello().limits["max_sge_rd"] == 3
    for sinks, right in ((3, "0"), (4, "EINVAL")):
        sges = [rig.sge(0, 1)] * sinks
        assert rig.post(rig.c, "RDMA_READ", sg_list=sges, remote_addr=0, rkey=0) == right


# -- inline data -----------------------------------------------------------------------------------
def test_inline_data_are_copied_by_the_call() -> None:
    rig = SizedRig(pace="lazy")
    rig.put(0, b"here and there")
    rig.recv(rig.d, 1, rig.sge(PAGE, 64))
    pieces = [rig.sge(9, 5, lkey=0xDEAD), rig.sge(0, 4, lkey=0)]  # nobody asks for keys
    assert rig.send(rig.c, 1, *pieces, inline=True) == "0"
    rig.put(0, bytes(14))
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)
    assert rig.get(PAGE, 9) == b"therehere"


def test_inline_write() -> None:
    rig = SizedRig()
    _, key = rig.registered(PAGE, 64, qp=rig.d)
    rig.put(0, b"12345678")
    sges = [rig.sge(0, 8, lkey=1)]
    assert rig.post(rig.c, "RDMA_WRITE", sg_list=sges, remote_addr=rig.addr + PAGE, rkey=key, inline=True) == "0"
    assert rig.sent() == GOOD
    assert rig.get(PAGE, 8) == b"12345678"


def test_inline_data_have_a_limit() -> None:
    rig = SizedRig(inline=10)
    rig.recv(rig.d, 1, rig.sge(PAGE, 64))
    assert rig.send(rig.c, 1, rig.sge(0, 6), rig.sge(0, 5), inline=True) == "EINVAL"
    assert rig.send(rig.c, 1, rig.sge(0, 5), rig.sge(0, 5), inline=True) == "0"
    assert rig.sent() == GOOD
    (entry,) = rig.poll_all(rig.rcq)
    assert entry["byte_len"] == 10


def test_what_cannot_be_inline() -> None:
    rig = SizedRig()
    _, key = rig.registered(PAGE, 64, qp=rig.d)
    assert rig.read(key, PAGE, rig.sge(0, 8), qp=rig.c, inline=True) == "EINVAL"
    assert rig.inv(rig.c, key, inline=True) == "EINVAL"
    nowhere = {"addr": 8, "length": 8, "lkey": 0}
    assert rig.send(rig.c, 1, nowhere, inline=True) == "EFAULT"


def test_a_device_without_inline_data() -> None:
    rig = Rig(without="INLINE_DATA,SGE_LISTS,REQUEST_LISTS")
    assert rig.result("create_qp", **SizedRig().create(max_inline_data=0)) == "EOPNOTSUPP"
    assert rig.send(rig.a, 1, inline=False) == "EOPNOTSUPP"
    assert rig.result("post_recv_list", qp=rig.a, wr_ids=[], sg_list=[]) == "EOPNOTSUPP"
    assert rig.hca.hello().limits["max_sge"] == 2


# -- lists of requests -----------------------------------------------------------------------------
def test_a_list_is_posted_in_order() -> None:
    rig = SizedRig()
    rig.put(0, b"abc")
    assert rig.sent_list("post_recv_list", rig.d, *(rig.sge(PAGE + at, 1) for at in range(3))) == 3
    assert rig.sent_list("post_send_list", rig.c, *(rig.sge(at, 1) for at in range(3)), signaled=True) == 3
    assert rig.sent() == rig.got() == [(1, "SUCCESS"), (2, "SUCCESS"), (3, "SUCCESS")]
    assert rig.get(PAGE, 3) == b"abc"


def test_what_comes_before_the_bad_one_is_posted() -> None:
    rig = SizedRig(inline=4)
    sges = [rig.sge(0, 4), rig.sge(0, 5), rig.sge(0, 4)]
    rig.sent_list("post_recv_list", rig.d, *([rig.sge(PAGE, 8)] * 3))
    assert rig.sent_list("post_send_list", rig.c, *sges, signaled=True, inline=True) == 1
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)


def test_a_list_longer_than_the_queue() -> None:
    rig = SizedRig()
    assert rig.sent_list("post_recv_list", rig.d, *([rig.sge(PAGE, 8)] * 6)) == 4
    assert rig.sent_list("post_send_list", rig.c, *([rig.sge(0, 8)] * 6), signaled=False) == 4


def test_a_list_in_a_state_that_takes_none() -> None:
    rig = SizedRig()
    fresh, _ = rig.sized()
    assert rig.sent_list("post_recv_list", fresh, rig.sge(0, 8)) == 0
    assert rig.sent_list("post_send_list", fresh, rig.sge(0, 8), signaled=True) == 0


@pytest.mark.parametrize(("wr_ids", "sges"), [([], 0), ([1], 0), ([1], 2), ([], 1)])
def test_lists_that_do_not_fit(wr_ids: list[int], sges: int) -> None:
    rig = SizedRig()
    lists = {"wr_ids": wr_ids, "sg_list": [rig.sge(0, 8)] * sges}
    assert rig.result("post_recv_list", qp=rig.d, **lists) == "EINVAL"
    assert rig.result("post_send_list", qp=rig.c, signaled=True, **lists) == "EINVAL"
