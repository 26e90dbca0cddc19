"""Structures of <infiniband/verbs.h>: their layout is ABI, and a test compares it with the header."""

from __future__ import annotations

import ctypes as c
from typing import Any

from verbs_adapters.rdma_core.agent.names import words


def fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    """Some members of one type."""
    return [(name, kind) for name in names.split()]


class DeviceAttr(c.Structure):
    """struct ibv_device_attr."""

    _fields_ = [
        ("fw_ver", c.c_char * 64),
        ("node_guid", c.c_uint64),
        ("sys_image_guid", c.c_uint64),
        ("max_mr_size", c.c_uint64),
        ("page_size_cap", c.c_uint64),
        *fields(c.c_uint32, "vendor_id vendor_part_id hw_ver"),
        *fields(c.c_int, "max_qp max_qp_wr"),
        ("device_cap_flags", c.c_uint),
        *fields(c.c_int, "max_sge max_sge_rd max_cq max_cqe max_mr max_pd"),
        *fields(c.c_int, "max_qp_rd_atom max_ee_rd_atom max_res_rd_atom"),
        *fields(c.c_int, "max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap"),
        *fields(c.c_int, "max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp"),
        *fields(c.c_int, "max_mcast_grp max_mcast_qp_attach max_total_mcast_qp_attach"),
        *fields(c.c_int, "max_ah max_fmr max_map_per_fmr max_srq max_srq_wr"),
        ("max_srq_sge", c.c_int),
        ("max_pkeys", c.c_uint16),
        ("local_ca_ack_delay", c.c_uint8),
        ("phys_port_cnt", c.c_uint8),
    ]


class PortAttr(c.Structure):
    """struct ibv_port_attr, up to what every release fills in."""

    _fields_ = [
        *fields(c.c_int, "state max_mtu active_mtu gid_tbl_len"),
        *fields(c.c_uint32, "port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr"),
        *fields(c.c_uint16, "pkey_tbl_len lid sm_lid"),
        *fields(c.c_uint8, "lmc max_vl_num sm_sl subnet_timeout init_type_reply"),
        *fields(c.c_uint8, "active_width active_speed phys_state link_layer flags"),
        ("room_for_later_releases", c.c_uint8 * 64),
    ]


class QpCap(c.Structure):
    """struct ibv_qp_cap."""

    _fields_ = [*fields(c.c_uint32, "max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data")]


class QpInitAttr(c.Structure):
    """struct ibv_qp_init_attr."""

    _fields_ = [
        *fields(c.c_void_p, "qp_context send_cq recv_cq srq"),
        ("cap", QpCap),
        ("qp_type", c.c_int),
        ("sq_sig_all", c.c_int),
    ]


class GlobalRoute(c.Structure):
    """struct ibv_global_route; a GID is aligned as its 64-bit halves."""

    _fields_ = [
        ("dgid", c.c_uint64 * 2),
        ("flow_label", c.c_uint32),
        *fields(c.c_uint8, "sgid_index hop_limit traffic_class"),
    ]


class AhAttr(c.Structure):
    """struct ibv_ah_attr."""

    _fields_ = [
        ("grh", GlobalRoute),
        ("dlid", c.c_uint16),
        *fields(c.c_uint8, "sl src_path_bits static_rate is_global port_num"),
    ]


class QpAttr(c.Structure):
    """struct ibv_qp_attr."""

    _fields_ = [
        *fields(c.c_int, "qp_state cur_qp_state path_mtu path_mig_state"),
        *fields(c.c_uint32, "qkey rq_psn sq_psn dest_qp_num"),
        ("qp_access_flags", c.c_uint),
        ("cap", QpCap),
        ("ah_attr", AhAttr),
        ("alt_ah_attr", AhAttr),
        *fields(c.c_uint16, "pkey_index alt_pkey_index"),
        *fields(c.c_uint8, "en_sqd_async_notify sq_draining max_rd_atomic"),
        *fields(c.c_uint8, "max_dest_rd_atomic min_rnr_timer port_num timeout"),
        *fields(c.c_uint8, "retry_cnt rnr_retry alt_port_num alt_timeout"),
        ("rate_limit", c.c_uint32),
    ]


