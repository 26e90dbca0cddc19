"""iWARP: the sink of a READ is accessed remotely, and an error ends the stream for both sides."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import PAGE, Rig

SEEDS = range(12)
GOOD = [(1, "SUCCESS")]
FLUSHED = [(1, "WR_FLUSH_ERR")]


def iwarp(seed: int = 0, **options: Any) -> Rig:
    return Rig(seed, transport="iwarp", **options)


def states(rig: Rig) -> tuple[str, str]:
    rig.do("settle")
    return rig.state(rig.a), rig.state(rig.b)


def read_into(rig: Rig, access: tuple[str, ...]) -> list[tuple[int, str]]:
    """From a VALID region to another with these rights."""
    _, source = rig.registered(PAGE, 64)
    _, sink = rig.registered(2 * PAGE, 64, access=access)
    rig.read(source, PAGE, rig.sge(2 * PAGE, 8, sink))
    return rig.sent()


def test_hello() -> None:
    assert iwarp().hca.hello().transport == ("iwarp",)
    assert Rig().hca.hello().transport == ("roce",)


# -- the sink of a READ ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("access", "status", "after"),
    [
        (("LOCAL_WRITE", "REMOTE_WRITE"), "SUCCESS", ("RTS", "RTS")),
        (("LOCAL_WRITE",), "LOC_PROT_ERR", ("ERR", "ERR")),
        (("LOCAL_WRITE", "REMOTE_READ"), "LOC_PROT_ERR", ("ERR", "ERR")),
    ],
)
def test_sink_needs_both_rights(access: tuple[str, ...], status: str, after: tuple[str, str]) -> None:
    rig = iwarp()
    assert read_into(rig, access) == [(1, status)]
    assert states(rig) == after


@pytest.mark.parametrize("dma_lkey", ["zero", "reserved"])
def test_sink_is_never_the_dma_key(dma_lkey: str) -> None:
    rig = iwarp(dma_lkey=dma_lkey)
    _, source = rig.registered(PAGE, 64)
    rig.read(source, PAGE, rig.sge(2 * PAGE, 8))
    assert rig.sent() == [(1, "LOC_PROT_ERR")]


def test_empty_sink_needs_nothing() -> None:
    rig = iwarp(access=("REMOTE_READ",))
    rig.read(0xBAD00, PAGE, rig.sge(2 * PAGE, 0, 0xBAD00))
    assert rig.sent() == GOOD


@pytest.mark.parametrize(("rule", "status"), [("check", "LOC_PROT_ERR"), ("ignore", "SUCCESS")])
def test_sink_asks_its_queue_pair(rule: str, status: str) -> None:
    rig = iwarp(access=("REMOTE_READ",), sink_qp_right=rule)
    assert read_into(rig, ("LOCAL_WRITE", "REMOTE_WRITE")) == [(1, status)]


def test_roce_asks_no_queue_pair_for_a_sink() -> None:
    assert read_into(Rig(access=("REMOTE_READ",)), ("LOCAL_WRITE",)) == GOOD


def test_any_right_is_enough_shows() -> None:
    """What only a sink of two rights can show: one of them passes."""
    healthy, broken = iwarp(), iwarp(fault="any-right-is-enough")
    assert read_into(healthy, ("LOCAL_WRITE",)) == [(1, "LOC_PROT_ERR")]
    assert read_into(broken, ("LOCAL_WRITE",)) == GOOD


@pytest.mark.parametrize(("most", "result"), [("1", "EINVAL"), ("2", "0")])
def test_sinks_of_one_read(most: str, result: str) -> None:
    rig = iwarp(max_sge_rd=most)
    assert rig.hca.hello().limits["max_sge_rd"] == int(most)
    sinks = [rig.sge(0, 0), rig.sge(8, 0)]
    assert rig.post(rig.a, "RDMA_READ", sg_list=sinks, remote_addr=0, rkey=0) == result
    assert rig.send(rig.a, 2, *sinks) == "0"


# -- the stream ends -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("failed_wr", "write", "read"),
    [
        ("remote", "REM_ACCESS_ERR", "REM_ACCESS_ERR"),
        ("flush", "WR_FLUSH_ERR", "WR_FLUSH_ERR"),
        ("early", "SUCCESS", "WR_FLUSH_ERR"),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_refused_request(seed: int, failed_wr: str, write: str, read: str) -> None:
    """Whatever its own status, what was before has succeeded, what is after is flushed, and both are in ERR."""
    for opcode, status in (("RDMA_WRITE", write), ("RDMA_READ", read)):
        rig = iwarp(seed, failed_wr=failed_wr)
        _, sink = rig.registered(2 * PAGE, 64)
        rig.recv(rig.b, 9, rig.sge(8 * PAGE, 8))
        rig.write(0, 0, 0, 1)
        fields = {"sg_list": [rig.sge(2 * PAGE, 8, sink)], "remote_addr": rig.addr, "rkey": 0xBAD00}
        rig.post(rig.a, opcode, 2, **fields)
        rig.read(0, 0, rig.sge(0, 0), 3)
        assert rig.sent() == [(1, "SUCCESS"), (2, status), (3, "WR_FLUSH_ERR")]
        assert rig.got() == [(9, "WR_FLUSH_ERR")]
        assert states(rig) == ("ERR", "ERR")


@pytest.mark.parametrize("seed", SEEDS)
def test_local_failure_ends_the_stream_behind_what_was_sent(seed: int) -> None:
    rig = iwarp(seed)
    rig.put(0, b"payload!")
    rig.recv(rig.b, 1, rig.sge(PAGE, 8))
    rig.recv(rig.b, 2, rig.sge(PAGE, 8))
    rig.send(rig.a, 1, rig.sge(0, 8))
    rig.send(rig.a, 2, rig.sge(0, 8, 0xBAD00))
    assert rig.sent() == [(1, "SUCCESS"), (2, "LOC_PROT_ERR")]
    assert rig.got() == [(1, "SUCCESS"), (2, "WR_FLUSH_ERR")]
    assert rig.get(PAGE, 8) == b"payload!"
    assert states(rig) == ("ERR", "ERR")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_send_does_not_wait_for_a_receive(seed: int) -> None:
    rig = iwarp(seed)
    rig.send(rig.a, 1)
    assert rig.sent() == [(1, "REM_OP_ERR")]
    assert states(rig) == ("ERR", "ERR")


def test_a_send_may_wait_for_a_receive() -> None:
    rig = iwarp(no_receive="wait")
    rig.send(rig.a, 1)
    assert rig.sent() == []
    assert states(rig) == ("RTS", "RTS")
    rig.recv(rig.b, 1)
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)


@pytest.mark.parametrize("how", ["ERR", "RESET", "destroy"])
@pytest.mark.parametrize("transport", ["iwarp", "roce"])
def test_what_the_consumer_ends(how: str, transport: str) -> None:
    rig = Rig(transport=transport)
    rig.recv(rig.b, 1)
    if how == "destroy":
        rig.do("destroy_qp", qp=rig.a)
    else:
        rig.move(rig.a, how)
    assert rig.got() == (FLUSHED if transport == "iwarp" else [])
    assert rig.state(rig.b) == ("ERR" if transport == "iwarp" else "RTS")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_stream_is_not_ended_by_the_old_one(seed: int) -> None:
    rig = iwarp(seed)
    rig.move(rig.a, "ERR")
    for qp in (rig.a, rig.b):
        rig.move(qp, "RESET")
    rig.connect(rig.a, rig.b)
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1)
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)
    assert states(rig) == ("RTS", "RTS")


@pytest.mark.parametrize("seed", SEEDS)
def test_one_side_alone_has_no_stream(seed: int) -> None:
    """a is connected anew, b is not: nothing gets through, and no status tells of retries."""
    rig = iwarp(seed)
    rig.recv(rig.b, 1)
    rig.move(rig.a, "RESET")
    for state in ("INIT", "RTR", "RTS"):
        rig.move(rig.a, state, rig.b)
    rig.send(rig.a, 1)
    assert (rig.sent(), rig.got()) == (FLUSHED, FLUSHED)
    assert states(rig) == ("ERR", "ERR")


def again(rig: Rig, qp: int, peer: int) -> None:
    for state in ("RESET", "INIT", "RTR", "RTS"):
        assert rig.move(qp, state, peer) == "0"


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_of_a_new_stream_comes_through_the_old_one(seed: int) -> None:
    """a sends on its new stream before b noticed that the old one ended."""
    rig = iwarp(seed, pace="lazy")
    rig.put(0, b"early!!!")
    rig.recv(rig.b, 1, rig.sge(PAGE, 8))
    again(rig, rig.a, rig.b)
    rig.send(rig.a, 1, rig.sge(0, 8))
    assert (rig.sent(), rig.got()) == (FLUSHED, FLUSHED)
    assert rig.get(PAGE, 8) == bytes(8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noticed", [False, True])
def test_connecting_anew_one_after_the_other(seed: int, noticed: bool) -> None:
    """b leaves the old stream, noticed or not, when a is on the new one already: that is no end of the new one."""
    rig = iwarp(seed, pace="lazy")
    if noticed:
        rig.move(rig.a, "ERR")
        assert states(rig) == ("ERR", "ERR")
    again(rig, rig.a, rig.b)
    again(rig, rig.b, rig.a)
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1)
    assert (rig.sent(), rig.got()) == (GOOD, GOOD)
    assert states(rig) == ("RTS", "RTS")


def test_noticing_the_end_late_is_no_second_end() -> None:
    rig = iwarp(pace="lazy")
    again(rig, rig.a, rig.b)
    assert states(rig) == ("RTS", "ERR")


def test_end_between_two_others_is_not_ours() -> None:
    rig = iwarp()
    c, d = rig.new_qp(rig.pd), rig.new_qp(rig.pd)
    rig.connect(c, d)
    rig.move(rig.a, "ERR")
    rig.do("settle")
    assert (rig.state(c), rig.state(d)) == ("RTS", "RTS")


@pytest.mark.parametrize("how", ["nak", "silent"])
def test_refused_remote_invalidation_is_told(how: str) -> None:
    rig = iwarp(send_inv_failure=how)
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key ^ 1)
    assert rig.sent() == [(1, "REM_ACCESS_ERR")]
    assert rig.got() == [(1, "REM_INV_REQ_ERR")]
    assert states(rig) == ("ERR", "ERR")


def test_a_loop_ends_itself() -> None:
    rig = iwarp(connect=False)
    for state in ("INIT", "RTR", "RTS"):
        rig.move(rig.a, state, rig.a)
    rig.write(0xBAD00, 0, 8)
    assert rig.sent() == FLUSHED
    assert rig.state(rig.a) == "ERR"
