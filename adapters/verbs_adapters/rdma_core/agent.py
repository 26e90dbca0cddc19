"""The rdma-core agent: verbs calls of the harness, made with the target's own libibverbs.

This one file is all that the target needs, besides python3 (3.8 or newer) and libibverbs with the provider of
its device.  It speaks the protocol of docs/adapter-protocol.md on standard input and output.

Theory of operation
-------------------
*Two processes.*  The supervisor never opens a device.  For each `reset` it forks a worker, which opens the
device, reads requests and writes replies itself (so a call costs no detour), and ends when it meets the next
`reset`, handing back what it has read and not answered.  All objects are the worker's, so its end frees them:
nothing of one program reaches the next one, and nothing is left behind after a kill.  The worker notes in
shared memory which request it is in.  If a call blocks, or the worker dies in it, the supervisor answers that
request with a trouble and lives on.

*C, not pyverbs.*  The calls go to libibverbs through ctypes.  pyverbs differs between releases, turns errnos
into exceptions, closes children before their parent, and keeps a copy of the state; what is judged here is the
device and its driver.  The structures below are those of <infiniband/verbs.h>, whose layout is ABI; a test
compares them with the header.  Posting and polling are pointers in `struct ibv_context`, as for any C program.

*Errnos as they came.*  A verb answers with what the library returned or left in errno.  EINVAL is the agent's own
answer only where no C call can be made: a handle that names nothing, a number too wide for its C type, an
unknown enumerator; EOPNOTSUPP where libibverbs has no such verb or opcode.

*Time.*  The agent has two queue pairs of its own.  How fast a message between them is acknowledged is measured
once, and `settle` waits ten times as long; then it sends some more messages there, which take their turn behind
what the device has to do, however slow the machine is just then.  Where a send cannot be answered because the
peer is not ready, it waits until the retries must be used up.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes as c
import errno
import json
import mmap
import os
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

PROTOCOL = "1.1"
CONTRACT = "1.0"
VERSION = "1.0"
MAX_LINE = 1 << 20

# -- names and numbers of <infiniband/verbs.h> ---------------------------------------------------------

STATES = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
UNKNOWN, NO_STATE = "UNKNOWN", 1000
"""The contract's name for a state that the header does not have, and the number that is passed for it."""

STATUSES = """
    SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR
    LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR
    LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR INV_EEC_STATE_ERR FATAL_ERR
    RESP_TIMEOUT_ERR GENERAL_ERR TM_ERR TM_RNDV_INCOMPLETE
""".split()  # noqa: SIM905 - a table reads better than a column
OPCODES = {"RDMA_WRITE": 0, "SEND": 2, "RDMA_READ": 4, "LOCAL_INV": 7, "SEND_WITH_INV": 9}
WC_OPCODES = {0: "SEND", 1: "RDMA_WRITE", 2: "RDMA_READ", 6: "LOCAL_INV", 128: "RECV"}
ACCESS = {"LOCAL_WRITE": 1, "REMOTE_WRITE": 2, "REMOTE_READ": 4}
FENCE, SIGNALED = 1, 2
WC_WITH_INV = 8
QPT_RC = 2
LINK_ETHERNET = 2
TRANSPORT_IWARP = 1
PORT_ACTIVE = 4
EVENTS = """
    CQ_ERR QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG PATH_MIG_ERR DEVICE_FATAL
    PORT_ACTIVE PORT_ERR LID_CHANGE PKEY_CHANGE SM_CHANGE SRQ_ERR SRQ_LIMIT_REACHED QP_LAST_WQE_REACHED
    CLIENT_REREGISTER GID_CHANGE WQ_FATAL
""".split()  # noqa: SIM905 - a table reads better than a column
QP_EVENTS = [name for name in EVENTS if name.startswith(("QP_", "COMM_", "SQ_", "PATH_"))]

ATTR = {  # enum ibv_qp_attr_mask
    "STATE": 1 << 0,
    "ACCESS_FLAGS": 1 << 3,
    "PKEY_INDEX": 1 << 4,
    "PORT": 1 << 5,
    "AV": 1 << 7,
    "PATH_MTU": 1 << 8,
    "TIMEOUT": 1 << 9,
    "RETRY_CNT": 1 << 10,
    "RNR_RETRY": 1 << 11,
    "RQ_PSN": 1 << 12,
    "MAX_QP_RD_ATOMIC": 1 << 13,
    "MIN_RNR_TIMER": 1 << 15,
    "SQ_PSN": 1 << 16,
    "MAX_DEST_RD_ATOMIC": 1 << 17,
    "DEST_QPN": 1 << 20,
}
REQUIRED = {
    "INIT": ("PKEY_INDEX", "PORT", "ACCESS_FLAGS"),
    "RTR": ("AV", "PATH_MTU", "DEST_QPN", "RQ_PSN", "MAX_DEST_RD_ATOMIC", "MIN_RNR_TIMER"),
    "RTS": ("SQ_PSN", "TIMEOUT", "RETRY_CNT", "RNR_RETRY", "MAX_QP_RD_ATOMIC"),
}
"""What a step to each state requires, for a reliable connection."""

TIMEOUT, RETRIES = 15, 5
"""Local ACK timeout (4.096 us * 2**15 = 134 ms) and retry count, which is not 7: soft-RoCE never gives up then."""

RETRIES_END = 4 * (RETRIES + 1) * 4.096e-6 * 2**TIMEOUT
"""Seconds after which retries must have ended: a timer may take up to four times its value (IBTA 9.7.6.1.3)."""

UNMEASURED = 0.05
"""Seconds of quiet that `settle` waits if the device does not carry the agent's own messages."""


