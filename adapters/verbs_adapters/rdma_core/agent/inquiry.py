"""Verbs that ask the device about itself, and which optional features it has."""

from __future__ import annotations

import contextlib
import ctypes as c
from collections.abc import Iterator, Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.layout import DeviceAttr, PortAttr, QpInitAttr
from verbs_adapters.rdma_core.agent.library import Errno, made, succeed
from verbs_adapters.rdma_core.agent.names import (
    ACCESS,
    ATOMIC_CAPS,
    DEVICE_FLAGS,
    LINK_LAYERS,
    MTUS,
    PORT_STATES,
    QP_TYPES,
    REREG,
    words,
)
from verbs_adapters.rdma_core.agent.regions import Regions
from verbs_adapters.rdma_core.agent.values import address_of, flags_in, name_of, narrow

LIMITS = words(
    """
    max_mr_size max_qp max_qp_wr max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_mw max_ah max_srq max_srq_wr
    max_srq_sge max_qp_rd_atom max_qp_init_rd_atom max_pkeys phys_port_cnt
    """
)
PASSED_ON = words(
    """
    ACCESS_FLAGS ASYNCHRONOUS_EVENTS COMPLETION_CHANNELS IMMEDIATE_DATA QP_ATTRIBUTES REQUEST_LISTS RNR_RETRY SGE_LISTS
    """
)
"""Capabilities of every device under libibverbs: what they name is passed on to it as it came."""


class Inquiry(Regions):
    """What the device says of itself."""

    def verb_query_device(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_query_device."""
        attr = DeviceAttr()
        succeed(self._library.ibv_query_device(self.opened.address, c.byref(attr)))
        return {
            **{name: max(0, getattr(attr, name)) for name in LIMITS},
            "atomic_cap": name_of(attr.atomic_cap, ATOMIC_CAPS),
            "device_cap_flags": attr.device_cap_flags,
        }

    def verb_query_port(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_query_port."""
        attr, number = PortAttr(), narrow(args.get("port_num", self.opened.port_number), 8)
        c.set_errno(0)
        succeed(self._library.ibv_query_port(self.opened.address, number, c.byref(attr)))
        return {
            "state": f"PORT_{name_of(attr.state, PORT_STATES)}",
            "max_mtu": name_of(attr.max_mtu, MTUS),
            "active_mtu": name_of(attr.active_mtu, MTUS),
            "link_layer": name_of(attr.link_layer, LINK_LAYERS),
            **{name: getattr(attr, name) for name in ("lid", "sm_lid", "gid_tbl_len", "pkey_tbl_len", "max_msg_sz")},
        }

    def verb_query_gid(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_query_gid."""
        room = (c.c_uint8 * 16)()
        number = narrow(args.get("port_num", self.opened.port_number), 8)
        index = narrow(args.get("index", self.opened.gid_index), 31)
        c.set_errno(0)
        succeed(self._library.ibv_query_gid(self.opened.address, number, index, room))
        return {"gid": bytes(room).hex()}


class Features:
    """Which capabilities of the contract a device has; what it does not say is tried on objects of the agent's own."""

    def __init__(self, opened: Opened) -> None:
        self._opened, self._library = opened, opened.library

    def found(self) -> list[str]:
        """The capabilities' names."""
        attr = self._opened.attr
        names = flags_in(attr.device_cap_flags, DEVICE_FLAGS)
        names += ["SRQ"] if attr.max_srq > 0 else []
        names += ["ATOMIC"] if attr.atomic_cap else []
        names += PASSED_ON
        with contextlib.suppress(Errno):
            names += self._tried()
        return sorted(names)

    def _tried(self) -> Iterator[str]:
        pd = made(self._library.ibv_alloc_pd(self._opened.address))
        cq = made(self._library.ibv_create_cq(self._opened.address, 2, None, None, 0))
        tries = (("UC", "UC", 0), ("UD", "UD", 0), ("INLINE_DATA", "RC", 1))
        yield from (name for name, kind, inline in tries if self._makes_qp(pd, cq, kind, inline))
        if not self._library.ibv_resize_cq(cq, 4):
            yield "RESIZE_CQ"
        self._library.ibv_destroy_cq(cq)
        if self._changes_regions(pd):
            yield "REREG_MR"
        self._library.ibv_dealloc_pd(pd)

    def _makes_qp(self, pd: Any, cq: Any, kind: str, inline: int) -> bool:
        """Whether there are queue pairs of a type, and with so much inline data."""
        init = QpInitAttr(qp_type=QP_TYPES[kind], send_cq=address_of(cq), recv_cq=address_of(cq))
        init.cap.max_send_wr = init.cap.max_recv_wr = init.cap.max_send_sge = init.cap.max_recv_sge = 1
        init.cap.max_inline_data = inline
        qp = self._library.ibv_create_qp(pd, c.byref(init))
        if qp:
            self._library.ibv_destroy_qp(qp)
        return bool(qp) and init.cap.max_inline_data >= inline

    def _changes_regions(self, pd: Any) -> bool:
        page = c.create_string_buffer(4096)
        mr = self._library.ibv_reg_mr(pd, c.addressof(page), len(page), ACCESS["LOCAL_WRITE"])
        if not mr:
            return False
        done = self._library.ibv_rereg_mr(mr, REREG["CHANGE_ACCESS"], None, None, 0, 0)
        self._library.ibv_dereg_mr(mr)
        return not done
