"""Memory windows: binding, what is opened, invalidation, and what holds what."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

GOOD = [(1, "SUCCESS")]
REFUSED = [(1, "REM_ACCESS_ERR")]
BOUND = [(50, "SUCCESS")]
BAD_BIND = [(50, "MW_BIND_ERR")]
OPEN = ("REMOTE_WRITE", "REMOTE_READ")
START, LENGTH = PAGE + 100, 1000  # of the windows here
BINDABLE = ("LOCAL_WRITE", "MW_BIND")


class WindowRig(Rig):
    """b has a region of two pages with MW_BIND, a one to send from."""

    def __init__(self, *, region: tuple[str, ...] = BINDABLE, **options: Any) -> None:
        super().__init__(api="linux-user", **options)
        self.source = self.reg_mr(0, 4 * PAGE, ("LOCAL_WRITE",), self.pd)
        self.region_b = self.reg_mr(PAGE, 2 * PAGE, region, self.pd_b)

    def reg_mr(self, offset: int, length: int, access: tuple[str, ...], pd: int) -> dict[str, Any]:
        return self.do("reg_mr", pd=pd, addr=self.addr + offset, length=length, access=list(access))

    def window(self, kind: str = "TYPE_2", pd: int | None = None) -> None:
        made = self.do("alloc_mw", pd=self.pd_b if pd is None else pd, type=kind)
        self.first: int = made["rkey"]
        self.mw: int = made["mw"]

    def bind_args(self, **more: Any) -> dict[str, Any]:
        where = {"mr": self.region_b["mr"], "addr": self.addr + START, "length": LENGTH, "access": list(OPEN)}
        return {"qp": self.b, "mw": self.mw, "wr_id": 50, "signaled": True, **where, **more}

    def bind_1(self, **more: Any) -> int:
        key: int = self.do("bind_mw", **self.bind_args(**more))["rkey"]
        return key

    def post_bind(self, **more: Any) -> str:
        return self.result("post_send", **self.bind_args(**{"opcode": "BIND_MW", "fence": False, "rkey": 7, **more}))

    def bind_2(self, **more: Any) -> int:
        """A window of type 2 is bound; its key."""
        self.window()
        assert self.post_bind(**more) == "0"
        assert self.sent() == BOUND
        return self.first & ~0xFF | 7

    def bound(self, kind: str, **more: Any) -> int:
        if kind == "TYPE_2":
            return self.bind_2(**more)
        self.window(kind)
        key = self.bind_1(**more)
        assert self.sent() == BOUND
        return key

    def wrote(self, key: int, offset: int = START, length: int = 8, qp: int | None = None) -> list[tuple[int, str]]:
        sges = [self.sge(0, length, self.source["lkey"])]
        fields = {"sg_list": sges, "remote_addr": self.addr + offset, "rkey": key}
        assert self.post(self.a if qp is None else qp, "RDMA_WRITE", **fields) == "0"
        return self.sent()

    def reconnect(self) -> None:
        for qp in (self.a, self.b):
            self.move(qp, "RESET")
        self.connect(self.a, self.b)


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
