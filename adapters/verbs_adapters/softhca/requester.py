"""The requester: fetches work requests, puts requests on the wire.

Theory of operation
-------------------
A work request passes *start* (fetched from the queue; a memory management operation executes here) and, if
it talks to the peer, *transmit* (its bytes are gathered, cut into packets of the path MTU, and put on the wire).
Each is one micro-step, in posting order, so other things may happen in between.  Answers are taken by
:mod:`~verbs_adapters.softhca.answers`; what has to be sent again comes before anything new
(:mod:`~verbs_adapters.softhca.retry`).

When may a work request start?  A memory management operation takes effect before the next work request
starts.  LOCAL_INV, or one that asks for a fence, waits until everything before it is done; a registration
until everything before it was sent.  With the option ``local_inv_early`` neither waits unless fenced, which
the draft allows (8.2.2).  A fenced data request waits for all earlier READs and atomics.

READs and atomics are sent as long as not too many are unanswered: the responder keeps that many answers.

When one fails, nothing further is fetched or sent; it reports when everything before it has.
"""

from __future__ import annotations

from verbs_adapters.softhca.access import Piece, Protection, ProtectionError
from verbs_adapters.softhca.attributes import active_mtu
from verbs_adapters.softhca.capabilities import NETWORKDIRECT
from verbs_adapters.softhca.completer import SUCCESS
from verbs_adapters.softhca.connection import MTUS
from verbs_adapters.softhca.memory import BusFault
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.psn import MASK
from verbs_adapters.softhca.qp import UNRELIABLE, QueuePair
from verbs_adapters.softhca.queue import ANSWERED, LOCAL_OPS, Wqe
from verbs_adapters.softhca.registrar import OperationError, Registrar
from verbs_adapters.softhca.wire import Request, Wire

MAX_MESSAGE = 1 << 30


