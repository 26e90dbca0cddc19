"""The threaded mode: consumers in several threads, and the device in others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from softhca_rig import PAGE, Rig

from verbs_adapters.contract import AdapterError, Answer, Trouble
from verbs_adapters.softhca import SoftHca

SECONDS = 30.0
"""Longer than anything here takes on any machine."""
MESSAGES = 40


class Threaded(Rig):
    """As Rig, with threads and a channel for the completions of receives."""

    def __init__(self, threads: str = "4", **options: Any) -> None:
        super().__init__(0, api="linux-user", threads=threads, connect=False, **options)
        self.channel = self.do("create_comp_channel")["channel"]
        self.rcq = self.do("create_cq", cqe=1024, channel=self.channel)["cq"]
        self.scq = self.do("create_cq", cqe=1024)["cq"]

    def pair(self) -> tuple[int, int]:
        first, second = self.new_qp(self.pd, MESSAGES), self.new_qp(self.pd, MESSAGES)
        self.connect(first, second)
        return first, second


@pytest.fixture
def rig() -> Iterator[Threaded]:
    made = Threaded()
    yield made
    made.hca.close()


def perform(hca: SoftHca, verb: str, **args: Any) -> dict[str, Any]:
    answer = hca.call(verb, args)
    assert isinstance(answer, Answer)
    assert answer.result == "0", (verb, args, answer)
    return answer.out


def converse(
    hca: SoftHca, cq: int, pair: tuple[int, int], done: list[tuple[int, int]], enough: threading.Event
) -> None:
    """Post both sides of a pair, then poll the queue that all share until all have what they wait for."""
    first, second = pair
    for wr_id in range(MESSAGES):
        perform(hca, "post_recv", qp=second, wr_id=wr_id, sg_list=[])
        fields = {"opcode": "SEND", "signaled": True, "fence": False, "sg_list": []}
        perform(hca, "post_send", qp=first, wr_id=wr_id, **fields)
    while not enough.is_set():
        out = perform(hca, "poll_cq", cq=cq)
        if out["n"]:
            assert out["status"] == "SUCCESS"
            done.append((out["qp_num"], out["wr_id"]))
            if len(done) == 4 * MESSAGES:
                enough.set()


def test_consumers_in_four_threads_get_every_completion_once(rig: Threaded) -> None:
    pairs = [rig.pair() for _ in range(4)]
    done: list[tuple[int, int]] = []
    enough = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(converse, rig.hca, rig.scq, pair, done, enough) for pair in pairs]:
            future.result(SECONDS)
    assert sorted(done) == sorted((rig.qpn[first], wr_id) for first, _ in pairs for wr_id in range(MESSAGES))
    received = [(out["qp_num"], out["wr_id"]) for out in rig.poll_all(rig.rcq)]
    for _, second in pairs:
        assert [wr_id for number, wr_id in received if number == rig.qpn[second]] == list(range(MESSAGES))


def test_settle_leaves_nothing_to_do(rig: Threaded) -> None:
    first, second = rig.pair()
    for count in range(1, 10):
        for wr_id in range(count):
            rig.recv(second, wr_id)
            rig.send(first, wr_id)
        assert rig.sent() == rig.got() == [(wr_id, "SUCCESS") for wr_id in range(count)]


def test_a_consumer_sleeps_until_its_channel_has_an_event(rig: Threaded) -> None:
    first, second = rig.pair()
    rig.recv(second, 1)
    rig.do("req_notify_cq", cq=rig.rcq, solicited_only=False)
    assert not rig.hca.wait(rig.channel, 0)
    with ThreadPoolExecutor(1) as pool:
        sleeper = pool.submit(rig.hca.wait, rig.channel, SECONDS)
        rig.send(first, 1)
        assert sleeper.result(SECONDS)
    assert rig.do("get_cq_event", channel=rig.channel) == {"n": 1, "cq": rig.rcq}


def test_without_threads_the_device_runs_while_the_consumer_waits() -> None:
    rig = Threaded(threads="0", pace="lazy")
    first, second = rig.pair()
    rig.recv(second, 1)
    rig.do("req_notify_cq", cq=rig.rcq, solicited_only=False)
    assert not rig.hca.wait(rig.channel, SECONDS)  # idle, and no time has passed
    rig.send(first, 1)
    assert rig.hca.wait(rig.channel, SECONDS)
    with pytest.raises(AdapterError, match="does not have"):
        rig.hca.wait(9999, SECONDS)


def test_a_device_that_is_reset_is_fresh(rig: Threaded) -> None:
    first, second = rig.pair()
    rig.recv(second, 1)
    rig.send(first, 1)
    rig.hca.reset(1)
    assert rig.result("query_qp", qp=first) == "EINVAL"
    assert rig.result("settle") == "0"


def test_a_device_that_dies_says_so_to_the_next_call() -> None:
    rig = Rig(threads="2", fault="receive-into-region-crashes")
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1, rig.sge(PAGE, 8, key))
    rig.send(rig.a, 1, rig.sge(0, 8))
    while isinstance(answer := rig.hca.call("poll_cq", {"cq": rig.rcq}), Answer):
        assert answer.out["n"] == 0
    assert (answer.kind, answer.whose) == ("crash", "backend")
    assert isinstance(rig.hca.call("settle", {}), Trouble)
    rig.hca.close()


def test_closing_ends_the_threads() -> None:
    before = set(threading.enumerate())
    rig = Threaded()
    started = set(threading.enumerate()) - before
    assert len(started) == 4
    rig.hca.close()
    assert not any(thread.is_alive() for thread in started)
    with pytest.raises(AdapterError, match="after close"):
        rig.hca.call("settle", {})
