"""The asynchronous engine: which micro-step happens next, by seeded chance.

Theory of operation
-------------------
Posting only queues.  Everything else happens in micro-steps of queue pairs: start, transmit, deliver, take
response, resume, retire, retire receive, go to ERR with the stream, be drained, flush.  A micro-step is *enabled* when
its queue pair can do it now.  The engine keeps the queue pairs that may have an enabled step, picks one by chance and
one of its steps by chance, so that every legal interleaving can come up and two seeds give two schedules.

When no queue pair has an enabled step, time passes until the next timer fires.

A queue pair found without an enabled step leaves the set; whatever may enable one wakes it.  Nothing ever
looks at all objects, so their number does not matter.

``pace`` says how many steps a verb call brings: some by chance, none but for polls, or all there are.  A poll
that would find its queue empty makes at least one step happen, so that polling gets everything done.  In the threaded
mode calls bring none (:mod:`~verbs_adapters.softhca.threads`).
"""

from __future__ import annotations

from collections.abc import Callable

from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.answers import Answers
from verbs_adapters.softhca.clock import Clock
from verbs_adapters.softhca.completer import Completer
from verbs_adapters.softhca.datagram import Datagrams
from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.execution import Execution
from verbs_adapters.softhca.keys import KeyTable
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import SENDING, QueuePair
from verbs_adapters.softhca.queue import LOCAL_OPS
from verbs_adapters.softhca.registrar import Registrar
from verbs_adapters.softhca.requester import Requester
from verbs_adapters.softhca.responder import Responder
from verbs_adapters.softhca.retry import Retry
from verbs_adapters.softhca.scripts import SCRIPTS
from verbs_adapters.softhca.stream import Stream
from verbs_adapters.softhca.weather import Weather
from verbs_adapters.softhca.wire import Wire

Step = Callable[[QueuePair], None]
STOPPED = frozenset({"SQE", "ERR"})
STEPS_PER_CALL = (0, 0, 0, 1, 1, 2, 3, 6)


class Engine:
    """Schedules the micro-steps of all queue pairs."""

    def __init__(
        self,
        settings: Settings,
        chance: Callable[[], float],
        keys: KeyTable,
        protection: Protection,
        registrar: Registrar,
        *,
        events: EventQueue,
        numbers: dict[int, QueuePair],
    ) -> None:
        self._faults = settings.fault
        self._pace = "threads" if settings.threads else settings.pace
        self._chance = chance
        self._active: list[QueuePair] = []
        self._members: set[QueuePair] = set()
        self.stream = Stream(settings, self.wake)
        self.completer = Completer(settings, chance, self.wake, self.stream, events)
        self._clock = Clock()
        self._retry = Retry(self._clock, self.wake, self.completer, self.stream, settings.fault)
        wire = Wire()
        if settings.wire != "healthy" and not self.stream.exists:  # a stream mends what is under it
            wire.weather = Weather(SCRIPTS.get(settings.wire), chance, self._clock, self._retry)
        self._requester = Requester(settings, protection, registrar, wire)
        self._answers = Answers(settings, protection, self._retry)
        execution = Execution(
            settings, keys, protection, registrar, completer=self.completer, stream=self.stream, events=events
        )
        self._datagrams = Datagrams(numbers, execution, self.completer)
        self._responder = Responder(settings, wire, execution, self._retry, self.stream, events)

    def wake(self, qp: QueuePair | None) -> None:
        """A queue pair may have become able to do something."""
        if qp is not None and qp not in self._members:
            self._members.add(qp)
            self._active.append(qp)

    def wake_pair(self, qp: QueuePair) -> None:
        """A queue pair changed in a way that matters to its peer too."""
        self.wake(qp)
        self.wake(qp.peer)

    def later(self, delay: int, action: Callable[[], None]) -> None:
        """Do something when so many nanoseconds of the device's time have passed."""
        self._clock.after(delay, action)

    # -- when --------------------------------------------------------------------------------------
    def before_call(self) -> None:
        """Time passes before a verb call."""
        if self._pace == "random":
            self._some()

    def after_call(self) -> None:
        """Time passes after a verb call."""
        if self._pace == "eager":
            self.settle()

    def before_poll(self, *, empty: bool) -> None:
        """Time passes while the consumer polls; work gets done even if nothing else is called."""
        if self._pace == "lazy":
            self._some()
        if empty and self._pace != "threads":
            self.step()

    def settle(self) -> None:
        """Run until nothing is enabled; threads do so while the caller waits."""
        while self._pace != "threads" and self.step():
            pass

    def _some(self) -> None:
        if self._active or self._clock.waits:
            for _ in range(STEPS_PER_CALL[int(self._chance() * len(STEPS_PER_CALL))]):
                if not self.step():
                    break

    # -- what --------------------------------------------------------------------------------------
    def step(self) -> bool:
        """Do one enabled micro-step by chance, or let time pass; whether there was anything to do."""
        active, chance = self._active, self._chance
        while active:
            position = int(chance() * len(active))
            qp = active[position]
            steps = self._enabled(qp)
            if steps:
                steps[int(chance() * len(steps))](qp)
                return True
            self._members.remove(qp)
            last = active.pop()
            if last is not qp:
                active[position] = last
        return self._clock.advance()

    def _enabled(self, qp: QueuePair) -> list[Step]:
        steps: list[Step] = []
        lanes = qp.lanes
        if lanes.requests:
            steps.append(self._deliver)
        if lanes.responses:
            steps.append(self._answers.take)
        elif qp.cut_off:
            steps.append(self.completer.enter_error)
        if qp.received:
            steps.append(self.completer.retire_receive)
        if qp.started and self._retirable(qp):
            steps.append(self.completer.retire)
        if qp.pending or qp.to_send or qp.unacked or qp.receives or qp.draining:
            self._add_queue_steps(qp, steps)
        return steps

    def _add_queue_steps(self, qp: QueuePair, steps: list[Step]) -> None:
        """Steps that the state allows: working on the send queue, draining it, or flushing."""
        if qp.state in SENDING:
            if (qp.to_send or qp.outbound.resend) and self._requester.may_transmit(qp):
                steps.append(self._requester.transmit)
            if qp.outbound.paused == "receive" and self._responder.would_take(qp):
                steps.append(self._retry.resume)
            if qp.draining and not qp.started and "draining-never-ends" not in self._faults:
                steps.append(self.completer.drained)
            starts = qp.state == "RTS" or "drained-queue-still-sends" in self._faults
            if qp.pending and starts and self._requester.may_start(qp):
                steps.append(self._requester.start)
        elif qp.state in STOPPED:
            if qp.pending:
                steps.append(self.completer.flush_send)
            if qp.receives and qp.state == "ERR" and qp.srq is None:
                steps.append(self.completer.flush_receive)

    def _deliver(self, qp: QueuePair) -> None:
        if qp.type == "UD":
            self.wake(self._datagrams.deliver(qp))
        else:
            self._responder.deliver(qp)
            self.wake(qp.peer)  # it may have a receive to report

    def _retirable(self, qp: QueuePair) -> bool:
        if self.completer.any_order:
            return any(wqe.status for wqe in qp.started)
        oldest = qp.started[0]
        if "silent-local-operation-never-retires" in self._faults and oldest.opcode in LOCAL_OPS:
            return bool(oldest.status) and oldest.signaled
        return bool(oldest.status)
