"""The verbs of completion queues.

Theory of operation
-------------------
A completion queue is as deep as it answers, and stays while a queue pair uses it (EBUSY).  Polling gives back the
slots of the work requests that the entry stands for, unless their queue pair has been reset since.  Resizing moves
the limit and nothing else; it cannot go below what the queue holds.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.queue import CompletionQueue, Cqe

Args = dict[str, Any]
VECTORS = 1


class Cqs:
    """What can be done with completion queues."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.faults
        self._engine = objects.engine

    def create_cq(self, args: Args) -> Args:
        too_deep = args["cqe"] > self._settings.max_cqe and "too-deep-queue-accepted" not in self._faults
        empty = not args["cqe"] and "empty-queue-accepted" not in self._faults
        if empty or too_deep:
            raise Refused
        channel = find(self._objects.channels, args["channel"]) if args.get("channel") else None
        if args.get("comp_vector", 0) >= VECTORS:
            raise Refused
        self._objects.room(self._objects.cqs)
        cq = CompletionQueue(args["cqe"] + self._settings.cq_slack, channel)
        if channel is not None:
            channel.users += 1
        cq.handle = self._objects.enter(self._objects.cqs, cq)
        return {"cq": cq.handle, "cqe_actual": cq.capacity}

    def destroy_cq(self, args: Args) -> None:
        cq = find(self._objects.cqs, args["cq"])
        cq.require_acknowledged()
        if cq.events and "unacknowledged-events-hold-nothing" not in self._faults:
            raise Refused("EDEADLK")
        if cq.users and "cq-destroyed-under-qp" not in self._faults:
            raise Refused("EBUSY")
        cq.gone = "events-outlive-their-queue" not in self._faults
        cq.end_requests("ECANCELED")
        if cq.channel is not None:
            cq.channel.users -= 1
        del self._objects.cqs[args["cq"]]

    def resize_cq(self, args: Args) -> Args:
        cq = find(self._objects.cqs, args["cq"])
        if "shrink-loses-entries" in self._faults:
            cq.entries = deque(islice(cq.entries, args["cqe"]))
        if not max(1, len(cq.entries)) <= args["cqe"] <= self._settings.max_cqe:
            raise Refused
        if "resize-disarms" in self._faults:
            cq.armed = 0
        cq.capacity = args["cqe"] + self._settings.cq_slack
        return {"cqe_actual": cq.capacity}

    def _spoil(self, cq: CompletionQueue) -> None:
        """The faults of a poll."""
        if len(cq.entries) == 1 and "last-poll-disarms" in self._faults:
            cq.armed = 0
        if "arming-waits-for-a-poll" in self._faults:
            cq.armed, cq.postponed = max(cq.armed, cq.postponed), 0

    def _spoil_entry(self, cq: CompletionQueue, cqe: Cqe) -> None:
        """The faults of taking an entry out."""
        if "failed-entry-spoils-arming" in self._faults:
            cq.deaf = cqe.out["status"] != "SUCCESS"
        if "old-entry-names-new-pair" in self._faults and cqe.qp.state == "GONE":
            cqe.out["qp_num"] = max(self._objects.qps.items(), default=(0, cqe.qp))[1].num

    def poll_cq(self, args: Args) -> Args:
        cq = find(self._objects.cqs, args["cq"])
        self._engine.before_poll(empty=not cq.entries)
        if self._faults:
            self._spoil(cq)
        if not cq.entries or ("queue-of-nobody-is-empty" in self._faults and not cq.users):
            return {"n": 0}
        cqe = cq.entries.popleft()
        qp = cqe.qp
        if self._faults:
            self._spoil_entry(cq, cqe)
        if qp.srq is not None and cqe.receive:
            qp.srq.used -= cqe.frees
        elif cqe.life == qp.life:  # slots of an earlier life were given back by RESET
            if cqe.receive:
                qp.rq_used -= cqe.frees
            else:
                qp.sq_used -= cqe.frees
        return cqe.out
