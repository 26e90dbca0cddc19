"""Memory windows: binding."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE
from softhca_windows_rig import BAD_BIND, BINDABLE, BOUND, GOOD, LENGTH, OPEN, REFUSED, START, WindowRig

KINDS = pytest.mark.parametrize("kind", ["TYPE_1", "TYPE_2"])


@KINDS
def test_a_bound_window_opens_its_part(kind: str) -> None:
    rig = WindowRig()
    key = rig.bound(kind)
    rig.put(0, bytes(range(1, 9)))
    assert rig.wrote(key) == GOOD
    assert rig.get(START, 8) == bytes(range(1, 9))
    sink = rig.sge(0, 8, rig.source["lkey"])
    rig.read(key, START + LENGTH - 8, sink)
    assert rig.sent() == GOOD
    assert rig.wrote(rig.region_b["rkey"]) == REFUSED  # the region itself opens nothing


@KINDS
@pytest.mark.parametrize(
    ("offset", "length", "right"),
    [(START, LENGTH, GOOD), (START - 1, 1, REFUSED), (START + LENGTH, 1, REFUSED), (START, LENGTH + 1, REFUSED)],
)
def test_bounds_are_those_of_the_window(kind: str, offset: int, length: int, right: list[tuple[int, str]]) -> None:
    rig = WindowRig()
    assert rig.wrote(rig.bound(kind), offset, length) == right


def test_a_zero_based_window_counts_from_its_start() -> None:
    for offset, right in ((0, GOOD), (LENGTH - 8, GOOD), (LENGTH - 7, REFUSED), (START, REFUSED)):
        rig = WindowRig()
        key = rig.bind_2(access=[*OPEN, "ZERO_BASED"])
        rig.put(0, b"12345678")
        sges = [rig.sge(0, 8, rig.source["lkey"])]
        rig.post(rig.a, "RDMA_WRITE", sg_list=sges, remote_addr=offset, rkey=key)
        assert rig.sent() == right
        assert (rig.get(START + offset, 8) == b"12345678") is (right == GOOD)


@KINDS
def test_rights_are_those_of_the_window_and_the_queue_pair(kind: str) -> None:
    rig = WindowRig()
    assert rig.wrote(rig.bound(kind, access=["REMOTE_READ"])) == REFUSED
    rig = WindowRig(access=("REMOTE_READ",))
    assert rig.wrote(rig.bound(kind)) == REFUSED
    rig = WindowRig(region=(*ALL, "MW_BIND"))
    assert rig.wrote(rig.bound(kind, access=[])) == REFUSED


@KINDS
@pytest.mark.parametrize("change", [0x01, 0x80, 0x100])
def test_the_whole_key_counts(kind: str, change: int) -> None:
    rig = WindowRig()
    assert rig.wrote(rig.bound(kind) ^ change) == REFUSED


@pytest.mark.parametrize(("kind", "right"), [("TYPE_1", GOOD), ("TYPE_2", REFUSED)])
def test_whom_a_window_serves(kind: str, right: list[tuple[int, str]]) -> None:
    """One of type 1 the whole protection domain, one of type 2 the queue pair through which it was bound."""
    rig = WindowRig()
    key = rig.bound(kind)
    sender, receiver = rig.new_qp(rig.pd), rig.new_qp(rig.pd_b)
    rig.connect(sender, receiver)
    assert rig.wrote(key, qp=sender) == right
    assert rig.wrote(key) == GOOD


def test_other_domains_are_not_served() -> None:
    rig = WindowRig()
    key = rig.bound("TYPE_1")
    other = rig.do("alloc_pd")["pd"]
    sender, receiver = rig.new_qp(rig.pd), rig.new_qp(other)
    rig.connect(sender, receiver)
    assert rig.wrote(key, qp=sender) == REFUSED


@KINDS
def test_a_new_window_opens_nothing(kind: str) -> None:
    rig = WindowRig()
    rig.window(kind)
    assert rig.wrote(rig.first) == REFUSED


def test_rebinding_type_1() -> None:
    rig = WindowRig()
    old = rig.bound("TYPE_1")
    new = rig.bind_1(addr=rig.addr + START + 500, length=10)
    assert new != old
    assert new >> 8 == old >> 8
    assert rig.sent() == BOUND
    assert rig.wrote(new, START + 500) == GOOD
    assert rig.wrote(old, START + 500) == REFUSED


@pytest.mark.parametrize("where", [{}, {"mr": 0, "addr": 0}])
def test_unbinding_type_1(where: dict[str, int]) -> None:
    rig = WindowRig()
    old = rig.bound("TYPE_1")
    new = rig.bind_1(length=0, **where)
    assert rig.sent() == BOUND
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"
    assert rig.wrote(old) == REFUSED
    rig.reconnect()
    assert rig.wrote(new) == REFUSED


def test_binding_takes_effect_when_it_executes() -> None:
    rig = WindowRig(pace="lazy")
    rig.window("TYPE_1")
    old = rig.first
    key = rig.bind_1()
    assert key == old & ~0xFF | old + 1 & 0xFF
    assert rig.sent() == BOUND
    assert rig.wrote(key) == GOOD


@pytest.mark.parametrize(
    ("kind", "region", "change"),
    [
        ("TYPE_1", ("LOCAL_WRITE",), {}),  # no MW_BIND
        ("TYPE_2", ("LOCAL_WRITE",), {}),
        ("TYPE_1", ("MW_BIND",), {}),  # no LOCAL_WRITE
        ("TYPE_2", ("MW_BIND",), {"access": ["REMOTE_ATOMIC"]}),
        ("TYPE_1", BINDABLE, {"access": ["REMOTE_READ", "ZERO_BASED"]}),
        ("TYPE_2", BINDABLE, {"length": 0}),
        ("TYPE_1", (*BINDABLE, "ZERO_BASED"), {"addr": 0}),
        ("TYPE_2", (*BINDABLE, "ZERO_BASED"), {"addr": 0}),
        ("TYPE_2", BINDABLE, {"length": 2**64 - 16}),
        ("TYPE_1", BINDABLE, {"length": 2 * PAGE}),
        ("TYPE_2", BINDABLE, {"mr": 0}),
    ],
)
def test_what_cannot_be_bound(kind: str, region: tuple[str, ...], change: dict[str, Any]) -> None:
    """It completes in error even if unsignalled, and changes nothing."""
    rig = WindowRig(region=region)
    rig.window(kind)
    if kind == "TYPE_1":
        rig.bind_1(**change, signaled=False)
    else:
        assert rig.post_bind(**change, signaled=False) == "0"
    assert rig.sent() == BAD_BIND
    assert rig.state(rig.b) == "ERR"
    assert rig.state(rig.a) == "RTS"
    assert rig.result("dereg_mr", mr=rig.region_b["mr"]) == "0"


def test_reading_needs_no_local_write() -> None:
    rig = WindowRig(region=("MW_BIND",))
    rig.bound("TYPE_2", access=["REMOTE_READ"])


@pytest.mark.parametrize("change", [{"addr": -1}, {"length": 1}, {"addr": 2 * PAGE - LENGTH - 99}])
def test_binding_by_one_byte_outside(change: dict[str, int]) -> None:
    rig = WindowRig()
    rig.window()
    at = {"addr": rig.addr + PAGE, "length": 2 * PAGE}
    assert rig.post_bind(**at) == "0"
    assert rig.sent() == BOUND
    rig.do("dealloc_mw", mw=rig.mw)
    rig.window()
    assert rig.post_bind(**{name: value + change.get(name, 0) for name, value in at.items()}) == "0"
    assert rig.sent() == BAD_BIND


@pytest.mark.parametrize("key", [7, 9])
def test_type_2_must_be_invalidated_first(key: int) -> None:
    rig = WindowRig()
    bound = rig.bind_2()
    assert rig.post_bind(rkey=key) == "0"
    assert rig.sent() == BAD_BIND
    rig.reconnect()
    assert rig.wrote(bound) == REFUSED  # that life of the queue pair is over


def test_domains_of_a_binding() -> None:
    rig = WindowRig(two_pds=True)
    rig.window("TYPE_1", rig.pd)
    assert rig.result("bind_mw", **rig.bind_args()) == "EPERM"
    for qp, pd in ((rig.a, rig.pd_b), (rig.b, rig.pd)):
        rig.window("TYPE_2", pd)
        assert rig.post_bind(qp=qp) == "0"
        assert rig.sent() == BAD_BIND


def test_what_the_library_refuses() -> None:
    rig = WindowRig()
    rig.window()
    assert rig.result("bind_mw", **rig.bind_args()) == "EINVAL"  # type 2
    rig.window("TYPE_1")
    assert rig.result("bind_mw", **rig.bind_args(mr=0)) == "EINVAL"
    assert rig.result("bind_mw", **rig.bind_args(access=["ON_DEMAND"])) == "EINVAL"
    assert rig.result("alloc_mw", pd=rig.pd, type="TYPE_UNKNOWN") == "EINVAL"
    assert rig.bind_1() == rig.first & ~0xFF | rig.first + 1 & 0xFF  # the handle had kept its key
    rig.move(rig.b, "RESET")
    assert rig.result("bind_mw", **rig.bind_args()) == "EINVAL"


def test_features_bring_their_windows() -> None:
    rig = WindowRig(without="MEM_WINDOW")
    assert rig.result("alloc_mw", pd=rig.pd, type="TYPE_1") == "EINVAL"
    rig.bind_2()
    rig = WindowRig(without="MEM_WINDOW_TYPE_2B")
    assert rig.result("alloc_mw", pd=rig.pd, type="TYPE_2") == "EINVAL"
    rig.bound("TYPE_1")
    assert rig.inv(rig.b, rig.first) == "EINVAL"
    rig = WindowRig(without="MEM_WINDOW,MEM_WINDOW_TYPE_2B")
    assert rig.result("alloc_mw", pd=rig.pd, type="TYPE_1") == "EOPNOTSUPP"


def test_options_of_binding() -> None:
    rig = WindowRig(malformed_bind="post", post_bind_type_1="refuse")
    rig.window("TYPE_1")
    assert rig.result("bind_mw", **rig.bind_args(access=["ZERO_BASED"])) == "EINVAL"
    assert rig.post_bind() == "EINVAL"
    rig.window()
    assert rig.post_bind(length=0) == "EINVAL"


@pytest.mark.parametrize(("transport", "became"), [("iwarp", BAD_BIND), ("roce", BOUND), ("ib", BOUND)])
def test_only_on_iwarp_may_a_binding_without_rights_be_refused(transport: str, became: list[tuple[int, str]]) -> None:
    rig = WindowRig(bind_no_rights="refuse", transport=transport)
    rig.window()
    assert rig.post_bind(access=[]) == "0"
    assert rig.sent() == became


def test_a_window_of_type_1_by_bind_mw_request() -> None:
    rig = WindowRig()
    rig.window("TYPE_1")
    assert rig.post_bind() == "0"
    assert rig.sent() == BOUND
    assert rig.wrote(rig.first & ~0xFF | 7) == GOOD


def test_a_window_of_type_1_may_fail_when_it_is_bound_so() -> None:
    rig = WindowRig(post_bind_type_1="fail")
    first = rig.bound("TYPE_1")
    assert rig.post_bind() == "0"
    assert rig.sent() == BAD_BIND
    rig.reconnect()
    assert rig.wrote(first) == GOOD
    rig.bind_1(key=first)  # bind_mw posts a work request too
    assert rig.sent() == BOUND


# -- stale handles ---------------------------------------------------------------------------------
@pytest.mark.parametrize("stale_handle", ["refuse", "accept"])
@pytest.mark.parametrize("mended", [False, True])
def test_a_handle_must_be_mended(stale_handle: str, mended: bool) -> None:
    rig = WindowRig(stale_handle=stale_handle)
    first = rig.bound("TYPE_1")
    rig.bind_1(length=2**63)
    assert rig.sent() == BAD_BIND
    rig.reconnect()
    rig.bind_1(**({"key": first} if mended else {}))
    assert rig.sent() == (BOUND if mended or stale_handle == "accept" else BAD_BIND)


def test_a_failed_binding_leaves_the_old_one() -> None:
    rig = WindowRig()
    key = rig.bound("TYPE_1")
    sender, receiver = rig.new_qp(rig.pd), rig.new_qp(rig.pd_b)
    rig.connect(sender, receiver)
    rig.bind_1(length=2**63)
    assert rig.sent() == BAD_BIND
    assert rig.wrote(key, qp=sender) == GOOD
