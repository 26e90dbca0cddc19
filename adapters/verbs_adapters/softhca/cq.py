"""The verbs of completion queues.

Theory of operation
-------------------
A completion queue is as deep as it answers, and stays while a queue pair uses it (EBUSY).  Polling gives back the
slots of the work requests that the entry stands for, unless their queue pair has been reset since.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.queue import CompletionQueue

Args = dict[str, Any]


class Cqs:
    """What can be done with completion queues."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.faults
        self._engine = objects.engine

    def create_cq(self, args: Args) -> Args:
        if not 1 <= args["cqe"] <= self._settings.max_cqe:
            raise Refused
        self._objects.room(self._objects.cqs)
        cq = CompletionQueue(args["cqe"] + self._settings.cq_slack)
        return {"cq": self._objects.enter(self._objects.cqs, cq), "cqe_actual": cq.capacity}

    def destroy_cq(self, args: Args) -> None:
        cq = find(self._objects.cqs, args["cq"])
        if cq.users and "cq-destroyed-under-qp" not in self._faults:
            raise Refused("EBUSY")
        del self._objects.cqs[args["cq"]]

    def poll_cq(self, args: Args) -> Args:
        cq = find(self._objects.cqs, args["cq"])
        self._engine.before_poll(empty=not cq.entries)
        if not cq.entries:
            return {"n": 0}
        cqe = cq.entries.popleft()
        qp = cqe.qp
        if cqe.life == qp.life:  # slots of an earlier life were given back by RESET
            if cqe.receive:
                qp.rq_used -= cqe.frees
            else:
                qp.sq_used -= cqe.frees
        return cqe.out
