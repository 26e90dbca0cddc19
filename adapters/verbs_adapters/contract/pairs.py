"""Verbs of queue pairs: their life, what is posted to them, and the address handles that datagrams are sent with."""

from __future__ import annotations

from verbs_adapters.contract.verb import DEVICE, Verb, named

_CAPS = "max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data"
_ADDRESS = {**named("nat", "dlid sl sgid_index hop_limit"), "is_global": "bool", "dgid": "hex"}
_ATTRIBUTES = {
    **named("text", "cur_qp_state path_mtu path_mig_state"),
    **named("nat", "qkey rq_psn sq_psn dest_qp_num pkey_index max_rd_atomic max_dest_rd_atomic min_rnr_timer"),
    **named("nat", "port_num timeout retry_cnt rnr_retry alt_port_num alt_timeout rate_limit en_sqd_async_notify"),
    **named("nat", _CAPS),
    **_ADDRESS,
}
"""Attributes of a queue pair by their names in `ibv_qp_attr`, `ibv_qp_cap`, `ibv_ah_attr` and `ibv_global_route`."""

PAIRS: dict[str, Verb] = {
    # -- queue pairs -------------------------------------------------------------------------------
    "create_qp": Verb(
        {
            "pd": "handle",
            "send_cq": "handle",
            "recv_cq": "handle",
            "max_send_wr": "nat",
            "max_recv_wr": "nat",
            "qp_type": "text",
            "srq": "handle?",
            "max_send_sge": "nat",
            "max_recv_sge": "nat",
            "max_inline_data": "nat",
            "sq_sig_all": "bool",
        },
        {
            "qp": "handle",
            "qp_num": "nat",
            **named("nat", "max_send_wr_actual max_recv_wr_actual max_send_sge_actual max_recv_sge_actual"),
            "max_inline_data_actual": "nat",
        },
        "A queue pair. Absent: `qp_type` (RC, UC, UD, XRC_SEND, XRC_RECV, RAW_PACKET) is RC, there is no `srq`, "
        "two SGEs a work request are asked for and no inline data, and each is signalled by its own flag. What was "
        "granted is told, asked for or not; the last output is there if its parameter was.",
        optional=frozenset({"qp_type", "srq", "max_send_sge", "max_recv_sge", "max_inline_data", "sq_sig_all"}),
        sometimes={"max_inline_data_actual": DEVICE},
    ),
    "destroy_qp": Verb({"qp": "handle"}, {}, "Destroy a queue pair."),
    "modify_qp": Verb(
        {
            "qp": "handle",
            "state": "text",
            "peer": "handle?",
            "access": "flags",
            "remote": "hex",
            "mask": "flags",
            **_ATTRIBUTES,
        },
        {},
        "Move to `state` (RESET, INIT, RTR, RTS, SQD, SQE, ERR). `access` (LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, "
        "since 1.1 REMOTE_ATOMIC, MW_BIND) is taken at INIT, `peer` (the QP at the other end) at RTR; elsewhere both "
        "are ignored. The adapter fills in the other attributes that the step requires: infinite RNR retry, a finite "
        "transport retry, enough outstanding reads, the same Q_Key for all queue pairs. With `mask` (names of enum "
        "ibv_qp_attr_mask without IBV_QP_) exactly those attributes are passed, whatever `state` requires; `peer` and "
        "`access` are then taken in every state. An attribute that is given replaces the adapter's usual value. "
        "`path_mtu`: MTU_256 and so on; `path_mig_state`: MIGRATED, REARM, ARMED. The suite may send the enumerator "
        "UNKNOWN, which stands for a value outside the enumeration; the adapter passes on a number that the headers "
        "do not name. `remote` stands in place of `peer` where that is on another side: what qp_address says there.",
        optional=frozenset({"remote", "mask", *_ATTRIBUTES}),
    ),
    "qp_address": Verb(
        {"qp": "handle"},
        {"address": "hex"},
        "What the other side must know to connect a queue pair to this one; what it means is the agents' affair. For "
        "backends that can be one of two sides; no program asks for it.",
    ),
    "query_qp": Verb(
        {"qp": "handle", "mask": "flags"},
        {
            "state": "text",
            "access": "flags",
            "qp_type": "text",
            "sq_sig_all": "bool",
            "sq_draining": "bool",
            **_ATTRIBUTES,
        },
        "The state of a queue pair, by the name in the headers; UNKNOWN for a value outside the enumeration. With "
        "`mask` (as for modify_qp) also the attributes that it names, `access` for ACCESS_FLAGS, the address for AV, "
        "and always qp_type, sq_sig_all and sq_draining.",
        optional=frozenset({"mask"}),
        sometimes=dict.fromkeys(("access", "qp_type", "sq_sig_all", "sq_draining", *_ATTRIBUTES), DEVICE),
    ),
    # -- address handles -----------------------------------------------------------------------------
    "create_ah": Verb(
        {"pd": "handle", "peer": "handle?", "remote": "hex", "port_num": "nat", **_ADDRESS},
        {"ah": "handle"},
        "An address handle for the port of the queue pair `peer`; absent, for the device's own port. What is given "
        "replaces what the adapter fills in.",
        optional=frozenset({"peer", "remote", "port_num", *_ADDRESS}),
    ),
    "destroy_ah": Verb({"ah": "handle"}, {}, "Destroy an address handle."),
    # -- work requests -----------------------------------------------------------------------------
    "post_send": Verb(
        {
            "qp": "handle",
            "wr_id": "nat",
            "opcode": "text",
            "signaled": "bool",
            "fence": "bool",
            "sg_list": "sges",
            "remote_addr": "nat",
            "rkey": "nat",
            "invalidate_rkey": "nat",
            "mr": "handle?",
            "key": "nat",
            "access": "flags",
            "list": "handle?",
            "page_list_len": "nat",
            "page_shift": "nat",
            "iova_start": "nat",
            "length": "nat",
            "solicited": "bool",
            "inline": "bool",
            "imm_data": "nat",
            "compare_add": "nat",
            "swap": "nat",
            "ah": "handle?",
            "remote_qpn": "nat",
            "remote_qkey": "nat",
            "mw": "handle?",
            "addr": "nat",
        },
        {},
        "Post one work request. SEND and SEND_WITH_INV use sg_list (and invalidate_rkey), RDMA_WRITE and "
        "RDMA_READ sg_list, remote_addr and rkey, LOCAL_INV invalidate_rkey, REG_MR mr, key and access, "
        "FAST_REG_MR key (which names the region), access, list, page_list_len, page_shift, iova_start and "
        "length. Since 1.1: SEND_WITH_IMM and RDMA_WRITE_WITH_IMM use imm_data (a number in the host's order) besides, "
        "ATOMIC_CMP_AND_SWP and ATOMIC_FETCH_AND_ADD sg_list, remote_addr, rkey, compare_add (and swap), BIND_MW mw, "
        "rkey (the key that the window is to have, which the handle holds afterwards), mr, addr, length, access and, "
        "to mend the handle before, key; `ah`, remote_qpn and remote_qkey (absent: the adapter's usual Q_Key) are for "
        "UD queue pairs; `inline` has the bytes of sg_list copied by the call. Parameters that an opcode does not use "
        "are absent. `access`: LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, and since 1.1 those of reg_mr.",
        optional=frozenset(
            {
                *("solicited", "inline", "imm_data", "compare_add", "swap"),
                *("ah", "remote_qpn", "remote_qkey", "mw", "addr"),
            }
        ),
    ),
    "post_recv": Verb({"qp": "handle", "wr_id": "nat", "sg_list": "sges"}, {}, "Post one receive."),
    "post_send_list": Verb(
        {"qp": "handle", "wr_ids": "nats", "sg_list": "sges", "signaled": "bool", "inline": "bool"},
        {"accepted": "nat"},
        "Post several SENDs with one call, linked by their `next`: the one of each place in `wr_ids` has the one "
        "element of that place in `sg_list`. `accepted` is how many the device took: all if its call succeeded, else "
        "those before bad_wr. EINVAL from the adapter, with nothing posted, for lists that are empty or of different "
        "lengths; EPROTO for a bad_wr that is none of the list.",
        optional=frozenset({"inline"}),
    ),
    "post_recv_list": Verb(
        {"qp": "handle", "wr_ids": "nats", "sg_list": "sges"},
        {"accepted": "nat"},
        "Post several receives with one call, as post_send_list does sends.",
    ),
}
