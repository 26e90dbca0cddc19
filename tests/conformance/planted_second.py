"""Six planted faults in softhca, each a driver author's slip in one function, patched in memory.

``PLANTED`` maps a name to (context manager function, sentence).  Inside ``with`` the fault is there for every
``SoftHca`` that is made or reset there (a device binds its verbs at reset, so one that is only carried in or out
of the ``with`` may keep the old ``destroy_qp`` until its next reset).  Default options (API linux-kernel).

In the sequences, A and B are connected queue pairs in RTS (access LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ) of one
protection domain, and R is a region of B's memory, registered with all three rights under key k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from verbs_adapters.softhca import mapping, objects, regions
from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.completer import Completer
from verbs_adapters.softhca.execution import Execution
from verbs_adapters.softhca.pairs import Pairs
from verbs_adapters.softhca.qp import RESPONDING


# -- page translation (facts M2, M3, M6; B17: iova -> buffer is exact) ---------------------------------
# 1 alloc_buffer(8192) -> W   2 alloc_mr(2) -> S   3 map_mr_sg(S, [{W, 8192}], offset=4096, page_size=4096)
# 4 post_send(B, REG_MR S)    5 poll_cq(B) SUCCESS
# 6 post_send(A, RDMA_WRITE 8 bytes to the iova that 3 answered)    7 poll_cq(A) SUCCESS
# 8 read_buffer(W, offset 4096, 8): healthy the bytes, faulty zeros (they are at offset 0)
@contextmanager
def map_offset_skips_no_page() -> Iterator[None]:
    healthy = mapping.map_sg

    def map_sg(sg: Any, offset: Any, shift: Any, max_pages: Any) -> Any:
        mapped, made = healthy(sg, offset, shift, max_pages)
        whole = healthy(sg, 0, shift, max_pages)[1]  # the vector of the list as it was given
        return mapped, made._replace(pages=whole.pages[: len(made.pages)])

    with patch.object(regions, "map_sg", map_sg):
        yield


# -- access checks (facts K7: the reserved key is for local use only; 6.3 bad rkey) ---------------------
# 1 post_send(A, RDMA_WRITE to B's buffer, rkey = local_dma_lkey, remote_addr = the buffer's DMA address)
# 2 poll_cq(A): healthy REM_ACCESS_ERR, faulty SUCCESS (and the bytes are in the buffer)
@contextmanager
def dma_key_works_remotely() -> Iterator[None]:
    healthy = Protection.check_remote

    def check_remote(self: Any, qp: Any, target: Any, right: Any) -> Any:
        by_dma = target.rkey == self._dma_lkey and qp.access & right
        if by_dma and target.length and self._memory.covers(target.addr, target.length):
            return [(None, target.addr, target.length)]
        return healthy(self, qp, target, right)

    with patch.object(Protection, "check_remote", check_remote):
        yield


# -- completion contents (facts B7: invalidated_rkey is the key that was invalidated; K3) ---------------
# 1 update_fast_reg_key(R, another byte) -> k2, which waits for the next REG_MR
# 2 post_recv(B)    3 post_send(A, SEND_WITH_INV, invalidate_rkey = k)
# 4 poll_cq(B): SUCCESS, WITH_INVALIDATE, invalidate_rkey healthy k, faulty k2
@contextmanager
def invalidate_rkey_from_handle() -> Iterator[None]:
    healthy = Execution._receive

    def _receive(self: Any, qp: Any, request: Any) -> Any:
        response = healthy(self, qp, request)
        if qp.received and "invalidate_rkey" in qp.received[-1][1]:
            region = self._keys.find(request.invalidate)
            if region is not None:
                qp.received[-1][1]["invalidate_rkey"] = region.key
        return response

    with patch.object(Execution, "_receive", _receive):
        yield


# -- order and flush (facts 6.1: in ERR nothing is processed; E1, E2; 1.9: VALID comes by execution) ----
# 1 alloc_mr -> S   2 map_mr_sg(S)   3 modify_qp(A, ERR)   4 post_send(A, REG_MR S)   5 poll_cq(A) WR_FLUSH_ERR
# 6 post_send(B, REG_MR S)   7 poll_cq(B): healthy SUCCESS, faulty LOC_QP_OP_ERR (S is VALID already)
@contextmanager
def flushed_registration_takes_effect() -> Iterator[None]:
    healthy = Completer.flush_send

    def flush_send(self: Any, qp: Any) -> Any:
        wqe = qp.pending[0]
        if wqe.opcode == "REG_MR" and wqe.mapping is not None and not wqe.region.valid:
            wqe.region.validate(wqe.key, wqe.access, wqe.mapping)
        healthy(self, qp)

    with patch.object(Completer, "flush_send", flush_send):
        yield


# -- reference counts and destroy (facts 6.3: silent peer, RETRY_EXC_ERR; D-C3, N31: only CQEs outlive a QP) -
# 1 destroy_qp(B)   2 post_send(A, RDMA_WRITE to R)   3 poll_cq(A): healthy RETRY_EXC_ERR, faulty SUCCESS
# 4 read_buffer: faulty has the bytes
@contextmanager
def destroyed_qp_still_answers() -> Iterator[None]:
    healthy = Pairs.destroy_qp

    def destroy_qp(self: Any, args: Any) -> Any:
        qp = objects.find(self._objects.qps, args["qp"])
        connected = qp.state in RESPONDING
        context = qp.access, qp.peer, qp.expected
        healthy(self, args)
        if connected:  # the handle is gone, the context in the device is not
            qp.access, qp.peer, qp.expected = context
            qp.state = "RTR"

    with patch.object(Pairs, "destroy_qp", destroy_qp):
        yield


# -- receive side (facts E1, 6.3: message longer than receive, then ERR and the rest flushed) ------------------
# 1 post_recv(B, 8 bytes)   2 post_recv(B, 64 bytes)   3 post_send(A, SEND 16 bytes)
# 4 poll_cq(A) REM_INV_REQ_ERR   5 poll_cq(B) LOC_LEN_ERR   6 settle
# 7 poll_cq(B): healthy WR_FLUSH_ERR, faulty n = 0   8 query_qp(B): healthy ERR, faulty RTS
@contextmanager
def short_receive_fails_alone() -> Iterator[None]:
    healthy = Completer.fail_receive

    def fail_receive(self: Any, qp: Any, wqe: Any, status: Any) -> Any:
        if status == "LOC_LEN_ERR":
            qp.received.append((wqe, {"status": status}))
        else:
            healthy(self, qp, wqe, status)

    with patch.object(Completer, "fail_receive", fail_receive):
        yield


PLANTED: dict[str, tuple[Callable[[], AbstractContextManager[None]], str]] = {
    "map-offset-skips-no-page": (
        map_offset_skips_no_page,
        "map_mr_sg with an offset of a page or more still begins the page vector with the element's first page",
    ),
    "dma-key-works-remotely": (
        dma_key_works_remotely,
        "a peer that names local_dma_lkey as rkey reaches memory by DMA address",
    ),
    "invalidate-rkey-from-handle": (
        invalidate_rkey_from_handle,
        "the receive of a SEND_WITH_INV reports the key that the handle holds, not the one that was invalidated",
    ),
    "flushed-registration-takes-effect": (
        flushed_registration_takes_effect,
        "a REG_MR that is flushed has registered its region all the same",
    ),
    "destroyed-qp-still-answers": (
        destroyed_qp_still_answers,
        "a destroyed queue pair goes on serving its peer's RDMA requests",
    ),
    "short-receive-fails-alone": (
        short_receive_fails_alone,
        "a message too long for its receive fails that receive, but its queue pair stays in RTS with the others",
    ),
}
