"""Attributes of queue pairs: which bit of a mask names which, what may be set, and what is set unasked.

Theory of operation
-------------------
A mask names attributes by the bits of ``ibv_qp_attr_mask``; :data:`OF_BIT` gives the attributes of each bit, by the
names of the contract.  :func:`chosen` takes their values from a call, the usual ones for what the call leaves out,
and refuses what does not fit its field or exceeds the device.  Packet sequence numbers have 24 bits and are cut to
them, as the kernel does; nothing else is mended.

The path of a connection is checked as the kernel does it: there is one port, on RoCE an address needs a global route,
and an alternate path needs InfiniBand (``_ib_modify_qp``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.options import MTUS, Settings

PORTS = PKEYS = GIDS = LID = 1
GID = "fe800000000000000002c9fffe000001"
PSN_BITS = 24
CONTROLLED = 1 << 31  # Q_Keys from here on are for the privileged
MIGRATION = ("MIGRATED", "REARM", "ARMED")
ADDRESS = ("dlid", "sl", "sgid_index", "hop_limit", "is_global", "dgid")
CAPS = ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data")

OF_BIT: dict[str, tuple[str, ...]] = {
    "STATE": (),
    "CUR_STATE": ("cur_qp_state",),
    "EN_SQD_ASYNC_NOTIFY": ("en_sqd_async_notify",),
    "ACCESS_FLAGS": ("access",),
    "PKEY_INDEX": ("pkey_index",),
    "PORT": ("port_num",),
    "QKEY": ("qkey",),
    "AV": ADDRESS,
    "PATH_MTU": ("path_mtu",),
    "TIMEOUT": ("timeout",),
    "RETRY_CNT": ("retry_cnt",),
    "RNR_RETRY": ("rnr_retry",),
    "RQ_PSN": ("rq_psn",),
    "MAX_QP_RD_ATOMIC": ("max_rd_atomic",),
    "ALT_PATH": ("alt_port_num", "alt_timeout"),
    "MIN_RNR_TIMER": ("min_rnr_timer",),
    "SQ_PSN": ("sq_psn",),
    "MAX_DEST_RD_ATOMIC": ("max_dest_rd_atomic",),
    "PATH_MIG_STATE": ("path_mig_state",),
    "CAP": CAPS,
    "DEST_QPN": ("dest_qp_num",),
    "RATE_LIMIT": ("rate_limit",),
}

ENUMERATORS: dict[str, tuple[str, ...]] = {"path_mig_state": MIGRATION}

RANGES: dict[str, range] = {
    **dict.fromkeys(("port_num", "alt_port_num"), range(1, PORTS + 1)),
    **dict.fromkeys(("timeout", "alt_timeout", "min_rnr_timer"), range(1 << 5)),
    **dict.fromkeys(("retry_cnt", "rnr_retry"), range(1 << 3)),
    **dict.fromkeys(("qkey", "rate_limit", "rq_psn", "sq_psn"), range(1 << 32)),
    "pkey_index": range(PKEYS),
    "dest_qp_num": range(1 << PSN_BITS),
    "en_sqd_async_notify": range(2),
    "dlid": range(1 << 16),
    "sl": range(1 << 4),
    "hop_limit": range(1 << 8),
    "sgid_index": range(GIDS),
}

USUAL: dict[str, Any] = {
    **dict.fromkeys(("port_num", "alt_port_num"), 1),
    **dict.fromkeys(("timeout", "alt_timeout"), 14),
    **dict.fromkeys(("retry_cnt", "rnr_retry"), 7),
    **dict.fromkeys(("rq_psn", "sq_psn", "pkey_index", "dest_qp_num", "rate_limit", "en_sqd_async_notify"), 0),
    **dict.fromkeys(("dlid", "sl", "sgid_index"), 0),
    **dict.fromkeys(("max_rd_atomic", "max_dest_rd_atomic"), 0),
    "qkey": 0x11111111,
    "path_mtu": "MTU_1024",
    "path_mig_state": "MIGRATED",
    "min_rnr_timer": 12,
    "hop_limit": 64,
    "is_global": True,
    "dgid": GID,
    "access": (),
}
"""What is set where a call does not say."""

UNSET: dict[str, Any] = {
    **{name: type(value)() for name, value in USUAL.items()},
    "path_mtu": "MTU_256",
    "path_mig_state": "MIGRATED",
    "dgid": "00" * 16,
    "access": (),
}
"""What a queue pair has before anything is set."""


@cache
def _usual(bits: frozenset[str], settings: Settings) -> dict[str, Any]:
    """The usual values of what some bits name."""
    most = settings.max_rd_atomic
    usual = {**USUAL, "path_mtu": settings.mtu, "retry_cnt": settings.retries, "max_rd_atomic": most}
    usual["max_dest_rd_atomic"] = most
    usual["rq_psn"] = usual["sq_psn"] = settings.first_psn
    return {name: usual[name] for bit in bits for name in OF_BIT[bit] if name in usual}


def chosen(bits: frozenset[str], args: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The values of the attributes that some bits name, as a call gives them."""
    values = _usual(bits, settings).copy()
    for name in values.keys() & args.keys():
        values[name] = args[name]
        _check(name, args[name], settings)
    if "path_mtu" in values and "any-path-mtu" not in settings.fault:
        values["path_mtu"] = min(values["path_mtu"], active_mtu(settings), key=MTUS.index)
    for name in ("rq_psn", "sq_psn"):
        if name in values:
            values[name] &= (1 << PSN_BITS) - 1
    if values.get("qkey", 0) >= CONTROLLED and settings.controlled_qkey == "refuse":
        raise Refused("EPERM")
    if not values.get("is_global", True) and settings.transport == "roce":
        raise Refused
    if "alt_port_num" in values and settings.transport != "ib":
        raise Refused
    return values


def _check(name: str, value: Any, settings: Settings) -> None:
    """Refuse a value that does not fit its field or exceeds the device."""
    if name in RANGES:
        fits = value in RANGES[name]
    elif name in ENUMERATORS:
        fits = value in ENUMERATORS[name]
    elif name == "path_mtu":
        fits = value in MTUS[: MTUS.index(_largest_path_mtu(settings)) + 1]
    elif name in ("max_rd_atomic", "max_dest_rd_atomic"):
        fits = value <= settings.max_rd_atomic
    else:
        fits = name != "dgid" or len(value) == len(USUAL["dgid"])
    if not fits:
        raise Refused


def active_mtu(settings: Settings) -> str:
    """The MTU of the port's link, which no packet exceeds."""
    return min(settings.active_mtu, settings.port_mtu, key=MTUS.index)


def _largest_path_mtu(settings: Settings) -> str:
    if "any-path-mtu" in settings.fault:
        return MTUS[-1]
    return {"active": active_mtu(settings), "largest": settings.port_mtu, "any": MTUS[-1]}[settings.path_mtu_bound]
