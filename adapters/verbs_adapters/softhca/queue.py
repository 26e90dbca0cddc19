"""Work queue entries, completion queue entries and completion queues.

Theory of operation
-------------------
A :class:`Wqe` is a work request as the device holds it: every field is fixed when it is posted.  A
:class:`Cqe` remembers which queue pair it came from, in which life of that queue pair (RESET begins a new
one), and how many slots polling it gives back: its own and those of the unsignalled work requests before it.
A completion queue that is full loses the entry; what that means for the queue pair is the engine's business.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from verbs_adapters.softhca.access import Sge
from verbs_adapters.softhca.region import Mapping, PageList, Region

if TYPE_CHECKING:
    from verbs_adapters.softhca.qp import QueuePair

LOCAL_OPS = frozenset({"LOCAL_INV", "REG_MR", "FAST_REG_MR"})
WC_OPCODE = {
    "SEND": "SEND",
    "SEND_WITH_INV": "SEND",
    "RDMA_WRITE": "RDMA_WRITE",
    "RDMA_READ": "RDMA_READ",
    "LOCAL_INV": "LOCAL_INV",
    "REG_MR": "REG_MR",
    "FAST_REG_MR": "REG_MR",
    "RECV": "RECV",
}


class Wqe:
    """One posted work request."""

    __slots__ = (
        "access",
        "byte_len",
        "fence",
        "invalidate_rkey",
        "iova_start",
        "key",
        "length",
        "mapping",
        "opcode",
        "page_list",
        "page_list_len",
        "page_shift",
        "region",
        "remote_addr",
        "rkey",
        "sges",
        "signaled",
        "status",
        "wr_id",
    )

    def __init__(self, wr_id: int, opcode: str, *, signaled: bool = True, fence: bool = False) -> None:
        self.wr_id = wr_id
        self.opcode = opcode
        self.signaled = signaled
        self.fence = fence
        self.status = ""  # empty until the outcome is known
        self.byte_len = 0
        self.sges: tuple[Sge, ...] = ()
        self.length = 0
        self.remote_addr = 0
        self.rkey = 0
        self.invalidate_rkey = 0
        self.region: Region | None = None
        self.mapping: Mapping | None = None
        self.key = 0
        self.access = 0
        self.page_list: PageList | None = None
        self.page_list_len = 0
        self.page_shift = 0
        self.iova_start = 0


class Cqe:
    """One entry of a completion queue."""

    __slots__ = ("frees", "life", "out", "qp", "receive")

    def __init__(self, qp: QueuePair, out: dict[str, Any], frees: int, *, receive: bool) -> None:
        self.qp = qp
        self.life = qp.life
        self.out = out
        self.frees = frees
        self.receive = receive


class CompletionQueue:
    """A completion queue and the number of work queues that use it."""

    __slots__ = ("capacity", "entries", "overrun", "users")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.entries: deque[Cqe] = deque()
        self.users = 0
        self.overrun = False

    def purge(self, qp: QueuePair | None) -> None:
        """Take out the entries of one queue pair, or all of them."""
        self.entries = deque(cqe for cqe in self.entries if qp is not None and cqe.qp is not qp)
