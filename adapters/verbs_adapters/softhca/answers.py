"""The requester's other half: takes the responses that come back.

Theory of operation
-------------------
A response tells of all requests up to its sequence number: a SEND or RDMA_WRITE before it is done, for the responder
takes packets in order and one acknowledgement may stand for several.  A READ or atomic before it is not: its own
answer was lost, and it is asked for again.  Data of a READ is taken in order only; a response that is not the awaited
one was taken before, or comes out of an earlier try, and is ignored.

A refusal fails the request that it is about, once all before it are done.
"""

from __future__ import annotations

from verbs_adapters.softhca.access import Protection, ProtectionError, part
from verbs_adapters.softhca.completer import SUCCESS
from verbs_adapters.softhca.memory import BusFault
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.psn import distance, plus
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import ANSWERED, Wqe
from verbs_adapters.softhca.retry import Retry
from verbs_adapters.softhca.wire import NOT_READY, SEQUENCE, Response


class Answers:
    """Takes responses on behalf of every queue pair."""

    def __init__(self, settings: Settings, protection: Protection, retry: Retry) -> None:
        self._faults = settings.fault
        self._protection = protection
        self._retry = retry

    def take(self, qp: QueuePair) -> None:
        """Take the next response."""
        response = qp.lanes.responses.popleft()
        unacked = qp.unacked
        if "any-acknowledgement-will-do" in self._faults and unacked and unacked[0].opcode not in ANSWERED:
            response.psn = unacked[0].last_psn
        while unacked and response.psn != unacked[0].last_psn and distance(response.psn, unacked[0].last_psn) > 0:
            if unacked[0].opcode in ANSWERED:
                self._retry.missing(qp)
                return
            self._done(qp)
        if unacked and distance(response.psn, unacked[0].packets[0].psn) >= 0:
            self._hear(qp, unacked[0], response)
        elif unacked:
            self._retry.silence(qp)  # it tells nothing new

    def _hear(self, qp: QueuePair, wqe: Wqe, response: Response) -> None:
        """A response about the oldest unanswered request."""
        status = response.status
        if status == SUCCESS:
            if wqe.opcode in ANSWERED:
                self._answer(qp, wqe, response)
            elif response.psn == wqe.last_psn:
                self._done(qp)
            else:
                self._advance(qp, wqe, plus(response.psn, 1))
        elif status == SEQUENCE:
            self._advance(qp, wqe, response.psn)
            self._retry.missing(qp)
        elif status == NOT_READY:
            self._retry.not_ready(qp, response.data[0] if response.data else 0)
        else:
            self._retry.give_up(qp, status)

    def _advance(self, qp: QueuePair, wqe: Wqe, awaited: int) -> None:
        """The packets of this request before this one have arrived."""
        if distance(awaited, wqe.awaited) > 0:
            wqe.awaited = awaited
            self._retry.progress(qp)

    def _answer(self, qp: QueuePair, wqe: Wqe, response: Response) -> None:
        """Data of a READ or atomic, or what is not."""
        if "answers-taken-as-they-come" in self._faults and response.data is not None:
            response.psn = wqe.awaited
        if response.data is None or response.psn != wqe.awaited:
            if distance(response.psn, wqe.awaited) > 0:
                self._retry.missing(qp)
            else:
                self._retry.silence(qp)
            return
        status = self._scatter(qp, wqe, response.data)
        if status != SUCCESS:
            self._retry.give_up(qp, status)
        elif response.psn == wqe.last_psn:
            self._done(qp)
        else:
            self._advance(qp, wqe, plus(response.psn, 1))

    def _done(self, qp: QueuePair) -> None:
        """The oldest unanswered request is done."""
        wqe = qp.unacked.popleft()
        if wqe.opcode in ANSWERED:
            qp.outbound.reads -= 1
            qp.reads_out = 0 if "fence-released-by-any-read" in self._faults else qp.reads_out - 1
        wqe.status = SUCCESS
        wqe.byte_len = wqe.length
        if "last-packet-not-counted" in self._faults and wqe.opcode == "RDMA_READ":
            wqe.byte_len -= wqe.length % qp.path.mtu
        self._retry.progress(qp)

    def _scatter(self, qp: QueuePair, wqe: Wqe, data: bytes) -> str:
        offset = distance(wqe.awaited, wqe.packets[0].psn) * qp.path.mtu
        try:
            sges = part(wqe.sges, offset, len(data))
            self._protection.store(self._protection.check_read_sink(qp, sges, len(data)), data)
        except ProtectionError:
            return SUCCESS if "bad-read-sink-unreported" in self._faults else "LOC_PROT_ERR"
        except BusFault:
            return "LOC_QP_OP_ERR"
        return SUCCESS