class Requester:
    """The send side of every queue pair."""

    def __init__(self, settings: Settings, protection: Protection, registrar: Registrar, wire: Wire) -> None:
        self._wire = wire
        self._settings = settings
        one_word = settings.api == NETWORKDIRECT  # ND2_RESULT: ND_INVALID_DEVICE_REQUEST
        self._bad_operation = "LOC_QP_OP_ERR" if one_word else settings.bad_op_status
        self._faults = settings.fault
        self._protection = protection
        self._registrar = registrar

    def may_start(self, qp: QueuePair) -> bool:
        """Whether the next work request may be fetched."""
        if qp.stalled:
            return False
        wqe = qp.pending[0]
        fence = wqe.fence and "fence-ignored" not in self._faults
        if "fence-ignores-atomics" in self._faults:
            fence = fence and any(w.opcode == "RDMA_READ" and not w.status for w in qp.started)
        if wqe.opcode not in LOCAL_OPS:
            return not (fence and qp.reads_out)
        if self._settings.local_inv_early and not fence:
            return True
        return not qp.to_send and not (qp.unacked and (fence or wqe.opcode == "LOCAL_INV"))

    def start(self, qp: QueuePair) -> None:
        """Fetch the next work request."""
        wqe = qp.pending.popleft()
        qp.started.append(wqe)
        while qp.late:  # a fault left it
            qp.late.pop()()
        if wqe.opcode in LOCAL_OPS:
            self._execute_local(qp, wqe)
            return
        if wqe.opcode in ANSWERED:
            qp.reads_out += 1
            if "bad-read-sink-unreported" in self._faults:
                qp.to_send.append(wqe)
                return
        try:
            if wqe.inline is None:
                self._pieces(qp, wqe)
        except ProtectionError:
            wqe.status = "LOC_PROT_ERR"
            qp.stalled = True
        else:
            qp.to_send.append(wqe)

    def _execute_local(self, qp: QueuePair, wqe: Wqe) -> None:
        if wqe.binding is not None and qp.slot + 1 == qp.sq_size and "binding-at-ring-end-is-lost" in self._faults:
            wqe.status = SUCCESS
            return
        try:
            self._registrar.execute(qp, wqe)
        except OperationError as error:
            wqe.status = error.status or self._bad_operation
            if wqe.binding is not None and "bind-failure-says-protection" in self._faults:
                wqe.status = "LOC_PROT_ERR"
            if wqe.binding is not None and "failed-bind-says-success" in self._faults:
                wqe.status = SUCCESS
                return
            qp.stalled = True
        else:
            wqe.status = SUCCESS

    def _pieces(self, qp: QueuePair, wqe: Wqe) -> list[Piece]:
        if wqe.length > MAX_MESSAGE:
            raise ProtectionError(f"a message of {wqe.length} bytes; the largest is {MAX_MESSAGE}")
        if wqe.opcode in ANSWERED:
            return self._protection.check_read_sink(qp, wqe.sges, wqe.length)
        return self._protection.check_local(qp.pd, wqe.sges, wqe.length)

    # -- sending -----------------------------------------------------------------------------------
    def may_transmit(self, qp: QueuePair) -> bool:
        """Whether something can go on the wire now."""
        outbound = qp.outbound
        if outbound.paused:
            return False
        if outbound.resend:
            return True
        return bool(qp.to_send) and not (outbound.reads >= qp.path.max_reads and qp.to_send[0].opcode in ANSWERED)

    def transmit(self, qp: QueuePair) -> None:
        """Put on the wire the next packet that is to be sent again, or the next message."""
        resend = qp.outbound.resend
        if resend:
            self._wire.request(qp, resend.popleft())
            return
        wqe = qp.to_send[0]
        data = wqe.inline or b""
        if wqe.opcode not in ANSWERED and wqe.inline is None:
            try:
                data = self._protection.load(self._pieces(qp, wqe))
            except ProtectionError:
                qp.stop_sending(wqe, "LOC_PROT_ERR")
                return
            except BusFault:
                qp.stop_sending(wqe, "LOC_QP_OP_ERR")
                return
        qp.to_send.popleft()
        if qp.type == "UD" and not self._may_go(qp, wqe):
            return
        self._cut(qp, wqe, data)
        for packet in wqe.packets:
            self._wire.request(qp, packet)
        if qp.type in UNRELIABLE:
            wqe.status, wqe.byte_len = SUCCESS, wqe.length
        else:
            qp.unacked.append(wqe)

    def _may_go(self, qp: QueuePair, wqe: Wqe) -> bool:
        """Whether a datagram goes on the wire; if not, it has failed, or seems to have been sent."""
        if wqe.ah is None or wqe.ah.pd is not qp.pd:
            status = self._settings.foreign_ah
        elif wqe.length > MTUS[active_mtu(self._settings)]:
            status = self._settings.long_datagram
        else:
            return True
        if status == SUCCESS:
            wqe.status, wqe.byte_len = SUCCESS, wqe.length
        else:
            qp.stop_sending(wqe, status)
        return False

    def _cut(self, qp: QueuePair, wqe: Wqe, data: bytes) -> None:
        """Make a message's packets, and take the numbers of its packets and answers."""
        outbound, mtu = qp.outbound, qp.path.mtu
        psn = wqe.awaited = outbound.psn
        if len(data) <= mtu:
            wqe.packets = (Request(wqe, psn, qp.life, data),)
        else:
            wqe.packets = _segments(wqe, psn, qp.life, data, mtu)
        span = len(wqe.packets)
        if wqe.opcode in ANSWERED:
            outbound.reads += 1
            span = max(1, -(-wqe.length // mtu)) if wqe.opcode == "RDMA_READ" else 1
        elif wqe.opcode == "SEND_WITH_INV":
            if "inv-key-in-wrong-field" not in self._faults:
                wqe.packets[-1].invalidate = wqe.invalidate_rkey
            if "send-inv-also-at-requester" in self._faults:
                self._registrar.invalidate_by_index(wqe.invalidate_rkey)
        wqe.last_psn = (psn + span - 1) & MASK
        outbound.psn = psn + span if "numbers-outgrow-their-bits" in self._faults else (psn + span) & MASK


def _segments(wqe: Wqe, psn: int, life: int, data: bytes, mtu: int) -> tuple[Request, ...]:
    """The packets of a message that does not fit into one."""
    packets = tuple(
        Request(wqe, (psn + number) & MASK, life, data[offset : offset + mtu], offset)
        for number, offset in enumerate(range(0, len(data), mtu))
    )
    for packet in packets:
        packet.first = packet is packets[0]
        packet.last = packet is packets[-1]
    return packets
