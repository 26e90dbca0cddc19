"""Changing regions of the consumer's memory, and the flags that a registration takes."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

GOOD = [(1, "SUCCESS")]
REFUSED = [(1, "REM_ACCESS_ERR")]


class ChangingRig(Rig):
    """b has a region of one page, over the buffer's second page."""

    def __init__(self, access: tuple[str, ...] = ALL, **options: Any) -> None:
        super().__init__(api="linux-user", **options)
        self.source = self.reg_mr(0, PAGE, (), self.pd)["lkey"]
        made = self.reg_mr(PAGE, PAGE, access, self.pd_b)
        self.mr, self.key = made["mr"], made["rkey"]

    def reg_mr(self, offset: int, length: int, access: tuple[str, ...], pd: int) -> dict[str, Any]:
        return self.do("reg_mr", pd=pd, addr=self.addr + offset, length=length, access=list(access))

    def change(self, *flags: str, **what: Any) -> str:
        answer = self.call("rereg_mr", mr=self.mr, flags=[f"CHANGE_{flag}" for flag in flags], **what)
        self.key = answer.out.get("rkey", self.key)
        return answer.result

    def wrote(self, offset: int, length: int = 8, key: int | None = None) -> list[tuple[int, str]]:
        sges, rkey = [self.sge(0, length, self.source)], self.key if key is None else key
        self.post(self.a, "RDMA_WRITE", sg_list=sges, remote_addr=self.addr + offset, rkey=rkey)
        done = self.sent()
        if done == REFUSED:
            for qp in (self.a, self.b):
                self.move(qp, "RESET")
            self.connect(self.a, self.b)
        return done


def test_moved() -> None:
    rig = ChangingRig()
    assert rig.change("TRANSLATION", addr=rig.addr + 4 * PAGE + 3, length=10) == "0"
    rig.put(0, b"new place!")
    assert rig.wrote(4 * PAGE + 3, 10) == GOOD
    assert rig.get(4 * PAGE + 3, 10) == b"new place!"
    for offset in (4 * PAGE + 2, 4 * PAGE + 6, PAGE):
        assert rig.wrote(offset) == REFUSED


def test_other_rights_and_the_same_bounds() -> None:
    rig = ChangingRig(access=())
    assert rig.wrote(PAGE) == REFUSED
    assert rig.change("ACCESS", access=list(ALL)) == "0"
    assert rig.wrote(PAGE, PAGE) == GOOD
    assert rig.wrote(2 * PAGE - 7) == REFUSED
    assert rig.change("ACCESS", access=["LOCAL_WRITE"]) == "0"
    assert rig.wrote(PAGE) == REFUSED


def test_other_domain() -> None:
    rig = ChangingRig()
    pd = rig.do("alloc_pd")["pd"]
    assert rig.change("PD", pd=pd) == "0"
    assert rig.wrote(PAGE) == REFUSED
    assert rig.result("dealloc_pd", pd=pd) == "EBUSY"
    assert rig.change("PD", pd=rig.pd_b) == "0"
    assert rig.wrote(PAGE) == GOOD
    assert rig.result("dealloc_pd", pd=pd) == "0"


def test_the_old_domain_is_free_again() -> None:
    rig = ChangingRig()
    old = rig.do("alloc_pd")["pd"]
    rig.mr = rig.reg_mr(0, 8, (), old)["mr"]
    assert rig.change("PD", "ACCESS", pd=rig.pd, access=[]) == "0"
    assert rig.result("dealloc_pd", pd=old) == "0"


def test_everything_at_once() -> None:
    rig = ChangingRig(access=(), two_pds=True)
    rig.mr = rig.reg_mr(PAGE, PAGE, (), rig.pd)["mr"]
    what = {"pd": rig.pd_b, "addr": rig.addr + 3 * PAGE, "length": 16, "access": list(ALL)}
    assert rig.change("PD", "TRANSLATION", "ACCESS", **what) == "0"
    assert rig.wrote(3 * PAGE + 8) == GOOD


def test_what_no_flag_names_is_ignored() -> None:
    rig = ChangingRig()
    assert rig.change("ACCESS", access=list(ALL), pd=999, addr=1, length=1) == "0"
    assert rig.wrote(PAGE, PAGE) == GOOD


