"""Shared receive queues: receives that several queue pairs take from one queue.

Theory of operation
-------------------
A queue pair on a shared queue takes its receives from there; they stay when it goes to ERR, and the others keep
working.  A receive's slot is free again as a queue pair's own is (option ``rq_slot``).

The limit, if it is not 0, is armed: when a receive is taken and fewer than that many are left, SRQ_LIMIT_REACHED is
told and the limit is 0 again (``get_srq_wqe`` of rxe).  Arming looks at nothing.

A message that finds the queue empty waits as it would for a queue pair's own; its sender is noted, and posting wakes
all that are noted.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused, narrow
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.posting import receive
from verbs_adapters.softhca.queue import SharedReceives

Args = dict[str, Any]
USUAL_SGE = 2
MASKS = frozenset({"MAX_WR", "LIMIT"})


class Srqs:
    """The verbs of shared receive queues."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.faults

    def create_srq(self, args: Args) -> Args:
        pd = find(self._objects.pds, args["pd"])
        takes_limit = self._settings.srq_limit_at_create == "take"
        max_sge, limit = args.get("max_sge", USUAL_SGE), args.get("srq_limit", 0) if takes_limit else 0
        self._check_size(args["max_wr"])
        if max_sge > self._settings.max_srq_sge or limit > args["max_wr"]:
            raise Refused
        self._objects.room(self._objects.srqs)
        srq = SharedReceives(pd, args["max_wr"] + self._settings.srq_slack, max_sge, limit)
        pd.users += "srq-does-not-hold-its-pd" not in self._faults
        srq.handle = self._objects.enter(self._objects.srqs, srq)
        return {"srq": srq.handle, "max_wr_actual": srq.size, "max_sge_actual": max_sge}

    def _check_size(self, max_wr: int) -> None:
        if not 1 <= max_wr <= self._settings.max_srq_wr:
            raise Refused

    def modify_srq(self, args: Args) -> None:
        srq = find(self._objects.srqs, args["srq"])
        mask = frozenset(args["mask"])
        size, limit = srq.size, srq.limit
        if mask - MASKS or (mask == MASKS and self._settings.srq_modify == "one"):
            raise Refused
        if "MAX_WR" in mask:
            if "SRQ_RESIZE" not in self._objects.offer.declared:
                raise Refused  # as mlx5_ib_modify_srq
            self._check_size(args.get("max_wr", 0))
            if "LIMIT" not in mask and limit > args["max_wr"]:
                raise Refused  # as rxe_srq_chk_attr: what was asked for is compared
            size = args["max_wr"] + self._settings.srq_slack
        if "LIMIT" in mask:
            limit = narrow(args.get("srq_limit", 0))
        if "srq-resize-ignored" in self._faults:
            size = srq.size
        if limit > size or size < srq.used:
            if "refused-resize-takes-limit" in self._faults:
                srq.limit = limit
            if "refused-resize-drops-receives" in self._faults:
                srq.receives.clear()
            raise Refused
        srq.size, srq.limit = size, limit

    def query_srq(self, args: Args) -> Args:
        srq = find(self._objects.srqs, args["srq"])
        return {"max_wr": srq.size, "max_sge": srq.max_sge, "srq_limit": srq.limit}

    def destroy_srq(self, args: Args) -> None:
        srq = find(self._objects.srqs, args["srq"])
        srq.require_acknowledged()
        if srq.users and "srq-destroyed-under-qp" not in self._faults:
            raise Refused("EBUSY")
        srq.gone = True
        srq.pd.users -= "srq-does-not-hold-its-pd" not in self._faults
        del self._objects.srqs[args["srq"]]

    def post_srq_recv(self, args: Args) -> None:
        srq = find(self._objects.srqs, args["srq"])
        wqe = receive(args, srq.max_sge)
        if "srq-receive-has-one-element" in self._faults:
            wqe.sges = wqe.sges[:1]
        if srq.used >= srq.size:
            raise Refused("ENOMEM")
        srq.used += 1
        at = 0 if "srq-last-in-first-out" in self._faults else len(srq.receives)
        srq.receives.insert(at, wqe)
        while srq.waiting:
            self._objects.engine.wake(srq.waiting.popitem()[0])