# -- structures of <infiniband/verbs.h> ----------------------------------------------------------------


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


class Sge(c.Structure):
    """struct ibv_sge."""

    _fields_ = [("addr", c.c_uint64), ("length", c.c_uint32), ("lkey", c.c_uint32)]


class SendWr(c.Structure):
    """struct ibv_send_wr; of its unions the members that the contract uses."""

    _fields_ = [
        ("wr_id", c.c_uint64),
        ("next", c.c_void_p),
        ("sg_list", c.POINTER(Sge)),
        ("num_sge", c.c_int),
        ("opcode", c.c_int),
        ("send_flags", c.c_uint),
        ("invalidate_rkey", c.c_uint32),
        ("remote_addr", c.c_uint64),
        ("rkey", c.c_uint32),
        ("rest_of_the_unions", c.c_uint64 * 9),
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
    """struct ibv_wc."""

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
_OP_NAMES = """
    query_device query_port alloc_pd dealloc_pd reg_mr rereg_mr dereg_mr alloc_mw bind_mw dealloc_mw
    create_cq poll_cq req_notify_cq cq_event resize_cq destroy_cq create_srq modify_srq query_srq
    destroy_srq post_srq_recv create_qp query_qp modify_qp destroy_qp post_send post_recv create_ah
    destroy_ah attach_mcast detach_mcast async_event
""".split()  # noqa: SIM905 - a table reads better than a column
_OP_TYPES: dict[str, Any] = {"poll_cq": _POLL, "post_send": _POST, "post_recv": _POST}


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
    "ibv_sge": Sge,
    "ibv_send_wr": SendWr,
    "ibv_recv_wr": RecvWr,
    "ibv_wc": Wc,
    "ibv_async_event": AsyncEvent,
    "ibv_context": Context,
}
"""The structures by their names in C, for the test that compares them with the header."""

_LIBRARY: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ibv_get_device_list": (c.c_void_p, (c.POINTER(c.c_int),)),
    "ibv_free_device_list": (None, (c.c_void_p,)),
    "ibv_get_device_name": (c.c_char_p, (c.c_void_p,)),
    "ibv_open_device": (c.c_void_p, (c.c_void_p,)),
    "ibv_query_device": (c.c_int, (c.c_void_p, c.POINTER(DeviceAttr))),
    "ibv_query_port": (c.c_int, (c.c_void_p, c.c_uint8, c.POINTER(PortAttr))),
    "ibv_query_gid": (c.c_int, (c.c_void_p, c.c_uint8, c.c_int, c.c_void_p)),
    "ibv_alloc_pd": (c.POINTER(Pd), (c.c_void_p,)),
    "ibv_dealloc_pd": (c.c_int, (c.c_void_p,)),
    "ibv_reg_mr": (c.POINTER(Mr), (c.c_void_p, c.c_void_p, c.c_size_t, c.c_int)),
    "ibv_dereg_mr": (c.c_int, (c.c_void_p,)),
    "ibv_create_cq": (c.POINTER(Cq), (c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.c_int)),
    "ibv_destroy_cq": (c.c_int, (c.c_void_p,)),
    "ibv_create_qp": (c.POINTER(Qp), (c.c_void_p, c.POINTER(QpInitAttr))),
    "ibv_destroy_qp": (c.c_int, (c.c_void_p,)),
    "ibv_modify_qp": (c.c_int, (c.c_void_p, c.POINTER(QpAttr), c.c_int)),
    "ibv_query_qp": (c.c_int, (c.c_void_p, c.POINTER(QpAttr), c.c_int, c.POINTER(QpInitAttr))),
    "ibv_get_async_event": (c.c_int, (c.c_void_p, c.POINTER(AsyncEvent))),
    "ibv_ack_async_event": (None, (c.POINTER(AsyncEvent),)),
}
"""What is called in libibverbs: results and parameters."""


class Unusable(Exception):
    """The device cannot be used as asked; the text says why and what to do."""


class Misunderstood(Exception):
    """A request that is not of the protocol or of the contract."""


class Errno(Exception):
    """A verb that failed; the errno's name."""


def errno_name(number: int) -> str:
    """The name of an errno, as in the contract."""
    preferred = {errno.EOPNOTSUPP: "EOPNOTSUPP", errno.EAGAIN: "EAGAIN", errno.EDEADLK: "EDEADLK"}
    return preferred.get(number) or errno.errorcode.get(number) or f"E{number}"


def succeed(result: int) -> None:
    """Raise what an int-valued verb failed with: it returns the errno, or -1 and sets it."""
    if result:
        raise Errno(errno_name(result if result > 0 else c.get_errno() or -result))


def made(pointer: Any) -> Any:
    """The object that a verb made; a null pointer is a failure whose reason is in errno."""
    if not pointer:
        raise Errno(errno_name(c.get_errno() or errno.EIO))
    return pointer


def load_library() -> Any:
    """Load libibverbs with its prototypes."""
    try:
        library = c.CDLL("libibverbs.so.1", use_errno=True)
    except OSError as error:
        raise Unusable(
            f"libibverbs cannot be loaded on this machine ({error}). Install it with the provider of the device: "
            "the packages libibverbs1 and ibverbs-providers (Debian, Ubuntu), libibverbs (Fedora, RHEL), or "
            "name another machine with `-o agent='ssh HOST'`."
        ) from error
    for name, (result, parameters) in _LIBRARY.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


# -- the device ----------------------------------------------------------------------------------------