class Pd(c.Structure):
    """struct ibv_pd."""

    _fields_ = [("context", c.c_void_p), ("handle", c.c_uint32)]


class Mr(c.Structure):
    """struct ibv_mr."""

    _fields_ = [
        *fields(c.c_void_p, "context pd addr"),
        ("length", c.c_size_t),
        *fields(c.c_uint32, "handle lkey rkey"),
    ]


class Cq(c.Structure):
    """struct ibv_cq, its first members."""

    _fields_ = [
        *fields(c.c_void_p, "context channel cq_context"),
        ("handle", c.c_uint32),
        ("cqe", c.c_int),
    ]


class Qp(c.Structure):
    """struct ibv_qp, its first members."""

    _fields_ = [
        *fields(c.c_void_p, "context qp_context pd send_cq recv_cq srq"),
        *fields(c.c_uint32, "handle qp_num"),
    ]


class Mw(c.Structure):
    """struct ibv_mw."""

    _fields_ = [
        *fields(c.c_void_p, "context pd"),
        *fields(c.c_uint32, "rkey handle"),
        ("type", c.c_int),
    ]


class MwBindInfo(c.Structure):
    """struct ibv_mw_bind_info."""

    _fields_ = [
        ("mr", c.c_void_p),
        *fields(c.c_uint64, "addr length"),
        ("mw_access_flags", c.c_uint),
    ]


class MwBind(c.Structure):
    """struct ibv_mw_bind."""

    _fields_ = [("wr_id", c.c_uint64), ("send_flags", c.c_uint), ("bind_info", MwBindInfo)]


class Channel(c.Structure):
    """struct ibv_comp_channel."""

    _fields_ = [("context", c.c_void_p), *fields(c.c_int, "fd refcnt")]


class SrqAttr(c.Structure):
    """struct ibv_srq_attr."""

    _fields_ = fields(c.c_uint32, "max_wr max_sge srq_limit")


class SrqInitAttr(c.Structure):
    """struct ibv_srq_init_attr."""

    _fields_ = [("srq_context", c.c_void_p), ("attr", SrqAttr)]


class Sge(c.Structure):
    """struct ibv_sge."""

    _fields_ = [("addr", c.c_uint64), ("length", c.c_uint32), ("lkey", c.c_uint32)]


class RdmaWr(c.Structure):
    """wr.rdma of struct ibv_send_wr."""

    _fields_ = [("remote_addr", c.c_uint64), ("rkey", c.c_uint32)]


class AtomicWr(c.Structure):
    """wr.atomic of struct ibv_send_wr."""

    _fields_ = [*fields(c.c_uint64, "remote_addr compare_add swap"), ("rkey", c.c_uint32)]


class DatagramWr(c.Structure):
    """wr.ud of struct ibv_send_wr."""

    _fields_ = [("ah", c.c_void_p), *fields(c.c_uint32, "remote_qpn remote_qkey")]


class WrUnion(c.Union):
    """wr of struct ibv_send_wr."""

    _fields_ = [("rdma", RdmaWr), ("atomic", AtomicWr), ("ud", DatagramWr)]


class BindWr(c.Structure):
    """bind_mw of struct ibv_send_wr."""

    _fields_ = [("mw", c.c_void_p), ("rkey", c.c_uint32), ("bind_info", MwBindInfo)]


class SendWr(c.Structure):
    """struct ibv_send_wr; `invalidate_rkey` is also its `imm_data`."""

    _fields_ = [
        ("wr_id", c.c_uint64),
        ("next", c.c_void_p),
        ("sg_list", c.POINTER(Sge)),
        ("num_sge", c.c_int),
        ("opcode", c.c_int),
        ("send_flags", c.c_uint),
        ("invalidate_rkey", c.c_uint32),
        ("wr", WrUnion),
        ("qp_type", c.c_uint32),
        ("bind_mw", BindWr),
    ]


