"""All verbs on one open device, and how time passes there."""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.inquiry import Inquiry
from verbs_adapters.rdma_core.agent.layout import QpInitAttr, RecvWr, SendWr, Wc
from verbs_adapters.rdma_core.agent.library import Errno, Unusable, succeed
from verbs_adapters.rdma_core.agent.names import (
    OPCODES,
    QP_TYPES,
    RETRIES_END,
    RNR_RETRIES_ENDLESS,
    SIGNALED,
    STATUSES,
)
from verbs_adapters.rdma_core.agent.objects import Address, Pair
from verbs_adapters.rdma_core.agent.pairs import Pairs
from verbs_adapters.rdma_core.agent.queues import Queues
from verbs_adapters.rdma_core.agent.values import address_of
from verbs_adapters.rdma_core.agent.work import Work

UNMEASURED = 0.05
"""Seconds of quiet that `settle` waits if the device does not carry the agent's own messages."""


class Consumer(Inquiry, Queues, Pairs, Work):
    """The verbs of the contract."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._silent: Sequence[Pair] = ()  # those whose peers are elsewhere and do not answer
        self._clock: Clock | None = None
        self.quiet = 0.0
        self.verbs: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            name[5:]: getattr(self, name) for name in dir(self) if name.startswith("verb_")
        }

    def start_clock(self, quiet: float) -> float:
        """Make the clock that `settle` reads; the quiet time that it needs, measured if that is 0."""
        self._clock = Clock(self)
        self.quiet = quiet or self._clock.measure()
        self._busy = False
        return self.quiet

    def verb_settle(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the device has nothing left to do; a peer elsewhere gives it some unasked."""
        self._silent = [self._qps[handle] for handle in args.get("silent", ()) if handle in self._qps]
        if not self._busy and "silent" not in args:
            return {}
        self._busy = False
        self._pass_time()
        until = time.monotonic() + RETRIES_END
        while time.monotonic() < until:
            if not any(map(self._unanswered, self._qps.values())):
                return {}
            self._pass_time()
        for pair in self._qps.values():
            pair.waited = pair.sends
        return {}

    def _pass_time(self) -> None:
        time.sleep(self.quiet)
        if self._clock is not None:
            try:
                for _ in range(Clock.ROUNDS):
                    self._clock.trip()
            except (Errno, Unusable):  # the device no longer serves us: wall time must do
                self._clock, self.quiet = None, max(self.quiet, UNMEASURED)

    def _unanswered(self, pair: Pair) -> bool:
        """Whether the queue pair may be sending to a peer that does not answer, or is not ready and is given up."""
        if pair.kind != "RC" or not pair.outstanding() or self._state(pair) != "RTS":
            return False
        if pair.rnr_retry != RNR_RETRIES_ENDLESS:
            return True
        peer = pair.peer
        if isinstance(peer, Address):
            return pair in self._silent
        return peer is None or peer not in self._qps.values() or self._state(peer) not in ("RTR", "RTS", "SQD", "SQE")


class Clock:
    """The device's own pace: two queue pairs of the agent that talk to each other when time is to pass."""

    ROUNDS = 4

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._ops = consumer.opened.context.ops
        self._pd = consumer.make_pd()
        self._cq = consumer.make_cq(16)
        self._one, self._other = (self._pair() for _ in range(2))
        for state in ("INIT", "RTR", "RTS"):
            for pair, peer in ((self._one, self._other), (self._other, self._one)):
                consumer.move(pair, state, peer, 0)

    def _pair(self) -> Pair:
        queue = address_of(self._cq)
        init = QpInitAttr(qp_type=QP_TYPES["RC"], send_cq=queue, recv_cq=queue)
        init.cap.max_send_wr = init.cap.max_recv_wr = 8
        init.cap.max_send_sge = init.cap.max_recv_sge = 2
        return self._consumer.make_qp(self._pd, init)

    def trip(self) -> None:
        """A message and its acknowledgement; Unusable if the two cannot talk."""
        recv, send, wc = RecvWr(), SendWr(opcode=OPCODES["SEND"], send_flags=SIGNALED), Wc()
        bad = c.c_void_p()
        succeed(self._ops.post_recv(self._other.pointer, c.addressof(recv), c.addressof(bad)))
        succeed(self._ops.post_send(self._one.pointer, c.addressof(send), c.addressof(bad)))
        left, until = 2, time.monotonic() + RETRIES_END
        while left:
            if self._ops.poll_cq(self._cq, 1, c.addressof(wc)) == 1:
                if wc.status:
                    raise Unusable(STATUSES[wc.status])
                left -= 1
            elif time.monotonic() > until:
                raise Unusable("no completion")
            else:
                time.sleep(0)

    def measure(self) -> float:
        """Seconds of quiet that show that nothing is left to do: ten times the fastest of some round trips."""
        fastest = 1.0
        for _ in range(self.ROUNDS):
            began = time.perf_counter()
            self.trip()
            fastest = min(fastest, time.perf_counter() - began)
        return max(0.001, 10 * fastest)