def devices(library: Any) -> list[tuple[str, int]]:
    """The name and the address of each device; the list is never freed, so that they stay valid."""
    count = c.c_int(0)
    c.set_errno(0)
    array = library.ibv_get_device_list(c.byref(count))
    if not array and c.get_errno() not in (0, errno.ENOSYS):  # ENOSYS: the kernel has no ib_uverbs
        raise Unusable(f"the RDMA devices cannot be listed: {os.strerror(c.get_errno())}")
    pointers: Any = c.cast(array, c.POINTER(c.c_void_p)) if array else []
    found = [pointers[i] for i in range(count.value)]
    return [(library.ibv_get_device_name(device).decode(), int(device or 0)) for device in found]


def choose(found: Sequence[tuple[str, int]], wanted: str) -> tuple[str, int]:
    """The device that was asked for, or the only one."""
    names = ", ".join(name for name, _ in found) or "none"
    if not found:
        raise Unusable(
            "no RDMA device on this machine (devices found: none). Load the driver of a device, or make a "
            "software one (`modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0`), or name another machine "
            "with `-o agent='ssh HOST'`."
        )
    if not wanted and len(found) > 1:
        raise Unusable(f"several RDMA devices on this machine; choose one with `-o device=NAME`: {names}.")
    for name, address in found:
        if wanted in ("", name):
            return name, address
    raise Unusable(f"no RDMA device is called `{wanted}`; devices found: {names}. Choose one with `-o device=NAME`.")


class Opened:
    """An open device with what connecting two of its queue pairs takes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.library = load_library()
        self.name, device = choose(devices(self.library), options.device)
        c.set_errno(0)
        address = self.library.ibv_open_device(device)
        if not address:
            why = os.strerror(c.get_errno())
            raise Unusable(
                f"the device {self.name} cannot be opened: {why}. May this user read and write /dev/infiniband/uverbs*?"
            )
        self.context = Context.from_address(address)
        self.address = address
        self.attr = DeviceAttr()
        succeed(self.library.ibv_query_device(address, c.byref(self.attr)))
        if Device.from_address(device).transport_type == TRANSPORT_IWARP:
            raise Unusable(
                f"the device {self.name} is an iWARP device; its queue pairs are connected by rdma_cm, which this "
                "agent cannot do. Choose an InfiniBand or RoCE device."
            )
        self.port = self._port(options.port)
        self.ethernet = self.port.link_layer == LINK_ETHERNET
        self.port_number: int = options.port
        self.gid_index, self.gid = self._gid(options.gid_index)

    def _port(self, number: int) -> PortAttr:
        ports = self.attr.phys_port_cnt
        if not 1 <= number <= ports:
            raise Unusable(f"the device {self.name} has the ports 1 to {ports}, not {number}; see `-o port=NUMBER`.")
        attr = PortAttr()
        succeed(self.library.ibv_query_port(self.address, number, c.byref(attr)))
        if attr.state != PORT_ACTIVE:
            raise Unusable(
                f"port {number} of {self.name} is not active, so nothing can be sent. Bring its network up, or "
                "choose another with `-o port=NUMBER`."
            )
        return attr

    def _gid(self, wanted: int | None) -> tuple[int, bytes]:
        """The index and bytes of the source GID; a fresh RoCE device takes a moment until it has one."""
        until = time.monotonic() + 5.0
        while True:
            table = dict(self._gids())
            if wanted is not None and wanted in table:
                return wanted, table[wanted]
            if wanted is None and table:
                return min(table.items(), key=self._rank)
            if time.monotonic() > until:
                known = ", ".join(map(str, table)) or "none"
                which = "" if wanted is None else f" with index {wanted}"
                raise Unusable(
                    f"port {self.port_number} of {self.name} has no GID{which} (indices found: {known}). Give its "
                    "network interface an address, or see `-o gid_index=NUMBER`."
                )
            time.sleep(0.05)

    def _gids(self) -> Iterator[tuple[int, bytes]]:
        room = (c.c_uint8 * 16)()
        for index in range(min(self.port.gid_tbl_len, 256)):
            if not self.library.ibv_query_gid(self.address, self.port_number, index, room) and any(room):
                yield index, bytes(room)

    def _rank(self, entry: tuple[int, bytes]) -> tuple[bool, bool, int]:
        """RoCE v2 first, of these an IPv4 address, then the lowest index."""
        index, gid = entry
        kind = ""
        with contextlib.suppress(OSError):
            ports = Path("/sys/class/infiniband") / self.name / "ports" / str(self.port_number)
            kind = (ports / "gid_attrs" / "types" / str(index)).read_text(encoding="ascii").strip()
        return kind != "RoCE v2", not gid.startswith(b"\0" * 10 + b"\xff\xff"), index

    def hello(self) -> dict[str, Any]:
        """The contract's Hello."""
        limits = {
            name: getattr(self.attr, name)
            for name in (field[0] for field in DeviceAttr._fields_)
            if name.startswith("max_") and getattr(self.attr, name) >= 0
        }
        return {
            "contract": CONTRACT,
            "name": "rdma-core",
            "version": VERSION,
            "device": self.name,
            "firmware": self.attr.fw_ver.decode("ascii", "replace"),
            "kernel": os.uname().release,
            "api": ["linux-user"],
            "transport": ["roce" if self.ethernet else "ib"],
            "capabilities": [],
            "limits": limits,
        }


# -- the verbs -----------------------------------------------------------------------------------------


class Pair:
    """A queue pair, and what of it decides how long `settle` must wait."""

    def __init__(self, pointer: Any, number: int, caps: QpCap, serial: int) -> None:
        self.pointer = pointer
        self.number = number
        self.caps = caps
        self.first_psn = serial * 4096 & 0xFFFFFF  # apart, so that no late packet of one fits another
        self.peer: Pair | None = None
        self.sends = 0  # posted and not known to be retired
        self.waited = 0  # of these, how many `settle` has given up

    def outstanding(self) -> bool:
        """Whether sends may be outstanding that `settle` has not waited for in vain."""
        return self.sends > self.waited


