"""The wire: packets under way between queue pairs.

Theory of operation
-------------------
Each queue pair has two lanes, one for the request packets that it sent and one for the responses that come back.
Packets are objects and hold their bytes as they were when they were sent; a healthy wire builds nothing from them.
A lane keeps the order, as a path through a subnet does; what gets lost, comes twice or comes late on its way into a
lane is the weather's business (:mod:`~verbs_adapters.softhca.weather`).

A message is as many packets as its bytes need at the path MTU, at least one, each with the next sequence number; a
READ is one request packet and takes as many numbers as its answer has packets.  A packet also carries the life of
its queue pair, which stands for what a starting number drawn anew with each connection does: it keeps packets of an
earlier connection out of a later one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from verbs_adapters.softhca.queue import Wqe

if TYPE_CHECKING:
    from verbs_adapters.softhca.qp import QueuePair


class Request:
    """A request packet: all or a part of a SEND or RDMA_WRITE, or a whole RDMA_READ or atomic."""

    __slots__ = ("data", "first", "invalidate", "last", "life", "offset", "opcode", "psn", "wqe")

    def __init__(self, wqe: Wqe, psn: int, life: int, data: bytes, offset: int = 0) -> None:
        self.wqe = wqe
        self.opcode = wqe.opcode
        self.psn = psn
        self.life = life
        self.data = data
        self.offset = offset  # of its bytes in the message
        self.first = True
        self.last = True
        self.invalidate: int | None = None


class Response:
    """What comes back: an acknowledgement, a refusal, or data of a READ or atomic.

    ``status`` is SUCCESS, the status that a refusal has at the requester, SEQUENCE (a packet is missing, ``psn`` is
    expected) or NOT_READY (there is no receive; ``data`` is the code of the pause).  ``data`` is None for what carries
    none.
    """

    __slots__ = ("data", "psn", "status", "wqe")

    def __init__(self, wqe: Wqe, psn: int, status: str, data: bytes | None = None) -> None:
        self.wqe = wqe
        self.psn = psn
        self.status = status
        self.data = data


SEQUENCE = "sequence error"
NOT_READY = "receiver not ready"


class Lanes:
    """What is under way for one queue pair: packets it sent, responses coming back to it."""

    __slots__ = ("requests", "responses")

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.responses: deque[Response] = deque()

    def cut(self) -> None:
        """Lose everything under way, as when the requester no longer cares."""
        self.requests.clear()
        self.responses.clear()


class Skies(Protocol):
    """What may become of packets on their way."""

    def request(self, sender: QueuePair, packet: Request, /) -> None:
        """A request packet sets out."""

    def response(self, requester: QueuePair, packet: Response, /) -> None:
        """A response sets out."""


class Wire:
    """Puts packets into lanes, through the weather if there is any."""

    def __init__(self) -> None:
        self.weather: Skies | None = None

    def request(self, sender: QueuePair, packet: Request) -> None:
        """A packet of this queue pair sets out."""
        if self.weather is None:
            sender.lanes.requests.append(packet)
        else:
            self.weather.request(sender, packet)

    def response(self, requester: QueuePair, packet: Response) -> None:
        """A response to this queue pair sets out."""
        if self.weather is None:
            requester.lanes.responses.append(packet)
        else:
            self.weather.response(requester, packet)
