"""Five more planted faults in softhca, each a driver author's slip in one method, patched in memory.

``PLANTED`` maps a name to (context manager function, sentence).  Inside ``with`` the fault is there for every
``SoftHca`` that is made or reset there.  Default options (API linux-kernel).

In the sequences, A and B are connected queue pairs in RTS (access LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ) of one
protection domain, and R is a region of B's memory, registered with all three rights under key k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.completer import SUCCESS, Completer
from verbs_adapters.softhca.execution import Execution
from verbs_adapters.softhca.pairs import Pairs
from verbs_adapters.softhca.registrar import Registrar


# -- registration (facts K1, K4, 1.9: REG_MR with another index fails) -----------------------------------
# 1 alloc_mr -> S, s   2 map_mr_sg(S)   3 post_send(A, REG_MR S, key = s + 256)
# 4 poll_cq(A): healthy LOC_QP_OP_ERR (queue pair to ERR), faulty SUCCESS (S is VALID under key s)
@contextmanager
def registration_takes_byte_only() -> Iterator[None]:
    healthy = Registrar.check

    def check(self: Any, qp: Any, wqe: Any) -> Any:
        if wqe.region is not None:
            wqe.key = wqe.region.index << 8 | wqe.key & 0xFF  # "the upper bits are the region's anyway"
        return healthy(self, qp, wqe)

    with patch.object(Registrar, "check", check):
        yield


# -- access checks (facts D-R5, R10, 6.3: bounds to the byte, REM_ACCESS_ERR) ----------------------------
# 1 post_send(A, RDMA_WRITE 8 bytes to R's iova + 2**32)
# 2 poll_cq(A): healthy REM_ACCESS_ERR, faulty SUCCESS (the bytes are at R's iova)
@contextmanager
def remote_offset_in_32_bits() -> Iterator[None]:
    healthy = Protection.check_remote

    def check_remote(self: Any, qp: Any, target: Any, right: Any) -> Any:
        region = self._keys.find(target.rkey)
        if region is not None and region.mapping is not None:
            start = region.mapping.iova
            if target.addr >= start:  # u32 offset = addr - iova
                target = target._replace(addr=start + (target.addr - start & 0xFFFFFFFF))
        return healthy(self, qp, target, right)

    with patch.object(Protection, "check_remote", check_remote):
        yield


# -- completion contents (facts B7; a plain SEND invalidates nothing) -------------------------------------
# 1 post_recv(B)   2 post_recv(B)   3 post_send(A, SEND_WITH_INV, invalidate_rkey = k)   4 post_send(A, SEND)
# 5 poll_cq(B): SUCCESS, WITH_INVALIDATE, k   6 poll_cq(B): SUCCESS, wc_flags healthy [], faulty WITH_INVALIDATE
@contextmanager
def invalidate_flag_sticks() -> Iterator[None]:
    healthy = Execution._receive
    context: dict[Any, int] = {}  # per queue pair and life: what its responder context holds of the last SEND_WITH_INV

    def _receive(self: Any, qp: Any, request: Any) -> Any:
        before = len(qp.received)
        response = healthy(self, qp, request)
        if response is not None and response.status == SUCCESS and len(qp.received) > before:
            outputs = qp.received[-1][1]
            stale = context.get((qp, qp.life))
            if "invalidate_rkey" in outputs:
                context[qp, qp.life] = outputs["invalidate_rkey"]
            elif stale is not None:
                outputs.update(wc_flags=["WITH_INVALIDATE"], invalidate_rkey=stale)
        return response

    with patch.object(Execution, "_receive", _receive):
        yield


# -- error state and flush (facts E1, D-Q3: all the rest WR_FLUSH_ERR, each one) ---------------------------
# 1 post_send(A, SEND; it waits, B has no receive)   2 post_send(A, SEND with a bad lkey)   3 post_send(A, SEND)
# 4 post_recv(B)   5 settle   6 poll_cq(A) SUCCESS   7 poll_cq(A) LOC_PROT_ERR
# 8 poll_cq(A): healthy WR_FLUSH_ERR, faulty n = 0
@contextmanager
def flush_starts_one_too_late() -> Iterator[None]:
    healthy = Completer.retire

    def retire(self: Any, qp: Any) -> Any:
        if qp.started[0].status != SUCCESS:  # the consumer index is advanced for the failed one twice
            if len(qp.started) > 1:
                del qp.started[1]
            elif qp.pending:
                qp.pending.popleft()
        healthy(self, qp)

    with patch.object(Completer, "retire", retire):
        yield


# -- object life cycle (facts E6: RESET discards work requests; Q21) ----------------------------------------
# 1 post_recv(B, wr_id 7)   2 modify_qp(B, RESET)   3 modify_qp(B, INIT)   4 modify_qp(B, ERR)   5 settle
# 6 poll_cq(B): healthy n = 0, faulty wr_id 7 WR_FLUSH_ERR
# (or, connected anew, the old receive takes the next message)
@contextmanager
def receives_survive_reset() -> Iterator[None]:
    healthy = Pairs._to_reset

    def _to_reset(self: Any, qp: Any) -> Any:
        kept = qp.receives
        healthy(self, qp)
        qp.receives, qp.rq_used = kept, len(kept)  # only the send ring and the indices of the device are reset

    with patch.object(Pairs, "_to_reset", _to_reset):
        yield


PLANTED: dict[str, tuple[Callable[[], AbstractContextManager[None]], str]] = {
    "registration-takes-byte-only": (
        registration_takes_byte_only,
        "a REG_MR whose key has another region's index registers its region all the same, with the key's low byte",
    ),
    "remote-offset-in-32-bits": (
        remote_offset_in_32_bits,
        "the offset of a remote access into its region is computed in 32 bits, so 4 GiB past the start is the start",
    ),
    "invalidate-flag-sticks": (
        invalidate_flag_sticks,
        "after a SEND_WITH_INV every later receive of the queue pair says WITH_INVALIDATE too, with the old key",
    ),
    "flush-starts-one-too-late": (
        flush_starts_one_too_late,
        "the work request right behind one that failed is skipped by the flush and never completes",
    ),
    "receives-survive-reset": (
        receives_survive_reset,
        "receives posted before RESET are still in the queue after it",
    ),
}
