"""Verbs that post work requests."""

from __future__ import annotations

import ctypes as c
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.events import Events
from verbs_adapters.rdma_core.agent.layout import Mw, RecvWr, SendWr, Sge
from verbs_adapters.rdma_core.agent.library import Errno, succeed
from verbs_adapters.rdma_core.agent.names import ATOMICS, OPCODES, QKEY, SEND_FLAGS
from verbs_adapters.rdma_core.agent.objects import Pair
from verbs_adapters.rdma_core.agent.values import access_bits, address_of, narrow


class Work(Events):
    """Work requests, one a call or a list."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._bad = c.c_void_p()  # some providers write here on failure, others do not
        self._bad_at = c.addressof(self._bad)

    def verb_post_send(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_send of one work request."""
        pair: Pair = self._find(self._qps, args["qp"])
        opcode = OPCODES.get(args["opcode"])
        if opcode is None:
            raise Errno("EOPNOTSUPP")
        wr = SendWr(wr_id=args["wr_id"], opcode=opcode)
        wr.send_flags = sum(bit for flag, bit in SEND_FLAGS.items() if args.get(flag))
        if "imm_data" in args:
            wr.invalidate_rkey = socket.htonl(narrow(args["imm_data"], 32))
        else:
            wr.invalidate_rkey = narrow(args.get("invalidate_rkey", 0), 32)
        self._target(pair, wr, args)
        wr.sg_list, wr.num_sge = self._sges(args.get("sg_list", ()))
        c.set_errno(0)
        succeed(self._ops.post_send(pair.pointer, c.addressof(wr), self._bad_at))
        if args["opcode"] == "BIND_MW":  # as ibv_bind_mw does for the other type
            Mw.from_address(wr.bind_mw.mw).rkey = wr.bind_mw.rkey
        self._busy = True
        pair.sends += 1
        return {}

    def _target(self, pair: Pair, wr: SendWr, args: Mapping[str, Any]) -> None:
        """What the request is about, in the member of the union that is for its opcode."""
        rkey = narrow(args.get("rkey", 0), 32)
        if args["opcode"] == "BIND_MW":
            self._window(wr, args, rkey)
        elif args["opcode"] in ATOMICS:
            atomic = wr.wr.atomic
            atomic.remote_addr, atomic.rkey = args.get("remote_addr", 0), rkey
            atomic.compare_add, atomic.swap = args.get("compare_add", 0), args.get("swap", 0)
        elif pair.kind == "UD":
            datagram = wr.wr.ud
            datagram.ah = self._find(self._ahs, args["ah"]) if args.get("ah") else None
            datagram.remote_qpn = narrow(args.get("remote_qpn", 0), 32)
            datagram.remote_qkey = narrow(args.get("remote_qkey", QKEY), 32)
        else:
            rdma = wr.wr.rdma
            rdma.remote_addr, rdma.rkey = args.get("remote_addr", 0), rkey

    def _window(self, wr: SendWr, args: Mapping[str, Any], rkey: int) -> None:
        bind = wr.bind_mw
        bind.mw, bind.rkey = self._find(self._mws, args["mw"]), rkey
        if "key" in args:
            Mw.from_address(bind.mw).rkey = narrow(args["key"], 32)
        bind.bind_info.mr = address_of(self._find(self._mrs, args["mr"])) if args.get("mr") else None
        bind.bind_info.addr, bind.bind_info.length = args.get("addr", 0), args.get("length", 0)
        bind.bind_info.mw_access_flags = access_bits(args.get("access", ()))

    def verb_post_recv(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_recv of one work request."""
        return self._receive(self._ops.post_recv, self._find(self._qps, args["qp"]).pointer, args)

    def verb_post_srq_recv(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_srq_recv of one work request."""
        return self._receive(self._ops.post_srq_recv, self._find(self._srqs, args["srq"]), args)

    def _receive(self, post: Any, queue: Any, args: Mapping[str, Any]) -> dict[str, Any]:
        wr = RecvWr(wr_id=args["wr_id"])
        wr.sg_list, wr.num_sge = self._sges(args["sg_list"])
        if not post:
            raise Errno("EOPNOTSUPP")
        c.set_errno(0)
        succeed(post(queue, c.addressof(wr), self._bad_at))
        self._busy = True
        return {}

    def verb_post_send_list(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_send of several work requests."""
        pair: Pair = self._find(self._qps, args["qp"])
        requests = self._linked(SendWr, args)
        flags = sum(bit for flag, bit in SEND_FLAGS.items() if args.get(flag))
        for wr in requests:
            wr.opcode, wr.send_flags = OPCODES["SEND"], flags
        accepted = self._post_list(self._ops.post_send, pair, requests)
        pair.sends += accepted
        return {"accepted": accepted}

    def verb_post_recv_list(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_recv of several work requests."""
        pair: Pair = self._find(self._qps, args["qp"])
        return {"accepted": self._post_list(self._ops.post_recv, pair, self._linked(RecvWr, args))}

    def _linked(self, kind: Any, args: Mapping[str, Any]) -> Any:
        """Work requests of one element each, each the next of the one before."""
        elements = args["sg_list"]
        if not elements or len(elements) != len(args["wr_ids"]):
            raise Errno("EINVAL")
        requests = (kind * len(elements))()
        for i, element in enumerate(elements):
            wr = requests[i]
            wr.wr_id = args["wr_ids"][i]
            wr.sg_list, wr.num_sge = self._sges([element])
            wr.next = c.addressof(requests[i + 1]) if i + 1 < len(elements) else None
        return requests

    def _post_list(self, post: Any, pair: Pair, requests: Any) -> int:
        """How many of them were taken."""
        self._bad.value = None
        c.set_errno(0)
        result = post(pair.pointer, c.addressof(requests), self._bad_at)
        self._busy = True
        places = [c.addressof(wr) for wr in requests]
        if result == 0:
            return len(places)
        bad = self._bad.value or 0
        if bad not in places:
            raise Errno("EPROTO")
        return places.index(bad)

    @staticmethod
    def _sges(items: Sequence[Mapping[str, int]]) -> tuple[Any, int]:
        array = (Sge * len(items))()
        for place, item in zip(array, items):  # noqa: B905 - `strict` is of Python 3.10
            place.addr, place.length, place.lkey = item["addr"], narrow(item["length"], 32), narrow(item["lkey"], 32)
        return c.cast(array, c.POINTER(Sge)) if items else None, len(items)
