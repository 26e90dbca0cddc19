"""Messages of several packets, sequence numbers that wrap, retries, and virtual time."""

from __future__ import annotations

from functools import partial

import pytest
from softhca_rig import PAGE, Rig

from verbs_adapters.softhca import psn
from verbs_adapters.softhca.clock import Clock

GOOD = [(1, "SUCCESS")]
SEEDS = range(8)
LENGTHS = (0, 1, 255, 256, 257, 512, 1000)
DATA = bytes(at * 7 % 251 for at in range(1024))


@pytest.mark.parametrize(
    ("number", "other", "ahead"), [(5, 3, 2), (3, 5, -2), (1, psn.MASK, 2), (psn.MASK, 1, -2), (7, 7, 0)]
)
def test_numbers_wrap(number: int, other: int, ahead: int) -> None:
    assert psn.distance(number, other) == ahead
    assert psn.plus(other, ahead) == number


def test_time_is_in_order() -> None:
    clock = Clock()
    fired: list[tuple[int, int]] = []
    for number, delay in enumerate((30, 10, 10)):
        clock.after(delay, partial(lambda number: fired.append((clock.now, number)), number))
    while clock.advance():
        pass
    assert fired == [(10, 1), (10, 2), (30, 0)]
    assert not clock.waits


@pytest.mark.parametrize("length", LENGTHS)
def test_send_of_several_packets(length: int) -> None:
    """It fills the elements of its receive to the byte, wherever packets end."""
    rig = Rig(length, mtu="MTU_256")
    rig.put(0, DATA)
    rig.recv(rig.b, 1, rig.sge(2 * PAGE, 300), rig.sge(4 * PAGE, 700))
    rig.send(rig.a, 1, rig.sge(0, length // 3), rig.sge(length // 3, length - length // 3))
    rig.do("settle")
    (entry,) = rig.poll_all(rig.rcq)
    assert (entry["status"], entry["byte_len"]) == ("SUCCESS", length)
    assert rig.sent() == GOOD
    assert (rig.get(2 * PAGE, 300) + rig.get(4 * PAGE, 700))[:length] == DATA[:length]


@pytest.mark.parametrize("length", LENGTHS)
def test_write_and_read_of_several_packets(length: int) -> None:
    rig = Rig(length, mtu="MTU_256")
    _, key = rig.registered(PAGE, 1000)
    rig.put(0, DATA)
    rig.write(key, PAGE, length)
    rig.read(key, PAGE, rig.sge(8 * PAGE, length), 2)
    assert rig.sent() == [(1, "SUCCESS"), (2, "SUCCESS")]
    assert rig.get(PAGE, 1000) == DATA[:length] + bytes(1000 - length)
    assert rig.get(8 * PAGE, 1000) == DATA[:length] + bytes(1000 - length)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_ends_of_a_long_write_are_checked_first(seed: int) -> None:
    rig = Rig(seed, mtu="MTU_256")
    _, key = rig.registered(PAGE, 1000)
    rig.put(0, DATA)
    rig.write(key, PAGE, 1001)
    assert rig.sent() == [(1, "REM_ACCESS_ERR")]
    assert rig.get(PAGE, 1000) == bytes(1000)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_message_that_is_too_long_fails_where_it_is(seed: int) -> None:
    rig = Rig(seed, mtu="MTU_256")
    rig.recv(rig.b, 1, rig.sge(PAGE, 600))
    rig.recv(rig.b, 2, rig.sge(PAGE, 600))
    rig.send(rig.a, 1, rig.sge(0, 700))
    assert rig.sent() == [(1, "REM_INV_REQ_ERR")]
    assert rig.got() == [(1, "LOC_LEN_ERR"), (2, "WR_FLUSH_ERR")]


@pytest.mark.parametrize("rq_slot", ["poll", "consume"])
def test_half_a_message_is_flushed(rq_slot: str) -> None:
    """The receive that it was filling is flushed once, and its slot is free once."""
    for seed in range(40):
        rig = Rig(seed, mtu="MTU_256", depth=2, rq_slot=rq_slot, pace="lazy")
        rig.recv(rig.b, 1, rig.sge(PAGE, 1024))
        rig.recv(rig.b, 2, rig.sge(PAGE, 1024))
        rig.send(rig.a, 1, rig.sge(0, 1024))
        rig.do("poll_cq", cq=rig.scq)
        rig.do("poll_cq", cq=rig.scq)
        rig.move(rig.b, "ERR")
        assert [wr_id for wr_id, _ in rig.got()] == [1, 2]
        assert [rig.recv(rig.b, wr_id) for wr_id in (3, 4, 5)] == ["0", "0", "ENOMEM"]
