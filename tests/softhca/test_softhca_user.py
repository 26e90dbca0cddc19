"""The API of a user process: registering its memory by address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

from verbs_adapters.softhca.faults import FAULTS


def user_rig(seed: int = 0, **options: Any) -> Rig:
    return Rig(seed, api="linux-user", **options)


def reg(rig: Rig, offset: int, length: int, access: tuple[str, ...] = ALL, pd: int | None = None) -> dict[str, Any]:
    args = {"pd": rig.pd if pd is None else pd, "addr": rig.addr + offset, "length": length, "access": list(access)}
    return rig.do("reg_mr", **args)


def result(rig: Rig, addr: int, length: int, access: tuple[str, ...] = ALL) -> str:
    return rig.result("reg_mr", pd=rig.pd, addr=addr, length=length, access=list(access))


def write(rig: Rig, source: int, rkey: int, offset: int, length: int) -> list[tuple[int, str]]:
    """From the start of a's buffer through `source`, to `offset` through `rkey`."""
    sge = rig.sge(0, length, source)
    rig.post(rig.a, "RDMA_WRITE", sg_list=[sge], remote_addr=rig.addr + offset, rkey=rkey)
    return rig.sent()


def test_hello() -> None:
    hello = user_rig().hca.hello()
    assert hello.api == ("linux-user",)
    assert not {"MEM_MGT_EXTENSIONS", "FAST_REG_PAGE_LIST"} & set(hello.capabilities)
    assert hello.limits["max_mr_size"] > 0
    assert "max_fast_reg_page_list_len" not in hello.limits


def test_kernel_verbs_are_not_there() -> None:
    rig = user_rig(without="MEM_WINDOW_TYPE_2B")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("alloc_mr", {"pd": rig.pd, "max_num_sg": 1}),
        ("map_mr_sg", {"mr": 1, "sg": [], "offset": 0, "page_size": PAGE}),
        ("update_fast_reg_key", {"mr": 1, "byte": 1}),
        ("alloc_fast_reg_mr", {"pd": rig.pd, "max_page_list_len": 1}),
        ("alloc_fast_reg_page_list", {"max_page_list_len": 1}),
        ("free_fast_reg_page_list", {"list": 1}),
        ("set_page_list", {"list": 1, "pages": []}),
    ]
    assert [rig.result(verb, **args) for verb, args in calls] == ["EOPNOTSUPP"] * 7
    assert rig.inv(rig.a, 1) == "EINVAL"
    assert rig.reg(rig.a, 1, 1) == "EINVAL"
    assert rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=1) == "EINVAL"


@pytest.mark.parametrize("api", ["linux-kernel", "linux-kernel-2008"])
def test_kernel_has_no_reg_mr(api: str) -> None:
    rig = Rig(api=api)
    assert result(rig, rig.addr, 8) == "EOPNOTSUPP"


def test_bytes_move_through_registered_memory() -> None:
    rig = user_rig()
    source, sink = reg(rig, 0, 64, ()), reg(rig, 3 * PAGE - 20, PAGE + 40)
    rig.put(0, bytes(range(64)))
    assert write(rig, source["lkey"], sink["rkey"], 3 * PAGE - 20, 64) == [(1, "SUCCESS")]
    assert rig.get(3 * PAGE - 20, 64) == bytes(range(64))
    back = reg(rig, 8 * PAGE, 64, ("LOCAL_WRITE",))
    rig.read(sink["rkey"], 3 * PAGE - 20, rig.sge(8 * PAGE, 64, back["lkey"]))
    assert rig.sent() == [(1, "SUCCESS")]
    assert rig.get(8 * PAGE, 64) == bytes(range(64))
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 8, back["lkey"]))
    rig.send(rig.a, 1, rig.sge(8, 8, source["lkey"]))
    assert (rig.sent(), rig.got()) == ([(1, "SUCCESS")], [(1, "SUCCESS")])
    assert rig.get(8 * PAGE, 8) == bytes(range(8, 16))


@pytest.mark.parametrize(
    ("offset", "length", "status"),
    [
        (PAGE, 8, "SUCCESS"),
        (PAGE + 56, 8, "SUCCESS"),
        (PAGE + 57, 8, "REM_ACCESS_ERR"),
        (PAGE - 1, 8, "REM_ACCESS_ERR"),
        (0, 0, "SUCCESS"),
    ],
)
def test_bounds_are_those_of_the_registration(offset: int, length: int, status: str) -> None:
    rig = user_rig()
    source, sink = reg(rig, 0, 64), reg(rig, PAGE, 64)
    assert write(rig, source["lkey"], sink["rkey"], offset, length) == [(1, status)]


