"""What a queue pair remembers of its connection: how it is to behave, and how far both directions have come.

Theory of operation
-------------------
:class:`Path` holds the attributes that the consumer chose for the connection, :class:`Outbound` the state of the
requester, :class:`Inbound` that of the responder.  All three begin anew with RESET.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any

from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.wire import Request

FOREVER = 7  # rnr_retry: for ever
KEPT = 16  # answers to atomics
MTUS = {f"MTU_{1 << shift}": 1 << shift for shift in range(8, 13)}


class Path:
    """The attributes of the connection that the transport looks at, as numbers."""

    __slots__ = ("max_reads", "min_rnr_timer", "mtu", "retries", "rnr_retries", "timeout")

    def __init__(self) -> None:
        self.mtu = max(MTUS.values())  # a datagram is never cut
        self.timeout = 0  # of one try: 4.096 us * 2**timeout; 0 is for ever
        self.retries = 0
        self.rnr_retries = 0
        self.min_rnr_timer = 0
        self.max_reads = 0  # READs and atomics under way at once

    def take(self, values: Mapping[str, Any]) -> None:
        """Attributes were set."""
        self.mtu = MTUS[values["path_mtu"]] if "path_mtu" in values else self.mtu
        self.timeout = values.get("timeout", self.timeout)
        self.retries = values.get("retry_cnt", self.retries)
        self.rnr_retries = values.get("rnr_retry", self.rnr_retries)
        self.min_rnr_timer = values.get("min_rnr_timer", self.min_rnr_timer)
        self.max_reads = values.get("max_rd_atomic", self.max_reads)


class Outbound:
    """How far the requester has come."""

    __slots__ = ("armed", "paused", "psn", "reads", "resend", "retrying", "rnr_tries", "tries")

    def __init__(self, psn: int) -> None:
        self.psn = psn  # of the next new packet
        self.reads = 0  # READs and atomics sent and unanswered
        self.resend: deque[Request] = deque()  # packets to be sent again before any new one
        self.tries = 0
        self.rnr_tries = 0
        self.retrying = False  # since the last answer that brought something new
        self.armed = False  # a timeout is running
        self.paused = ""  # for the receiver: until a "timer" fires, or until it has a "receive"


class Inbound:
    """How far the responder has come, besides the number it expects."""

    __slots__ = ("atomics", "dropping", "filled", "life", "nak_sent", "receive")

    def __init__(self) -> None:
        self.life = 0  # of the requester whose packets are taken; 0 before the first
        self.nak_sent = False  # a packet is missing, and the requester was told
        self.dropping = False  # UC: the rest of a message of which a packet was lost
        self.receive: Wqe | None = None  # that the message takes which is arriving
        self.filled = 0
        self.atomics: OrderedDict[int, bytes] = OrderedDict()  # answers given, for duplicates

    def remember(self, psn: int, answer: bytes) -> None:
        """Keep the answer to an atomic for its duplicates, as long as the requester may ask for it."""
        self.atomics[psn] = answer
        if len(self.atomics) > KEPT:
            self.atomics.popitem(last=False)
