"""Atomics, immediate data, and receivers that are not ready."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

EVERY = (*ALL, "REMOTE_ATOMIC")
GOOD = [(1, "SUCCESS")]
SEEDS = range(8)
OLD = 2**63 + 5


def number(rig: Rig, offset: int) -> int:
    return int.from_bytes(rig.get(offset, 8), "little")


def atomic(rig: Rig, key: int, opcode: str, offset: int = PAGE, **more: int) -> str:
    fields: dict[str, Any] = {"remote_addr": rig.addr + offset, "rkey": key, "compare_add": OLD, **more}
    return rig.post(rig.a, opcode, sg_list=[rig.sge(2 * PAGE, 8)], **fields)


def ready(region: tuple[str, ...] = EVERY, seed: int = 0, **options: Any) -> tuple[Rig, int]:
    rig = Rig(seed, **{"access": EVERY, **options})
    _, key = rig.registered(PAGE, 64, access=region)
    rig.put(PAGE, OLD.to_bytes(8, "little"))
    return rig, key


@pytest.mark.parametrize(
    ("opcode", "fields", "after", "told"),
    [
        ("ATOMIC_FETCH_AND_ADD", {"compare_add": 3}, OLD + 3, "FETCH_ADD"),
        ("ATOMIC_FETCH_AND_ADD", {"compare_add": 2**64 - 6}, OLD - 6, "FETCH_ADD"),
        ("ATOMIC_CMP_AND_SWP", {"swap": 7}, 7, "COMP_SWAP"),
        ("ATOMIC_CMP_AND_SWP", {"compare_add": 1, "swap": 7}, OLD, "COMP_SWAP"),
    ],
)
def test_what_an_atomic_does(opcode: str, fields: dict[str, int], after: int, told: str) -> None:
    rig, key = ready()
    atomic(rig, key, opcode, **fields)
    rig.do("settle")
    (entry,) = rig.poll_all(rig.scq)
    assert (entry["status"], entry["opcode"], entry["byte_len"]) == ("SUCCESS", told, 8)
    assert (number(rig, PAGE), number(rig, 2 * PAGE)) == (after, OLD)


@pytest.mark.parametrize(
    ("access", "region", "offset", "status"),
    [
        (ALL, EVERY, PAGE, "REM_ACCESS_ERR"),
        (EVERY, ALL, PAGE, "REM_ACCESS_ERR"),
        (EVERY, EVERY, PAGE + 4, "REM_INV_REQ_ERR"),
        (EVERY, EVERY, PAGE + 60, "REM_ACCESS_ERR"),
        (EVERY, EVERY, PAGE + 64, "REM_ACCESS_ERR"),
    ],
)
def test_a_refused_atomic(access: tuple[str, ...], region: tuple[str, ...], offset: int, status: str) -> None:
    rig, key = ready(region, access=access)
    atomic(rig, key, "ATOMIC_FETCH_AND_ADD", offset)
    assert rig.sent() == [(1, status)]
    assert rig.get(PAGE, 64) == OLD.to_bytes(8, "little") + bytes(56)
    assert (rig.state(rig.a), rig.state(rig.b)) == ("ERR", "ERR")


def test_what_is_refused_at_post() -> None:
    rig, key = ready(unaligned_atomic="post")
    assert atomic(rig, key, "ATOMIC_FETCH_AND_ADD", PAGE + 4) == "EINVAL"
    fields = {"remote_addr": rig.addr + PAGE, "rkey": key, "compare_add": 1}
    assert rig.post(rig.a, "ATOMIC_FETCH_AND_ADD", sg_list=[rig.sge(0, 7)], **fields) == "EINVAL"
    rig = Rig(without="ATOMIC")
    assert atomic(rig, key, "ATOMIC_FETCH_AND_ADD") == "EOPNOTSUPP"


@pytest.mark.parametrize(
    ("rule", "status", "peer"),
    [("done", "SUCCESS", "RTS"), ("LOC_LEN_ERR", "LOC_LEN_ERR", "RTS"), ("REM_ACCESS_ERR", "REM_ACCESS_ERR", "ERR")],
)
def test_buffers_of_more_than_eight_bytes(rule: str, status: str, peer: str) -> None:
    rig, key = ready(atomic_length=rule)
    fields = {"remote_addr": rig.addr + PAGE, "rkey": key, "compare_add": 1}
    rig.post(rig.a, "ATOMIC_FETCH_AND_ADD", sg_list=[rig.sge(2 * PAGE, 16)], **fields)
    assert rig.sent() == [(1, status)]
    assert rig.get(2 * PAGE + 8, 8) == bytes(8)
    assert rig.state(rig.b) == peer


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fence_waits_for_an_atomic(seed: int) -> None:
    rig, key = ready(seed=seed)
    atomic(rig, key, "ATOMIC_FETCH_AND_ADD")
    rig.recv(rig.b, 9, rig.sge(3 * PAGE, 8))
    rig.send(rig.a, 2, rig.sge(2 * PAGE, 8), fence=True)
    rig.sent()
    assert number(rig, 3 * PAGE) == OLD


@pytest.mark.parametrize("length", [0, 5, 700])
@pytest.mark.parametrize(("opcode", "told"), [("SEND_WITH_IMM", "RECV"), ("RDMA_WRITE_WITH_IMM", "RECV_RDMA_WITH_IMM")])
def test_immediate_data(opcode: str, told: str, length: int) -> None:
    rig = Rig(mtu="MTU_256")
    _, key = rig.registered(PAGE, 1000)
    rig.put(0, b"x" * 1000)
    rig.recv(rig.b, 9, rig.sge(4 * PAGE, 700))
    where = {"remote_addr": rig.addr + PAGE, "rkey": key} if "WRITE" in opcode else {}
    rig.post(rig.a, opcode, sg_list=[rig.sge(0, length)], imm_data=0xFEDCBA98, **where)
    assert rig.sent() == GOOD
    (entry,) = rig.poll_all(rig.rcq)
    assert (entry["opcode"], entry["wc_flags"], entry["byte_len"]) == (told, ["WITH_IMM"], length)
    assert entry["imm_data"] == 0xFEDCBA98
    written, received = (length, 0) if where else (0, length)
    assert (rig.get(PAGE, 700).count(b"x"), rig.get(4 * PAGE, 700).count(b"x")) == (written, received)


@pytest.mark.parametrize("status", ["LOC_ACCESS_ERR", "REM_ACCESS_ERR"])
def test_a_refused_write_fails_the_receive_it_took(status: str) -> None:
    rig = Rig(refused_imm=status)
    rig.recv(rig.b, 8)
    rig.recv(rig.b, 9)
    where = {"remote_addr": rig.addr, "rkey": 0xBAD00}
    rig.post(rig.a, "RDMA_WRITE_WITH_IMM", sg_list=[rig.sge(0, 8)], imm_data=1, **where)
    assert rig.sent() == [(1, "REM_ACCESS_ERR")]
    assert rig.got() == [(8, status), (9, "WR_FLUSH_ERR")]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tries", [0, 1, 6])
def test_a_receiver_that_is_not_ready(seed: int, tries: int) -> None:
    """The sender comes again so often; what it had sent behind is not executed, and the receiver stays."""
    rig = Rig(seed, connect=False)
    for state in ("INIT", "RTR"):
        rig.move(rig.a, state, rig.b)
        rig.move(rig.b, state, rig.a)
    for qp in (rig.a, rig.b):
        assert rig.result("modify_qp", qp=qp, state="RTS", rnr_retry=tries) == "0"
    rig.send(rig.a, 1)
    rig.write(0, 0, 0, 2)
    assert rig.sent() == [(1, "RNR_RETRY_EXC_ERR"), (2, "WR_FLUSH_ERR")]
    assert (rig.state(rig.a), rig.state(rig.b)) == ("ERR", "RTS")
    assert rig.got() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_messages_that_wait_keep_their_order(seed: int) -> None:
    rig = Rig(seed, mtu="MTU_256")
    for wr_id in range(4):
        rig.put(wr_id * 600, bytes([wr_id + 1]) * 600)
        rig.send(rig.a, wr_id, rig.sge(wr_id * 600, 600))
    for wr_id in range(4):
        rig.do("poll_cq", cq=rig.scq)
        rig.recv(rig.b, wr_id, rig.sge(PAGE * (wr_id + 2), 600))
    assert [wr_id for wr_id, _ in rig.got()] == [0, 1, 2, 3]
    assert [rig.get(PAGE * (wr_id + 2), 600) for wr_id in range(4)] == [bytes([wr_id + 1]) * 600 for wr_id in range(4)]
