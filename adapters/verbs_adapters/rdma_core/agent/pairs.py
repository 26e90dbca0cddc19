"""Verbs of queue pairs and of address handles."""

from __future__ import annotations

import ctypes as c
import struct
from collections.abc import Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.events import Events
from verbs_adapters.rdma_core.agent.layout import AhAttr, QpAttr, QpInitAttr
from verbs_adapters.rdma_core.agent.library import Errno, made, succeed
from verbs_adapters.rdma_core.agent.names import (
    ACCESS,
    ATTR,
    MIGRATIONS,
    MTUS,
    NO_ATTR,
    QKEY,
    QP_TYPES,
    REQUIRED,
    RETRIES,
    RNR_RETRIES_ENDLESS,
    STATES,
    TIMEOUT,
    UNKNOWN,
)
from verbs_adapters.rdma_core.agent.objects import Address, Pair
from verbs_adapters.rdma_core.agent.values import (
    access_bits,
    address_of,
    bits,
    enumerator,
    flags_in,
    name_of,
    narrow,
    put,
    take,
)

CAPS = ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data")
ROUTE = {
    **{name: f"ah_attr.{name}" for name in ("dlid", "sl", "is_global")},
    **{name: f"ah_attr.grh.{name}" for name in ("dgid", "sgid_index", "hop_limit")},
}
MEMBERS: dict[str, dict[str, str]] = {
    "CUR_STATE": {"cur_qp_state": "cur_qp_state"},
    "EN_SQD_ASYNC_NOTIFY": {"en_sqd_async_notify": "en_sqd_async_notify"},
    "PKEY_INDEX": {"pkey_index": "pkey_index"},
    "PORT": {"port_num": "port_num"},
    "QKEY": {"qkey": "qkey"},
    "AV": ROUTE,
    "PATH_MTU": {"path_mtu": "path_mtu"},
    "TIMEOUT": {"timeout": "timeout"},
    "RETRY_CNT": {"retry_cnt": "retry_cnt"},
    "RNR_RETRY": {"rnr_retry": "rnr_retry"},
    "RQ_PSN": {"rq_psn": "rq_psn"},
    "MAX_QP_RD_ATOMIC": {"max_rd_atomic": "max_rd_atomic"},
    "ALT_PATH": {"alt_port_num": "alt_port_num", "alt_timeout": "alt_timeout"},
    "MIN_RNR_TIMER": {"min_rnr_timer": "min_rnr_timer"},
    "SQ_PSN": {"sq_psn": "sq_psn"},
    "MAX_DEST_RD_ATOMIC": {"max_dest_rd_atomic": "max_dest_rd_atomic"},
    "PATH_MIG_STATE": {"path_mig_state": "path_mig_state"},
    "CAP": {name: f"cap.{name}" for name in CAPS},
    "DEST_QPN": {"dest_qp_num": "dest_qp_num"},
    "RATE_LIMIT": {"rate_limit": "rate_limit"},
}
"""The contract's attributes with their places in struct ibv_qp_attr, by the bit of the mask."""

PLACES = {name: place for members in MEMBERS.values() for name, place in members.items()}
STATE_NUMBERS = {name: number for number, name in enumerate(STATES)}
ENUMERATORS = {"cur_qp_state": STATE_NUMBERS, "path_mtu": MTUS, "path_mig_state": MIGRATIONS}
MASK = {**ATTR, UNKNOWN: NO_ATTR}


def put_gid(structure: Any, text: str) -> None:
    """Set the GID that an address leads to."""
    gid = bytes.fromhex(text)
    if len(gid) != 16:
        raise Errno("EINVAL")
    structure.ah_attr.grh.dgid[:] = struct.unpack("=QQ", gid)


class Route(c.Structure):
    """A struct ibv_ah_attr in the place that it has in struct ibv_qp_attr."""

    _fields_ = [("ah_attr", AhAttr)]


