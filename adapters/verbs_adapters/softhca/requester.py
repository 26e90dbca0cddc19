"""The requester: fetches work requests, puts requests on the wire, takes responses.

Theory of operation
-------------------
A work request passes *start* (fetched from the queue; a memory management operation executes here) and, if
it talks to the peer, *transmit* (its bytes are gathered and the request goes on the wire) and *response*.
Each is one micro-step, in posting order, so other things may happen in between.

When may a work request start?  A memory management operation takes effect before the next work request
starts.  LOCAL_INV, or one that asks for a fence, waits until everything before it is done; a registration
until everything before it was sent.  With the option ``local_inv_early`` neither waits unless fenced, which
the draft allows (8.2.2).  A fenced data request waits for all earlier READs.

When one fails, nothing further is fetched or sent; it reports when everything before it has.
"""

from __future__ import annotations

from verbs_adapters.softhca.access import Piece, Protection, ProtectionError
from verbs_adapters.softhca.completer import SUCCESS
from verbs_adapters.softhca.memory import BusFault
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import LOCAL_OPS, Wqe
from verbs_adapters.softhca.registrar import OperationError, Registrar
from verbs_adapters.softhca.wire import Request

MAX_MESSAGE = 1 << 30


class Requester:
    """The send side of every queue pair."""

    def __init__(self, settings: Settings, protection: Protection, registrar: Registrar) -> None:
        self._settings = settings
        self._faults = settings.fault
        self._protection = protection
        self._registrar = registrar

    def may_start(self, qp: QueuePair) -> bool:
        """Whether the next work request may be fetched."""
        if qp.stalled:
            return False
        wqe = qp.pending[0]
        fence = wqe.fence and "fence-ignored" not in self._faults
        if wqe.opcode not in LOCAL_OPS:
            return not (fence and qp.reads_out)
        if self._settings.local_inv_early and not fence:
            return True
        return not qp.to_send and not (qp.unacked and (fence or wqe.opcode == "LOCAL_INV"))

    def start(self, qp: QueuePair) -> None:
        """Fetch the next work request."""
        wqe = qp.pending.popleft()
        qp.started.append(wqe)
        while qp.late_invalidations:  # a fault left them
            qp.late_invalidations.pop().invalidate()
        if wqe.opcode in LOCAL_OPS:
            self._execute_local(qp, wqe)
            return
        if wqe.opcode == "RDMA_READ":
            qp.reads_out += 1
            if "bad-read-sink-unreported" in self._faults:
                qp.to_send.append(wqe)
                return
        try:
            self._pieces(qp, wqe)
        except ProtectionError:
            self._fail(qp, wqe, "LOC_PROT_ERR")
        else:
            qp.to_send.append(wqe)

    def _execute_local(self, qp: QueuePair, wqe: Wqe) -> None:
        try:
            self._registrar.execute(qp, wqe)
        except OperationError:
            wqe.status = self._settings.bad_op_status
            qp.stalled = True
        else:
            wqe.status = SUCCESS

    def _pieces(self, qp: QueuePair, wqe: Wqe) -> list[Piece]:
        if wqe.length > MAX_MESSAGE:
            raise ProtectionError(f"a message of {wqe.length} bytes; the largest is {MAX_MESSAGE}")
        if wqe.opcode == "RDMA_READ":
            return self._protection.check_read_sink(qp, wqe)
        return self._protection.check_local(qp.pd, wqe.sges, wqe.length)

    def transmit(self, qp: QueuePair) -> None:
        """Put the next request on the wire."""
        wqe = qp.to_send[0]
        data = b""
        if wqe.opcode != "RDMA_READ":
            try:
                data = self._protection.load(self._pieces(qp, wqe))
            except ProtectionError:
                self._fail_sending(qp, wqe, "LOC_PROT_ERR")
                return
            except BusFault:
                self._fail_sending(qp, wqe, "LOC_QP_OP_ERR")
                return
        request = Request(wqe, wqe.opcode, qp.lanes.sent, data)
        if wqe.opcode == "SEND_WITH_INV" and "inv-key-in-wrong-field" not in self._faults:
            request.invalidate = wqe.invalidate_rkey
        if wqe.opcode == "SEND_WITH_INV" and "send-inv-also-at-requester" in self._faults:
            self._registrar.invalidate_by_index(wqe.invalidate_rkey)
        qp.lanes.sent += 1
        qp.to_send.popleft()
        qp.unacked.append(wqe)
        qp.lanes.requests.append(request)

    def take_response(self, qp: QueuePair) -> None:
        """Take the next response: the oldest unanswered request is done."""
        response = qp.lanes.responses.popleft()
        wqe = qp.unacked.popleft()
        assert wqe is response.wqe
        if wqe.opcode == "RDMA_READ":
            qp.reads_out = 0 if "fence-released-by-any-read" in self._faults else qp.reads_out - 1
        status = response.status
        if status == SUCCESS and wqe.opcode == "RDMA_READ":
            status = self._scatter(qp, wqe, response.data)
        if status == SUCCESS:
            wqe.status = SUCCESS
            wqe.byte_len = wqe.length
        else:
            self.give_up(qp, wqe, status)

    def _scatter(self, qp: QueuePair, wqe: Wqe, data: bytes) -> str:
        try:
            self._protection.store(self._pieces(qp, wqe), data)
        except ProtectionError:
            return SUCCESS if "bad-read-sink-unreported" in self._faults else "LOC_PROT_ERR"
        except BusFault:
            return "LOC_QP_OP_ERR"
        return SUCCESS

    def give_up(self, qp: QueuePair, wqe: Wqe, status: str) -> None:
        """A request failed on the wire: what was sent after it must not be executed any more.

        Responses stay: they answer earlier requests.
        """
        qp.lanes.requests.clear()
        self._fail_sending(qp, wqe, status)

    def _fail(self, qp: QueuePair, wqe: Wqe, status: str) -> None:
        wqe.status = status
        qp.stalled = True

    def _fail_sending(self, qp: QueuePair, wqe: Wqe, status: str) -> None:
        """A request that was sent, or was next to be, failed: nothing after it is sent."""
        qp.to_send.clear()
        self._fail(qp, wqe, status)
