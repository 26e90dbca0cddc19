"""The responder: executes requests that arrive.

Theory of operation
-------------------
A request is offered to the peer of the queue pair that sent it.  The peer answers if it is in RTR or RTS, is
connected back, and expects the request's number; otherwise the request is sent again, a finite number of
times (RETRY_EXC_ERR).  A SEND that finds no receive waits for one, for ever: the adapter asks for infinite
retry there.

Executing a request and putting the response on the wire is one micro-step; the completion of a receive is
another.  A refused request changes no memory, moves the responder to ERR, and is answered: a refused access
with REM_ACCESS_ERR, a receive too small with REM_INV_REQ_ERR, an unusable receive with REM_OP_ERR
(``rxe_resp.c``).  On iWARP the stream ends instead (:mod:`~verbs_adapters.softhca.stream`): a peer that does not
answer takes the requester to ERR, and a SEND does not wait for a receive.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from verbs_adapters.softhca.access import DeviceCrash, Protection, ProtectionError, Target
from verbs_adapters.softhca.completer import SUCCESS, Completer
from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.keys import KeyTable
from verbs_adapters.softhca.memory import BusFault
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import RESPONDING, QueuePair
from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.region import REMOTE_READ, REMOTE_WRITE
from verbs_adapters.softhca.registrar import OperationError, Registrar
from verbs_adapters.softhca.requester import Requester
from verbs_adapters.softhca.stream import Stream
from verbs_adapters.softhca.wire import Request, Response

EXPECTING = frozenset({"RTS", "SQD"})
"""States in which a requester takes answers."""


class Lost(Exception):
    """The request was taken and no answer will come."""


class Responder:
    """The receiving side of every queue pair."""

    def __init__(
        self,
        settings: Settings,
        keys: KeyTable,
        protection: Protection,
        registrar: Registrar,
        *,
        requester: Requester,
        completer: Completer,
        stream: Stream,
        events: EventQueue,
    ) -> None:
        self._settings = settings
        self._faults = settings.fault
        self._keys = keys
        self._protection = protection
        self._registrar = registrar
        self._requester = requester
        self._completer = completer
        self._stream = stream
        self._events = events

    def _listener(self, sender: QueuePair) -> QueuePair | None:
        """The peer, if it takes the request at the head of the lane."""
        peer = sender.peer
        if peer is None or peer.state not in RESPONDING or peer.peer is not sender or peer.cut_off:
            return None
        if peer.expected != sender.lanes.requests[0].number and self._settings.psn == "strict":
            return None
        return peer

    def may_deliver(self, sender: QueuePair) -> bool:
        """Whether offering the head of the lane leads anywhere: only a SEND without a receive waits."""
        if sender.lanes.requests[0].opcode[0] != "S" or not self._stream.waits_for_receive:
            return True
        peer = self._listener(sender)
        if peer is None or peer.receives:
            return True
        if peer.srq is not None:
            peer.srq.waiting[sender] = None
        return False

    def deliver(self, sender: QueuePair) -> None:
        """Offer the head of the lane to the peer."""
        peer = self._listener(sender)
        request = sender.lanes.requests[0]
        if peer is None:
            request.tries += 1
            if request.tries > self._settings.retries:
                self._lose(sender, request)
            return
        sender.lanes.requests.popleft()
        if peer.state == "RTR" and not peer.established:
            peer.established = True
            self._events.tell("COMM_EST", peer)
        try:
            response = self._execute(peer, request)
        except Lost:
            sender.lanes.requests.appendleft(request)
            return
        peer.expected += 1
        answer = self._stream.answer(response)
        if answer is not None and sender.state in EXPECTING:  # a queue pair connected to itself may just have left it
            sender.lanes.responses.append(answer)

    def _lose(self, sender: QueuePair, request: Request) -> None:
        """Nobody answers: the request has failed, or with the stream all of them have."""
        if self._stream.exists:
            self._completer.enter_error(sender)
        else:
            self._requester.give_up(sender, request.wqe, "RETRY_EXC_ERR")

    def _execute(self, qp: QueuePair, request: Request) -> Response:
        try:
            if request.opcode == "RDMA_WRITE":
                return self._write(qp, request)
            if request.opcode == "RDMA_READ":
                return self._read(qp, request)
        except ProtectionError:
            self._fail(qp, "QP_ACCESS_ERR")
            return Response(request.wqe, "REM_ACCESS_ERR")
        except BusFault:
            self._fail(qp, "QP_FATAL")
            return Response(request.wqe, "REM_OP_ERR")
        return self._receive(qp, request)

    def _fail(self, qp: QueuePair, event: str) -> None:
        """A request fails that has no completion here to tell it: an event, and ERR."""
        self._events.tell(event, qp)
        self._completer.enter_error(qp)

    def _write(self, qp: QueuePair, request: Request) -> Response:
        wqe, data = request.wqe, request.data
        try:
            target = Target(wqe.rkey, wqe.remote_addr, len(data))
            pieces = self._protection.check_remote(qp.pd, qp.access, target, REMOTE_WRITE)
        except ProtectionError:
            region = self._keys.find(wqe.rkey)
            if "refused-write-writes-anyway" in self._faults and region is not None:
                with suppress(BusFault):
                    self._protection.store([(region, wqe.remote_addr, len(data))], data)
            raise
        self._protection.store(pieces, data)
        return Response(wqe, SUCCESS)

    def _read(self, qp: QueuePair, request: Request) -> Response:
        wqe = request.wqe
        target = Target(wqe.rkey, wqe.remote_addr, wqe.length)
        pieces = self._protection.check_remote(qp.pd, qp.access, target, REMOTE_READ)
        return Response(wqe, SUCCESS, self._protection.load(pieces))

    # -- receives ----------------------------------------------------------------------------------
    def _receive(self, qp: QueuePair, request: Request) -> Response:
        if not qp.receives:  # on a stream, where the message cannot wait
            self._completer.enter_error(qp)
            return Response(request.wqe, "REM_OP_ERR")
        receive = qp.receives.popleft()
        receive.solicited = request.wqe.solicited
        if qp.srq is not None:
            qp.srq.was_taken(self._events)
        if self._settings.rq_slot == "consume":
            qp.give_back_receive(1)
        failure = self._scatter(qp, receive, request.data)
        if failure is not None:
            status, answer = failure
            self._completer.fail_receive(qp, receive, status)
            return Response(request.wqe, answer)
        outputs: dict[str, Any] = {"byte_len": len(request.data)}
        if request.invalidate is not None:
            try:
                self._registrar.remote_invalidate(qp, request.invalidate)
            except OperationError:
                self._completer.fail_receive(qp, receive, "REM_INV_REQ_ERR")
                if self._settings.send_inv_failure == "silent" and not self._stream.exists:
                    raise Lost from None
                return Response(request.wqe, "REM_ACCESS_ERR")
            outputs["wc_flags"] = ["WITH_INVALIDATE"]
            outputs["invalidate_rkey"] = request.invalidate
        qp.received.append((receive, outputs))
        return Response(request.wqe, SUCCESS)

    def _scatter(self, qp: QueuePair, receive: Wqe, data: bytes) -> tuple[str, str] | None:
        """Put a message into a receive; on failure the receive's status and the answer's."""
        if len(data) > receive.length:
            return "LOC_LEN_ERR", "REM_INV_REQ_ERR"
        limit = receive.length if self._settings.recv_check == "whole" else len(data)
        protection = self._protection
        try:
            pd = qp.pd if qp.srq is None else qp.srq.pd
            pieces = protection.check_local(pd, receive.sges, limit, protection.recv_sink_rights)
            if "receive-into-region-crashes" in self._faults and any(piece[0] for piece in pieces):
                raise DeviceCrash("a receive into a fast-registered region")
            protection.store(pieces, data)
        except ProtectionError:
            return "LOC_PROT_ERR", "REM_OP_ERR"
        except BusFault:
            return "LOC_QP_OP_ERR", "REM_OP_ERR"
        return None
