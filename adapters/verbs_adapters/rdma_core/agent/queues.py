"""Verbs of completion queues, their channels, and shared receive queues."""

from __future__ import annotations

import ctypes as c
import select
import socket
from collections.abc import Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.events import Events
from verbs_adapters.rdma_core.agent.layout import SrqAttr, SrqInitAttr, Wc
from verbs_adapters.rdma_core.agent.library import Errno, made, succeed
from verbs_adapters.rdma_core.agent.names import (
    SRQ_ATTR,
    STATUSES,
    WC_GRH,
    WC_OPCODES,
    WC_RECEIVED,
    WC_WITH_IMM,
    WC_WITH_INV,
)
from verbs_adapters.rdma_core.agent.values import address_of, bits, narrow


class Queues(Events):
    """Queues that are not pairs."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._wc = Wc()
        self._wc_at = c.addressof(self._wc)
        self._unacknowledged: dict[int, int] = {}  # completion events that were taken, by queue

    # -- completion queues -------------------------------------------------------------------------

    def verb_create_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_cq."""
        channel = self._find(self._channels, args["channel"]) if args.get("channel") else None
        cq = self.make_cq(narrow(args["cqe"], 31), channel, narrow(args.get("comp_vector", 0), 31))
        return {"cq": self._new(self._cqs, cq), "cqe_actual": cq.contents.cqe}

    def verb_resize_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_resize_cq."""
        cq = self._find(self._cqs, args["cq"])
        c.set_errno(0)
        succeed(self._library.ibv_resize_cq(cq, narrow(args["cqe"], 31)))
        return {"cqe_actual": cq.contents.cqe}

    def verb_destroy_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_cq, which waits until all its events are acknowledged."""
        if self._unacknowledged.get(args["cq"]):
            raise Errno("EDEADLK")
        done = self._destroy(self._cqs, args["cq"], self._library.ibv_destroy_cq)
        self._unacknowledged.pop(args["cq"], None)
        return done

    def verb_poll_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_poll_cq for one entry."""
        c.set_errno(0)
        number = self._ops.poll_cq(self._find(self._cqs, args["cq"]), 1, self._wc_at)
        if number < 0:
            succeed(number)
        if number == 0:
            return {"n": 0}
        wc = self._wc
        self._retire(wc)
        flags = wc.wc_flags
        out = {
            "n": number,
            "wr_id": wc.wr_id,
            "status": STATUSES[wc.status] if 0 <= wc.status < len(STATUSES) else str(wc.status),
            "opcode": WC_OPCODES.get(wc.opcode, str(wc.opcode)),
            "qp_num": wc.qp_num,
            "byte_len": wc.byte_len,
            "wc_flags": ["WITH_INVALIDATE"] if flags & WC_WITH_INV else [],
            "invalidate_rkey": wc.invalidated_rkey if flags & WC_WITH_INV else 0,
        }
        if flags & WC_WITH_IMM:
            out["wc_flags"].append("WITH_IMM")
            out["imm_data"] = socket.ntohl(wc.invalidated_rkey)
        if wc.opcode & WC_RECEIVED:
            self._datagram(wc, out)
        return out

    def _datagram(self, wc: Wc, out: dict[str, Any]) -> None:
        """What is said of a received datagram only; GRH too, which drivers set for other messages as they like."""
        pair = self._by_number.get(wc.qp_num)
        if pair is None or pair.kind != "UD":
            return
        if wc.wc_flags & WC_GRH:
            out["wc_flags"].append("GRH")
        for name in ("src_qp", "pkey_index", "slid", "sl", "dlid_path_bits"):
            out[name] = getattr(wc, name)

    def _retire(self, wc: Wc) -> None:
        """Note that a send may have ended (on failure nobody says whether it was a send)."""
        pair = self._by_number.get(wc.qp_num)
        if pair is not None and pair.sends and (wc.status or wc.opcode < WC_RECEIVED):
            pair.sends -= 1
            pair.waited = min(pair.waited, pair.sends)

    # -- completion events -------------------------------------------------------------------------

    def verb_create_comp_channel(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_comp_channel."""
        c.set_errno(0)
        channel = made(self._library.ibv_create_comp_channel(self.opened.address))
        return {"channel": self._new(self._channels, channel)}

    def verb_destroy_comp_channel(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_comp_channel."""
        return self._end(self._channels, args["channel"], self._library.ibv_destroy_comp_channel)

    def verb_req_notify_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_req_notify_cq."""
        cq = self._find(self._cqs, args["cq"])
        if not self._ops.req_notify_cq:
            raise Errno("EOPNOTSUPP")
        c.set_errno(0)
        succeed(self._ops.req_notify_cq(address_of(cq), int(args["solicited_only"])))
        return {}

    def verb_get_cq_event(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_get_cq_event, if there is one."""
        channel = self._find(self._channels, args["channel"])
        poll = select.poll()
        poll.register(channel.contents.fd, select.POLLIN)
        if not poll.poll(0):
            return {"n": 0}
        cq, context = c.c_void_p(), c.c_void_p()
        c.set_errno(0)
        succeed(self._library.ibv_get_cq_event(channel, c.byref(cq), c.byref(context)))
        handle = self._handle_at(self._cqs, cq.value or 0)
        self._unacknowledged[handle] = self._unacknowledged.get(handle, 0) + 1
        return {"n": 1, "cq": handle}

    def verb_ack_cq_events(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_ack_cq_events; one too many would have the queue's destruction wait for ever."""
        cq, number = self._find(self._cqs, args["cq"]), args["nevents"]
        if number > self._unacknowledged.get(args["cq"], 0):
            raise Errno("EINVAL")
        self._library.ibv_ack_cq_events(cq, number)
        self._unacknowledged[args["cq"]] = self._unacknowledged.get(args["cq"], 0) - number
        return {}

    # -- shared receive queues ---------------------------------------------------------------------

    def verb_create_srq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_srq."""
        pd = self._find(self._pds, args["pd"])
        init = SrqInitAttr()
        init.attr.max_wr, init.attr.max_sge = narrow(args["max_wr"], 32), narrow(args.get("max_sge", 2), 32)
        init.attr.srq_limit = narrow(args.get("srq_limit", 0), 32)
        c.set_errno(0)
        srq = made(self._library.ibv_create_srq(pd, c.byref(init)))
        return {
            "srq": self._new(self._srqs, srq),
            "max_wr_actual": init.attr.max_wr,
            "max_sge_actual": init.attr.max_sge,
        }

    def verb_modify_srq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_modify_srq."""
        srq = self._find(self._srqs, args["srq"])
        attr = SrqAttr(max_wr=narrow(args.get("max_wr", 0), 32), srq_limit=narrow(args.get("srq_limit", 0), 32))
        c.set_errno(0)
        succeed(self._library.ibv_modify_srq(srq, c.byref(attr), bits(args["mask"], SRQ_ATTR)))
        return {}

    def verb_query_srq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_query_srq."""
        attr = SrqAttr()
        c.set_errno(0)
        succeed(self._library.ibv_query_srq(self._find(self._srqs, args["srq"]), c.byref(attr)))
        return {"max_wr": attr.max_wr, "max_sge": attr.max_sge, "srq_limit": attr.srq_limit}

    def verb_destroy_srq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_srq."""
        return self._destroy(self._srqs, args["srq"], self._library.ibv_destroy_srq)
