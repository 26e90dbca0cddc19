"""Overlapped requests of NetworkDirect and WinVerbs: registration, notification, cancelling."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

ND, WV = "networkdirect", "winverbs"
APIS = pytest.mark.parametrize("api", [ND, WV])
PENDING = {ND: "ND_PENDING", WV: "WV_PENDING"}
CANCELLED = {ND: "ND_CANCELED", WV: "WV_CANCELLED"}


class WindowsRig(Rig):
    """Two connected queue pairs, under either API; requests are pending unless an option says otherwise."""

    def __init__(self, api: str, **options: Any) -> None:
        self.api = api
        super().__init__(connect=False, api=api, **{"overlapped": "pending", "pace": "lazy", **options})
        if api == ND:
            self.do("connect_qp", qp=self.a, peer=self.b)
        else:
            self.connect(self.a, self.b)

    def register(self, offset: int, length: int, access: tuple[str, ...] = ALL) -> dict[str, Any]:
        """Ask for a registration."""
        what = {"addr": self.addr + offset, "length": length, "access": list(access)}
        if self.api == WV:
            return self.do("register_memory", pd=self.pd, **what)
        region = self.do("create_memory_region", pd=self.pd)["region"]
        return {"region": region, **self.do("register_memory_region", region=region, **what)}

    def registered(self, offset: int, length: int, **more: Any) -> Any:
        """A region, with its request: `mr`, keys, and under NetworkDirect `region`."""
        made = self.register(offset, length, **more)
        self.do("settle")
        return {**made, **self.do("get_registration", request=made["request"])}

    def outcome(self, request: int) -> str:
        return self.result("get_overlapped_result", request=request)

    def notify(self, kind: str = "ANY", cq: int | None = None) -> tuple[int, bool]:
        made = self.do("notify_cq", cq=self.rcq if cq is None else cq, type=kind)
        return made["request"], made["pending"]

    def deregister(self, made: dict[str, Any]) -> str:
        if self.api == ND:
            answer = self.call("deregister_memory_region", region=made["region"])
        else:
            answer = self.call("deregister_memory", mr=made["mr"])
        self.request = answer.out.get("request", 0)
        return answer.result

    def message(self, lkey: int, **more: Any) -> None:
        """One message from a to b, of nothing."""
        self.recv(self.b, 1)
        self.send(self.a, 1, self.sge(0, 0, lkey), **more)
        self.do("settle")


@APIS
def test_keys_work_when_the_registration_is_done(api: str) -> None:
    rig = WindowsRig(api)
    made = rig.register(0, PAGE)
    assert made["pending"]
    assert rig.result("get_registration", request=made["request"]) == PENDING[api]
    rig.do("settle")
    keys = rig.do("get_registration", request=made["request"])
    if api == ND:
        assert (made["lkey"], made["rkey"]) == (keys["lkey"], keys["rkey"])
    rig.put(0, b"12345678")
    fields = {"sg_list": [rig.sge(0, 8, keys["lkey"])], "remote_addr": rig.addr + 100, "rkey": keys["rkey"]}
    assert rig.result("post_send", qp=rig.a, wr_id=1, opcode="RDMA_WRITE", signaled=True, fence=False, **fields) == "0"
    assert rig.sent() == [(1, "SUCCESS")]
    assert rig.get(100, 8) == b"12345678"


def test_tokens_are_there_and_open_nothing_before() -> None:
    rig = WindowsRig(ND)
    made = rig.register(0, PAGE)
    region = rig.hca._objects.keys.find(made["rkey"])
    assert region is not None
    assert not region.valid
    rig.do("settle")
    assert region.valid
    assert region.hw_key == made["lkey"] == made["rkey"]


@APIS
def test_done_at_once(api: str) -> None:
    rig = WindowsRig(api, overlapped="at_once")
    made = rig.register(0, PAGE)
    assert not made["pending"]
    assert rig.do("get_registration", request=made["request"])["lkey"]


@APIS
@pytest.mark.parametrize("overlapped", ["at_once", "pending"])
def test_memory_that_is_not_there(api: str, overlapped: str) -> None:
    rig = WindowsRig(api, overlapped=overlapped)
    pd = rig.pd = rig.do("alloc_pd")["pd"]
    word = {ND: "ND_ACCESS_VIOLATION", WV: "WV_ACCESS_VIOLATION"}[api]
    if overlapped == "at_once":
        with pytest.raises(AssertionError, match=word):
            rig.register(17 * PAGE, 8)
    else:
        made = rig.register(17 * PAGE, 8)
        rig.do("settle")
        assert rig.result("get_registration", request=made["request"]) == word
        if api == ND:  # a region object whose registration failed holds none
            assert rig.result("release_memory_region", region=made["region"]) == "0"
    assert rig.result("dealloc_pd", pd=pd) == "0"


@APIS
def test_remote_write_brings_local_write(api: str) -> None:
    rig = WindowsRig(api)
    made = rig.registered(0, PAGE, access=("REMOTE_WRITE",))
    rig.recv(rig.b, 1, rig.sge(100, 8, made["lkey"]))
    rig.send(rig.a, 1, rig.sge(0, 8, made["lkey"]))
    assert rig.got() == [(1, "SUCCESS")]


@APIS
def test_deregistration(api: str) -> None:
    rig = WindowsRig(api)
    made = rig.registered(0, PAGE)
    assert rig.deregister(made) == "0"
    assert rig.outcome(rig.request) == PENDING[api]
    if api == WV:
        assert rig.deregister(made) == "WV_NOT_FOUND"
        assert rig.result("dealloc_pd", pd=rig.pd) == "E_ACCESSDENIED"
    else:
        rig.do("settle")
        assert rig.result("release_memory_region", region=made["region"]) == "0"
    rig.do("settle")
    rig.send(rig.a, 1, rig.sge(0, 8, made["lkey"]))
    assert rig.sent() == [(1, "ND_ACCESS_VIOLATION" if api == ND else "LOC_PROT_ERR")]


def test_a_region_object_holds_one_registration() -> None:
    rig = WindowsRig(ND)
    made = rig.register(0, PAGE)
    what = {"region": made["region"], "addr": rig.addr, "length": 8, "access": []}
    assert rig.result("register_memory_region", **what) == "ND_INVALID_DEVICE_STATE"
    assert rig.result("release_memory_region", region=made["region"]) == "ND_DEVICE_BUSY"
    rig.do("settle")
    rig.do("get_registration", request=made["request"])
    assert rig.result("register_memory_region", **what) == "ND_INVALID_DEVICE_STATE"
    rig.do("deregister_memory_region", region=made["region"])
    assert rig.result("register_memory_region", **what) == "0"


def test_regions_of_winverbs_go_with_their_domain() -> None:
    rig = WindowsRig(WV)
    pd, rig.pd = rig.pd, rig.do("alloc_pd")["pd"]
    made = rig.registered(0, PAGE)
    assert rig.result("dealloc_pd", pd=rig.pd) == "0"
    assert rig.deregister(made) == "WV_NOT_FOUND"
    rig.pd = pd
    rig.send(rig.a, 1, rig.sge(0, 8, made["lkey"]))
    assert rig.sent() == [(1, "LOC_PROT_ERR")]


# -- notifications ---------------------------------------------------------------------------------
@APIS
def test_one_event_completes_all_that_wait(api: str) -> None:
    rig = WindowsRig(api)
    waiting = [rig.notify(kind)[0] for kind in ("ANY", "SOLICITED", "ANY")]
    errors, _ = rig.notify("ERRORS")
    assert [rig.outcome(request) for request in waiting] == [PENDING[api]] * 3
    rig.message(0)
    assert [rig.outcome(request) for request in waiting] == ["0"] * 3
    assert rig.outcome(errors) == PENDING[api]
    assert rig.outcome(waiting[0]) == "0"  # as often as it is asked


@APIS
def test_errors_arm_nothing(api: str) -> None:
    rig = WindowsRig(api)
    errors, _ = rig.notify("ERRORS")
    solicited, _ = rig.notify("SOLICITED")
    rig.message(0)
    assert (rig.outcome(errors), rig.outcome(solicited)) == (PENDING[api], PENDING[api])


@APIS
def test_a_failed_completion_is_solicited(api: str) -> None:
    rig = WindowsRig(api)
    request, _ = rig.notify("SOLICITED", rig.scq)
    rig.send(rig.a, 1, rig.sge(0, 8, 0xDEAD))
    rig.do("settle")
    assert rig.outcome(request) == "0"


@APIS
def test_any_raises_and_nothing_lowers(api: str) -> None:
    rig = WindowsRig(api)
    waiting = [rig.notify(kind)[0] for kind in ("SOLICITED", "ANY", "SOLICITED")]
    rig.message(0)
    assert [rig.outcome(request) for request in waiting] == ["0"] * 3


@pytest.mark.parametrize("overlapped", ["at_once", "pending"])
def test_what_came_unasked_answers_the_next_request(overlapped: str) -> None:
    """NetworkDirect: nothing is missed between an empty poll and the request, and nothing counts twice."""
    rig = WindowsRig(ND, overlapped=overlapped)
    rig.message(0)
    first, pending = rig.notify()
    assert pending is (overlapped == "pending")
    rig.do("settle")
    assert rig.outcome(first) == "0"
    second, pending = rig.notify()
    rig.do("settle")
    assert (pending, rig.outcome(second)) == (True, "ND_PENDING")
    rig.message(0)
    assert rig.outcome(second) == "0"


@APIS
def test_what_the_sender_solicits(api: str) -> None:
    rig = WindowsRig(api)
    request, _ = rig.notify("SOLICITED")
    rig.message(0)
    assert rig.outcome(request) == PENDING[api]
    rig.message(0, solicited=True)
    assert rig.outcome(request) == "0"


def test_solicited_needs_one_that_is() -> None:
    rig = WindowsRig(ND, overlapped="at_once")
    rig.message(0)
    request, pending = rig.notify("SOLICITED")
    assert (pending, rig.outcome(request)) == (True, "ND_PENDING")


def test_winverbs_counts_from_the_request_on() -> None:
    rig = WindowsRig(WV, overlapped="at_once")
    rig.message(0)
    request, pending = rig.notify()
    assert (pending, rig.outcome(request)) == (True, "WV_PENDING")


@APIS
def test_cancelling(api: str) -> None:
    rig = WindowsRig(api)
    waiting = [rig.notify(kind)[0] for kind in ("ANY", "ERRORS")]
    assert rig.result("cancel_overlapped_requests", cq=rig.rcq) == "0"
    assert [rig.outcome(request) for request in waiting] == [CANCELLED[api]] * 2
    again, _ = rig.notify()
    rig.message(0)
    assert rig.outcome(again) == "0"


@APIS
def test_destroying_the_queue_cancels(api: str) -> None:
    rig = WindowsRig(api)
    cq = rig.do("create_cq", cqe=4)["cq"]
    waiting = [rig.notify(kind, cq)[0] for kind in ("ANY", "ERRORS")]
    assert rig.result("destroy_cq", cq=cq) == "0"
    assert [rig.outcome(request) for request in waiting] == [CANCELLED[api]] * 2


@pytest.mark.parametrize(("api", "word"), [(ND, "ND_BUFFER_OVERFLOW"), (WV, "STATUS_UNEXPECTED_IO_ERROR")])
def test_a_queue_that_overran_is_of_no_use(api: str, word: str) -> None:
    rig = WindowsRig(api, cqe=1)
    waiting = [rig.notify(kind, rig.scq)[0] for kind in ("SOLICITED", "ERRORS")]
    for wr_id in range(3):
        rig.recv(rig.b, wr_id)
        rig.send(rig.a, wr_id)
    rig.do("settle")
    assert [rig.outcome(request) for request in waiting] == [word] * 2
    assert rig.result("notify_cq", cq=rig.scq, type="ANY") == word


@APIS
def test_what_is_none_of_these(api: str) -> None:
    rig = WindowsRig(api)
    invalid = {ND: "ND_INVALID_PARAMETER", WV: "WV_INVALID_PARAMETER"}[api]
    assert rig.result("notify_cq", cq=rig.rcq, type="NEXT") == invalid
    assert rig.outcome(999) == invalid
    assert rig.result("cancel_overlapped_requests", cq=999) == invalid
    assert rig.result("reg_mr", pd=rig.pd, addr=rig.addr, length=8, access=[]) == "EOPNOTSUPP"
    other = {ND: ("register_memory", {"pd": rig.pd}), WV: ("register_memory_region", {"region": 1})}[api]
    assert rig.result(other[0], **other[1], addr=rig.addr, length=8, access=[]) == "EOPNOTSUPP"
    request, _ = rig.notify()
    rig.message(0)
    assert rig.result("get_registration", request=request) == invalid
