"""Fast registration, both interfaces, and invalidation."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

OLD_SHIFT = 12


def old_rig(seed: int = 0, **options: Any) -> Rig:
    return Rig(seed, api="linux-kernel-2008", **options)


def fast_reg(rig: Rig, pages: list[int], **fields: Any) -> tuple[str, list[tuple[int, str]], int, int]:
    """Register a page list through b; post result, completions, key and list."""
    key = rig.do("alloc_fast_reg_mr", pd=rig.pd, max_page_list_len=4)["key"]
    plist = rig.do("alloc_fast_reg_page_list", max_page_list_len=4)["list"]
    rig.do("set_page_list", list=plist, pages=pages)
    fields = {
        "key": key,
        "access": list(ALL),
        "list": plist,
        "page_list_len": len(pages),
        "page_shift": OLD_SHIFT,
        "iova_start": 0x7000_0000,
        "length": len(pages) << OLD_SHIFT,
        **fields,
    }
    posted = rig.post(rig.b, "FAST_REG_MR", 1, **fields)
    return posted, rig.sent(), key, plist


def elements(rig: Rig, *spans: tuple[int, int]) -> list[dict[str, int]]:
    return [{"addr": rig.addr + offset, "length": length} for offset, length in spans]


@pytest.mark.parametrize(
    ("spans", "offset", "page", "n", "length"),
    [
        ([(100, 50)], 0, PAGE, 1, 50),
        ([(100, 50)], 50, PAGE, 1, 0),
        ([(100, PAGE - 100), (2 * PAGE, 10)], 0, PAGE, 2, PAGE - 90),
        ([(100, 50), (2 * PAGE, 10)], 0, PAGE, 1, 50),  # ends inside a page
        ([(0, PAGE), (2 * PAGE + 4, 10)], 0, PAGE, 1, PAGE),  # begins inside a page
        ([(100, 50), (150, 50)], 0, PAGE, 2, 100),  # continues exactly
        ([(0, 5 * PAGE)], 0, PAGE, 0, 4 * PAGE),  # four pages are all there is
        ([(100, 5 * PAGE)], 0, PAGE, 0, 4 * PAGE - 100),
        ([(0, PAGE), (PAGE, PAGE), (2 * PAGE, 4 * PAGE)], 0, PAGE, 2, 4 * PAGE),
        ([(0, 512), (4 * 512, 512), (512, 3)], 0, 512, 3, 1027),
        ([(100, 0), (100, 20)], 0, PAGE, 2, 20),
    ],
)
def test_map(spans: list[tuple[int, int]], offset: int, page: int, n: int, length: int) -> None:
    rig = Rig()
    mr, _ = rig.region(pages=4)
    out = rig.do("map_mr_sg", mr=mr, sg=elements(rig, *spans), offset=offset, page_size=page)
    assert out == {"n": n, "iova": rig.addr + spans[0][0] + offset, "length": length}


@pytest.mark.parametrize(
    ("spans", "offset", "page"),
    [
        ([], 0, PAGE),
        ([(0, 50)], 51, PAGE),
        ([(0, 50)], 0, 0),
        ([(0, 50)], 0, 256),
        ([(0, 50)], 0, 3 * PAGE),
        ([(0, 50)], 0, 1 << 21),
        ([(0, 1 << 32)], 0, PAGE),
    ],
)
def test_unmappable_leaves_the_vector(spans: list[tuple[int, int]], offset: int, page: int) -> None:
    rig = Rig()
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    args: dict[str, Any] = {"sg": elements(rig, *spans), "offset": offset, "page_size": page}
    assert rig.result("map_mr_sg", mr=mr, **args) == "EINVAL"
    rig.reg(rig.b, mr, key)
    assert rig.sent() == [(100, "SUCCESS")]
    rig.write(key, PAGE, 8)
    assert rig.sent() == [(1, "SUCCESS")]


@pytest.mark.parametrize("page", [512, 1024, PAGE, 2 * PAGE])
def test_bytes_land_where_the_list_says(page: int) -> None:
    rig = Rig()
    rig.put(0, bytes(range(200)))
    mr, key = rig.region()
    spans = [(10 * PAGE - 50, 50), (6 * PAGE, page), (12 * PAGE, 100)]
    rig.do("map_mr_sg", mr=mr, sg=elements(rig, *spans), offset=0, page_size=page)
    rig.reg(rig.b, mr, key)
    rig.sent()
    rig.write(key, 10 * PAGE - 50, 50 + 150)
    assert rig.sent() == [(1, "SUCCESS")]
    assert rig.get(10 * PAGE - 50, 50) == bytes(range(50))
    assert rig.get(6 * PAGE, 150) == bytes(range(50, 200))
    rig.read(key, 10 * PAGE - 50, rig.sge(PAGE, 200))
    assert rig.sent() == [(1, "SUCCESS")]
    assert rig.get(PAGE, 200) == bytes(range(200))


def test_frozen_at_post() -> None:
    """What happens to the handle after the post does not reach the work request."""
    rig = Rig(pace="lazy")
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    rig.reg(rig.b, mr, key)
    rig.map(mr, 2 * PAGE, 64)
    rig.do("update_fast_reg_key", mr=mr, byte=(key + 1) & 0xFF)
    rig.sent()
    rig.write(key, PAGE, 8)
    assert rig.sent() == [(1, "SUCCESS")]


def test_vector_read_at_execution() -> None:
    rig = Rig(pace="lazy", map_read="execute")
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    rig.reg(rig.b, mr, key)
    rig.map(mr, 2 * PAGE, 64)
    rig.sent()
    rig.write(key, 2 * PAGE, 8)
    assert rig.sent() == [(1, "SUCCESS")]


def bad_registration(rig: Rig, what: str) -> str:
    pd = rig.do("alloc_pd")["pd"] if what == "pd" else rig.pd
    mr, key = rig.region(pd=pd)
    if what != "unmapped":
        rig.map(mr, PAGE, 0 if what == "empty" else 64)
    access = ("REMOTE_WRITE",) if what == "rights" else ALL
    return rig.reg(rig.b, mr, key ^ 0x100 if what == "index" else key, access)


@pytest.mark.parametrize("what", ["pd", "unmapped", "empty", "rights", "index"])
@pytest.mark.parametrize("status", ["LOC_QP_OP_ERR", "MW_BIND_ERR", "LOC_PROT_ERR"])
def test_bad_registration(what: str, status: str) -> None:
    rig = Rig(bad_op_status=status)
    assert bad_registration(rig, what) == "0"
    rig.send(rig.b, 2, signaled=False)
    assert rig.sent() == [(100, status), (2, "WR_FLUSH_ERR")]
    assert rig.state(rig.b) == "ERR"


@pytest.mark.parametrize("what", ["pd", "unmapped", "empty", "rights", "index"])
def test_nothing_of_a_registration_is_refused_at_post(what: str) -> None:
    rig = Rig(reg_check="post")
    assert bad_registration(rig, what) == "0"
    assert rig.sent() == [(100, "LOC_QP_OP_ERR")]


def test_empty_region_grants_nothing() -> None:
    rig = Rig(empty_reg="accept")
    assert bad_registration(rig, "empty") == "0"
    assert rig.sent() == [(100, "SUCCESS")]


@pytest.mark.parametrize(("stale", "status"), [("accept", "SUCCESS"), ("refuse", "LOC_QP_OP_ERR")])
def test_invalidating_twice(stale: str, status: str) -> None:
    rig = Rig(stale_inv=stale)
    _, key = rig.registered(PAGE, 64)
    for wr_id in (1, 2):
        rig.inv(rig.b, key, wr_id)
    assert rig.sent() == [(1, "SUCCESS"), (2, "SUCCESS")]
    rig.inv(rig.b, key ^ 1, 3)
    assert rig.sent() == [(3, status)]


def test_invalidating_what_is_gone() -> None:
    rig = Rig()
    mr, key = rig.registered(PAGE, 64)
    rig.do("dereg_mr", mr=mr)
    rig.inv(rig.b, key)
    assert rig.sent() == [(200, "LOC_QP_OP_ERR")]


@pytest.mark.parametrize("key", [0, 0x1FF])
def test_reserved_keys_cannot_be_invalidated(key: int) -> None:
    rig = Rig()
    rig.inv(rig.b, key)
    assert rig.sent() == [(200, "LOC_QP_OP_ERR")]


@pytest.mark.parametrize("early", ["false", "true"])
def test_unfenced_invalidation_may_overtake(early: str) -> None:
    """Without the option it waits; with it some schedule has it first. A fence forbids it always."""
    outcomes = set()
    for seed in range(30):
        rig = Rig(seed, local_inv_early=early)
        _, key = rig.registered(PAGE, 64)
        rig.recv(rig.a, 1, rig.sge(8 * PAGE, 8))
        rig.send(rig.b, 1, rig.sge(PAGE, 8, key))
        rig.inv(rig.b, key)
        outcomes.add(rig.sent()[0])
        rig = Rig(seed, local_inv_early=early)
        _, key = rig.registered(PAGE, 64)
        rig.recv(rig.a, 1, rig.sge(8 * PAGE, 8))
        rig.send(rig.b, 1, rig.sge(PAGE, 8, key))
        rig.inv(rig.b, key, fence=True)
        assert rig.sent() == [(1, "SUCCESS"), (200, "SUCCESS")]
    assert outcomes == {(1, "SUCCESS")} | ({(1, "LOC_PROT_ERR")} if early == "true" else set())


@pytest.mark.parametrize(("how", "status"), [("nak", "REM_ACCESS_ERR"), ("silent", "RETRY_EXC_ERR")])
def test_refused_remote_invalidation(how: str, status: str) -> None:
    rig = Rig(send_inv_failure=how)
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1)
    rig.recv(rig.b, 2)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key ^ 1)
    assert rig.sent() == [(1, status)]
    assert rig.got() == [(1, "REM_INV_REQ_ERR"), (2, "WR_FLUSH_ERR")]
    assert rig.state(rig.b) == "ERR"


def test_remote_invalidation_kills_the_key() -> None:
    rig = Rig()
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    assert rig.sent() == [(1, "SUCCESS")]
    rig.write(key, PAGE, 8)
    assert rig.sent() == [(1, "REM_ACCESS_ERR")]


# -- the interface of 2008 -------------------------------------------------------------------------
def test_page_list_translates() -> None:
    rig = old_rig()
    rig.put(0, bytes(range(64)))
    pages = [rig.addr + 9 * PAGE, rig.addr + 3 * PAGE]
    iova = 0x7000_0000 + PAGE - 32
    _, done, key, _ = fast_reg(rig, pages, iova_start=iova, length=PAGE)
    assert done == [(1, "SUCCESS")]
    rig.write(key, 0, 64, remote_addr=iova)
    assert rig.sent() == [(1, "SUCCESS")]
    assert rig.get(10 * PAGE - 32, 32) == bytes(range(32))
    assert rig.get(3 * PAGE, 32) == bytes(range(32, 64))


@pytest.mark.parametrize(
    "fields",
    [
        {"length": PAGE + 1},
        {"length": PAGE, "iova_start": 0x7000_0001},
        {"length": 0},
        {"page_shift": 8},
        {"page_shift": 21},
        {"iova_start": 2**64 - PAGE + 8, "length": PAGE - 4},
        {"page_shift": 13, "length": 8},  # the page is not aligned to 8192
        {"access": ["REMOTE_WRITE"]},
    ],
)
def test_bad_fast_registration(fields: dict[str, Any]) -> None:
    rig = old_rig()
    posted, done, _, _ = fast_reg(rig, [rig.addr + PAGE], **fields)
    assert (posted, done) == ("0", [(1, "LOC_QP_OP_ERR")])


@pytest.mark.parametrize(
    ("where", "posted", "done"), [("execute", "0", [(1, "LOC_QP_OP_ERR")]), ("post", "EINVAL", [])]
)
def test_more_pages_than_the_region_can_have(where: str, posted: str, done: list[tuple[int, str]]) -> None:
    rig = old_rig(reg_check=where, list_slack="1")
    pages = [rig.addr + at * PAGE for at in range(5)]
    assert fast_reg(rig, pages)[:2] == (posted, done)
    assert rig.state(rig.b) == ("RTS" if where == "post" else "ERR")


@pytest.mark.parametrize("where", ["execute", "post"])
def test_as_many_pages_as_the_region_can_have(where: str) -> None:
    rig = old_rig(reg_check=where)
    pages = [rig.addr + at * PAGE for at in range(4)]
    assert fast_reg(rig, pages)[:2] == ("0", [(1, "SUCCESS")])
    for fields in ({"access": ["REMOTE_WRITE"]}, {"key": 0x500}):
        rig = old_rig(reg_check=where)
        pages = [rig.addr + PAGE]
        assert fast_reg(rig, pages, **fields)[:2] == ("0", [(1, "LOC_QP_OP_ERR")])


def test_region_at_the_top_of_the_address_space() -> None:
    rig = old_rig()
    _, done, key, _ = fast_reg(rig, [rig.addr + PAGE], iova_start=2**64 - PAGE)
    assert done == [(1, "SUCCESS")]
    rig.put(0, b"y" * 2048)
    rig.write(key, 0, 1024, remote_addr=2**64 - 1024)
    assert rig.sent() == [(1, "SUCCESS")]
    rig.write(key, 0, 2048, remote_addr=2**64 - 1024)
    assert rig.sent() == [(1, "REM_ACCESS_ERR")]


def test_wrapping_end_writes_before_it_fails() -> None:
    """What the fault does to bytes, seen through a region at the top of the address space."""
    rig = old_rig(fault="range-end-wraps")
    _, _, key, _ = fast_reg(rig, [rig.addr + PAGE], iova_start=2**64 - PAGE)
    rig.put(0, b"y" * 2048)
    rig.write(key, 0, 2048, remote_addr=2**64 - 1024)
    assert rig.sent() == [(1, "REM_OP_ERR")]
    assert rig.get(2 * PAGE - 1024, 1024) == b"y" * 1024


def test_list_is_read_at_execution() -> None:
    rig = Rig(api="linux-kernel-2008", pace="lazy")
    key = rig.do("alloc_fast_reg_mr", pd=rig.pd, max_page_list_len=1)["key"]
    plist = rig.do("alloc_fast_reg_page_list", max_page_list_len=1)["list"]
    rig.do("set_page_list", list=plist, pages=[rig.addr + PAGE])
    fields: dict[str, Any] = {"key": key, "access": list(ALL), "list": plist, "page_list_len": 1}
    rig.post(rig.b, "FAST_REG_MR", page_shift=12, iova_start=0, length=PAGE, **fields)
    rig.do("set_page_list", list=plist, pages=[rig.addr + 2 * PAGE])
    rig.sent()
    rig.put(0, b"late")
    rig.write(key, 0, 4, remote_addr=0)
    rig.sent()
    assert rig.get(2 * PAGE, 4) == b"late"


def test_list_slack_and_length() -> None:
    rig = old_rig(list_slack="3")
    made = rig.do("alloc_fast_reg_page_list", max_page_list_len=2)
    assert made["max_page_list_len_actual"] == 5
    assert rig.result("set_page_list", list=made["list"], pages=[0] * 6) == "EINVAL"


def test_iwarp_sink() -> None:
    for transport, status in (("ib", "SUCCESS"), ("iwarp", "LOC_PROT_ERR")):
        rig = Rig(transport=transport)
        _, source = rig.registered(PAGE, 64)
        rig.read(source, PAGE, rig.sge(0, 8))
        assert rig.sent() == [(1, status)]
        rig = Rig(transport=transport)
        _, source = rig.registered(PAGE, 64)
        _, sink = rig.registered(2 * PAGE, 64)
        rig.read(source, PAGE, rig.sge(2 * PAGE, 8, sink))
        assert rig.sent() == [(1, "SUCCESS")]
