"""The responder: takes request packets that arrive, in order, and answers them.

Theory of operation
-------------------
A packet reaches the queue pair at the other end if that is in RTR or RTS, is connected back, and takes packets of
this life of its sender; otherwise nothing answers.  The responder takes the packet whose number it expects.

A packet ahead of that shows that one was lost: the requester is told once (NAK), and nothing is taken until the
missing one has come.  A packet behind was taken before and is a duplicate: a SEND or RDMA_WRITE is acknowledged again
and not executed, a READ is executed again, an atomic is answered with what was answered before.  A duplicate
atomic that nothing is remembered of is ignored.

What a packet does to memory and receives is :mod:`~verbs_adapters.softhca.execution`'s.  Executing a packet and
putting the response on the wire is one micro-step; the completion of a receive is another.  The last packet of a
message is acknowledged.  A SEND that finds no receive is not taken: the requester is told to come again (RNR NAK).

On an unreliable connection (UC) nothing is answered.  A missing packet costs its message: the rest of it is dropped,
its receive waits for another, and the next message is taken whatever its number.  So does a message that cannot be
taken.

"""

from __future__ import annotations

from verbs_adapters.softhca.completer import SUCCESS
from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.execution import Execution, Lost
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.psn import distance, plus
from verbs_adapters.softhca.qp import RESPONDING, QueuePair
from verbs_adapters.softhca.queue import ANSWERED
from verbs_adapters.softhca.retry import Retry
from verbs_adapters.softhca.stream import Stream
from verbs_adapters.softhca.wire import NOT_READY, SEQUENCE, Request, Response, Wire

EXPECTING = frozenset({"RTS", "SQD"})
"""States in which a requester takes answers."""


class Responder:
    """The receiving side of every connected queue pair."""

    def __init__(
        self,
        settings: Settings,
        wire: Wire,
        execution: Execution,
        retry: Retry,
        stream: Stream,
        events: EventQueue,
    ) -> None:
        self._events = events
        self._faults = settings.fault
        self._any_life = settings.psn == "ignore"
        self._wire = wire
        self._execution = execution
        self._retry = retry
        self._stream = stream

    def _listener(self, sender: QueuePair) -> QueuePair | None:
        """The peer, if it answers."""
        peer = sender.peer
        if peer is None or peer.state not in RESPONDING or peer.peer is not sender or peer.cut_off:
            return None
        return peer

    def would_take(self, sender: QueuePair) -> bool:
        """Whether sending again, after the peer had no receive, can lead anywhere."""
        peer = self._listener(sender)
        if peer is None or peer.receives:
            return True
        if peer.srq is not None:
            peer.srq.waiting[sender] = None
        return False

    def deliver(self, sender: QueuePair) -> None:
        """Take the packet at the head of the lane."""
        request = sender.lanes.requests.popleft()
        peer = self._listener(sender)
        if sender.type == "UC":
            if peer is not None:
                self._take_unreliable(peer, request)
        elif peer is None or not self._knows(peer, sender, request):
            self._retry.silence(sender)
        elif request.psn == peer.expected or (
            "missing-packet-unnoticed" in self._faults and _is_ahead(request, peer) and not request.first
        ):
            told = peer.established and "established-for-every-message" not in self._faults
            if not told and (peer.state == "RTR" or "established-in-rts" in self._faults):
                peer.established = True
                self._events.tell("COMM_EST", peer)
            peer.inbound.nak_sent = False
            self._take(sender, peer, request)
        elif _is_ahead(request, peer):
            self._miss(sender, peer, request)
        else:
            self._replay(sender, peer, request)

    def _knows(self, peer: QueuePair, sender: QueuePair, request: Request) -> bool:
        """Whether the packet is of the life of its sender that the peer is connected to."""
        inbound = peer.inbound
        if inbound.life == request.life:
            return True
        if inbound.life and not self._any_life:
            return False
        inbound.life = request.life
        if self._any_life:
            peer.expected = sender.unacked[0].awaited if sender.unacked else request.psn
        return True

    # -- the expected packet -----------------------------------------------------------------------
    def _take(self, sender: QueuePair, peer: QueuePair, request: Request) -> None:
        try:
            response = self._execution.perform(peer, request)
        except Lost:
            self._retry.silence(sender)
            return
        if response is not None and response.status == NOT_READY:
            peer.inbound.nak_sent = True  # what follows is dropped until this one comes again
            self._answer(sender, response)
            return
        peer.expected = plus(request.psn, 1)
        if response is None:  # the message goes on
            return
        if request.opcode == "RDMA_READ" and response.status == SUCCESS:
            peer.expected = plus(request.wqe.last_psn, 1)
            self._answer_read(sender, peer, response)
        else:
            self._answer(sender, response)

    def _answer(self, sender: QueuePair, response: Response) -> None:
        answer = self._stream.answer(response)
        if answer is not None and sender.state in EXPECTING:  # connected to itself it may just have left it
            self._wire.response(sender, answer)

    def _answer_read(self, sender: QueuePair, peer: QueuePair, response: Response) -> None:
        """The data of a READ, in packets."""
        data, mtu = response.data or b"", peer.path.mtu
        if len(data) <= mtu:
            self._answer(sender, response)
            return
        for number, offset in enumerate(range(0, len(data), mtu)):
            psn = plus(response.psn, number)
            self._answer(sender, Response(response.wqe, psn, SUCCESS, data[offset : offset + mtu]))

    def _take_unreliable(self, peer: QueuePair, request: Request) -> None:
        inbound = peer.inbound
        if request.first or request.psn != peer.expected:
            self._execution.abandon(peer)
            inbound.dropping = not request.first
        if not inbound.dropping:
            peer.expected = plus(request.psn, 1)
            response = self._execution.perform(peer, request)
            inbound.dropping = response is not None and response.status != SUCCESS

    # -- any other ---------------------------------------------------------------------------------
    def _miss(self, sender: QueuePair, peer: QueuePair, request: Request) -> None:
        """A packet came before one that is missing."""
        if peer.inbound.nak_sent:
            self._retry.silence(sender)
        else:
            peer.inbound.nak_sent = True
            self._answer(sender, Response(request.wqe, peer.expected, SEQUENCE))

    def _replay(self, sender: QueuePair, peer: QueuePair, request: Request) -> None:
        """A packet was taken before."""
        again = request.opcode == "RDMA_READ"
        if "duplicate-atomic-executed" in self._faults:
            again = request.opcode in ANSWERED
        if again:
            response = self._execution.perform(peer, request)
            assert response is not None
            self._answer_read(sender, peer, response)
        elif request.opcode not in ANSWERED:
            if "duplicate-message-executed" in self._faults:
                self._execution.perform(peer, request)
            self._answer(sender, Response(request.wqe, plus(peer.expected, -1), SUCCESS))
        elif request.psn in peer.inbound.atomics:
            self._answer(sender, Response(request.wqe, request.psn, SUCCESS, peer.inbound.atomics[request.psn]))
        else:
            self._retry.silence(sender)


def _is_ahead(request: Request, peer: QueuePair) -> bool:
    return distance(request.psn, peer.expected) > 0
