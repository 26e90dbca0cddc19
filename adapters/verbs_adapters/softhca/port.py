"""What the device says of itself and of its port.

Theory of operation
-------------------
There is one port, with one GID and one P_Key, and it is always active.  ``port_mtu`` is the largest MTU that it can
have, ``active_mtu`` the one that its link has.  What ``hello`` promises as limits is what ``query_device`` and
``query_port`` answer, the MTUs in bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from verbs_adapters.contract import VERBS
from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.attributes import GID, GIDS, LID, PKEYS, PORTS, active_mtu
from verbs_adapters.softhca.capabilities import OF_PROCESS
from verbs_adapters.softhca.connection import MTUS as MTU_BYTES
from verbs_adapters.softhca.memory import MAX_BUFFER
from verbs_adapters.softhca.objects import Objects
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import USUAL_SGES
from verbs_adapters.softhca.region import MAX_PAGE_SHIFT, MIN_PAGE_SHIFT

Args = dict[str, Any]

LINK_LAYERS = {"roce": "ETHERNET", "ib": "INFINIBAND", "iwarp": "ETHERNET"}
CAP_FLAGS = {
    "SRQ_RESIZE": 1 << 13,
    "MEM_WINDOW": 1 << 17,
    "MEM_MGT_EXTENSIONS": 1 << 21,
    "MEM_WINDOW_TYPE_2A": 1 << 23,
    "MEM_WINDOW_TYPE_2B": 1 << 24,
}
"""Bits of ``device_cap_flags`` (``enum ibv_device_cap_flags``), by feature."""


def limits(settings: Settings, names: Collection[str]) -> dict[str, int]:
    """What a device of these features promises, by the names of its attributes."""
    most_sges = settings.max_sge if "SGE_LISTS" in names else USUAL_SGES
    sizes = range(MIN_PAGE_SHIFT, MAX_PAGE_SHIFT + 1)
    common = {
        **dict.fromkeys(("max_qp", "max_cq", "max_mr", "max_mw", "max_pd", "max_srq"), settings.max_objects),
        "max_qp_wr": settings.max_qp_wr,
        "max_cqe": settings.max_cqe,
        "max_sge": most_sges,
        "max_sge_rd": min(settings.max_sge_rd, most_sges),
        "max_srq_wr": settings.max_srq_wr,
        "max_srq_sge": settings.max_srq_sge,
        "max_qp_rd_atom": settings.max_rd_atomic,
        "max_qp_init_rd_atom": settings.max_rd_atomic,
        "max_pkeys": PKEYS,
        "phys_port_cnt": PORTS,
        "max_mtu": MTU_BYTES[settings.port_mtu],
        "active_mtu": MTU_BYTES[active_mtu(settings)],
    }
    if settings.api in OF_PROCESS:
        return {**common, "max_mr_size": MAX_BUFFER}
    return {
        **common,
        "max_mr_size": settings.max_pages << MAX_PAGE_SHIFT,
        "max_fast_reg_page_list_len": settings.max_pages,
        "page_size_cap": sum(1 << shift for shift in sizes),
        "min_page_size": 1 << MIN_PAGE_SHIFT,
        "max_page_size": 1 << MAX_PAGE_SHIFT,
    }


class Ports:
    """The verbs that ask about the device."""

    def __init__(self, objects: Objects) -> None:
        self._settings = objects.settings
        self._declared = objects.offer.declared

    def query_device(self, _args: Args) -> Args:
        asked = VERBS["query_device"].out
        known = limits(self._settings, self._declared)
        return {
            **{name: known.get(name, 0) for name, kind in asked.items() if kind == "nat"},
            "atomic_cap": "HCA" if "ATOMIC" in self._declared else "NONE",
            "device_cap_flags": sum(bit for name, bit in CAP_FLAGS.items() if name in self._declared),
        }

    def query_port(self, args: Args) -> Args:
        self._check(args)
        ib = self._settings.transport == "ib"
        return {
            "state": "PORT_ACTIVE",
            "max_mtu": self._settings.port_mtu,
            "active_mtu": active_mtu(self._settings),
            "link_layer": LINK_LAYERS[self._settings.transport],
            "lid": LID if ib else 0,
            "sm_lid": LID if ib else 0,
            "gid_tbl_len": GIDS,
            "pkey_tbl_len": PKEYS,
            "max_msg_sz": 1 << 30,
        }

    def query_gid(self, args: Args) -> Args:
        self._check(args)
        if args.get("index", 0) >= GIDS:
            raise Refused
        return {"gid": GID}

    def _check(self, args: Args) -> None:
        if not 1 <= args.get("port_num", 1) <= PORTS:
            raise Refused
