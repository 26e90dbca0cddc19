"""Queue pairs: state, queues, and the rules for moving between states.

Theory of operation
-------------------
The send queue is kept in stages.  ``pending`` holds work requests not yet fetched; ``started`` those fetched
and not yet retired, in posting order; ``to_send`` and ``unacked`` are views of ``started``: requests not yet
on the wire, and requests that wait for their response.  A work request retires from the head of ``started``
only, which is what keeps completions in posting order.

In ERR nothing is started: whatever is in ``pending`` and ``receives`` gets flushed, and so does what is
posted later.  ``life`` counts RESETs, so that a completion of an earlier life gives no slot back in this one.

In SQD nothing new is started; when what was started has retired, the queue is drained.  In SQE the send queue alone
is flushed.  Which moves are legal, and what they need, is in :mod:`~verbs_adapters.softhca.transitions`; what was set
is kept in ``attributes``, by the names of the contract.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from verbs_adapters.softhca.attributes import UNSET
from verbs_adapters.softhca.connection import Inbound, Outbound, Path
from verbs_adapters.softhca.event import Element
from verbs_adapters.softhca.queue import CompletionQueue, SharedReceives, Wqe
from verbs_adapters.softhca.region import ProtectionDomain
from verbs_adapters.softhca.wire import Lanes

USUAL_SGES = 2  # what the contract promises for every work request
SENDABLE = frozenset({"RTS", "SQD", "SQE", "ERR"})
UNRELIABLE = frozenset({"UC", "UD"})
"""Types of queue pairs whose messages nobody answers."""
SENDING = frozenset({"RTS", "SQD"})
"""States in which what has been started is sent."""
RESPONDING = frozenset({"RTR", "RTS", "SQD", "SQE"})


class Sizes(NamedTuple):
    """What a queue pair has room for (``ibv_qp_cap``)."""

    send_wr: int
    recv_wr: int
    send_sge: int = USUAL_SGES
    recv_sge: int = USUAL_SGES
    inline_data: int = 0


class QueuePair(Element):
    """One queue pair."""

    __slots__ = (
        "access",
        "attributes",
        "cut_off",
        "draining",
        "established",
        "expected",
        "inbound",
        "inline_size",
        "lanes",
        "last_registered",
        "late",
        "life",
        "num",
        "outbound",
        "path",
        "pd",
        "peer",
        "pending",
        "posts",
        "reads_out",
        "received",
        "receives",
        "recv_cq",
        "recv_sges",
        "reset_twice",
        "rq_size",
        "rq_used",
        "send_cq",
        "send_sges",
        "sig_all",
        "silent",
        "silent_done",
        "slot_access",
        "sq_size",
        "sq_used",
        "srq",
        "stalled",
        "started",
        "state",
        "to_send",
        "type",
        "unacked",
        "windows",
    )
    kind = "qp"

    def __init__(
        self,
        num: int,
        pd: ProtectionDomain,
        cqs: tuple[CompletionQueue, CompletionQueue],
        sizes: Sizes,
        *,
        type_: str = "RC",
        srq: SharedReceives | None = None,
        sig_all: bool = False,
    ) -> None:
        super().__init__()
        self.type = type_
        self.srq = srq
        self.sig_all = sig_all
        self.num = num
        self.pd = pd
        self.send_cq, self.recv_cq = cqs
        self.sq_size, self.rq_size, self.send_sges, self.recv_sges, self.inline_size = sizes
        self.life = 0
        self.reset_twice = False
        self.clear()

    def give_back_receive(self, slots: int) -> None:
        """Slots of the receive queue are free again, the pair's own or the shared one's."""
        if self.srq is None:
            self.rq_used -= slots
        else:
            self.srq.used -= slots

    @property
    def slot(self) -> int:
        """Where in the ring the work request stood that was fetched last."""
        return (self.posts - len(self.pending) - 1) % self.sq_size

    def clear(self) -> None:
        """Into RESET: no queue holds anything, no attribute is set, nothing is under way."""
        self.state = "RESET"
        self.life += 1
        self.access = 0
        self.windows = 0  # of type 2, bound in this life
        self.attributes: dict[str, Any] = UNSET.copy()
        self.draining = False
        self.established = False  # a request has come since RTR
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
        self.receives: deque[Wqe] = deque() if self.srq is None else self.srq.receives
        self.received: deque[tuple[Wqe, dict[str, Any]]] = deque()
        self.path = Path()
        self.lanes = Lanes()
        self.outbound = Outbound(psn=0)
        self.inbound = Inbound()
        self.expected = 0  # number of the next packet from the peer
        self.cut_off = False  # the peer ended the stream
        # only faults use these: what a broken device fails to forget
        self.posts = 0
        self.slot_access: dict[int, int] = {}
        self.last_registered: Any = None
        self.late: list[Callable[[], None]] = []
        self.silent_done: list[Wqe] = []

    def stop_sending(self, wqe: Wqe, status: str) -> None:
        """A work request failed: nothing that is not sent yet will be, and nothing further is fetched."""
        self.to_send.clear()
        wqe.status = status
        self.stalled = True
