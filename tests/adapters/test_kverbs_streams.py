"""How the kernel verbs agent gets queue pairs of iWARP to RTS, on a module that takes everything and is not there."""

from __future__ import annotations

import pytest

from verbs_adapters.kverbs import agent

RIGHTS = ("LOCAL_WRITE",)


class Kernel(agent.Device):
    """Keeps what it is asked, and says of each queue pair what the driver would."""

    def __init__(self, *, iwarp: bool) -> None:
        self._iwarp = iwarp
        self.asked: list[tuple[str, tuple[int, ...]]] = []
        self.states: dict[int, str] = {}
        super().__init__("nowhere0")

    def open(self) -> None:
        self.iwarp = self._iwarp
        self.qps = {}

    def ioctl(self, verb: str, *ins: int, **rest: object) -> tuple[int, ...]:
        del rest
        self.asked.append((verb, ins))
        if verb == "create_qp":
            handle = len(self.states) + 1
            self.states[handle] = "RESET"
            return (handle, handle, 4, 4, 0, 0, 0, 0)
        if verb == "modify_qp":
            self.states[ins[0]] = agent.STATES[ins[2]]
        if verb == "connect_qp":
            self.states[ins[0]] = self.states[ins[1]] = "RTS"
        if verb == "query_qp":
            return (agent.STATES.index(self.states[ins[0]]), *[0] * 7)
        return (0,) * 8

    def calls(self, verb: str) -> list[tuple[int, ...]]:
        """The arguments of all calls of a verb."""
        return [ins for name, ins in self.asked if name == verb]


def pair(device: Kernel, *steps: str) -> tuple[int, int]:
    """Two queue pairs, the second taken through all of these steps and the first through all but RTS."""
    a, b = (device.create_qp(1, 1, 1, 4, 4)["qp"] for _ in range(2))
    for state in steps:
        device.modify_qp(b, state, RIGHTS, a)
        if state != "RTS":
            device.modify_qp(a, state, RIGHTS, b)
    return a, b


def test_the_first_move_to_rts_makes_the_stream_and_the_second_nothing() -> None:
    device = Kernel(iwarp=True)
    a, b = pair(device, "INIT", "RTR", "RTS")
    before = len(device.asked)

    device.modify_qp(a, "RTS")

    assert [ins[:2] for ins in device.calls("connect_qp")] == [(b, a)]
    assert len(device.asked) == before
    assert (device.state(a), device.state(b)) == ("RTS", "RTS")


def test_the_other_end_is_in_rtr_until_it_is_moved_itself() -> None:
    device = Kernel(iwarp=True)
    a, b = pair(device, "INIT", "RTR", "RTS")

    with pytest.raises(agent.Refused) as refused:
        device.post_send(a, 1, "SEND")

    assert agent.name_of(refused.value.number) == "ENOTCONN"
    assert (device.state(a), device.state(b)) == ("RTR", "RTS")
    device.post_send(b, 1, "SEND")
    device.modify_qp(a, "RTS")
    device.post_send(a, 2, "SEND")
    assert [ins[0] for ins in device.calls("post_send")] == [b, a]


def test_without_a_peer_to_join_the_driver_is_asked() -> None:
    device = Kernel(iwarp=True)
    a, b = (device.create_qp(1, 1, 1, 4, 4)["qp"] for _ in range(2))
    device.modify_qp(a, "INIT", RIGHTS)
    device.modify_qp(b, "INIT", RIGHTS)
    device.modify_qp(a, "RTR", (), b)

    device.modify_qp(a, "RTS")

    assert device.calls("connect_qp") == []
    assert device.calls("modify_qp")[-1][:3] == (a, agent.STATE, agent.STATES.index("RTS"))


def test_a_queue_pair_does_not_join_itself() -> None:
    device = Kernel(iwarp=True)
    a = device.create_qp(1, 1, 1, 4, 4)["qp"]
    for state in ("INIT", "RTR", "RTS"):
        device.modify_qp(a, state, RIGHTS, a)

    assert device.calls("connect_qp") == []


def test_roce_knows_no_streams() -> None:
    device = Kernel(iwarp=False)
    pair(device, "INIT", "RTR", "RTS")

    assert device.calls("connect_qp") == []
