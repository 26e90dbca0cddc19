"""The wire: messages under way between two connected queue pairs.

Theory of operation
-------------------
Each direction has two lanes, one for requests and one for responses, each in order and without loss.  They
are apart because a request that has to wait (its receiver has no receive posted) must not hold up answers
to the receiver's own requests.  A request stays at the head of its lane until the responder takes it; each
time it is offered in vain to a peer that does not answer counts as one transmission, so that loss can be
added by dropping at the head.

Requests are numbered per connection.  The responder takes only the number it expects; that is what keeps
messages of an earlier connection out of a later one.
"""

from __future__ import annotations

from collections import deque

from verbs_adapters.softhca.queue import Wqe


class Request:
    """A request message: SEND, RDMA_WRITE or RDMA_READ."""

    __slots__ = ("data", "invalidate", "number", "opcode", "tries", "wqe")

    def __init__(self, wqe: Wqe, opcode: str, number: int, data: bytes) -> None:
        self.wqe = wqe
        self.opcode = opcode
        self.number = number
        self.data = data
        self.invalidate: int | None = None
        self.tries = 0


class Response:
    """The answer to one request: an acknowledgement, a refusal, or the data of a READ."""

    __slots__ = ("data", "status", "wqe")

    def __init__(self, wqe: Wqe, status: str, data: bytes = b"") -> None:
        self.wqe = wqe
        self.status = status
        self.data = data


class Lanes:
    """What is under way for one queue pair: requests it sent, responses coming back to it."""

    __slots__ = ("requests", "responses", "sent")

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.responses: deque[Response] = deque()
        self.sent = 0

    def cut(self) -> None:
        """Lose everything under way, as when the requester no longer cares."""
        self.requests.clear()
        self.responses.clear()
