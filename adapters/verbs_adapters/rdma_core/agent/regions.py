"""Verbs of memory: buffers, protection domains, regions, windows."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.layout import Mr, Mw, MwBind
from verbs_adapters.rdma_core.agent.library import Errno, made, succeed
from verbs_adapters.rdma_core.agent.memory import Buffer, load_libc
from verbs_adapters.rdma_core.agent.names import MW_TYPES, NO_SUCH, NO_SUCH_FLAG, REG_FLAGS, REREG, SEND_FLAGS
from verbs_adapters.rdma_core.agent.objects import Objects
from verbs_adapters.rdma_core.agent.values import access_bits, address_of, bits, enumerator, narrow


class Regions(Objects):
    """Memory and the keys to it."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._libc = load_libc()
        self._empty_file = os.memfd_create("guard")

    # -- buffers -----------------------------------------------------------------------------------

    def verb_alloc_buffer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Memory of the consumer."""
        buffer = Buffer(self._libc, args["length"], self._empty_file)
        return {"buf": self._new(self._buffers, buffer), "addr": buffer.addr}

    def verb_free_buffer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Give it back."""
        self._find(self._buffers, args["buf"]).free()
        del self._buffers[args["buf"]]
        return {}

    def verb_write_buffer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Store bytes."""
        data = bytes.fromhex(args["data"])
        c.memmove(self._find(self._buffers, args["buf"]).place(args["offset"], len(data)), data, len(data))
        return {}

    def verb_read_buffer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Load bytes."""
        place = self._find(self._buffers, args["buf"]).place(args["offset"], args["length"])
        return {"data": c.string_at(place, args["length"]).hex()}

    # -- protection domains, regions ---------------------------------------------------------------

    def verb_alloc_pd(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_alloc_pd."""
        pd = self.make_pd()
        return {"pd": self._new(self._pds, pd), "local_dma_lkey": 0}

    def verb_dealloc_pd(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_dealloc_pd."""
        return self._end(self._pds, args["pd"], self._library.ibv_dealloc_pd)

    def verb_reg_mr(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_reg_mr."""
        pd = self._find(self._pds, args["pd"])
        mr = made(self._library.ibv_reg_mr(pd, args["addr"], args["length"], bits(args["access"], REG_FLAGS)))
        return {"mr": self._new(self._mrs, mr), **self._keys(mr)}

    @staticmethod
    def _keys(mr: Any) -> dict[str, Any]:
        held: Mr = mr.contents
        return {"lkey": held.lkey, "rkey": held.rkey}

    def verb_rereg_mr(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_rereg_mr: its own codes do not name the reason, which is in errno."""
        mr = self._find(self._mrs, args["mr"])
        pd = self._find(self._pds, args["pd"]) if args.get("pd") else None
        flags, access = (
            bits(args["flags"], {**REREG, "CHANGE_UNKNOWN": NO_SUCH_FLAG}),
            access_bits(args.get("access", ())),
        )
        c.set_errno(0)
        if self._library.ibv_rereg_mr(mr, flags, pd, args.get("addr", 0), args.get("length", 0), access):
            made(None)
        return self._keys(mr)

    def verb_dereg_mr(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_dereg_mr."""
        return self._end(self._mrs, args["mr"], self._library.ibv_dereg_mr)

    # -- windows -----------------------------------------------------------------------------------

    def verb_alloc_mw(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_alloc_mw, as its inline function in the header does."""
        pd, kind = self._find(self._pds, args["pd"]), enumerator(args["type"], {**MW_TYPES, "TYPE_UNKNOWN": NO_SUCH})
        if not self._ops.alloc_mw:
            raise Errno("EOPNOTSUPP")
        c.set_errno(0)
        mw = made(self._ops.alloc_mw(address_of(pd), kind))
        return {"mw": self._new(self._mws, mw), "rkey": Mw.from_address(mw).rkey}

    def verb_dealloc_mw(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_dealloc_mw."""
        c.set_errno(0)
        return self._end(self._mws, args["mw"], self._ops.dealloc_mw)

    def verb_bind_mw(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_bind_mw, with the checks of its inline function in the header."""
        pair, mw = self._find(self._qps, args["qp"]), self._find(self._mws, args["mw"])
        bind = MwBind(wr_id=args["wr_id"], send_flags=sum(SEND_FLAGS[flag] for flag in SEND_FLAGS if args.get(flag)))
        info, held = bind.bind_info, Mw.from_address(mw)
        if "key" in args:
            held.rkey = narrow(args["key"], 32)
        mr = self._find(self._mrs, args["mr"]) if args.get("mr") else None
        info.mr = address_of(mr) if mr else None
        info.addr, info.length = args.get("addr", 0), args.get("length", 0)
        info.mw_access_flags = access_bits(args.get("access", ()))
        if held.type != MW_TYPES["TYPE_1"] or (mr is None and (info.addr or info.length)):
            raise Errno("EINVAL")
        if mr is not None and held.pd != mr.contents.pd:
            raise Errno("EPERM")
        if not self._ops.bind_mw:
            raise Errno("EOPNOTSUPP")
        c.set_errno(0)
        succeed(self._ops.bind_mw(address_of(pair.pointer), mw, c.addressof(bind)))
        self._busy = True
        pair.sends += 1
        return {"rkey": held.rkey}
