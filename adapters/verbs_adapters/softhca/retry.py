"""Sending again: timeouts, missing packets, receivers that are not ready, and giving up.

Theory of operation
-------------------
The requester keeps every packet until it is answered.  It goes back to the oldest unanswered packet and sends all
from there on again when its timeout ends, when the responder says which packet is missing, and when an answer shows
that an earlier READ's or atomic's answer was lost.  Each of these is a retry; more in a row than ``retry_cnt``, with
nothing new answered between, is RETRY_EXC_ERR.

A timeout runs only while something was lost or ignored: on a wire that loses nothing an answer comes before time can
pass (see :mod:`~verbs_adapters.softhca.clock`), so nobody could tell.  Its length is 4.096 us * 2**timeout.

A responder without a receive says so (RNR NAK).  The requester pauses for the time that the responder asked for and
sends again, ``rnr_retry`` times; then RNR_RETRY_EXC_ERR.  7 is for ever, and the pause then ends when the responder
has a receive or answers no more: trying in between could change nothing, and time need not pass for it.

On iWARP the stream sees to all this; if it cannot reach the peer, it is lost and everything is flushed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from verbs_adapters.softhca.clock import Clock
from verbs_adapters.softhca.completer import Completer
from verbs_adapters.softhca.connection import FOREVER
from verbs_adapters.softhca.psn import distance
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.stream import Stream
from verbs_adapters.softhca.wire import Request

TICK = 4096  # ns
RNR_TICK = 10_000  # ns
RNR_TICKS = (
    *(65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
    *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152),
)
"""How long a requester is to pause, by the code in an RNR NAK (enum ib_rnr_timeout)."""


class Retry:
    """When the requester sends again, and when it gives up."""

    def __init__(
        self,
        clock: Clock,
        wake: Callable[[QueuePair | None], None],
        completer: Completer,
        stream: Stream,
        faults: frozenset[str],
    ) -> None:
        self._faults = faults
        self._clock = clock
        self.wake = wake
        self._completer = completer
        self._stream = stream

    # -- timeouts ----------------------------------------------------------------------------------
    def silence(self, qp: QueuePair) -> None:
        """A packet to or from this queue pair will have no answer: its timeout matters."""
        outbound, timeout = qp.outbound, qp.path.timeout
        if timeout and not outbound.armed:
            outbound.armed = True
            self._clock.after(TICK << timeout, partial(self._expire, qp, qp.life))

    def _expire(self, qp: QueuePair, life: int) -> None:
        if qp.life == life:
            qp.outbound.armed = False
            if qp.unacked and not qp.outbound.paused:
                self._try_again(qp)

    # -- going back --------------------------------------------------------------------------------
    def missing(self, qp: QueuePair) -> None:
        """The responder or an answer says that a packet was lost."""
        if qp.outbound.retrying:
            self.silence(qp)  # what was sent again is on its way, or lost
        else:
            self._try_again(qp)

    def _try_again(self, qp: QueuePair) -> None:
        outbound = qp.outbound
        outbound.tries += 1
        outbound.retrying = True
        if outbound.tries <= qp.path.retries and "lost-packet-is-fatal" not in self._faults:
            self._go_back(qp)
        elif self._stream.exists:
            self._completer.enter_error(qp)
        else:
            self.give_up(qp, "RETRY_EXC_ERR")
        self.wake(qp)

    def _go_back(self, qp: QueuePair) -> None:
        """Everything from the oldest unanswered packet on is to be sent again."""
        resend = qp.outbound.resend
        resend.clear()
        for wqe in qp.unacked:
            if wqe.opcode == "RDMA_READ":
                resend.append(self._rest_of_read(qp, wqe))
            else:
                resend.extend(packet for packet in wqe.packets if distance(packet.psn, wqe.awaited) >= 0)

    def _rest_of_read(self, qp: QueuePair, wqe: Wqe) -> Request:
        """The request for what is still to come of a READ."""
        done = distance(wqe.awaited, wqe.packets[0].psn)
        if "rest-of-read-begins-anew" in self._faults:
            done = 0
        return Request(wqe, wqe.awaited, qp.life, b"", offset=done * qp.path.mtu)

    def progress(self, qp: QueuePair) -> None:
        """Something was answered that was not before."""
        outbound = qp.outbound
        outbound.tries = outbound.rnr_tries = 0
        outbound.retrying = False
        outbound.paused = ""  # what said that the receiver is not ready was out of date

    # -- the receiver is not ready -----------------------------------------------------------------
    def not_ready(self, qp: QueuePair, timer: int) -> None:
        """The responder has no receive for the oldest unanswered request."""
        outbound, limit = qp.outbound, qp.path.rnr_retries
        if "not-ready-counts-as-silence" in self._faults:
            limit = qp.path.retries
        outbound.rnr_tries += 1
        self._go_back(qp)
        if limit == FOREVER:
            outbound.paused = "receive"
        elif outbound.rnr_tries <= limit:
            outbound.paused = "timer"
            self._clock.after(RNR_TICKS[timer] * RNR_TICK, partial(self._pause_over, qp, qp.life))
        else:
            self.give_up(qp, "RNR_RETRY_EXC_ERR")

    def _pause_over(self, qp: QueuePair, life: int) -> None:
        if qp.life == life:
            self.resume(qp)

    def resume(self, qp: QueuePair) -> None:
        """The pause is over."""
        qp.outbound.paused = ""
        self.wake(qp)

    # -- the end -----------------------------------------------------------------------------------
    def give_up(self, qp: QueuePair, status: str) -> None:
        """The oldest unanswered request failed: what was sent after it must not be executed any more."""
        wqe = qp.unacked[0]
        qp.unacked.clear()
        qp.lanes.requests.clear()
        qp.outbound.resend.clear()
        qp.stop_sending(wqe, status)
