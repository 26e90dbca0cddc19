"""The verbs that post work requests.

Theory of operation
-------------------
Posting checks what a driver can see without asking the device: the queue pair's state, room in the queue,
the opcode, the number of elements, handles, and the width of fields.  Then it freezes the request into a
work queue entry; nothing the consumer does to a handle later reaches it.  (A page list is memory that the
device reads when the request executes, so a consumer who edits it early breaks it.)  A request that is
refused leaves no trace.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused, access_bits, narrow, sge_list
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.qp import SENDABLE, QueuePair
from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.registrar import OperationError

MAX_SGE = 2

Args = dict[str, Any]


def receive(args: Args, max_sge: int) -> Wqe:
    """Freeze a receive work request."""
    wqe = Wqe(args["wr_id"], "RECV")
    wqe.sges = sge_list(args["sg_list"], max_sge)
    wqe.length = sum(sge.length for sge in wqe.sges)
    return wqe


class Posting:
    """The two posting verbs."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.settings.fault
        self._opcodes = objects.offer.opcodes
        if "local-inv-advertised-but-refused" in self._faults:
            self._opcodes -= {"LOCAL_INV"}

    # -- receives ----------------------------------------------------------------------------------
    def post_recv(self, args: Args) -> None:
        qp = find(self._objects.qps, args["qp"])
        wqe = receive(args, MAX_SGE)
        if qp.state == "RESET" or qp.srq is not None:
            raise Refused
        if qp.rq_used >= self._room(qp.rq_size):
            raise Refused("ENOMEM")
        qp.rq_used += 1
        if not self._lost_in_error(qp):
            qp.receives.append(wqe)
        self._objects.engine.wake_pair(qp)

    def _room(self, size: int) -> int:
        return size - ("queue-holds-one-less" in self._faults)

    def _lost_in_error(self, qp: QueuePair) -> bool:
        return qp.state == "ERR" and "posted-in-error-never-flushed" in self._faults

    # -- sends -------------------------------------------------------------------------------------
    def post_send(self, args: Args) -> None:
        faults = self._faults
        qp = find(self._objects.qps, args["qp"])
        wqe = self._wqe(args)
        if qp.state not in SENDABLE and "post-before-rts-accepted" not in faults:
            if "refused-post-stays-queued" in faults:
                qp.pending.append(wqe)
            raise Refused
        if qp.sq_used >= self._room(qp.sq_size):
            if "full-queue-hidden" in faults:
                return
            raise Refused("ENOMEM")
        if self._settings.reg_check == "post" and wqe.opcode == "FAST_REG_MR":
            try:
                self._objects.registrar.check_posted(wqe)
            except OperationError:
                raise Refused from None
        wqe.signaled = wqe.signaled or qp.sig_all
        qp.sq_used += 1
        qp.posts += 1
        if wqe.region is not None and self._settings.map_read == "post":
            wqe.mapping = wqe.region.take_mapping(faults)
        if wqe.opcode == "LOCAL_INV" and "local-inv-at-post" in faults:
            self._objects.registrar.invalidate_by_index(wqe.invalidate_rkey)
        if not self._lost_in_error(qp):
            qp.pending.append(wqe)
        self._objects.engine.wake(qp)

    def _wqe(self, args: Args) -> Wqe:
        """Freeze a send work request."""
        opcode = args["opcode"]
        if opcode not in self._opcodes:
            raise Refused
        wqe = Wqe(args["wr_id"], opcode, signaled=args["signaled"], fence=args["fence"])
        wqe.solicited = args.get("solicited", False)
        if opcode == "REG_MR":
            wqe.region = find(self._objects.regions, args["mr"])
            self._registration(wqe, args)
        elif opcode == "FAST_REG_MR":
            self._page_list(wqe, args)
            self._registration(wqe, args)
        else:
            self._data(wqe, args)
        return wqe

    def _data(self, wqe: Wqe, args: Args) -> None:
        if "sg_list" in args:
            most = self._settings.max_sge_rd if wqe.opcode == "RDMA_READ" else MAX_SGE
            wqe.sges = sge_list(args["sg_list"], min(most, MAX_SGE))
            wqe.length = sum(sge.length for sge in wqe.sges)
        if "rkey" in args:
            wqe.rkey = narrow(args["rkey"])
            wqe.remote_addr = args["remote_addr"]
        if "invalidate_rkey" in args:
            wqe.invalidate_rkey = narrow(args["invalidate_rkey"])

    def _registration(self, wqe: Wqe, args: Args) -> None:
        wqe.key = narrow(args["key"])
        wqe.access = access_bits(args["access"])

    def _page_list(self, wqe: Wqe, args: Args) -> None:
        pages = find(self._objects.lists, args["list"])
        wqe.page_list = pages
        wqe.page_list_len = args["page_list_len"]
        if wqe.page_list_len > len(pages.pages):
            raise Refused  # the driver copies the list at post and sees its size
        wqe.page_shift = narrow(args["page_shift"])
        wqe.iova_start = args["iova_start"]
        wqe.length = narrow(args["length"])  # 32 bits: at most 4 GiB - 1
