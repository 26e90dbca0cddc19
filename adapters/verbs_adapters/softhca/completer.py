"""Completions, the way into ERR, and the flush.

Theory of operation
-------------------
A work request that is done retires from the head of its queue.  A success that was not asked for
(unsignalled) writes no entry, and its slot is given back together with the next entry of its queue.  An error
always writes an entry; then the queue pair goes to ERR, and everything left on both queues is flushed in
posting order, asked for or not (``rxe_comp.c``; draft-hilland-rddp-verbs 6.2.4).

What had finished before the queue pair enters ERR is written first, at once: after the move nothing
completes with SUCCESS.

An entry for a full completion queue is lost and its queue pair goes to ERR: a consumer who lets a queue
overrun loses that queue pair, but others only if they use the same completion queue.  Both are told as events,
CQ_ERR once for a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import SENDING, UNRELIABLE, QueuePair
from verbs_adapters.softhca.queue import ANY, WC_OPCODE, CompletionQueue, Cqe, Wqe
from verbs_adapters.softhca.stream import Stream

SUCCESS = "SUCCESS"
FLUSHED = "WR_FLUSH_ERR"
SHIFTED_OPCODE = {"REG_MR": "LOCAL_INV", "LOCAL_INV": "REG_MR"}


class Completer:
    """Retires work requests and writes completion queue entries."""

    def __init__(
        self,
        settings: Settings,
        chance: Callable[[], float],
        wake: Callable[[QueuePair], None],
        stream: Stream,
        events: EventQueue,
    ) -> None:
        self._settings = settings
        self._faults = settings.fault
        self._chance = chance
        self._wake = wake
        self._stream = stream
        self._events = events
        self.any_order = "send-completions-out-of-order" in settings.fault

    # -- one work request --------------------------------------------------------------------------
    def retire(self, qp: QueuePair) -> None:
        """The oldest started work request is done: report it."""
        position = 0
        if self.any_order:
            position = max(at for at, wqe in enumerate(qp.started) if wqe.status)
        if "read-overtakes" in self._faults:
            position = max(at for at, wqe in enumerate(qp.started) if not at or (wqe.status and "READ" in wqe.opcode))
        wqe = qp.started[position]
        del qp.started[position]
        signaled = wqe.signaled or (wqe.opcode == "RDMA_READ" and "unsignalled-read-completes" in self._faults)
        if wqe.status == SUCCESS and not signaled:
            qp.silent += 1
            if "done-sends-are-flushed" in self._faults:
                qp.silent_done.append(wqe)
            return
        status = wqe.status
        if status != SUCCESS and "first-error-is-flush" in self._faults:
            status = FLUSHED
        self._write_send(qp, wqe, status)
        if wqe.status == SUCCESS:
            return
        if qp.type in UNRELIABLE and self._settings.failed_send == "SQE" and qp.state in SENDING:
            self._stop_sends(qp)
        else:
            self.enter_error(qp, failed=True)

    def _stop_sends(self, qp: QueuePair) -> None:
        """Move to SQE: what is left of the send queue is flushed, and receives go on."""
        qp.state = "SQE"
        qp.stalled = qp.draining = False
        self._unstart(qp)
        self._wake(qp)

    def _unstart(self, qp: QueuePair) -> None:
        """Nothing of the send queue is under way any more, but for unreliable messages, which are done."""
        qp.started.extend(qp.pending)
        qp.pending, qp.started = qp.started, qp.pending
        qp.started.clear()
        qp.to_send.clear()
        qp.unacked.clear()
        qp.outbound.resend.clear()
        qp.outbound.paused = ""
        if qp.type not in UNRELIABLE:
            qp.lanes.cut()

    def retire_receive(self, qp: QueuePair) -> None:
        """The oldest receive that was used is done: report it."""
        wqe, outputs = qp.received.popleft()
        self._write(qp, qp.recv_cq, wqe, outputs, receive=True)

    def fail_receive(self, qp: QueuePair, wqe: Wqe, status: str) -> None:
        """A receive failed: its completion, then ERR."""
        qp.received.append((wqe, {"status": status}))
        self.enter_error(qp)

    # -- ERR ---------------------------------------------------------------------------------------
    def enter_error(self, qp: QueuePair, *, failed: bool = False) -> None:
        """Move to ERR: report what is done, leave the rest to be flushed.

        ``failed`` says that the send whose failure brings this about has been reported: nothing behind it has a
        status of its own any more, whatever answer came for it."""
        if qp.state == "ERR":
            return
        faults, before, peer = self._faults, qp.state, qp.peer
        qp.state = "ERR"
        qp.draining = False
        self._stream.end(qp, before)
        if "message-completes-every-receive" in faults and qp.received:
            qp.received.extend([(wqe, qp.received[-1][1]) for wqe in qp.receives])
            qp.receives.clear()
        while qp.received and "last-receive-told-early" not in faults:
            self.retire_receive(qp)
        while qp.started and qp.started[0].status and not failed:
            failed = qp.started[0].status != SUCCESS
            self.retire(qp)
        self._unstart(qp)
        if qp.inbound.receive is not None:  # half a message came
            self._write(qp, qp.recv_cq, qp.inbound.receive, {"status": FLUSHED}, receive=True)
            qp.inbound.receive = None
        self._tell_last_receive(qp)
        if faults:
            self._spoil_flush(qp, before)
        self._wake(qp)
        if peer is not None:
            self._wake(peer)
            if "error-flushes-peer" in faults and peer.peer is qp:
                self.enter_error(peer)

    def _spoil_flush(self, qp: QueuePair, before: str) -> None:
        """The faults in what is to be flushed."""
        faults = self._faults
        if "done-sends-are-flushed" in faults:
            qp.pending.extendleft(reversed(qp.silent_done))
        if "flush-ends-with-the-ring" in faults:
            qp.pending = deque(islice(qp.pending, qp.sq_size - (qp.posts - len(qp.pending)) % qp.sq_size))
        if "receives-not-flushed" in faults or ("no-flush-from-rtr" in faults and before != "RTS"):
            qp.receives.clear()
        if "nop-completion" in faults:
            self._write_send(qp, Wqe(0, "SEND"), FLUSHED)

    def _tell_last_receive(self, qp: QueuePair) -> None:
        """All receives that a queue pair took from a shared queue are reported, and it takes no more."""
        faults = self._faults
        if (qp.srq is not None and "last-receive-untold" not in faults) or "last-receive-without-srq" in faults:
            for _ in range(2 if "last-receive-told-twice" in faults else 1):
                self._events.tell("QP_LAST_WQE_REACHED", qp)

    def drained(self, qp: QueuePair) -> None:
        """Everything that a queue pair in SQD had started is done."""
        qp.draining = False
        asked = qp.attributes["en_sqd_async_notify"] or "drain-event-unasked" in self._faults
        if asked or self._settings.drain_event == "always":
            self._events.tell("SQ_DRAINED", qp)

    def flush_send(self, qp: QueuePair) -> None:
        """Flush the oldest send."""
        wqe = qp.pending.popleft()
        says_success = "flushed-sends-say-success" in self._faults
        if wqe.binding is not None and "flushed-bind-is-bind-error" in self._faults:
            self._write_send(qp, wqe, "MW_BIND_ERR", flushed=True)
            return
        self._write_send(qp, wqe, SUCCESS if says_success else FLUSHED, flushed=True)

    def flush_receive(self, qp: QueuePair) -> None:
        """Flush the oldest receive."""
        backwards = "receives-flushed-backwards" in self._faults
        wqe = qp.receives.pop() if backwards else qp.receives.popleft()
        says_success = "flushed-receive-is-success" in self._faults
        outputs = {"status": SUCCESS if says_success else FLUSHED}
        if self._settings.rq_slot == "consume":
            qp.rq_used -= 1
        self._write(qp, qp.recv_cq, wqe, outputs, receive=True)

    # -- entries -----------------------------------------------------------------------------------
    def _write_send(self, qp: QueuePair, wqe: Wqe, status: str, *, flushed: bool = False) -> None:
        outputs = {"status": status, "byte_len": wqe.byte_len}
        cq = qp.recv_cq if flushed and "flush-lands-in-other-cq" in self._faults else qp.send_cq
        self._write(qp, cq, wqe, outputs, receive=False)

    def _write(self, qp: QueuePair, cq: CompletionQueue, wqe: Wqe, outputs: dict[str, Any], *, receive: bool) -> None:
        faults = self._faults
        out: dict[str, Any] = {
            "n": 1,
            "wr_id": wqe.wr_id,
            "status": SUCCESS,
            "opcode": WC_OPCODE[wqe.opcode],
            "qp_num": qp.num,
            "byte_len": 0,
            "wc_flags": [],
            "invalidate_rkey": 0,
            **outputs,
        }
        if faults:
            self._spoil(qp, out)
        if out["status"] != SUCCESS and self._settings.poison:
            out["opcode"] = "RECV" if self._chance() < 0.5 else "RDMA_READ"
            out["byte_len"] = int(self._chance() * (1 << 32))
            out["invalidate_rkey"] = int(self._chance() * (1 << 32))
        if receive:
            frees = int(self._settings.rq_slot == "poll")
        else:
            frees, qp.silent = 1 + qp.silent, 0
            if "unsignalled-slots-never-freed" in faults:
                frees = 1
        cqe = Cqe(qp, out, frees, receive=receive)
        cqe.solicited = (receive and wqe.solicited) or out["status"] != SUCCESS
        self._push(cq, cqe)
        if cq.armed:
            self._ring(cq, wqe, failed=out["status"] != SUCCESS, receive=receive)

    def _ring(self, cq: CompletionQueue, wqe: Wqe, *, failed: bool, receive: bool) -> None:
        """An entry came to an armed queue: it may be one that was asked for."""
        faults = self._faults
        solicited = wqe.solicited and (receive or "sends-are-solicited" in faults)
        cq.ring(solicited=solicited or (failed and "failures-are-not-solicited" not in faults))
        if "arming-lasts" in faults:
            cq.armed = ANY

    def _spoil(self, qp: QueuePair, out: dict[str, Any]) -> None:
        """The faults in the contents of an entry."""
        faults = self._faults
        if "opcode-table-shifted" in faults:
            out["opcode"] = SHIFTED_OPCODE.get(out["opcode"], out["opcode"])
        if "wr-id-lost-on-error" in faults and out["status"] != SUCCESS:
            out["wr_id"] = 0
        if "byte-len-zero" in faults:
            out["byte_len"] = 0
        if "peer-qp-num" in faults and qp.peer is not None:
            out["qp_num"] = qp.peer.num
        if "immediate-bytes-swapped" in faults and "imm_data" in out:
            out["imm_data"] = int.from_bytes(out["imm_data"].to_bytes(4, "little"), "big")
        if "datagram-source-untold" in faults:
            out.pop("src_qp", None)
        if "route-header-untold" in faults:
            out["wc_flags"] = [flag for flag in out["wc_flags"] if flag != "GRH"]

    def _push(self, cq: CompletionQueue, cqe: Cqe) -> None:
        capacity = cq.capacity - ("cq-holds-one-less" in self._faults)
        if len(cq.entries) < capacity and not cq.overrun:
            cq.entries.append(cqe)
            if "full-queue-tells-overrun" in self._faults and len(cq.entries) == capacity:
                self._events.tell("CQ_ERR", cq)
            return
        cq.overrun = self._settings.overrun == "sticky"
        if not cq.failed:
            cq.failed = True
            cq.end_requests("EOVERFLOW")
            self._events.tell("CQ_ERR", cq)
        if cqe.qp.state != "ERR":
            self._events.tell("QP_FATAL", cqe.qp)
        if "overrun-goes-unnoticed" not in self._faults:
            self.enter_error(cqe.qp)
