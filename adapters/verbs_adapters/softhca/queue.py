"""Work queue entries, completion queue entries, and the queues that are not of one queue pair.

Theory of operation
-------------------
A :class:`Wqe` is a work request as the device holds it: every field is fixed when it is posted.  A
:class:`Cqe` remembers which queue pair it came from, in which life of that queue pair (RESET begins a new
one), and how many slots polling it gives back: its own and those of the unsignalled work requests before it.
A completion queue that is full loses the entry; what that means for the queue pair is the engine's business.
An armed completion queue tells its channel of the next entry of the kind that it was armed for.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from verbs_adapters.softhca.access import Sge
from verbs_adapters.softhca.event import Element
from verbs_adapters.softhca.region import AddressHandle, Mapping, PageList, ProtectionDomain, Region

if TYPE_CHECKING:
    from verbs_adapters.softhca.mw import Binding
    from verbs_adapters.softhca.qp import QueuePair
    from verbs_adapters.softhca.wire import Request

ANSWERED = frozenset({"RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD"})
"""What is done when its answer has come; an acknowledgement is not enough."""

LOCAL_OPS = frozenset({"LOCAL_INV", "REG_MR", "FAST_REG_MR", "BIND_MW"})
WC_OPCODE = {
    "SEND": "SEND",
    "SEND_WITH_INV": "SEND",
    "RDMA_WRITE": "RDMA_WRITE",
    "RDMA_READ": "RDMA_READ",
    "SEND_WITH_IMM": "SEND",
    "RDMA_WRITE_WITH_IMM": "RDMA_WRITE",
    "ATOMIC_CMP_AND_SWP": "COMP_SWAP",
    "ATOMIC_FETCH_AND_ADD": "FETCH_ADD",
    "LOCAL_INV": "LOCAL_INV",
    "REG_MR": "REG_MR",
    "FAST_REG_MR": "REG_MR",
    "BIND_MW": "BIND_MW",
    "RECV": "RECV",
}


class Wqe:
    """One posted work request."""

    __slots__ = (
        "access",
        "ah",
        "awaited",
        "binding",
        "byte_len",
        "compare_add",
        "fence",
        "imm_data",
        "inline",
        "invalidate_rkey",
        "iova_start",
        "key",
        "last_psn",
        "length",
        "mapping",
        "opcode",
        "packets",
        "page_list",
        "page_list_len",
        "page_shift",
        "region",
        "remote_addr",
        "remote_qkey",
        "remote_qpn",
        "rkey",
        "sges",
        "signaled",
        "solicited",
        "status",
        "swap",
        "wr_id",
    )

    def __init__(self, wr_id: int, opcode: str, *, signaled: bool = True, fence: bool = False) -> None:
        self.wr_id = wr_id
        self.opcode = opcode
        self.signaled = signaled
        self.fence = fence
        self.solicited = False  # of a receive: what the sender asked for
        self.status = ""  # empty until the outcome is known
        self.byte_len = 0
        self.sges: tuple[Sge, ...] = ()
        self.length = 0
        self.inline: bytes | None = None
        self.remote_addr = 0
        self.rkey = 0
        self.imm_data = 0
        self.ah: AddressHandle | None = None
        self.remote_qpn = 0
        self.remote_qkey = 0
        self.compare_add = 0
        self.swap = 0
        self.invalidate_rkey = 0
        self.region: Region | None = None
        self.mapping: Mapping | None = None
        self.key = 0
        self.access = 0
        self.binding: Binding | None = None
        self.page_list: PageList | None = None
        self.page_list_len = 0
        self.page_shift = 0
        self.iova_start = 0
        # when it has been sent: its packets, the number of the next answer it awaits, and of the last
        self.packets: tuple[Request, ...] = ()
        self.awaited = 0
        self.last_psn = 0


class Cqe:
    """One entry of a completion queue."""

    __slots__ = ("frees", "life", "out", "qp", "receive", "solicited")

    def __init__(self, qp: QueuePair, out: dict[str, Any], frees: int, *, receive: bool) -> None:
        self.qp = qp
        self.life = qp.life
        self.out = out
        self.frees = frees
        self.receive = receive
        self.solicited = False


class Channel:
    """A completion channel: the queues that have an event waiting there, and how many use it."""

    __slots__ = ("merges", "told", "users")

    def __init__(self, *, merges: bool) -> None:
        self.merges = merges  # an event is left out while there is one of its queue
        self.told: deque[CompletionQueue] = deque()
        self.users = 0

    def tell(self, cq: CompletionQueue) -> None:
        """An event of a queue."""
        if not (self.merges and cq.waiting):
            cq.waiting += 1
            self.told.append(cq)

    def has_event(self) -> bool:
        """Whether there is an event to take."""
        return any(not cq.gone for cq in self.told)

    def take(self) -> CompletionQueue | None:
        """The next queue that has an event; those that are gone are passed over."""
        while self.told:
            cq = self.told.popleft()
            cq.waiting -= 1
            if not cq.gone:
                cq.events += 1
                return cq
        return None


DONE, WAITING, CANCELLED, OVERRUN = "0", "EINPROGRESS", "ECANCELED", "EOVERFLOW"
"""Outcomes of overlapped requests; a registration that failed has the words of its refusal."""


class Overlap:
    """An overlapped request: its outcome, and the region that a registration made."""

    __slots__ = ("handle", "outcome", "region")

    def __init__(self, outcome: str) -> None:
        self.handle = 0
        self.outcome = outcome
        self.region: Region | None = None


SOLICITED, ANY = 1, 2
"""What a completion queue is armed for."""


class CompletionQueue(Element):
    """A completion queue and the number of work queues that use it."""

    __slots__ = (
        *("armed", "capacity", "channel", "deaf", "entries", "events", "failed"),
        *("for_errors", "last_told", "overrun", "postponed", "requests", "users", "waiting"),
    )
    kind = "cq"

    def __init__(self, capacity: int, channel: Channel | None = None) -> None:
        super().__init__()
        self.channel = channel
        self.armed = 0
        self.deaf = False  # only a fault uses it: the next arming is lost
        self.postponed = 0  # only a fault uses it: what is armed with the next poll
        self.waiting = 0  # completion events in the channel
        self.events = 0  # completion events that were taken and not acknowledged
        self.failed = False  # an entry was lost, and that has been told
        self.capacity = capacity
        self.entries: deque[Cqe] = deque()
        self.users = 0
        self.overrun = False
        self.requests: list[Overlap] = []  # notifications that wait for a completion
        self.for_errors: list[Overlap] = []
        self.last_told: Cqe | None = None  # the entry of which the queue told last

    def purge(self, qp: QueuePair | None) -> None:
        """Take out the entries of one queue pair, or all of them."""
        for cqe in self.entries:
            if qp is not None and cqe.qp is qp and cqe.receive and qp.srq is not None:
                qp.srq.used -= cqe.frees
        self.entries = deque(cqe for cqe in self.entries if qp is not None and cqe.qp is not qp)

    def ring(self, *, solicited: bool) -> None:
        """An entry came while the queue was armed: tell the channel if it is of the right kind."""
        if self.armed == ANY or solicited:
            self.armed = 0
            if self.channel is not None:
                self.channel.tell(self)
            if self.requests:
                self.last_told = self.entries[-1] if self.entries else None
                for request in self.requests:
                    request.outcome = "0"
                self.requests.clear()

    def has_untold(self, kind: int) -> bool:
        """Whether there is an entry of a kind, behind the one of which the queue told last."""
        for cqe in reversed(self.entries):
            if cqe is self.last_told:
                break
            if kind == ANY or cqe.solicited:
                return True
        return False

    def end_requests(self, outcome: str) -> None:
        """Complete every pending notification, those for errors too."""
        for request in (*self.requests, *self.for_errors):
            request.outcome = outcome
        self.requests.clear()
        self.for_errors.clear()
        self.armed = 0


class SharedReceives(Element):
    """A shared receive queue: its receives, the slots in use, and the senders that found it empty."""

    __slots__ = ("limit", "max_sge", "pd", "receives", "size", "used", "users", "waiting")
    kind = "srq"

    def __init__(self, pd: ProtectionDomain, size: int, max_sge: int, limit: int) -> None:
        super().__init__()
        self.pd = pd
        self.size = size
        self.max_sge = max_sge
        self.limit = limit
        self.receives: deque[Wqe] = deque()
        self.used = 0
        self.users = 0
        self.waiting: dict[QueuePair, None] = {}