@pytest.mark.parametrize("dma_lkey", ["zero", "reserved"])
def test_no_key_opens_memory_without_a_region(dma_lkey: str) -> None:
    rig = user_rig(dma_lkey=dma_lkey)
    assert rig.dma == 0
    for lkey in (0, 0x100, 0x1FF):
        rig = user_rig(dma_lkey=dma_lkey)
        rig.recv(rig.b, 1)
        rig.send(rig.a, 1, rig.sge(0, 8, lkey))
        assert rig.sent() == [(1, "LOC_PROT_ERR")]


def test_what_cannot_be_registered() -> None:
    rig = user_rig()
    gone = rig.do("alloc_buffer", length=64)
    rig.do("free_buffer", buf=gone["buf"])
    end = rig.addr + 16 * PAGE
    assert result(rig, rig.addr, 8, ("REMOTE_WRITE",)) == "EINVAL"
    assert result(rig, rig.addr, 8, ("ON_DEMAND",)) == "EINVAL"
    assert result(rig, rig.addr, 0) == "EINVAL"
    assert result(rig, 0, 8) == "EFAULT"
    assert result(rig, gone["addr"], 8) == "EFAULT"
    assert result(rig, end - 8, 9) == "EFAULT"
    assert result(rig, rig.addr - 1, 8) == "EFAULT"
    assert result(rig, rig.addr, 2**64 - rig.addr) == "EINVAL"
    assert result(rig, rig.addr, 2**64 - 1) == "EINVAL"
    assert result(rig, 2**64 - PAGE - 8, 8) == "EFAULT"
    assert result(rig, 2**64 - PAGE - 8, 9) == "EINVAL"  # its page would end at 2^64
    args = {"addr": rig.addr, "length": 8, "access": []}
    assert rig.result("reg_mr", pd=999, **args) == "EINVAL"
    for qp in (rig.a, rig.b):
        rig.do("destroy_qp", qp=qp)
    assert rig.result("dealloc_pd", pd=rig.pd) == "0"  # nothing refused counts


def test_memory_is_mapped_in_whole_pages() -> None:
    rig = user_rig()
    small = rig.do("alloc_buffer", length=100)
    assert result(rig, small["addr"], PAGE) == "0"
    assert result(rig, small["addr"], PAGE + 1) == "EFAULT"
    assert rig.result("read_buffer", buf=small["buf"], offset=100, length=1) == "EINVAL"


def test_a_child_keeps_its_domain() -> None:
    rig = user_rig()
    pd = rig.do("alloc_pd")["pd"]
    mr = reg(rig, 0, 8, pd=pd)["mr"]
    assert rig.result("dealloc_pd", pd=pd) == "EBUSY"
    rig.do("dereg_mr", mr=mr)
    assert rig.result("dealloc_pd", pd=pd) == "0"


def test_deregistration_kills_the_key() -> None:
    rig = user_rig()
    source, sink = reg(rig, 0, 64), reg(rig, PAGE, 64)
    rig.do("dereg_mr", mr=sink["mr"])
    assert rig.result("dereg_mr", mr=sink["mr"]) == "EINVAL"
    assert write(rig, source["lkey"], sink["rkey"], PAGE, 8) == [(1, "REM_ACCESS_ERR")]


def test_keys_differ_and_domains_are_compared() -> None:
    rig = user_rig(two_pds=True)
    source, sink = reg(rig, 0, 64), reg(rig, 0, 64)
    assert source["lkey"] != sink["lkey"]
    assert write(rig, source["lkey"], sink["rkey"], PAGE, 8) == [(1, "REM_ACCESS_ERR")]


def test_a_region_pins_its_memory() -> None:
    """A buffer given back stays reachable through the region, and through nothing new."""
    rig = user_rig()
    made = rig.do("alloc_buffer", length=64)
    source = reg(rig, 0, 64)
    sink = rig.do("reg_mr", pd=rig.pd, addr=made["addr"], length=64, access=list(ALL))
    rig.do("free_buffer", buf=made["buf"])
    assert result(rig, made["addr"], 8) == "EFAULT"
    assert write(rig, source["lkey"], sink["rkey"], made["addr"] - rig.addr, 8) == [(1, "SUCCESS")]
    rig.do("dereg_mr", mr=sink["mr"])
    assert not rig.hca._objects.memory._chunks.keys() & {made["addr"] >> 16}


