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

from collections.abc import Callable
from typing import Any

from verbs_adapters.softhca.arguments import POSTED_WITH, Refused, access_bits, narrow, sge_list
from verbs_adapters.softhca.atomic import ATOMIC_BYTES
from verbs_adapters.softhca.attributes import USUAL
from verbs_adapters.softhca.memory import BusFault
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.qp import SENDABLE, QueuePair
from verbs_adapters.softhca.queue import ANSWERED, Wqe
from verbs_adapters.softhca.registrar import OperationError
from verbs_adapters.softhca.windows import WindowVerbs

NOT_CARRIED = {
    "UC": ANSWERED,
    "UD": frozenset(POSTED_WITH) - {"SEND", "SEND_WITH_IMM"},
}
"""Work requests that a type of queue pair does not have (``ibv_post_send(3)``)."""
INLINE = frozenset({"SEND", "SEND_WITH_INV", "SEND_WITH_IMM", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM"})
"""Opcodes whose data can be inline."""

Args = dict[str, Any]


def receive(args: Args, max_sge: int) -> Wqe:
    """Freeze a receive work request."""
    wqe = Wqe(args["wr_id"], "RECV")
    wqe.sges = sge_list(args["sg_list"], max_sge)
    wqe.length = sum(sge.length for sge in wqe.sges)
    return wqe


class Posting:
    """The posting verbs."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._windows = WindowVerbs(objects)
        self._settings = objects.settings
        self._faults = objects.settings.fault
        self._opcodes = objects.offer.opcodes
        if "local-inv-advertised-but-refused" in self._faults:
            self._opcodes -= {"LOCAL_INV"}

    # -- receives ----------------------------------------------------------------------------------
    def post_recv(self, args: Args) -> None:
        self._receive(find(self._objects.qps, args["qp"]), args)

    def post_recv_list(self, args: Args) -> Args:
        qp = find(self._objects.qps, args["qp"])
        return self._each(args, lambda one: self._receive(qp, one))

    def _each(self, args: Args, post: Callable[[Args], None]) -> Args:
        """Post one after the other; the first that is refused is the bad one, and the last looked at."""
        ids, sges = args["wr_ids"], args["sg_list"]
        if not ids or len(ids) != len(sges):
            raise Refused
        bad: list[int] = []
        each = list(enumerate(zip(ids, sges, strict=True)))
        if "list-in-reverse" in self._faults:
            each.reverse()
        for place, (wr_id, sge) in each:
            try:
                post({"wr_id": wr_id, "sg_list": [sge]})
            except Refused:
                bad.append(place)
                if "list-goes-on-after-the-bad-one" not in self._faults:
                    break
        if "bad-request-not-named" in self._faults:
            return {"accepted": 0}
        return {"accepted": bad[0] if bad else len(ids)}

    def _receive(self, qp: QueuePair, args: Args) -> None:
        wqe = receive(args, qp.recv_sges)
        if qp.state == "RESET" or qp.srq is not None:
            raise Refused
        if qp.rq_used >= self._room(qp.rq_size):
            raise Refused("ENOMEM", "ND_NO_MORE_ENTRIES")
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
        qp = find(self._objects.qps, args["qp"])
        if "unknown-opcode-disappears" in self._faults and args["opcode"] in NOT_CARRIED.get(qp.type, ()):
            return
        self.submit(qp, self._wqe(qp, args))

    def post_send_list(self, args: Args) -> Args:
        qp = find(self._objects.qps, args["qp"])
        common = {"opcode": "SEND", "fence": False, "signaled": args["signaled"], "inline": args.get("inline", False)}
        return self._each(args, lambda one: self.submit(qp, self._wqe(qp, {**common, **one})))

    def bind_mw(self, args: Args) -> Args:
        qp = find(self._objects.qps, args["qp"])
        wqe = Wqe(args["wr_id"], "BIND_MW", signaled=args["signaled"], fence=args.get("fence", False))
        wqe.binding = binding = self._windows.type_1(args)
        self.submit(qp, wqe)
        return {"rkey": binding.held if "old-window-key-returned" in self._faults else binding.key}

    def submit(self, qp: QueuePair, wqe: Wqe) -> None:
        """Queue a frozen work request, or refuse it."""
        faults = self._faults
        if qp.state not in SENDABLE:
            self._refuse_state(qp, wqe)
        if qp.sq_used >= self._room(qp.sq_size):
            if "full-queue-hidden" in faults:
                return
            raise Refused("ENOMEM", "ND_NO_MORE_ENTRIES")
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
        if wqe.binding is not None:
            wqe.binding.hold()
        self._objects.engine.wake(qp)

    def _refuse_state(self, qp: QueuePair, wqe: Wqe) -> None:
        if "post-before-rts-accepted" not in self._faults:
            if "refused-post-stays-queued" in self._faults:
                qp.pending.append(wqe)
            raise Refused("EINVAL", "ND_CONNECTION_INVALID")

    def _wqe(self, qp: QueuePair, args: Args) -> Wqe:
        """Freeze a send work request."""
        opcode = args["opcode"]
        if opcode not in self._opcodes or opcode in NOT_CARRIED.get(qp.type, ()):
            raise Refused
        wqe = Wqe(args["wr_id"], opcode, signaled=args["signaled"], fence=args["fence"])
        wqe.solicited = args.get("solicited", False)
        if opcode == "REG_MR":
            wqe.region = find(self._objects.regions, args["mr"])
            self._registration(wqe, args)
        elif opcode == "FAST_REG_MR":
            self._page_list(wqe, args)
            self._registration(wqe, args)
        elif opcode == "BIND_MW":
            wqe.binding = self._windows.posted(args)
        else:
            self._data(qp, wqe, args)
        if qp.type == "UD":
            wqe.ah = find(self._objects.ahs, args.get("ah", 0))
            wqe.remote_qpn = narrow(args.get("remote_qpn", 0), 24)
            wqe.remote_qkey = narrow(args.get("remote_qkey", USUAL["qkey"]))
        if args.get("inline"):
            self._copy_inline(qp, wqe)
        return wqe

    def _data(self, qp: QueuePair, wqe: Wqe, args: Args) -> None:
        if "sg_list" in args:
            most = qp.send_sges
            if wqe.opcode == "RDMA_READ" and self._settings.max_sge_rd < most:
                most = self._settings.max_sge_rd
            wqe.sges = sge_list(args["sg_list"], most + ("too-many-elements-taken" in self._faults))
            wqe.length = sum(sge.length for sge in wqe.sges)
            if "no-elements-refused" in self._faults and not wqe.sges:
                raise Refused
            if "length-of-the-first-element" in self._faults and wqe.sges:
                wqe.length = len(wqe.sges) * wqe.sges[0].length
        if "rkey" in args:
            wqe.rkey = narrow(args["rkey"])
            wqe.remote_addr = args["remote_addr"]
        if "imm_data" in args:
            wqe.imm_data = narrow(args["imm_data"])
        if "compare_add" in args:
            self._atomic(wqe, args)
        if "invalidate_rkey" in args:
            wqe.invalidate_rkey = narrow(args["invalidate_rkey"])

    def _copy_inline(self, qp: QueuePair, wqe: Wqe) -> None:
        """The consumer's CPU copies the bytes; nobody asks for keys."""
        length = wqe.length
        if "inline-pieces-checked-alone" in self._faults:
            length = max((sge.length for sge in wqe.sges), default=0)
        if wqe.opcode not in INLINE or length > qp.inline_size:
            if "refused-inline-is-sent" in self._faults:
                qp.pending.append(wqe)
            raise Refused
        if "inline-read-at-execution" in self._faults:
            return
        read = self._objects.memory.read
        try:
            wqe.inline = b"".join(read(sge.addr, sge.length) for sge in wqe.sges if sge.length)
        except BusFault:
            raise Refused("EFAULT") from None

    def _atomic(self, wqe: Wqe, args: Args) -> None:
        wqe.compare_add, wqe.swap = args["compare_add"], args.get("swap", 0)
        if wqe.length < ATOMIC_BYTES or (wqe.remote_addr % ATOMIC_BYTES and self._settings.unaligned_atomic == "post"):
            raise Refused  # validate_send_wr of rxe
        if self._settings.atomic_length == "done":
            wqe.length = ATOMIC_BYTES

    def _registration(self, wqe: Wqe, args: Args) -> None:
        wqe.key = narrow(args["key"])
        wqe.access = access_bits(args["access"], self._objects.offer.rights)

    def _page_list(self, wqe: Wqe, args: Args) -> None:
        pages = find(self._objects.lists, args["list"])
        wqe.page_list = pages
        wqe.page_list_len = args["page_list_len"]
        if wqe.page_list_len > len(pages.pages):
            raise Refused  # the driver copies the list at post and sees its size
        wqe.page_shift = narrow(args["page_shift"])
        wqe.iova_start = args["iova_start"]
        wqe.length = narrow(args["length"])  # 32 bits: at most 4 GiB - 1