class RecvWr(c.Structure):
    """struct ibv_recv_wr."""

    _fields_ = [
        ("wr_id", c.c_uint64),
        ("next", c.c_void_p),
        ("sg_list", c.POINTER(Sge)),
        ("num_sge", c.c_int),
    ]


class Wc(c.Structure):
    """struct ibv_wc; `invalidated_rkey` is also its `imm_data`."""

    _fields_ = [
        ("wr_id", c.c_uint64),
        ("status", c.c_int),
        ("opcode", c.c_int),
        *fields(c.c_uint32, "vendor_err byte_len invalidated_rkey qp_num src_qp"),
        ("wc_flags", c.c_uint),
        *fields(c.c_uint16, "pkey_index slid"),
        *fields(c.c_uint8, "sl dlid_path_bits"),
    ]


class AsyncEvent(c.Structure):
    """struct ibv_async_event."""

    _fields_ = [("element", c.c_void_p), ("event_type", c.c_int)]


_POLL = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_void_p, use_errno=True)
_POST = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, use_errno=True)
_OP_NAMES = words(
    """
    query_device query_port alloc_pd dealloc_pd reg_mr rereg_mr dereg_mr alloc_mw bind_mw dealloc_mw
    create_cq poll_cq req_notify_cq cq_event resize_cq destroy_cq create_srq modify_srq query_srq
    destroy_srq post_srq_recv create_qp query_qp modify_qp destroy_qp post_send post_recv create_ah
    destroy_ah attach_mcast detach_mcast async_event
    """
)
_OP_TYPES: dict[str, Any] = {
    "poll_cq": _POLL,
    "post_send": _POST,
    "post_recv": _POST,
    "post_srq_recv": _POST,
    "req_notify_cq": c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, use_errno=True),
    "alloc_mw": c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_int, use_errno=True),
    "bind_mw": c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, use_errno=True),
    "dealloc_mw": c.CFUNCTYPE(c.c_int, c.c_void_p, use_errno=True),
}
"""Those that inline functions of the header call, and so we."""


class ContextOps(c.Structure):
    """struct ibv_context_ops."""

    _fields_ = [(name, _OP_TYPES.get(name, c.c_void_p)) for name in _OP_NAMES]


class Context(c.Structure):
    """struct ibv_context, its first members."""

    _fields_ = [
        ("device", c.c_void_p),
        ("ops", ContextOps),
        *fields(c.c_int, "cmd_fd async_fd num_comp_vectors"),
    ]


class Device(c.Structure):
    """struct ibv_device, its first members."""

    _fields_ = [("ops", c.c_void_p * 2), ("node_type", c.c_int), ("transport_type", c.c_int)]


LAYOUT: dict[str, type[c.Structure]] = {
    "ibv_device_attr": DeviceAttr,
    "ibv_port_attr": PortAttr,
    "ibv_qp_init_attr": QpInitAttr,
    "ibv_qp_attr": QpAttr,
    "ibv_ah_attr": AhAttr,
    "ibv_mr": Mr,
    "ibv_cq": Cq,
    "ibv_qp": Qp,
    "ibv_mw": Mw,
    "ibv_mw_bind": MwBind,
    "ibv_mw_bind_info": MwBindInfo,
    "ibv_comp_channel": Channel,
    "ibv_srq_attr": SrqAttr,
    "ibv_srq_init_attr": SrqInitAttr,
    "ibv_sge": Sge,
    "ibv_send_wr": SendWr,
    "ibv_recv_wr": RecvWr,
    "ibv_wc": Wc,
    "ibv_async_event": AsyncEvent,
    "ibv_context": Context,
}
"""The structures by their names in C, for the test that compares them with the header."""