@pytest.mark.parametrize(
    ("flags", "what", "errno"),
    [
        ((), {}, "EINVAL"),
        (("UNKNOWN",), {}, "EINVAL"),
        (("ACCESS", "UNKNOWN"), {"access": []}, "EINVAL"),
        (("TRANSLATION",), {"length": 8}, "EINVAL"),
        (("TRANSLATION",), {"addr": 1 << 32}, "EINVAL"),
        (("TRANSLATION",), {"addr": 1 << 32, "length": 8, "access": ["LOCAL_WRITE"]}, "EINVAL"),
        (("ACCESS",), {"access": ["REMOTE_WRITE"]}, "EINVAL"),
        (("ACCESS",), {"access": ["REMOTE_ATOMIC"]}, "EINVAL"),
        (("ACCESS",), {"access": ["ON_DEMAND"]}, "EINVAL"),
        (("PD",), {}, "EINVAL"),
        (("PD",), {"pd": 999}, "EINVAL"),
        (("TRANSLATION",), {"addr": 8, "length": 8}, "EFAULT"),
        (("TRANSLATION",), {"addr": 2**64 - 8, "length": 9}, "EINVAL"),
        (("TRANSLATION", "PD"), {"addr": 8, "length": 8, "pd": 0}, "EINVAL"),
    ],
)
def test_a_change_that_fails_changes_nothing(flags: tuple[str, ...], what: dict[str, Any], errno: str) -> None:
    rig = ChangingRig()
    assert rig.change(*flags, **what) == errno
    assert rig.wrote(PAGE, PAGE) == GOOD
    assert rig.result("dereg_mr", mr=rig.mr) == "0"


def test_new_keys() -> None:
    rig = ChangingRig(rereg_key="new")
    old = rig.key
    assert rig.change("ACCESS", access=list(ALL)) == "0"
    assert rig.key >> 8 != old >> 8
    assert rig.wrote(PAGE, key=old) == REFUSED
    assert rig.wrote(PAGE) == GOOD


def test_a_device_that_cannot_move_regions() -> None:
    rig = ChangingRig(rereg_translation="refuse")
    assert rig.change("TRANSLATION", addr=rig.addr, length=8) == "EOPNOTSUPP"
    assert rig.change("ACCESS", access=[]) == "0"


def test_a_region_with_windows_stays() -> None:
    rig = ChangingRig(access=("LOCAL_WRITE", "MW_BIND"))
    mw = rig.do("alloc_mw", pd=rig.pd, type="TYPE_1")["mw"]
    where = {"addr": rig.addr + PAGE, "length": 64, "access": ["REMOTE_WRITE"]}
    rig.do("bind_mw", qp=rig.b, mw=mw, wr_id=1, signaled=True, mr=rig.mr, **where)
    assert rig.sent() == GOOD
    assert rig.change("ACCESS", access=[]) == "EBUSY"
    rig.do("dealloc_mw", mw=mw)
    assert rig.change("ACCESS", access=[]) == "0"


def test_moving_pins_the_new_and_frees_the_old() -> None:
    rig = ChangingRig()
    old, new = (rig.do("alloc_buffer", length=64) for _ in range(2))
    rig.mr = rig.do("reg_mr", pd=rig.pd, addr=old["addr"], length=64, access=list(ALL))["mr"]
    assert rig.change("TRANSLATION", addr=new["addr"], length=64) == "0"
    for made in (old, new):
        rig.do("free_buffer", buf=made["buf"])
    assert rig.wrote(new["addr"] - rig.addr) == GOOD
    chunks = rig.hca._objects.memory._chunks
    assert (old["addr"] >> 16 in chunks, new["addr"] >> 16 in chunks) == (False, True)
    rig.do("dereg_mr", mr=rig.mr)
    assert new["addr"] >> 16 not in chunks


# -- flags of a registration -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("flag", "result"),
    [
        ("RELAXED_ORDERING", "0"),
        ("UNKNOWN_HINT", "0"),
        ("UNKNOWN_FLAG", "EINVAL"),
        ("HUGETLB", "0"),
        ("ON_DEMAND", "EINVAL"),
    ],
)
def test_flags_that_are_no_rights(flag: str, result: str) -> None:
    rig = Rig(api="linux-user")
    assert rig.result("reg_mr", pd=rig.pd, addr=rig.addr, length=8, access=["LOCAL_WRITE", flag]) == result


def test_a_zero_based_region_counts_from_its_start() -> None:
    rig = ChangingRig(access=(*ALL, "ZERO_BASED"))
    for offset, right in ((0, GOOD), (PAGE - 8, GOOD), (PAGE - 7, REFUSED)):
        rig.put(0, b"12345678")
        sges = [rig.sge(0, 8, rig.source)]
        rig.post(rig.a, "RDMA_WRITE", sg_list=sges, remote_addr=offset, rkey=rig.key)
        assert rig.sent() == right
        if right == GOOD:
            assert rig.get(PAGE + offset, 8) == b"12345678"
