"""Optional features: which device has them, and what they bring.

Theory of operation
-------------------
A feature brings verbs, parameters of other verbs, and opcodes.  A device declares in ``hello`` the *usual* ones of its
API, besides those that the option ``also`` names and without those that ``without`` names.  What a feature brings
exists only on a device that declares it: elsewhere its verbs and parameters are answered EOPNOTSUPP and its opcodes
EINVAL, whatever the code could do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from verbs_adapters.contract import VERBS
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.region import ACCESS_BITS, HINTS, REMOTE_ATOMIC, USER_BITS

KERNEL, KERNEL_2008, USER = "linux-kernel", "linux-kernel-2008", "linux-user"
NETWORKDIRECT, WINVERBS = "networkdirect", "winverbs"
OF_PROCESS = (USER, NETWORKDIRECT, WINVERBS)
"""APIs of a user process, which registers its own memory by address."""

EVERY_API = (KERNEL, KERNEL_2008, USER)


class Capability(NamedTuple):
    """One feature: where it can be, whether it is usual there, and what it brings."""

    apis: tuple[str, ...]
    usual: bool = True
    verbs: tuple[str, ...] = ()
    params: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - never written; optional parameters by verb
    opcodes: tuple[str, ...] = ()
    transports: tuple[str, ...] = ("roce", "ib", "iwarp")


INFINIBAND = ("roce", "ib")
DATA = ("SEND", "RDMA_WRITE", "RDMA_READ")
PAGE_LISTS = ("alloc_fast_reg_page_list", "free_fast_reg_page_list", "set_page_list")
TYPE_2 = Capability(
    (USER,),
    verbs=("alloc_mw", "dealloc_mw"),
    params={"post_send": ("mw", "addr")},
    opcodes=("BIND_MW", "LOCAL_INV", "SEND_WITH_INV"),
)
WINDOWS_APIS = (NETWORKDIRECT, WINVERBS)
ND_REGIONS = tuple(f"{what}_memory_region" for what in ("create", "register", "deregister", "release"))
ND_WINDOWS = tuple(f"{what}_memory_window" for what in ("create", "release", "bind", "invalidate"))
VERBS_OF_API = {
    **dict.fromkeys(("reg_mr", "alloc_mw", "bind_mw", "dealloc_mw"), (USER,)),
    **dict.fromkeys(("get_overlapped_result", "get_registration", "notify_cq"), WINDOWS_APIS),
    "cancel_overlapped_requests": WINDOWS_APIS,
    **dict.fromkeys(("register_memory", "deregister_memory"), (WINVERBS,)),
    **dict.fromkeys((*ND_REGIONS, *ND_WINDOWS, "connect_qp", "disconnect_qp", "flush_qp"), (NETWORKDIRECT,)),
    "modify_qp": (KERNEL, KERNEL_2008, USER, WINVERBS),
}
"""Verbs that only some APIs have."""

EVERYWHERE = {
    *(("query_port", "port_num"), ("query_gid", "port_num"), ("query_gid", "index")),
    *(("cancel_overlapped_requests", "cq"), ("cancel_overlapped_requests", "region")),
}
"""Optional parameters that every device has, by their verb."""
OF_WINDOWS = {("post_send", "solicited")}
"""Those that every device of the APIs of Windows has besides."""

FEATURES: dict[str, Capability] = {
    "MEM_MGT_EXTENSIONS": Capability(
        (KERNEL,),
        verbs=("alloc_mr", "map_mr_sg", "update_fast_reg_key"),
        opcodes=("SEND_WITH_INV", "LOCAL_INV", "REG_MR"),
    ),
    "MEM_WINDOW": Capability((USER, NETWORKDIRECT), verbs=("alloc_mw", "bind_mw", "dealloc_mw", *ND_WINDOWS)),
    "MEM_WINDOW_TYPE_2A": TYPE_2._replace(usual=False),
    "MEM_WINDOW_TYPE_2B": TYPE_2,
    "REREG_MR": Capability((USER,), verbs=("rereg_mr",)),
    "ACCESS_FLAGS": Capability((USER,)),
    "SGE_LISTS": Capability(EVERY_API, params={"create_qp": ("max_send_sge", "max_recv_sge")}),
    "INLINE_DATA": Capability(
        EVERY_API,
        params={"create_qp": ("max_inline_data",), "post_send": ("inline",), "post_send_list": ("inline",)},
    ),
    "REQUEST_LISTS": Capability(EVERY_API, verbs=("post_send_list", "post_recv_list")),
    "FAST_REG_PAGE_LIST": Capability(
        (KERNEL_2008,),
        verbs=("alloc_fast_reg_mr", "update_fast_reg_key", *PAGE_LISTS),
        opcodes=("SEND_WITH_INV", "LOCAL_INV", "FAST_REG_MR"),
    ),
    "SRQ": Capability(
        (USER,),
        verbs=("create_srq", "modify_srq", "query_srq", "destroy_srq", "post_srq_recv"),
        params={"create_srq": ("max_sge", "srq_limit"), "modify_srq": ("max_wr", "srq_limit"), "create_qp": ("srq",)},
    ),
    "SRQ_RESIZE": Capability((USER,)),
    "COMPLETION_CHANNELS": Capability(
        (USER,),
        verbs=("create_comp_channel", "destroy_comp_channel", "req_notify_cq", "get_cq_event", "ack_cq_events"),
        params={"create_cq": ("channel", "comp_vector"), "post_send": ("solicited",)},
    ),
    "RESIZE_CQ": Capability((USER,), verbs=("resize_cq",)),
    "ASYNCHRONOUS_EVENTS": Capability((USER,), verbs=("get_async_event", "ack_async_event")),
    "QP_ATTRIBUTES": Capability(
        EVERY_API,
        params={
            "create_qp": ("qp_type", "sq_sig_all"),
            "query_qp": ("mask",),
            "modify_qp": tuple(VERBS["modify_qp"].optional - {"remote"}),
        },
    ),
    "XRC": Capability(EVERY_API, params={"create_qp": ("qp_type",)}),
    "RAW_PACKET": Capability(EVERY_API, params={"create_qp": ("qp_type",)}),
    "UC": Capability((KERNEL, USER), params={"create_qp": ("qp_type",)}, transports=INFINIBAND),
    "UD": Capability(
        (KERNEL, USER),
        verbs=("create_ah", "destroy_ah"),
        params={"create_qp": ("qp_type",), "post_send": ("ah", "remote_qpn", "remote_qkey")},
        transports=INFINIBAND,
    ),
    "ATOMIC": Capability(
        (KERNEL, USER),
        opcodes=("ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD"),
        params={"post_send": ("compare_add", "swap")},
        transports=INFINIBAND,
    ),
    "IMMEDIATE_DATA": Capability(
        (KERNEL, USER),
        opcodes=("SEND_WITH_IMM", "RDMA_WRITE_WITH_IMM"),
        params={"post_send": ("imm_data",)},
        transports=INFINIBAND,
    ),
    "RNR_RETRY": Capability(
        EVERY_API,
        params={"modify_qp": ("rnr_retry", "min_rnr_timer")},
        transports=INFINIBAND,
    ),
}
"""Every feature that softhca can have, in the order of ``hello``."""


def declared(settings: Settings) -> tuple[str, ...]:
    """The features that a device declares."""
    return tuple(
        name
        for name, feature in FEATURES.items()
        if settings.api in feature.apis
        and settings.transport in feature.transports
        and (feature.usual or name in settings.also)
        and name not in settings.without
    )


class Offer(NamedTuple):
    """What a device offers, all its features taken together."""

    declared: frozenset[str]
    rights: dict[str, int]  # the access flags that it knows, with their bits
    verbs: tuple[str, ...]
    unknown: dict[str, frozenset[str]]  # by verb, the optional parameters that nothing brings
    opcodes: frozenset[str]


def _params(features: Iterable[Capability]) -> set[tuple[str, str]]:
    return {(verb, param) for feature in features for verb, params in feature.params.items() for param in params}


def _rights(api: str, names: tuple[str, ...]) -> dict[str, int]:
    more = USER_BITS if api in OF_PROCESS else {}
    if "ATOMIC" in names:
        more = {**more, "REMOTE_ATOMIC": REMOTE_ATOMIC}
    return {**ACCESS_BITS, **more, **(HINTS if "ACCESS_FLAGS" in names else {})}


def offer(api: str, names: tuple[str, ...]) -> Offer:
    """What the features of these names bring, and what every device of the API has."""
    features = [FEATURES[name] for name in names]
    brought = {verb for feature in features for verb in feature.verbs}
    elsewhere = {verb for feature in FEATURES.values() for verb in feature.verbs}
    known = EVERYWHERE | _params(features) | (OF_WINDOWS if api in WINDOWS_APIS else set())
    gated = _params(FEATURES.values())
    unknown = {
        name: frozenset(
            param
            for param in verb.optional
            if (name, param) not in known and ((name, param) in gated or name not in brought)
        )
        for name, verb in VERBS.items()
    }
    return Offer(
        frozenset(names),
        _rights(api, names),
        tuple(
            verb
            for verb in VERBS
            if (verb in brought or verb not in elsewhere) and api in VERBS_OF_API.get(verb, (api,))
        ),
        {name: params for name, params in unknown.items() if params},
        frozenset((*DATA, *(opcode for feature in features for opcode in feature.opcodes))),
    )
