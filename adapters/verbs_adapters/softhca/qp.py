"""Queue pairs: state, queues, and the rules for moving between states.

Theory of operation
-------------------
The send queue is kept in stages.  ``pending`` holds work requests not yet fetched; ``started`` those fetched
and not yet retired, in posting order; ``to_send`` and ``unacked`` are views of ``started``: requests not yet
on the wire, and requests that wait for their response.  A work request retires from the head of ``started``
only, which is what keeps completions in posting order.

In ERR nothing is started: whatever is in ``pending`` and ``receives`` gets flushed, and so does what is
posted later.  ``life`` counts RESETs, so that a completion of an earlier life gives no slot back in this one.

The legal moves are those of ``qp_state_table`` in drivers/infiniband/core/verbs.c for reliable connections,
without the drained and the send-queue-error states.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from verbs_adapters.softhca.queue import CompletionQueue, Wqe
from verbs_adapters.softhca.region import ProtectionDomain
from verbs_adapters.softhca.wire import Lanes

STATES = ("RESET", "INIT", "RTR", "RTS", "ERR")
MOVES = frozenset(
    {
        *((state, "RESET") for state in STATES),
        *((state, "ERR") for state in STATES if state != "RESET"),
        ("RESET", "INIT"),
        ("INIT", "INIT"),
        ("INIT", "RTR"),
        ("RTR", "RTS"),
        ("RTS", "RTS"),
    }
)
SENDABLE = frozenset({"RTS", "ERR"})
RESPONDING = frozenset({"RTR", "RTS"})


class QueuePair:
    """One reliable connected queue pair."""

    __slots__ = (
        "access",
        "cut_off",
        "expected",
        "lanes",
        "last_registered",
        "late_invalidations",
        "life",
        "num",
        "pd",
        "peer",
        "pending",
        "posts",
        "reads_out",
        "received",
        "receives",
        "recv_cq",
        "reset_twice",
        "rq_size",
        "rq_used",
        "send_cq",
        "silent",
        "slot_access",
        "sq_size",
        "sq_used",
        "stalled",
        "started",
        "state",
        "to_send",
        "unacked",
    )

    def __init__(
        self,
        num: int,
        pd: ProtectionDomain,
        cqs: tuple[CompletionQueue, CompletionQueue],
        sizes: tuple[int, int],
    ) -> None:
        self.num = num
        self.pd = pd
        self.send_cq, self.recv_cq = cqs
        self.sq_size, self.rq_size = sizes
        self.life = 0
        self.reset_twice = False
        self.clear()

    def clear(self) -> None:
        """Into RESET: no queue holds anything, no attribute is set, nothing is under way."""
        self.state = "RESET"
        self.life += 1
        self.access = 0
        self.peer: QueuePair | None = None
        self.sq_used = 0
        self.rq_used = 0
        self.silent = 0  # retired unsignalled work requests whose slots wait for a later completion
        self.pending: deque[Wqe] = deque()
        self.started: deque[Wqe] = deque()
        self.to_send: deque[Wqe] = deque()
        self.unacked: deque[Wqe] = deque()
        self.reads_out = 0
        self.stalled = False  # a work request failed: nothing further is fetched
        self.receives: deque[Wqe] = deque()
        self.received: deque[tuple[Wqe, dict[str, Any]]] = deque()
        self.lanes = Lanes()
        self.expected = 0  # number of the next request from the peer
        self.cut_off = False  # the peer ended the stream
        # only faults use these: what a broken device fails to forget
        self.posts = 0
        self.slot_access: dict[int, int] = {}
        self.last_registered: Any = None
        self.late_invalidations: list[Any] = []
