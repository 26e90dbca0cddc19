"""What the responder does with a request packet: stores, loads, and fills receives.

Theory of operation
-------------------
Each packet is checked and executed by itself.  The first of an RDMA_WRITE has the whole range checked, a later one
what is left of it, so that a refused RDMA_WRITE stores nothing, and one whose region goes away meanwhile is refused
half done.  A SEND takes a receive with its first packet and fills it as packets come; RDMA_WRITE_WITH_IMM takes one
with its last.

A refused request changes no memory beyond that, moves the responder to ERR, and is answered: a refused access with
REM_ACCESS_ERR, a receive too small with REM_INV_REQ_ERR, an unusable receive with REM_OP_ERR (``rxe_resp.c``).  On
iWARP the stream ends instead (:mod:`~verbs_adapters.softhca.stream`), and a SEND need not wait for a receive.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from verbs_adapters.softhca.access import DeviceCrash, Piece, Protection, ProtectionError, Target, part
from verbs_adapters.softhca.atomic import ATOMIC_BYTES, changed
from verbs_adapters.softhca.completer import SUCCESS, Completer
from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.keys import KeyTable
from verbs_adapters.softhca.memory import BusFault
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import UNRELIABLE, QueuePair
from verbs_adapters.softhca.queue import ANSWERED, SharedReceives, Wqe
from verbs_adapters.softhca.region import REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE
from verbs_adapters.softhca.registrar import OperationError, Registrar
from verbs_adapters.softhca.stream import Stream
from verbs_adapters.softhca.wire import NOT_READY, Request, Response


class Lost(Exception):
    """The request was taken and no answer will come."""


class Execution:
    """Executes packets on behalf of every responder."""

    def __init__(
        self,
        settings: Settings,
        keys: KeyTable,
        protection: Protection,
        registrar: Registrar,
        *,
        completer: Completer,
        stream: Stream,
        events: EventQueue,
    ) -> None:
        self._events = events
        self._settings = settings
        self._faults = settings.fault
        self._keys = keys
        self._protection = protection
        self._registrar = registrar
        self._completer = completer
        self._stream = stream

    def perform(self, qp: QueuePair, request: Request) -> Response | None:
        """Execute a packet; None if its message goes on."""
        try:
            if request.opcode == "RDMA_WRITE":
                return self._write(qp, request)
            if request.opcode == "RDMA_READ":
                return self._read(qp, request)
            if request.opcode in ANSWERED:
                return self._atomic(qp, request)
            if request.opcode == "RDMA_WRITE_WITH_IMM":
                return self._write_with_imm(qp, request)
        except ProtectionError:
            return self._refuse(qp, request, "REM_ACCESS_ERR", "QP_ACCESS_ERR")
        except BusFault:
            return self._refuse(qp, request, "REM_OP_ERR", "QP_FATAL")
        return self._receive(qp, request)

    def _refuse(self, qp: QueuePair, request: Request, status: str, event: str = "") -> Response:
        """Fail a request that has no completion here to tell it: an event, and ERR; an unreliable one is dropped."""
        if qp.type in UNRELIABLE:
            return Response(request.wqe, request.psn, status)
        if event:
            self._events.tell(event, qp)
        self._completer.enter_error(qp)
        return Response(request.wqe, request.psn, status)

    # -- memory ------------------------------------------------------------------------------------
    def _write(self, qp: QueuePair, request: Request) -> Response | None:
        wqe, data, offset = request.wqe, request.data, request.offset
        target = Target(wqe.rkey, wqe.remote_addr + offset, wqe.length - offset)
        try:
            pieces = self._protection.check_remote(qp, target, REMOTE_WRITE)
        except ProtectionError:
            region = self._keys.find(wqe.rkey)
            if "refused-write-writes-anyway" in self._faults and region is not None:
                with suppress(BusFault):
                    self._protection.store([(region, target.addr, len(data))], data)
            raise
        self._protection.store(pieces if request.last else _beginning(pieces, len(data)), data)
        return Response(wqe, request.psn, SUCCESS) if request.last else None

    def _read(self, qp: QueuePair, request: Request) -> Response:
        wqe, offset = request.wqe, request.offset
        target = Target(wqe.rkey, wqe.remote_addr + offset, wqe.length - offset)
        try:
            data = self._protection.load(self._protection.check_remote(qp, target, REMOTE_READ))
        except ProtectionError:
            if "refused-read-sends-zeros" not in self._faults:
                raise
            data = bytes(target.length)
        return Response(wqe, request.psn, SUCCESS, data)

    def _atomic(self, qp: QueuePair, request: Request) -> Response:
        wqe = request.wqe
        target = Target(wqe.rkey, wqe.remote_addr, ATOMIC_BYTES)
        pieces = self._protection.check_remote(qp, target, REMOTE_ATOMIC)
        if wqe.remote_addr % ATOMIC_BYTES and "misaligned-atomic-executed" not in self._faults:
            return self._refuse(qp, request, "REM_INV_REQ_ERR", "QP_REQ_ERR")
        if wqe.length > ATOMIC_BYTES:
            status = self._settings.atomic_length
            if status == "LOC_LEN_ERR":  # the requester finds its buffers too long when the answer comes
                return Response(wqe, request.psn, status)
            return self._refuse(qp, request, status, "QP_REQ_ERR")
        old = self._protection.load(pieces)
        new = changed(wqe, old)
        self._protection.store(pieces, new)
        if "atomic-answers-the-new-number" in self._faults:
            old = new
        if "atomic-answers-backwards" in self._faults:
            old = old[::-1]
        if "atomic-keeps-completion-queue" in self._faults:
            qp.recv_cq.users += 1
        qp.inbound.remember(request.psn, new if "duplicate-atomic-answered-anew" in self._faults else old)
        return Response(wqe, request.psn, SUCCESS, old)

    def _write_with_imm(self, qp: QueuePair, request: Request) -> Response | None:
        """As RDMA_WRITE; the last packet takes a receive before anything else."""
        if not request.last:
            return self._write(qp, request)
        if not qp.receives:
            return self._not_ready(qp, request)
        receive = self.take_receive(qp, request)
        try:
            response = self._write(qp, request)
        except (ProtectionError, BusFault):
            if qp.type in UNRELIABLE:
                self.spare(qp, receive, self._settings.refused_imm)
            else:
                self._completer.fail_receive(qp, receive, self._settings.refused_imm)
            raise
        outputs = {"byte_len": request.wqe.length, "opcode": "RECV_RDMA_WITH_IMM"}
        qp.received.append((receive, outputs | immediate(request.wqe)))
        return response

    # -- receives ----------------------------------------------------------------------------------
    def _receive(self, qp: QueuePair, request: Request) -> Response | None:
        inbound = qp.inbound
        if request.first:
            if not qp.receives:
                return self._not_ready(qp, request)
            inbound.receive, inbound.filled = self.take_receive(qp, request), 0
        receive = inbound.receive
        assert receive is not None
        failure = self.fill(qp, receive, inbound.filled, request.data)
        if failure is not None:
            status, answer = failure
            inbound.receive = None
            if qp.type in UNRELIABLE and status == "LOC_LEN_ERR":
                self.spare(qp, receive, status)
            else:
                self._completer.fail_receive(qp, receive, status)
            return Response(request.wqe, request.psn, answer)
        inbound.filled += len(request.data)
        if not request.last:
            return None
        inbound.receive = None
        return self._complete(qp, request, receive, inbound.filled)

    def take_receive(self, qp: QueuePair, request: Request) -> Wqe:
        """The oldest receive is used for this message."""
        receive = qp.receives.popleft()
        receive.solicited = request.wqe.solicited
        if "srq-receive-taken-twice" in self._faults and qp.srq is not None and qp.srq.users > 1 and not receive.status:
            receive.status = "taken"
            qp.receives.appendleft(receive)
        if qp.srq is not None:
            self._look_at_limit(qp.srq)
        if self._settings.rq_slot == "consume":
            qp.give_back_receive(1)
        return receive

    def _look_at_limit(self, srq: SharedReceives) -> None:
        """A receive was taken: whether fewer than the limit are left."""
        faults, left = self._faults, len(srq.receives)
        if left < srq.limit or (left == srq.limit and srq.limit and "limit-told-at-equal" in faults):
            srq.limit = srq.limit if "limit-told-again" in faults else 0
            self._events.tell("SRQ_ERR" if "limit-is-told-as-error" in faults else "SRQ_LIMIT_REACHED", srq)

    def spare(self, qp: QueuePair, receive: Wqe, status: str) -> None:
        """An unreliable message is dropped that had taken a receive: it waits again, or fails by itself.

        What was taken from a shared queue cannot go back (class D and E errors of ``rxe_resp.c``).
        """
        if "too-long-datagram-is-an-error" in self._faults and qp.type == "UD":
            self._completer.fail_receive(qp, receive, status)
            return
        if self._settings.short_receive == "use" or qp.srq is not None:
            qp.received.append((receive, {"status": status}))
            return
        if self._settings.rq_slot == "consume":
            qp.give_back_receive(-1)
        qp.receives.appendleft(receive)

    def abandon(self, qp: QueuePair) -> None:
        """The rest of an unreliable message will not come."""
        receive, qp.inbound.receive = qp.inbound.receive, None
        if receive is not None:
            self.spare(qp, receive, "LOC_LEN_ERR")

    def _not_ready(self, qp: QueuePair, request: Request) -> Response:
        """There is no receive: the message waits at its sender, or on a stream may be the end."""
        if self._stream.waits_for_receive:
            return Response(request.wqe, request.psn, NOT_READY, bytes([qp.path.min_rnr_timer]))
        return self._refuse(qp, request, "REM_OP_ERR")

    def _complete(self, qp: QueuePair, request: Request, receive: Wqe, length: int) -> Response:
        """The last packet is there: do what else it says, and let the receive be reported."""
        outputs: dict[str, Any] = {"byte_len": length}
        if request.invalidate is not None:
            try:
                self._registrar.remote_invalidate(qp, request.invalidate)
            except OperationError:
                self._completer.fail_receive(qp, receive, "REM_INV_REQ_ERR")
                if self._settings.send_inv_failure == "silent" and not self._stream.exists:
                    raise Lost from None
                return Response(request.wqe, request.psn, "REM_ACCESS_ERR")
            outputs["wc_flags"] = ["WITH_INVALIDATE"]
            outputs["invalidate_rkey"] = request.invalidate
        elif request.opcode == "SEND_WITH_IMM":
            outputs |= immediate(request.wqe)
        qp.received.append((receive, outputs))
        return Response(request.wqe, request.psn, SUCCESS)

    def fill(self, qp: QueuePair, receive: Wqe, offset: int, data: bytes) -> tuple[str, str] | None:
        """Put bytes into a receive; on failure the receive's status and the answer's."""
        if offset + len(data) > receive.length:
            return "LOC_LEN_ERR", "REM_INV_REQ_ERR"
        protection = self._protection
        pd = qp.pd if qp.srq is None else qp.srq.pd
        try:
            if self._settings.recv_check == "whole":
                protection.check_local(pd, receive.sges, receive.length, protection.recv_sink_rights)
            sges = part(receive.sges, offset, len(data))
            pieces = protection.check_local(pd, sges, len(data), protection.recv_sink_rights)
            if "receive-into-region-crashes" in self._faults and any(piece[0] for piece in pieces):
                raise DeviceCrash("a receive into a fast-registered region")
            protection.store(pieces, data)
        except ProtectionError:
            return "LOC_PROT_ERR", "REM_OP_ERR"
        except BusFault:
            return "LOC_QP_OP_ERR", "REM_OP_ERR"
        return None


def immediate(wqe: Wqe) -> dict[str, Any]:
    """What a completion says of immediate data."""
    return {"wc_flags": ["WITH_IMM"], "imm_data": wqe.imm_data}


def _beginning(pieces: Sequence[Piece], length: int) -> list[Piece]:
    """The first so many bytes of checked pieces."""
    kept: list[Piece] = []
    for region, addr, size in pieces:
        if length > 0:
            kept.append((region, addr, min(size, length)))
            length -= size
    return kept
