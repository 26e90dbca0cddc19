"""Five planted faults for softhca (API linux-kernel, default options)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.execution import Execution
from verbs_adapters.softhca.pairs import Pairs
from verbs_adapters.softhca.requester import Requester


# Object lifetime.  Showing sequence:
#   create_cq(c); create_qp(q1, c, c); create_qp(q2, c, c); destroy_qp(q1); destroy_cq(c)
#   healthy: EBUSY (q2 still uses c).  Faulty: 0.
@contextmanager
def cq_use_is_a_flag() -> Iterator[None]:
    original = Pairs._purge

    def purge(self: Any, qp: Any) -> None:
        original(self, qp)
        if qp.state == "GONE":  # the last step of destroy_qp
            qp.send_cq.users = qp.recv_cq.users = 0  # "no longer in use"

    with patch.object(Pairs, "_purge", purge):
        yield


# Page translation, handle against hardware.  Showing sequence (B owns mr, peer A):
#   map_mr_sg(mr, buffer X); REG_MR(mr, k) polled; map_mr_sg(mr, buffer Y of equal size), nothing posted;
#   A: RDMA_WRITE(k, iova of X) polled SUCCESS; read X and Y
#   healthy: the bytes are in X and Y is untouched.  Faulty: the bytes are in Y and X is untouched.
@contextmanager
def pages_read_from_handle() -> Iterator[None]:
    original = Protection._ranges

    def ranges(self: Any, piece: Any) -> Any:
        region, addr, length = piece
        if region is None or region.mapping is None or region.map_sets[region.map_set] is None:
            return original(self, piece)
        mapping = region.mapping._replace(pages=region.map_sets[region.map_set].pages)
        return mapping.pieces(addr, length, mapping.shift)

    with patch.object(Protection, "_ranges", ranges):
        yield


# Ordering and fences; deterministic because a SEND without a receive waits for ever.  Showing sequence
# (A has region k VALID with REMOTE_READ; B has no receive posted):
#   A: SEND (any bytes); A: LOCAL_INV(k, fence); settle; B: RDMA_READ(k); settle; poll B
#   healthy: SUCCESS (the SEND has not finished, so the fenced invalidation has not happened).
#   Faulty: REM_ACCESS_ERR.  (Then B: post_recv lets A's SEND and LOCAL_INV complete on the healthy device.)
@contextmanager
def inv_fence_waits_for_sending_only() -> Iterator[None]:
    original = Requester.may_start

    def may_start(self: Any, qp: Any) -> bool:
        if qp.pending[0].opcode == "LOCAL_INV":
            return not qp.stalled and not qp.to_send  # what was sent may still be unanswered
        return original(self, qp)

    with patch.object(Requester, "may_start", may_start):
        yield


# Remote invalidation in the receive path.  Showing sequence (B has k VALID with REMOTE_WRITE):
#   B: post_recv; A: SEND_WITH_INV(k) with an empty sg_list; poll both (SUCCESS, WITH_INVALIDATE, k, 0 bytes);
#   A: RDMA_WRITE(k) of 1 byte or more; poll A
#   healthy: REM_ACCESS_ERR.  Faulty: SUCCESS (and the bytes are stored).
@contextmanager
def empty_send_inv_keeps_key() -> Iterator[None]:
    original = Execution._receive

    def receive(self: Any, qp: Any, request: Any) -> Any:
        region = None if request.invalidate is None else self._keys.find(request.invalidate)
        was_valid = region is not None and region.valid
        response = original(self, qp, request)
        if (
            region is not None
            and was_valid
            and not request.data
            and response is not None
            and response.status == "SUCCESS"
        ):
            region.valid = True  # the path for messages without payload leaves before invalidating
        return response

    with patch.object(Execution, "_receive", receive):
        yield


# State machine, rights and recovery.  Showing sequence (B has k VALID with REMOTE_READ|REMOTE_WRITE,
# B's QP was INIT with REMOTE_READ|REMOTE_WRITE and connected):
#   modify both QPs RESET; A: INIT; B: INIT with access REMOTE_READ only; both RTR, RTS;
#   A: RDMA_WRITE(k) polled
#   healthy: REM_ACCESS_ERR.  Faulty: SUCCESS.
#   Shorter on a new QP: INIT(REMOTE_READ|REMOTE_WRITE), INIT(REMOTE_READ), RTR, RTS; the peer's RDMA_WRITE.
@contextmanager
def qp_rights_only_grow() -> Iterator[None]:
    set_, to_reset = Pairs._set, Pairs._to_reset

    def take(self: Any, qp: Any, values: Any, peer: Any) -> None:
        old = qp.access
        set_(self, qp, values, peer)
        qp.access |= old  # the enable bits are OR-ed into the context ...

    def reset(self: Any, qp: Any) -> None:
        old = qp.access
        to_reset(self, qp)
        qp.access = old  # ... which RESET does not clear

    with patch.object(Pairs, "_set", take), patch.object(Pairs, "_to_reset", reset):
        yield


PLANTED: dict[str, tuple[Callable[[], AbstractContextManager[None]], str]] = {
    "cq-use-is-a-flag": (
        cq_use_is_a_flag,
        "destroy_qp marks its completion queues unused instead of counting one user less, so destroy_cq succeeds "
        "while another queue pair uses the queue (Q19, D-C3, B58: destroying a CQ in use is refused).",
    ),
    "pages-read-from-handle": (
        pages_read_from_handle,
        "map_mr_sg on a VALID region redirects accesses through the key in force to the new pages at once, without "
        "any REG_MR (M9: only posting the registration makes a mapping effective; B22: what was registered counts).",
    ),
    "inv-fence-waits-for-sending-only": (
        inv_fence_waits_for_sending_only,
        "a fenced LOCAL_INV executes once everything before it has been sent although an earlier SEND is still "
        "unanswered (D-S3, P12, B133: the local fence holds an invalidation until earlier operations finish).",
    ),
    "empty-send-inv-keeps-key": (
        empty_send_inv_keeps_key,
        "a SEND_WITH_INV without payload completes with WITH_INVALIDATE but leaves the region VALID (B7 of the "
        "verbs facts, D-R1, B35: the key is dead when the receive completion is delivered).",
    ),
    "qp-rights-only-grow": (
        qp_rights_only_grow,
        "the access rights given at INIT are added to those of an earlier INIT, even across RESET, so a right that "
        "was withdrawn still works (table 5.2: RESET to INIT requires and INIT to INIT takes ACCESS_FLAGS; B14, D-R6).",
    ),
}