class Buffer:
    """Memory with an unmapped page behind it.

    The guard is a mapping of an empty file, where there are no pages to be had: PROT_NONE is not enough, since a
    registration for reading may pin pages that the process itself cannot read (FOLL_FORCE in ib_umem_get).
    """

    ALIGN = 1 << 16

    def __init__(self, libc: Any, length: int, empty_file: int) -> None:
        self._libc = libc
        if not 0 < length < 1 << 46:
            raise Errno("EINVAL" if length == 0 else "ENOMEM")
        self.length = length
        used = -(-length // mmap.PAGESIZE) * mmap.PAGESIZE
        self._reserved = used + self.ALIGN + mmap.PAGESIZE
        shared, private, fixed, anonymous = 0x01, 0x02, 0x10, 0x20
        both = mmap.PROT_READ | mmap.PROT_WRITE
        self._start: int = libc.mmap(None, self._reserved, 0, shared, empty_file, 0)
        if self._start == c.c_void_p(-1).value:
            raise Errno(errno_name(c.get_errno()))
        self.addr = -(-self._start // self.ALIGN) * self.ALIGN
        if libc.mmap(self.addr, used, both, private | fixed | anonymous, -1, 0) != self.addr:
            number = c.get_errno()
            self.free()
            raise Errno(errno_name(number))

    def free(self) -> None:
        """Give it back."""
        succeed(self._libc.munmap(self._start, self._reserved))

    def place(self, offset: int, length: int) -> int:
        """The address of a part of it."""
        if offset + length > self.length:
            raise Errno("EINVAL")
        return int(self.addr + offset)


def load_libc() -> Any:
    """The C library with the prototypes of what buffers need."""
    libc = c.CDLL(None, use_errno=True)
    libc.mmap.restype = c.c_void_p
    libc.mmap.argtypes = (c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long)
    libc.munmap.argtypes = (c.c_void_p, c.c_size_t)
    return libc


def narrow(value: int, bits: int) -> int:
    """A number for a C type of so many value bits; no caller could pass a wider one."""
    if value >> bits:
        raise Errno("EINVAL")
    return value


def access_bits(names: Sequence[str]) -> int:
    """Access flags as bits."""
    if not set(names) <= set(ACCESS):
        raise Errno("EINVAL")
    return sum(ACCESS[name] for name in set(names))


class Consumer:
    """The verbs of the contract on one open device."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self._library = opened.library
        self._libc = load_libc()
        self._empty_file = os.memfd_create("guard")
        self._ops = opened.context.ops
        self._handles = 0
        self._serial = 0
        self._buffers: dict[int, Buffer] = {}
        self._pds: dict[int, Any] = {}
        self._mrs: dict[int, Any] = {}
        self._cqs: dict[int, Any] = {}
        self._qps: dict[int, Pair] = {}
        self._by_number: dict[int, Pair] = {}
        self._busy = False
        self._wc = Wc()
        self._wc_at = c.addressof(self._wc)
        self._bad = c.c_void_p()  # some providers write here on failure, others do not
        self._bad_at = c.addressof(self._bad)
        self._clock: Clock | None = None
        self.quiet = 0.0
        self.verbs: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            name[5:]: getattr(self, name) for name in dir(self) if name.startswith("verb_")
        }

    def start_clock(self, quiet: float) -> float:
        """Make the clock that `settle` reads; the quiet time that it needs, measured if that is 0."""
        self._clock = Clock(self)
        self.quiet = quiet or self._clock.measure()
        self._busy = False
        return self.quiet

    def make_pd(self) -> Any:
        """ibv_alloc_pd."""
        return made(self._library.ibv_alloc_pd(self.opened.address))

    def make_cq(self, cqe: int) -> Any:
        """ibv_create_cq."""
        return made(self._library.ibv_create_cq(self.opened.address, cqe, None, None, 0))

    # -- handles -----------------------------------------------------------------------------------

    def _new(self, table: dict[int, Any], thing: Any) -> int:
        self._handles += 1
        table[self._handles] = thing
        return self._handles

    @staticmethod
    def _find(table: dict[int, Any], handle: int) -> Any:
        thing = table.get(handle)
        if thing is None:
            raise Errno("EINVAL")
        return thing

    # -- memory and time ---------------------------------------------------------------------------

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

    def verb_settle(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the device has nothing left to do."""
        if not self._busy:
            return {}
        self._busy = False
        self._pass_time()
        until = time.monotonic() + RETRIES_END
        while time.monotonic() < until:
            if not any(map(self._unanswered, self._qps.values())):
                return {}
            self._pass_time()
        for pair in self._qps.values():
            pair.waited = pair.sends
        return {}

    def _pass_time(self) -> None:
        time.sleep(self.quiet)
        if self._clock is not None:
            try:
                for _ in range(Clock.ROUNDS):
                    self._clock.trip()
            except (Errno, Unusable):  # the device no longer serves us: wall time must do
                self._clock, self.quiet = None, max(self.quiet, UNMEASURED)

    def _unanswered(self, pair: Pair) -> bool:
        """Whether the queue pair may be sending to a peer that does not answer."""
        if not pair.outstanding() or self._state(pair) != "RTS":
            return False
        peer = pair.peer
        return peer is None or peer not in self._qps.values() or self._state(peer) not in ("RTR", "RTS", "SQD", "SQE")

    def events(self) -> Iterator[dict[str, Any]]:
        """The asynchronous events that have come, each acknowledged, lest it block a destroy."""
        poll = select.poll()
        poll.register(self.opened.context.async_fd, select.POLLIN)
        while poll.poll(0):
            event = AsyncEvent()
            if self._library.ibv_get_async_event(self.opened.address, c.byref(event)):
                return
            number = event.event_type
            name = EVENTS[number] if 0 <= number < len(EVENTS) else str(number)
            data = {}
            if name in QP_EVENTS:
                data["qp_num"] = Qp.from_address(event.element).qp_num
            self._library.ibv_ack_async_event(c.byref(event))
            yield {"name": name, "data": data}

    # -- protection domains, regions ---------------------------------------------------------------

    def verb_alloc_pd(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_alloc_pd."""
        pd = self.make_pd()
        return {"pd": self._new(self._pds, pd), "local_dma_lkey": 0}

    def verb_dealloc_pd(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_dealloc_pd."""
        succeed(self._library.ibv_dealloc_pd(self._find(self._pds, args["pd"])))
        del self._pds[args["pd"]]
        return {}

    def verb_reg_mr(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_reg_mr."""
        pd = self._find(self._pds, args["pd"])
        mr = made(self._library.ibv_reg_mr(pd, args["addr"], args["length"], access_bits(args["access"])))
        return {"mr": self._new(self._mrs, mr), "lkey": mr.contents.lkey, "rkey": mr.contents.rkey}

    def verb_dereg_mr(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_dereg_mr."""
        succeed(self._library.ibv_dereg_mr(self._find(self._mrs, args["mr"])))
        del self._mrs[args["mr"]]
        return {}

    # -- completion queues -------------------------------------------------------------------------

    def verb_create_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_cq."""
        cq = self.make_cq(narrow(args["cqe"], 31))
        return {"cq": self._new(self._cqs, cq), "cqe_actual": cq.contents.cqe}

    def verb_destroy_cq(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_cq."""
        succeed(self._library.ibv_destroy_cq(self._find(self._cqs, args["cq"])))
        del self._cqs[args["cq"]]
        return {}

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
        flags = ["WITH_INVALIDATE"] if wc.wc_flags & WC_WITH_INV else []
        return {
            "n": number,
            "wr_id": wc.wr_id,
            "status": STATUSES[wc.status] if 0 <= wc.status < len(STATUSES) else str(wc.status),
            "opcode": WC_OPCODES.get(wc.opcode, str(wc.opcode)),
            "qp_num": wc.qp_num,
            "byte_len": wc.byte_len,
            "wc_flags": flags,
            "invalidate_rkey": wc.invalidated_rkey if flags else 0,
        }

    def _retire(self, wc: Wc) -> None:
        """Note that a send may have ended (on failure nobody says whether it was a send)."""
        pair = self._by_number.get(wc.qp_num)
        if pair is not None and pair.sends and (wc.status or wc.opcode < 128):
            pair.sends -= 1
            pair.waited = min(pair.waited, pair.sends)

    # -- queue pairs -------------------------------------------------------------------------------

    def verb_create_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_create_qp."""
        pair = self.make_qp(
            self._find(self._pds, args["pd"]),
            self._find(self._cqs, args["send_cq"]),
            self._find(self._cqs, args["recv_cq"]),
            (narrow(args["max_send_wr"], 32), narrow(args["max_recv_wr"], 32)),
        )
        self._by_number[pair.number] = pair
        return {
            "qp": self._new(self._qps, pair),
            "qp_num": pair.number,
            "max_send_wr_actual": pair.caps.max_send_wr,
            "max_recv_wr_actual": pair.caps.max_recv_wr,
        }

    def make_qp(self, pd: Any, send_cq: Any, recv_cq: Any, depths: tuple[int, int]) -> Pair:
        """ibv_create_qp."""
        init = QpInitAttr(qp_type=QPT_RC)
        init.send_cq, init.recv_cq = c.addressof(send_cq.contents), c.addressof(recv_cq.contents)
        init.cap.max_send_wr, init.cap.max_recv_wr = depths
        init.cap.max_send_sge = init.cap.max_recv_sge = 2
        qp = made(self._library.ibv_create_qp(pd, c.byref(init)))
        self._serial += 1
        return Pair(qp, qp.contents.qp_num, init.cap, self._serial)

    def verb_destroy_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_destroy_qp."""
        pair: Pair = self._find(self._qps, args["qp"])
        succeed(self._library.ibv_destroy_qp(pair.pointer))
        self._busy = True  # whoever sends to it gets no more answers
        del self._qps[args["qp"]]
        if self._by_number.get(pair.number) is pair:
            del self._by_number[pair.number]
        return {}

    def verb_modify_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_modify_qp."""
        pair = self._find(self._qps, args["qp"])
        peer = self._find(self._qps, args["peer"]) if args.get("peer") else None
        if args["state"] not in (*STATES, UNKNOWN):
            raise Errno("EINVAL")
        self.move(pair, args["state"], peer, access_bits(args.get("access", ())))
        return {}

    def move(self, pair: Pair, state: str, peer: Pair | None, access: int) -> None:
        """ibv_modify_qp with what the step requires."""
        number = NO_STATE if state == UNKNOWN else STATES.index(state)
        attr, mask = QpAttr(qp_state=number), ATTR["STATE"]
        # A step within RTS, or back to it, takes none of what the step from RTR requires.
        if not (state == "RTS" and self._state(pair) in ("RTS", "SQD", "SQE")):
            mask |= sum(ATTR[name] for name in REQUIRED.get(state, ()))
        if state == "RTR" and peer is None:
            mask &= ~ATTR["DEST_QPN"]
        opened = self.opened
        attr.port_num, attr.qp_access_flags = opened.port_number, access
        attr.path_mtu, attr.min_rnr_timer = opened.port.active_mtu, 12
        attr.max_rd_atomic = min(8, opened.attr.max_qp_init_rd_atom)
        attr.max_dest_rd_atomic = min(8, opened.attr.max_qp_rd_atom)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = TIMEOUT, RETRIES, 7
        attr.sq_psn = pair.first_psn
        if peer is not None:
            attr.dest_qp_num, attr.rq_psn = peer.number, peer.first_psn
        attr.ah_attr.port_num, attr.ah_attr.dlid = opened.port_number, opened.port.lid
        attr.ah_attr.is_global = int(opened.ethernet or opened.port.lid == 0)
        attr.ah_attr.grh.sgid_index, attr.ah_attr.grh.hop_limit = opened.gid_index, 64
        attr.ah_attr.grh.dgid[:] = struct.unpack("=QQ", opened.gid)
        succeed(self._library.ibv_modify_qp(pair.pointer, c.byref(attr), mask))
        self._busy = True
        if state == "RTR":
            pair.peer = peer
        if state == "RESET":
            pair.sends = pair.waited = 0

    def verb_query_qp(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_query_qp for the state."""
        return {"state": self._state(self._find(self._qps, args["qp"]))}

    def _state(self, pair: Pair) -> str:
        attr, init = QpAttr(), QpInitAttr()
        succeed(self._library.ibv_query_qp(pair.pointer, c.byref(attr), ATTR["STATE"], c.byref(init)))
        return STATES[attr.qp_state] if 0 <= attr.qp_state < len(STATES) else UNKNOWN

    # -- work requests -----------------------------------------------------------------------------

    def verb_post_send(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_send of one work request."""
        pair = self._find(self._qps, args["qp"])
        opcode = OPCODES.get(args["opcode"])
        if opcode is None:
            raise Errno("EOPNOTSUPP")
        wr = SendWr(wr_id=args["wr_id"], opcode=opcode)
        wr.send_flags = (FENCE if args.get("fence") else 0) | (SIGNALED if args.get("signaled") else 0)
        wr.invalidate_rkey = narrow(args.get("invalidate_rkey", 0), 32)
        wr.remote_addr, wr.rkey = args.get("remote_addr", 0), narrow(args.get("rkey", 0), 32)
        wr.sg_list, wr.num_sge = self._sges(args.get("sg_list", ()))
        c.set_errno(0)
        succeed(self._ops.post_send(pair.pointer, c.addressof(wr), self._bad_at))
        self._busy = True
        pair.sends += 1
        return {}

    def verb_post_recv(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_post_recv of one work request."""
        pair = self._find(self._qps, args["qp"])
        wr = RecvWr(wr_id=args["wr_id"])
        wr.sg_list, wr.num_sge = self._sges(args["sg_list"])
        c.set_errno(0)
        succeed(self._ops.post_recv(pair.pointer, c.addressof(wr), self._bad_at))
        self._busy = True
        return {}

    @staticmethod
    def _sges(items: Sequence[Mapping[str, int]]) -> tuple[Any, int]:
        array = (Sge * len(items))()
        for place, item in zip(array, items):  # noqa: B905 - `strict` is of Python 3.10
            place.addr, place.length, place.lkey = item["addr"], narrow(item["length"], 32), narrow(item["lkey"], 32)
        return c.cast(array, c.POINTER(Sge)) if items else None, len(items)


class Clock:
    """The device's own pace: two queue pairs of the agent that talk to each other when time is to pass."""

    ROUNDS = 4

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._ops = consumer.opened.context.ops
        self._pd = consumer.make_pd()
        self._cq = consumer.make_cq(16)
        self._one, self._other = (consumer.make_qp(self._pd, self._cq, self._cq, (8, 8)) for _ in range(2))
        for state in ("INIT", "RTR", "RTS"):
            for pair, peer in ((self._one, self._other), (self._other, self._one)):
                consumer.move(pair, state, peer, 0)

    def trip(self) -> None:
        """A message and its acknowledgement; Unusable if the two cannot talk."""
        recv, send, wc = RecvWr(), SendWr(opcode=OPCODES["SEND"], send_flags=SIGNALED), Wc()
        bad = c.c_void_p()
        succeed(self._ops.post_recv(self._other.pointer, c.addressof(recv), c.addressof(bad)))
        succeed(self._ops.post_send(self._one.pointer, c.addressof(send), c.addressof(bad)))
        left, until = 2, time.monotonic() + RETRIES_END
        while left:
            if self._ops.poll_cq(self._cq, 1, c.addressof(wc)) == 1:
                if wc.status:
                    raise Unusable(STATUSES[wc.status])
                left -= 1
            elif time.monotonic() > until:
                raise Unusable("no completion")
            else:
                time.sleep(0)

    def measure(self) -> float:
        """Seconds of quiet that show that nothing is left to do: ten times the fastest of some round trips."""
        fastest = 1.0
        for _ in range(self.ROUNDS):
            began = time.perf_counter()
            self.trip()
            fastest = min(fastest, time.perf_counter() - began)
        return max(0.001, 10 * fastest)


# -- lines ---------------------------------------------------------------------------------------------

TOO_LONG = b"\xff"
"""Stands for a line that was longer than allowed and was skipped; it is no JSON."""


class Wire:
    """Lines on two file descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self.pending = bytearray()

    def read(self) -> bytes | None:
        """The next line, None at the end of input.  What follows the last newline is no line."""
        skipped, scanned = False, 0
        while True:
            end = self.pending.find(b"\n", scanned)
            if end >= 0:
                line = bytes(self.pending[:end])
                del self.pending[: end + 1]
                return TOO_LONG if skipped or end > MAX_LINE else line
            scanned = len(self.pending)
            if scanned > MAX_LINE:
                skipped, scanned = True, 0
                self.pending.clear()
            data = os.read(self._source, 1 << 16)
            if not data:
                return None
            self.pending += data

    def write(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_LINE + 1:
            said = f"the answer is {len(line)} bytes long, and a line has at most {MAX_LINE}; ask for less at a time"
            line = json.dumps({"id": message["id"], "trouble": trouble("garbage", "glue", said)}).encode() + b"\n"
        view = memoryview(line)
        while view:
            view = view[os.write(self._sink, view) :]


def trouble(kind: str, whose: str, message: str, evidence: str = "") -> dict[str, str]:
    """The contract's Trouble."""
    return {"kind": kind, "whose": whose, "message": message, "evidence": evidence}


def parse(line: bytes) -> dict[str, Any]:
    """The request that a line holds."""
    if line == TOO_LONG:
        raise Misunderstood(f"a line is longer than {MAX_LINE} bytes")
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misunderstood(f"a line is not JSON: {error}") from error
    if not isinstance(request, dict) or type(request.get("id")) is not int or request["id"] < 0:
        raise Misunderstood("a request is an object with a number `id`")
    return request


class Marker:
    """What the worker is doing, in memory that it shares with the supervisor.

    Nothing locks it: the supervisor believes only what it has seen unchanged for a long time.
    """

    FORMAT = struct.Struct("=qQd40s")

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, mmap.PAGESIZE)
        self._count = 0
        self.quiet = 0.0
        self.clear()

    def enter(self, number: int, what: str) -> None:
        """A request is being worked on."""
        self._count += 1
        self.FORMAT.pack_into(self._map, 0, number, self._count, self.quiet, what.encode()[:40])

    def clear(self) -> None:
        """It was answered."""
        self._count += 1
        self.FORMAT.pack_into(self._map, 0, -1, self._count, self.quiet, b"")

    def read(self) -> tuple[int, int, str]:
        """The request's id (-1 if none), the count of changes, and what; notes the worker's measure of quiet."""
        number, count, self.quiet, what = self.FORMAT.unpack_from(self._map, 0)
        return number, count, what.rstrip(b"\0").decode("utf-8", "replace")


# -- the worker ----------------------------------------------------------------------------------------

DONE, HANDED_OVER = 10, 11
"""How a worker ends: the conversation is over, or the supervisor is to go on with it."""


class Worker:
    """Answers requests on one open device, until a reset."""

    def __init__(self, wire: Wire, marker: Marker, options: argparse.Namespace) -> None:
        self._wire, self._marker = wire, marker
        self._options = options
        self._consumer: Consumer | None = None
        self._opened: Opened | None = None
        self._why: str | None = None
        self._ready = False

    def run(self) -> int:
        """Answer until the input ends, `close`, or a second `reset`; how that was."""
        while True:
            line = self._wire.read()
            if line is None:
                return DONE
            if not line.strip():
                continue
            try:
                request = parse(line)
            except Misunderstood as error:
                self._wire.write({"id": 0, "trouble": trouble("garbage", "glue", str(error))})
                continue
            if request.get("op") == "reset" and self._ready:
                self._wire.pending[:0] = line + b"\n"
                return HANDED_OVER
            self._marker.enter(request["id"], str(request.get("verb", request.get("op"))))
            reply = self._reply(request)
            for event in list(self._events(request)):
                self._wire.write({"id": 0, "event": event})
            self._marker.clear()
            self._wire.write({"id": request["id"], **reply})
            if request.get("op") == "close":
                return DONE

    def _events(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if self._consumer is not None and request.get("verb", "settle") == "settle":
            yield from self._consumer.events()

    def _reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._answer(request)
        except Misunderstood as error:
            return {"trouble": trouble("garbage", "glue", str(error))}
        except Unusable as error:
            return {"trouble": trouble("crash", "glue", str(error))}
        except Exception as error:
            said = f"the agent failed: {type(error).__name__}: {error}"
            return {"trouble": trouble("crash", "glue", said, traceback.format_exc())}

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        op = request.get("op")
        if op == "hello":
            if str(request.get("protocol")).partition(".")[0] != PROTOCOL.partition(".")[0]:
                raise Misunderstood(f"this agent speaks version {PROTOCOL}, not {request.get('protocol')}")
            self._open()
            assert self._opened is not None
            return {"protocol": PROTOCOL, "hello": self._opened.hello()}
        if op == "reset":
            if type(request.get("seed")) is not int:
                raise Misunderstood("a reset has a number `seed`")
            self._open()
            self._ready = True
            return {"ok": True}
        if op == "call":
            return self._perform(request)
        if op == "batch":
            return self._perform_all(request)
        if op == "close":
            return {"ok": True}
        raise Misunderstood(f"`{op}` is not an operation; known: hello, reset, call, batch, close")

    def _open(self) -> None:
        if self._opened is not None:
            return
        if self._why is not None:
            raise Unusable(self._why)
        try:
            self._opened = Opened(self._options)
            self._consumer = Consumer(self._opened)
        except Unusable as error:
            self._why = str(error)
            raise
        except Errno as error:
            self._why = f"the device cannot be queried: {error}"
            raise Unusable(self._why) from error
        try:
            self._marker.quiet = self._consumer.start_clock(self._options.quiet or self._marker.quiet)
        except (Errno, Unusable) as error:
            self._consumer.quiet = self._marker.quiet = UNMEASURED
            self._warn(self._opened, error)

    def _warn(self, opened: Opened, error: Exception) -> None:
        gid = ":".join(opened.gid.hex()[i : i + 4] for i in range(0, 32, 4))
        print(
            f"agent: two queue pairs of {opened.name} cannot talk to each other ({error}) through port "
            f"{opened.port_number}, GID index {opened.gid_index} ({gid}). If every transfer fails, give another "
            "`-o gid_index=NUMBER`.",
            file=sys.stderr,
            flush=True,
        )

    def _perform_all(self, request: Mapping[str, Any]) -> dict[str, Any]:
        calls = request.get("calls")
        if not isinstance(calls, list):
            raise Misunderstood("a batch has a list `calls`")
        outcomes: list[dict[str, Any]] = []
        for call in calls:
            if not isinstance(call, dict):
                raise Misunderstood("each of `calls` is an object")
            try:
                self._marker.enter(request["id"], str(call.get("verb")))
                outcomes.append(self._perform(call))
            except (Misunderstood, Unusable) as error:
                outcomes.append({"trouble": trouble("garbage", "glue", str(error))})
                break
        return {"batch": outcomes}

    def _perform(self, call: Mapping[str, Any]) -> dict[str, Any]:
        verb, args = call.get("verb"), call.get("args")
        if not isinstance(verb, str) or not isinstance(args, dict):
            raise Misunderstood("a call has a text `verb` and an object `args`")
        if not self._ready:
            raise Misunderstood(f"`{verb}` came before the first reset")
        assert self._consumer is not None
        function = self._consumer.verbs.get(verb)
        if function is None:
            return {"answer": {"result": "EOPNOTSUPP"}}
        try:
            return {"answer": {"result": "0", "out": function(args)}}
        except Errno as error:
            return {"answer": {"result": str(error)}}
        except (KeyError, TypeError, ValueError, AttributeError, c.ArgumentError) as error:
            raise Misunderstood(f"`{verb}` cannot be called with these arguments: {error!r}") from error


# -- the supervisor ------------------------------------------------------------------------------------

GLANCE = 0.25
"""Seconds between two looks at what the worker is doing."""


class Supervisor:
    """Starts a worker for each reset, and answers for one that cannot."""

    def __init__(self, wire: Wire, options: argparse.Namespace) -> None:
        self._wire, self._options = wire, options
        self._marker = Marker()

    def run(self) -> None:
        """Go on until the conversation is over."""
        with contextlib.suppress(Unusable):  # told by the first worker; here it only warms up
            devices(load_library())
        while True:
            ours, theirs = os.pipe()
            self._marker.clear()
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                self._work(theirs)
            os.close(theirs)
            status = self._watch(pid, ours)
            os.close(ours)
            if status == DONE:
                return

    def _work(self, sink: int) -> NoReturn:
        """The life of the worker."""
        status = 1
        try:
            c.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            status = Worker(self._wire, self._marker, self._options).run()
            if status == HANDED_OVER:
                view = memoryview(bytes(self._wire.pending))
                while view:
                    view = view[os.write(sink, view) :]
        except BrokenPipeError:
            status = DONE
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _watch(self, pid: int, source: int) -> int:
        """Wait for the worker's end; answer for it if it cannot.  The worker's status."""
        taken = bytearray()
        poll = select.poll()
        poll.register(source, select.POLLIN)
        seen, since = self._marker.read(), time.monotonic()
        while True:
            if poll.poll(GLANCE * 1000):
                data = os.read(source, 1 << 16)
                if not data:
                    break
                taken += data
                continue
            now = self._marker.read()
            if now != seen:
                seen, since = now, time.monotonic()
            elif now[0] >= 0 and time.monotonic() - since > self._options.deadline:
                return self._hung(pid, now[0], now[2])
        number, _, what = self._marker.read()
        _, status = os.waitpid(pid, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        if code in (DONE, HANDED_OVER):
            self._wire.pending[:] = taken
            return code
        self._wire.pending.clear()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        whose = "backend" if code < 0 else "glue"
        said = f"the process that made the calls {how} during `{what}`: the library or the driver is at fault"
        self._tell(number, trouble("crash", whose, said if what else f"the process that makes the calls {how}"))
        return code

    def _hung(self, pid: int, number: int, what: str) -> int:
        """A call does not return: gather what can be known, and kill the worker."""
        evidence = []
        for name in ("wchan", "syscall", "stack", "status"):
            with contextlib.suppress(OSError):
                text = (Path("/proc") / str(pid) / name).read_text(encoding="utf-8", errors="replace")
                evidence.append(f"/proc/PID/{name}: {text[:2000].strip()}")
        os.kill(pid, signal.SIGKILL)
        stuck = not self._gone(pid, 3.0)
        self._wire.pending.clear()
        said = f"`{what}` did not return within {self._options.deadline:g} s"
        if stuck:
            said += "; the process cannot be killed, it is stuck in the kernel"
        self._tell(number, trouble("hang", "backend", said, "\n".join(evidence)))
        return 1

    @staticmethod
    def _gone(pid: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
            time.sleep(0.02)
        return False

    def _tell(self, number: int, what: Mapping[str, str]) -> None:
        self._wire.write({"id": max(number, 0), "trouble": what})


def take_stdio() -> Wire:
    """Standard input and output for the protocol alone; what a library prints goes to standard error."""
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Wire(source, sink)


def main() -> None:
    """Serve until the input ends or the harness closes."""
    parser = argparse.ArgumentParser(description="Verbs calls for verbspec, on standard input and output.")
    parser.add_argument("--device", default="", help="the RDMA device; may be left out if there is only one")
    parser.add_argument("--port", type=int, default=1)
    parser.add_argument("--gid-index", type=int, default=None, help="found if left out")
    parser.add_argument("--deadline", type=float, default=8.0, help="seconds that one call may take")
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds that settle waits; measured if left out")
    options = parser.parse_args()
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more
        Supervisor(take_stdio(), options).run()


if __name__ == "__main__":
    main()
