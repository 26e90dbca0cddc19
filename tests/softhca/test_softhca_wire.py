"""On a bad wire a reliable connection does what it does on a healthy one."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import ALL, PAGE, Rig

from verbs_adapters.softhca.scripts import SCRIPTS

EVERY = (*ALL, "REMOTE_ATOMIC")
SEEDS = range(3)
COUNT = 4


def traffic(wire: str, seed: int) -> Any:
    """Every kind of request, several of each, messages of several packets; what is reported and what memory holds."""
    rig = Rig(seed, wire=wire, mtu="MTU_256", access=EVERY, depth=32)
    _, key = rig.registered(PAGE, 2 * PAGE, access=EVERY)
    where = {"rkey": key, "remote_addr": rig.addr + PAGE}
    for wr_id in range(COUNT):
        rig.put(0, bytes([wr_id + 1]) * 900)
        rig.send(rig.a, wr_id, rig.sge(0, 900))
        rig.write(key, 2 * PAGE, 900, 10 + wr_id)
        rig.post(rig.a, "ATOMIC_FETCH_AND_ADD", 20 + wr_id, sg_list=[rig.sge(6 * PAGE, 8)], compare_add=1, **where)
        rig.read(key, 2 * PAGE, rig.sge(7 * PAGE, 900), 30 + wr_id)
        rig.recv(rig.b, wr_id, rig.sge(8 * PAGE, 1000))
        ends = rig.sent(), rig.got()
        assert ends == ([(base + wr_id, "SUCCESS") for base in (0, 10, 20, 30)], [(wr_id, "SUCCESS")])
    return [rig.get(offset * PAGE, 1000) for offset in (1, 2, 6, 7, 8)]


@pytest.mark.parametrize("wire", ["rough", *SCRIPTS])
def test_nobody_notices(wire: str) -> None:
    healthy = traffic("healthy", 0)
    assert healthy[0][:8] == COUNT.to_bytes(8, "little")
    for seed in SEEDS:
        assert traffic(wire, seed) == healthy


def test_everything_at_once_on_a_rough_wire() -> None:
    """Posted together, so that answers of several requests get mixed; atomics still happen once."""
    for seed in range(12):
        rig = Rig(seed, wire="rough", access=EVERY, depth=32)
        _, key = rig.registered(PAGE, 64, access=EVERY)
        where = {"rkey": key, "remote_addr": rig.addr + PAGE}
        for wr_id in range(20):
            rig.post(rig.a, "ATOMIC_FETCH_AND_ADD", wr_id, sg_list=[rig.sge(wr_id * 8, 8)], compare_add=1, **where)
        assert rig.sent() == [(wr_id, "SUCCESS") for wr_id in range(20)]
        assert [int.from_bytes(rig.get(at * 8, 8), "little") for at in range(20)] == list(range(20))


@pytest.mark.parametrize(("wire", "status"), [("healthy", "REM_ACCESS_ERR"), ("lost-refusal", "RETRY_EXC_ERR")])
def test_a_refusal_that_is_lost(wire: str, status: str) -> None:
    rig = Rig(wire=wire)
    rig.write(0xBAD00, PAGE, 8)
    assert rig.sent() == [(1, status)]


@pytest.mark.parametrize("wire", ["lost-rnr-nak", "rough"])
def test_a_receiver_that_is_not_ready_on_a_bad_wire(wire: str) -> None:
    for seed in SEEDS:
        rig = Rig(seed, wire=wire)
        rig.send(rig.a, 1)
        assert rig.sent() == []
        rig.recv(rig.b, 9)
        assert (rig.sent(), rig.got()) == ([(1, "SUCCESS")], [(9, "SUCCESS")])


def test_a_side_connected_anew_on_a_bad_wire() -> None:
    """The first packet of the new connection may be lost, and others come before it; none of them has a receive."""
    for seed in range(60):
        rig = Rig(seed, wire="rough", psn="ignore")
        for state in ("RESET", "INIT", "RTR", "RTS"):
            rig.move(rig.b, state, rig.a)
        for wr_id in (1, 2, 3):
            rig.send(rig.a, wr_id)
        assert rig.sent() == []


def test_one_seed_one_trace_on_a_rough_wire() -> None:
    traces = []
    for _ in range(2):
        rig = Rig(7, wire="rough")
        for wr_id in range(8):
            rig.write(0, 0, 0, wr_id)
        rig.sent()
        traces.append(rig.trace)
    assert traces[0] == traces[1]
