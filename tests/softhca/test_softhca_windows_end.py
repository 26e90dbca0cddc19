"""Memory windows: invalidation, and who holds what."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_windows_rig import BAD_BIND, BOUND, GOOD, REFUSED, START, WindowRig

KINDS = pytest.mark.parametrize("kind", ["TYPE_1", "TYPE_2"])


# -- invalidation ----------------------------------------------------------------------------------
def test_local_invalidation() -> None:
    rig = WindowRig()
    key = rig.bind_2()
    rig.inv(rig.b, key)
    assert rig.sent() == [(200, "SUCCESS")]
    assert rig.post_bind(addr=rig.addr + START + 8, key=key) == "0"
    assert rig.sent() == BOUND
    assert rig.wrote(key, START + 8) == GOOD
    rig.inv(rig.b, key)
    assert rig.sent() == [(200, "SUCCESS")]
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"
    assert rig.wrote(key, START + 8) == REFUSED


def test_pipelined_bindings() -> None:
    rig = WindowRig()
    rig.window()
    key = rig.first & ~0xFF
    for low in (1, 2, 3):
        assert rig.post_bind(rkey=low) == "0"
        assert rig.inv(rig.b, key | low) == "0"
    assert [status for _, status in rig.sent()] == ["SUCCESS"] * 6


def not_through(rig: WindowRig) -> tuple[int, int]:
    """A queue pair through which the window was not bound."""
    key = rig.bind_2()
    other, peer = rig.new_qp(rig.pd_b), rig.new_qp(rig.pd)
    rig.connect(other, peer)
    return other, key


def stale_key(rig: WindowRig) -> tuple[int, int]:
    return rig.b, rig.bind_2() ^ 1


def type_1_key(rig: WindowRig) -> tuple[int, int]:
    return rig.b, rig.bound("TYPE_1")


def region_key(rig: WindowRig) -> tuple[int, int]:
    return rig.b, int(rig.region_b["rkey"])


def key_zero(rig: WindowRig) -> tuple[int, int]:
    return rig.b, 0


def key_of_nothing(rig: WindowRig) -> tuple[int, int]:
    rig.window()
    rig.do("dealloc_mw", mw=rig.mw)
    return rig.b, rig.first


CANNOT = pytest.mark.parametrize(
    "case", [not_through, stale_key, type_1_key, region_key, key_zero, key_of_nothing], ids=lambda case: case.__name__
)


@CANNOT
def test_what_cannot_be_invalidated(case: Any) -> None:
    rig = WindowRig()
    qp, key = case(rig)
    rig.inv(qp, key)
    assert rig.sent() == [(200, "LOC_QP_OP_ERR")]


@CANNOT
def test_what_a_peer_cannot_invalidate(case: Any) -> None:
    rig = WindowRig()
    qp, key = case(rig)
    sender = rig.a
    if qp != rig.b:
        sender = max(rig.qpn)  # not_through connects its queue pair to the one made last
    rig.recv(qp, 1)
    rig.post(sender, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    assert rig.sent() == REFUSED
    assert rig.got() == [(1, "REM_INV_REQ_ERR")]


def test_remote_invalidation() -> None:
    rig = WindowRig()
    key = rig.bind_2()
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    rig.do("settle")
    (entry,) = rig.poll_all(rig.rcq)
    assert (entry["wc_flags"], entry["invalidate_rkey"]) == (["WITH_INVALIDATE"], key)
    assert rig.sent() == GOOD
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"
    assert rig.wrote(key) == REFUSED


@pytest.mark.parametrize(("closed_window_inv", "right"), [("refuse", REFUSED), ("accept", GOOD)])
def test_remote_invalidation_of_a_closed_window(closed_window_inv: str, right: list[tuple[int, str]]) -> None:
    rig = WindowRig(closed_window_inv=closed_window_inv)
    key = rig.bind_2(access=[])
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    assert rig.sent() == right


@pytest.mark.parametrize(("idle_window_inv", "right"), [("accept", "SUCCESS"), ("refuse", "LOC_QP_OP_ERR")])
def test_invalidating_what_is_not_bound(idle_window_inv: str, right: str) -> None:
    rig = WindowRig(idle_window_inv=idle_window_inv)
    rig.window()
    rig.inv(rig.b, rig.first)
    assert rig.sent() == [(200, right)]
    rig = WindowRig(two_pds=True)
    rig.window(pd=rig.pd)
    rig.inv(rig.b, rig.first)
    assert rig.sent() == [(200, "LOC_QP_OP_ERR")]


# -- who holds what --------------------------------------------------------------------------------
@KINDS
def test_a_bound_window_holds_its_region(kind: str) -> None:
    rig = WindowRig()
    key = rig.bound(kind)
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "EBUSY"
    assert rig.wrote(key) == GOOD
    assert rig.result("dealloc_mw", mw=rig.mw) == "0"
    assert rig.result("dealloc_mw", mw=rig.mw) == "EINVAL"
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"
    assert rig.wrote(key) == REFUSED


def test_each_of_two_windows_holds_the_region() -> None:
    rig = WindowRig()
    rig.bound("TYPE_1")
    first = rig.mw
    key = rig.bound("TYPE_2")
    rig.do("dealloc_mw", mw=first)
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "EBUSY"
    rig.inv(rig.b, key)
    assert rig.sent() == [(200, "SUCCESS")]
    rig.do("dealloc_mw", mw=rig.mw)  # the invalidation has counted already
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"


@KINDS
def test_a_window_whose_region_may_go(kind: str) -> None:
    rig = WindowRig(dereg_bound="accept")
    key = rig.bound(kind)
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"
    assert rig.wrote(key) == REFUSED
    assert rig.result("dealloc_mw", mw=rig.mw) == "0"


def test_a_window_holds_its_domain() -> None:
    rig = WindowRig()
    pd = rig.do("alloc_pd")["pd"]
    rig.window(pd=pd)
    assert rig.result("dealloc_pd", pd=pd) == "EBUSY"
    rig.do("dealloc_mw", mw=rig.mw)
    assert rig.result("dealloc_pd", pd=pd) == "0"


@pytest.mark.parametrize(
    ("options", "right"),
    [
        ({}, "0"),
        ({"destroy_bound": "refuse"}, "0"),  # of type 2B: o10-2.2.5
        ({"destroy_bound": "refuse", "transport": "iwarp"}, "EBUSY"),
        ({"destroy_bound": "refuse", "also": "MEM_WINDOW_TYPE_2A"}, "EBUSY"),
        ({"also": "MEM_WINDOW_TYPE_2A"}, "0"),
    ],
)
def test_destroying_a_queue_pair_with_a_window(options: dict[str, Any], right: str) -> None:
    rig = WindowRig(**options)
    key = rig.bind_2()
    assert rig.result("destroy_qp", qp=rig.b) == right
    if right == "EBUSY":
        rig.inv(rig.b, key)
        assert rig.sent() == [(200, "SUCCESS")]
        assert rig.result("destroy_qp", qp=rig.b) == "0"
    assert rig.result("dealloc_mw", mw=rig.mw) == "0"
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"


def test_a_window_freed_before_its_binding_executes() -> None:
    rig = WindowRig(pace="lazy")
    rig.window()
    rig.post_bind()
    rig.do("dealloc_mw", mw=rig.mw)
    assert rig.sent() == BAD_BIND
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"


def test_a_binding_in_error_is_flushed() -> None:
    rig = WindowRig()
    rig.move(rig.b, "ERR")
    rig.window()
    assert rig.post_bind() == "0"
    assert rig.sent() == [(50, "WR_FLUSH_ERR")]


def test_unsignalled_binding() -> None:
    rig = WindowRig()
    rig.window()
    rig.post_bind(signaled=False)
    assert rig.sent() == []
    assert rig.wrote(rig.first & ~0xFF | 7) == GOOD


def test_windows_and_regions_never_share_an_index() -> None:
    rig = WindowRig()
    seen = {rig.source["lkey"] >> 8, rig.region_b["lkey"] >> 8}
    for _ in range(50):
        rig.window()
        made = rig.reg_mr(0, 8, (), rig.pd)
        seen |= {rig.first >> 8, made["lkey"] >> 8}
    assert len(seen) == 102
