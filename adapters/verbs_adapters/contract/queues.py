"""Verbs of queues that are not pairs: completion queues and their channels, shared receive queues, events.

An event that was taken and not acknowledged keeps its object: the library would wait in the destroying verb.  The
contract is one thread's, so nobody could acknowledge meanwhile: the adapter does not make that call and says EDEADLK.
"""

from __future__ import annotations

from verbs_adapters.contract.verb import DEVICE, Verb, named

_COMPLETION = {
    **named("nat", "wr_id qp_num byte_len invalidate_rkey"),
    **named("text", "status opcode"),
    "wc_flags": "flags",
}
_DATAGRAM = named("nat", "src_qp pkey_index slid sl dlid_path_bits")

QUEUES: dict[str, Verb] = {
    # -- completion queues -------------------------------------------------------------------------
    "create_cq": Verb(
        {"cqe": "nat", "channel": "handle?", "comp_vector": "nat", "hca": "nat"},
        {"cq": "handle", "cqe_actual": "nat"},
        "A completion queue of at least `cqe` entries, which tells its events to `channel`.",
        optional=frozenset({"channel", "comp_vector", "hca"}),
    ),
    "destroy_cq": Verb({"cq": "handle"}, {}, "Destroy a completion queue."),
    "resize_cq": Verb(
        {"cq": "handle", "cqe": "nat"},
        {"cqe_actual": "nat"},
        "Have room for at least `cqe` entries; the queue keeps what it holds.",
    ),
    "poll_cq": Verb(
        {"cq": "handle"},
        {"n": "nat", **_COMPLETION, "imm_data": "nat", **_DATAGRAM},
        "Take at most one entry. `n` is 0 (then no other output) or 1. `opcode` is one of SEND, RDMA_WRITE, "
        "RDMA_READ, LOCAL_INV, REG_MR (also for FAST_REG_MR), RECV; since 1.1 also COMP_SWAP, FETCH_ADD, BIND_MW, "
        "RECV_RDMA_WITH_IMM. `wc_flags`: WITH_INVALIDATE; since 1.1 also WITH_IMM, and on a receive of a UD queue pair "
        "GRH. `imm_data`, a number in the host's order, is there if `wc_flags` has WITH_IMM; src_qp, pkey_index, slid, "
        "sl and dlid_path_bits on a receive of a UD queue pair. On a failed entry only wr_id, status, qp_num mean "
        "something; the rest may hold anything of its type.",
        sometimes={**dict.fromkeys(_COMPLETION, "n"), **dict.fromkeys(("imm_data", *_DATAGRAM), DEVICE)},
    ),
    # -- completion events ---------------------------------------------------------------------------
    "create_comp_channel": Verb(
        {"hca": "nat"}, {"channel": "handle"}, "A channel for completion events.", optional=frozenset({"hca"})
    ),
    "destroy_comp_channel": Verb({"channel": "handle"}, {}, "Destroy a channel."),
    "req_notify_cq": Verb(
        {"cq": "handle", "solicited_only": "bool"},
        {},
        "Have one event told for the next completion, or for the next that is solicited or has failed.",
    ),
    "get_cq_event": Verb(
        {"channel": "handle"},
        {"n": "nat", "cq": "handle"},
        "Take an event if there is one; never waits. `n` is 0 or 1, `cq` whose event it is.",
        sometimes={"cq": "n"},
    ),
    "ack_cq_events": Verb(
        {"cq": "handle", "nevents": "nat"},
        {},
        "Acknowledge so many events that were taken; EINVAL from the adapter for more than were.",
    ),
    # -- asynchronous events -------------------------------------------------------------------------
    "get_async_event": Verb(
        {},
        {
            "n": "nat",
            "async_event": "handle",
            "event": "text",
            **named("handle", "qp cq srq"),
            "port_num": "nat",
        },
        "Take an asynchronous event if there is one; never waits. `n` is 0 or 1; `async_event` is for "
        "ack_async_event; `event` is the name in the header without IBV_EVENT_; qp, cq, srq or port_num is the element "
        "if it has one. An adapter may tell the same events as they come, which takes none away.",
        sometimes={"async_event": "n", "event": "n", **dict.fromkeys(("qp", "cq", "srq", "port_num"), DEVICE)},
    ),
    "ack_async_event": Verb({"async_event": "handle"}, {}, "Acknowledge an asynchronous event that was taken."),
    # -- shared receive queues -----------------------------------------------------------------------
    "create_srq": Verb(
        {"pd": "handle", "max_wr": "nat", "max_sge": "nat", "srq_limit": "nat"},
        {"srq": "handle", "max_wr_actual": "nat", "max_sge_actual": "nat"},
        "A shared receive queue; absent, `max_sge` is 2 and `srq_limit` 0.",
        optional=frozenset({"max_sge", "srq_limit"}),
    ),
    "modify_srq": Verb(
        {"srq": "handle", "mask": "flags", "max_wr": "nat", "srq_limit": "nat"},
        {},
        "`mask`: MAX_WR, LIMIT. What is absent is passed as 0.",
        optional=frozenset({"max_wr", "srq_limit"}),
    ),
    "query_srq": Verb({"srq": "handle"}, named("nat", "max_wr max_sge srq_limit"), "What the device says of it."),
    "destroy_srq": Verb({"srq": "handle"}, {}, "Destroy a shared receive queue."),
    "post_srq_recv": Verb({"srq": "handle", "wr_id": "nat", "sg_list": "sges"}, {}, "Post one receive."),
}