class Pairs(Events):
    """Queue pairs and the ways to them."""

    def verb_create_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_qp."""
        init = QpInitAttr(qp_type=enumerator(args.get("qp_type", "RC"), QP_TYPES))
        init.send_cq, init.recv_cq = (address_of(self._find(self._cqs, args[name])) for name in ("send_cq", "recv_cq"))
        if args.get("srq"):
            init.srq = self._find(self._srqs, args["srq"])
        init.cap.max_send_sge = init.cap.max_recv_sge = 2
        for name in CAPS:
            if name in args:
                put(init.cap, name, args[name])
        init.sq_sig_all = int(args.get("sq_sig_all", False))
        pair = self.make_qp(self._find(self._pds, args["pd"]), init)
        self._by_number[pair.number] = pair
        told = [name for name in CAPS if name in args or name != "max_inline_data"]
        return {
            "qp": self._new(self._qps, pair),
            "qp_num": pair.number,
            **{f"{name}_actual": getattr(pair.caps, name) for name in told},
        }

    def make_qp(self, pd: Any, init: QpInitAttr) -> Pair:
        """ibv_create_qp."""
        c.set_errno(0)
        qp = made(self._library.ibv_create_qp(pd, c.byref(init)))
        self._serial += 1
        return Pair(qp, name_of(init.qp_type, QP_TYPES), init.cap, self._serial)

    def verb_destroy_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_qp."""
        pair: Pair = self._find(self._qps, args["qp"])
        done = self._destroy(self._qps, args["qp"], lambda pair: int(self._library.ibv_destroy_qp(pair.pointer)))
        self._busy = True  # whoever sends to it gets no more answers
        if self._by_number.get(pair.number) is pair:
            del self._by_number[pair.number]
        return done

    # -- states ------------------------------------------------------------------------------------

    def verb_modify_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_modify_qp."""
        pair = self._find(self._qps, args["qp"])
        peer = self._peer(args)
        if args["state"] not in (*STATES, UNKNOWN):
            raise Errno("EINVAL")
        self.move(pair, args["state"], peer, access_bits(args.get("access", ())), args)
        return {}

    def _peer(self, args: Mapping[str, Any]) -> Pair | Address | None:
        """The other end: a queue pair here or elsewhere."""
        if "remote" in args:
            return Address.parse(args["remote"])
        return self._find(self._qps, args["peer"]) if args.get("peer") else None

    def address(self, pair: Pair) -> Address:
        """Where a queue pair is to be found."""
        opened = self.opened
        reads = min(8, opened.attr.max_qp_rd_atom)
        return Address(pair.number, pair.first_psn, opened.port.lid, opened.port.active_mtu, reads, opened.gid)

    def verb_qp_address(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Tell it to the agent of the peer."""
        return {"address": str(self.address(self._find(self._qps, args["qp"])))}

    def move(
        self, pair: Pair, state: str, peer: Pair | Address | None, access: int, given: Mapping[str, Any] | None = None
    ) -> None:
        """ibv_modify_qp with what the step requires, or with the attributes that `given` names in its mask."""
        given = given or {}
        attr = self._usual(pair, peer)
        attr.qp_state = enumerator(state, STATE_NUMBERS)
        attr.qp_access_flags = access
        self._replace(attr, given)
        mask = bits(given["mask"], MASK) if "mask" in given else self._required(pair, state, peer, given)
        if mask & ATTR["CUR_STATE"] and "cur_qp_state" not in given:
            attr.cur_qp_state = self._queried(pair, ATTR["STATE"])[0].qp_state
        c.set_errno(0)
        succeed(self._library.ibv_modify_qp(pair.pointer, c.byref(attr), mask))
        self._busy = True
        if mask & ATTR["DEST_QPN"]:
            pair.peer = peer or self._by_number.get(attr.dest_qp_num)
        elif state == "RTR" and mask & ATTR["STATE"]:
            pair.peer = peer
        if mask & ATTR["RNR_RETRY"]:
            pair.rnr_retry = attr.rnr_retry
        if state == "RESET" and mask & ATTR["STATE"]:
            pair.sends = pair.waited = 0

    def _required(self, pair: Pair, state: str, peer: Pair | Address | None, given: Mapping[str, Any]) -> int:
        """The mask of a step: what it requires."""
        mask = ATTR["STATE"]
        # A step within RTS, or back to it, takes none of what the step from RTR requires.
        if not (state == "RTS" and self._state(pair) in ("RTS", "SQD", "SQE")):
            mask |= bits(REQUIRED[pair.kind].get(state, ()), ATTR)
        if state == "RTR" and peer is None and "dest_qp_num" not in given:
            mask &= ~ATTR["DEST_QPN"]
        return mask

    def _usual(self, pair: Pair, peer: Pair | Address | None) -> QpAttr:
        """Attributes that every step may take its own from."""
        attr, opened = QpAttr(), self.opened
        known = peer or pair.peer or pair  # the step to RTS names no peer
        there = known if isinstance(known, Address) else self.address(known)
        attr.port_num, attr.qkey = opened.port_number, QKEY
        attr.path_mtu, attr.min_rnr_timer = min(there.mtu, opened.port.active_mtu), 12
        attr.max_rd_atomic = min(there.reads, opened.attr.max_qp_init_rd_atom)
        attr.max_dest_rd_atomic = min(8, opened.attr.max_qp_rd_atom)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = TIMEOUT, RETRIES, RNR_RETRIES_ENDLESS
        attr.sq_psn = pair.first_psn
        if peer is not None:
            attr.dest_qp_num, attr.rq_psn = there.number, there.first_psn
        attr.ah_attr = attr.alt_ah_attr = self._route(there)
        attr.alt_port_num, attr.alt_timeout = opened.port_number, TIMEOUT
        attr.cap = pair.caps
        return attr

    def _route(self, there: Address) -> AhAttr:
        """The way to another port."""
        opened, route = self.opened, AhAttr()
        route.port_num, route.dlid = opened.port_number, there.lid
        route.is_global = int(opened.ethernet or there.lid == 0)
        route.grh.sgid_index, route.grh.hop_limit = opened.gid_index, 64
        route.grh.dgid[:] = struct.unpack("=QQ", there.gid)
        return route

    @staticmethod
    def _replace(attr: Any, given: Mapping[str, Any]) -> None:
        """Put in the attributes that the program gives."""
        for name, place in PLACES.items():
            if name not in given:
                continue
            if name == "dgid":
                put_gid(attr, given[name])
            elif name in ENUMERATORS:
                put(attr, place, enumerator(given[name], ENUMERATORS[name]))
            else:
                put(attr, place, int(given[name]))

    def verb_query_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_query_qp, for the state or for what the mask names."""
        pair = self._find(self._qps, args["qp"])
        if "mask" not in args:
            return {"state": self._state(pair)}
        mask = bits(args["mask"], MASK)
        attr, init = self._queried(pair, mask | ATTR["STATE"])
        out: dict[str, Any] = {"state": name_of(attr.qp_state, STATES), "qp_type": name_of(init.qp_type, QP_TYPES)}
        out["sq_sig_all"], out["sq_draining"] = bool(init.sq_sig_all), bool(attr.sq_draining)
        if mask & ATTR["ACCESS_FLAGS"]:
            out["access"] = flags_in(attr.qp_access_flags, ACCESS)
        for bit in flags_in(mask, {name: ATTR[name] for name in MEMBERS}):
            for name, place in MEMBERS[bit].items():
                out[name] = self._shown(name, take(attr, place))
        return out

    @staticmethod
    def _shown(name: str, value: Any) -> Any:
        if name == "dgid":
            return struct.pack("=QQ", *value).hex()
        if name in ENUMERATORS:
            return name_of(value, ENUMERATORS[name])
        return bool(value) if name == "is_global" else value

    def _queried(self, pair: Pair, mask: int) -> tuple[QpAttr, QpInitAttr]:
        attr, init = QpAttr(), QpInitAttr()
        c.set_errno(0)
        succeed(self._library.ibv_query_qp(pair.pointer, c.byref(attr), mask, c.byref(init)))
        return attr, init

    def _state(self, pair: Pair) -> str:
        return name_of(self._queried(pair, ATTR["STATE"])[0].qp_state, STATES)

    # -- address handles ---------------------------------------------------------------------------

    def verb_create_ah(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_ah."""
        pd, peer, opened = self._find(self._pds, args["pd"]), self._peer(args), self.opened
        own = Address(0, 0, opened.port.lid, opened.port.active_mtu, 0, opened.gid)
        route = Route(self._route(peer if isinstance(peer, Address) else own))
        self._replace(route, {name: args[name] for name in ROUTE if name in args})
        route.ah_attr.port_num = narrow(args.get("port_num", opened.port_number), 8)
        c.set_errno(0)
        return {"ah": self._new(self._ahs, made(self._library.ibv_create_ah(pd, c.byref(route.ah_attr))))}

    def verb_destroy_ah(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_ah."""
        return self._end(self._ahs, args["ah"], self._library.ibv_destroy_ah)