@pytest.mark.parametrize(("local_rkey", "same"), [("same", True), ("zero", False)])
def test_rkey_of_a_local_region(local_rkey: str, same: bool) -> None:
    rig = user_rig(local_rkey=local_rkey)
    local, remote = reg(rig, 0, 8, ("LOCAL_WRITE",)), reg(rig, 0, 8)
    assert (local["rkey"] == local["lkey"]) is same
    assert remote["rkey"] == remote["lkey"]


def test_an_empty_region_grants_nothing() -> None:
    rig = user_rig(empty_reg="accept")
    source, sink = reg(rig, 0, 64), reg(rig, PAGE, 0)
    assert write(rig, source["lkey"], sink["rkey"], PAGE, 1) == [(1, "REM_ACCESS_ERR")]


def test_too_many_regions() -> None:
    rig = user_rig(max_objects="2")
    reg(rig, 0, 8)
    reg(rig, 0, 8)
    assert result(rig, rig.addr, 8) == "ENOMEM"


def stale_key_of_new_region(rig: Rig) -> Any:
    old = reg(rig, 0, 8)
    rig.do("dereg_mr", mr=old["mr"])
    return reg(rig, PAGE, 8)["lkey"] == old["lkey"]


def rights_of_the_region(rig: Rig) -> list[tuple[int, str]]:
    return write(rig, reg(rig, 0, 64)["lkey"], reg(rig, PAGE, 64, ("LOCAL_WRITE",))["rkey"], PAGE, 8)


def byte_past_the_end(rig: Rig) -> list[tuple[int, str]]:
    return write(rig, reg(rig, 0, 64)["lkey"], reg(rig, PAGE, 64)["rkey"], PAGE + 57, 8)


def empty_registration(rig: Rig) -> str:
    return result(rig, rig.addr, 0)


def remote_write_alone(rig: Rig) -> str:
    return result(rig, rig.addr, 8, ("REMOTE_WRITE",))


def domain_after_refusal(rig: Rig) -> str:
    pd = rig.do("alloc_pd")["pd"]
    rig.call("reg_mr", pd=pd, addr=0, length=8, access=[])
    return rig.result("dealloc_pd", pd=pd)


def unwritable_sink(rig: Rig) -> list[tuple[int, str]]:
    rig.read(reg(rig, PAGE, 64)["rkey"], PAGE, rig.sge(0, 8, reg(rig, 0, 64, ())["lkey"]))
    return rig.sent()


SHOWN: dict[str, tuple[Callable[[Rig], Any], Any]] = {
    "freed-key-reused-at-once": (stale_key_of_new_region, False),
    "region-rights-ignored": (rights_of_the_region, [(1, "REM_ACCESS_ERR")]),
    "one-byte-past-end-allowed": (byte_past_the_end, [(1, "REM_ACCESS_ERR")]),
    "empty-region-has-no-bounds": (empty_registration, "EINVAL"),
    "remote-write-without-local-write": (remote_write_alone, "EINVAL"),
    "failed-alloc-leaks-pd-reference": (domain_after_refusal, "0"),
    "sink-needs-no-local-write": (unwritable_sink, [(1, "LOC_PROT_ERR")]),
}


@pytest.mark.parametrize("fault", SHOWN)
def test_fault_shows(fault: str) -> None:
    scenario, right = SHOWN[fault]
    assert scenario(user_rig()) == right
    assert scenario(user_rig(fault=fault)) != right


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_broken_device_still_answers(fault: str) -> None:
    rig = user_rig(depth=8, cqe=20, fault=fault)
    answer = rig.call("reg_mr", pd=rig.pd, addr=rig.addr, length=64, access=["LOCAL_WRITE", "REMOTE_WRITE"])
    keys = answer.out
    for wr_id in range(20):
        rig.recv(rig.b, wr_id)
        rig.send(rig.a, wr_id, rig.sge(0, 8, keys["lkey"]))
        rig.write(keys["rkey"], 8, 0, wr_id)
        rig.hca.call("settle", {})
        for cq in (rig.scq, rig.rcq):
            while rig.do("poll_cq", cq=cq)["n"]:
                pass
