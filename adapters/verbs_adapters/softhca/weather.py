"""The weather on the wire: what gets lost, comes twice, or comes late.

Theory of operation
-------------------
A healthy wire has no weather.  A *script* (:mod:`~verbs_adapters.softhca.scripts`) spoils packets of one kind in one
way, each of them once: the retry that follows gets through.
The conditions ``rough`` spoil any packet, by chance, but never more
than three of a connection in a row.

A packet that is late comes when its delay is over; others may overtake it.  The requester cannot know whether a packet
is lost or late, so its timeout runs for all that is spoiled.

Unreliable queue pairs have nothing against a packet that comes twice, or behind one that was sent later: a message
of one packet is taken whenever it comes (``rxe_resp.c``, check_psn).  A fabric delivers the packets of a queue pair
once and in order, so that theirs are lost or come as they should; what would be late is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from verbs_adapters.softhca.clock import Clock
from verbs_adapters.softhca.completer import SUCCESS
from verbs_adapters.softhca.qp import UNRELIABLE, QueuePair
from verbs_adapters.softhca.queue import ANSWERED
from verbs_adapters.softhca.retry import Retry
from verbs_adapters.softhca.scripts import Script
from verbs_adapters.softhca.wire import NOT_READY, SEQUENCE, Request, Response

DELAY = 300_000_000  # ns, longer than the usual timeout
MOST_IN_A_ROW = 3


ROUGH = (("lost", 0.06), ("twice", 0.06), ("late", 0.06))
"""Under rough conditions, how likely each fate is."""
UNRELIABLY = {"twice": "", "late": "lost"}
"""What another fate comes to for a packet that nobody acknowledges."""


class Weather:
    """Decides what becomes of each packet."""

    def __init__(self, script: Script | None, chance: Callable[[], float], clock: Clock, retry: Retry) -> None:
        self._script = script
        self._chance = chance
        self._clock = clock
        self._retry = retry
        self._wake = retry.wake
        self._spoilt: dict[QueuePair, tuple[int, set[tuple[str, int]]]] = {}
        self._row: dict[QueuePair, int] = {}

    def request(self, sender: QueuePair, packet: Request) -> None:
        """A request packet sets out."""
        kinds = ["request"]
        if packet.opcode.startswith("ATOMIC"):
            kinds.append("atomic")
        elif not (packet.first or packet.last):
            kinds.append("middle")
        fate = self._fate(sender, kinds, packet.psn)
        if sender.type in UNRELIABLE:
            fate = UNRELIABLY.get(fate, fate)
        self._send(sender, fate, partial(_put_request, sender, packet))

    def response(self, requester: QueuePair, packet: Response) -> None:
        """A response sets out."""
        kinds = [_kind(packet)]
        if kinds == ["READ"] and packet.psn != packet.wqe.packets[0].psn:
            kinds.append("rest")
        self._send(requester, self._fate(requester, kinds, packet.psn), partial(_put_response, requester, packet))

    def _fate(self, qp: QueuePair, kinds: Collection[str], psn: int) -> str:
        if self._script is None:
            return self._rough(qp)
        kind, fate, _ = self._script
        life, seen = self._spoilt.setdefault(qp, (qp.life, set()))
        if life != qp.life:
            seen = set()
            self._spoilt[qp] = qp.life, seen
        if kind not in kinds or (kind, psn) in seen:
            return ""
        seen.add((kind, psn))
        return fate

    def _rough(self, qp: QueuePair) -> str:
        number = self._chance()
        for fate, likely in ROUGH:
            number -= likely
            if number < 0 and self._row.get(qp, 0) < MOST_IN_A_ROW:
                self._row[qp] = self._row.get(qp, 0) + 1
                return fate
        self._row.pop(qp, None)
        return ""

    def _send(self, qp: QueuePair, fate: str, put: Callable[[], None]) -> None:
        if fate in ("", "twice", "late twice"):
            put()
        if fate == "twice":
            put()
        if fate in ("late", "late twice"):
            self._clock.after(DELAY, partial(self._arrive, qp, qp.life, put))
        if fate in ("lost", "late"):
            self._retry.silence(qp)

    def _arrive(self, qp: QueuePair, life: int, put: Callable[[], None]) -> None:
        if qp.life == life and qp.state != "ERR":
            put()
            self._wake(qp)


def _put_request(sender: QueuePair, packet: Request) -> None:
    sender.lanes.requests.append(packet)


def _put_response(requester: QueuePair, packet: Response) -> None:
    requester.lanes.responses.append(packet)


def _kind(packet: Response) -> str:
    if packet.status == SEQUENCE:
        return "NAK"
    if packet.status == NOT_READY:
        return "RNR"
    if packet.status != SUCCESS:
        return "refusal"
    if packet.data is None or packet.wqe.opcode not in ANSWERED:
        return "ACK"
    return "READ" if packet.wqe.opcode == "RDMA_READ" else "ATOMIC"
