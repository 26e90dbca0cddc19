"""Verbs of memory: the consumer's own, protection domains, regions, windows; and those that ask about the device."""

from __future__ import annotations

from verbs_adapters.contract.verb import Verb, named

_LIMITS = named(
    "nat",
    "max_mr_size max_qp max_qp_wr max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_mw max_ah max_srq max_srq_wr "
    "max_srq_sge max_qp_rd_atom max_qp_init_rd_atom max_pkeys phys_port_cnt",
)

MEMORY: dict[str, Verb] = {
    # -- what the suite itself needs: memory and time ----------------------------------------------
    "alloc_buffer": Verb(
        {"length": "nat", "hca": "nat"},
        {"buf": "handle", "addr": "nat"},
        "Memory of the consumer, zeroed, aligned to 64 KiB, mapped for DMA: `addr` is its DMA address. "
        "Buffers never overlap, and each is followed by at least one unmapped page. In the API `linux-user` "
        "`addr` is the consumer's own (virtual) address. `hca` is a device of the host that the memory is to be of.",
        optional=frozenset({"hca"}),
    ),
    "free_buffer": Verb({"buf": "handle"}, {}, "Give a buffer back."),
    "write_buffer": Verb({"buf": "handle", "offset": "nat", "data": "hex"}, {}, "The consumer's CPU stores bytes."),
    "read_buffer": Verb(
        {"buf": "handle", "offset": "nat", "length": "nat"},
        {"data": "hex"},
        "The consumer's CPU loads bytes.",
    ),
    "settle": Verb(
        {"silent": "nats"},
        {},
        "Wait until the device has nothing left to do that it will do without further input: all "
        "executable work executed, all completions in their CQs. A backend in virtual time lets it pass. "
        "`silent` is for a backend that is one of two sides: wait even if it was asked nothing since the last "
        "time, and take it that the peers of these QPs, which are on the other side, do not answer and others do.",
        optional=frozenset({"silent"}),
    ),
    # -- protection domains ------------------------------------------------------------------------
    "alloc_pd": Verb(
        {"hca": "nat"},
        {"pd": "handle", "local_dma_lkey": "nat"},
        "`local_dma_lkey` addresses the consumer's memory by DMA address without a region, for local use; "
        "0 in the API `linux-user`, where no key does.",
        optional=frozenset({"hca"}),
    ),
    "dealloc_pd": Verb({"pd": "handle"}, {}, "Free a protection domain."),
    # -- fast registration, Linux kernel since 4.4 ---------------------------------------------------
    "alloc_mr": Verb(
        {"pd": "handle", "max_num_sg": "nat"},
        {"mr": "handle", "key": "nat"},
        "A region for REG_MR. `key` is what the handle holds as lkey and rkey (both the same number).",
    ),
    "map_mr_sg": Verb(
        {"mr": "handle", "sg": "sg", "offset": "nat", "page_size": "nat"},
        {"n": "nat", "iova": "nat", "length": "nat"},
        "Set the region's page vector from a scatter list; `n` counts the elements mapped, `iova` and "
        "`length` are what the handle holds afterwards.",
    ),
    "update_fast_reg_key": Verb(
        {"mr": "handle", "byte": "nat"},
        {"key": "nat"},
        "Put `byte` into the low 8 bits of the key that the handle holds; `key` is what it holds afterwards.",
    ),
    "dereg_mr": Verb({"mr": "handle"}, {}, "Deregister a region."),
    # -- registration of the consumer's memory, rdma-core --------------------------------------------
    "reg_mr": Verb(
        {"pd": "handle", "addr": "nat", "length": "nat", "access": "flags"},
        {"mr": "handle", "lkey": "nat", "rkey": "nat"},
        "Register the consumer's memory [addr, addr + length) by its address, whether or not a buffer lies "
        "there. `access`: LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ; since 1.1 also REMOTE_ATOMIC, MW_BIND, "
        "ZERO_BASED, ON_DEMAND, HUGETLB; with ACCESS_FLAGS also RELAXED_ORDERING, UNKNOWN_HINT (a bit among the "
        "hints that the header does not name) and UNKNOWN_FLAG (such a bit that is no hint). The region is valid at "
        "once and its first byte has the address `addr` (0 for ZERO_BASED).",
    ),
    "rereg_mr": Verb(
        {"mr": "handle", "flags": "flags", "pd": "handle?", "addr": "nat", "length": "nat", "access": "flags"},
        {"lkey": "nat", "rkey": "nat"},
        "Change a region. `flags`: CHANGE_TRANSLATION (addr and length are taken), CHANGE_PD (pd), CHANGE_ACCESS "
        "(access), CHANGE_UNKNOWN (a bit that the header does not name). The keys are what the handle holds "
        "afterwards; a failure is answered with errno, not with the code that the call returns.",
        optional=frozenset({"pd", "addr", "length", "access"}),
    ),
    # -- memory windows, rdma-core -------------------------------------------------------------------
    "alloc_mw": Verb(
        {"pd": "handle", "type": "text"},
        {"mw": "handle", "rkey": "nat"},
        "A window that is not bound; `type`: TYPE_1, TYPE_2, TYPE_UNKNOWN (a number that the header does not name).",
    ),
    "dealloc_mw": Verb({"mw": "handle"}, {}, "Free a window."),
    "bind_mw": Verb(
        {
            "qp": "handle",
            "mw": "handle",
            "wr_id": "nat",
            "signaled": "bool",
            "mr": "handle?",
            "addr": "nat",
            "length": "nat",
            "access": "flags",
            "fence": "bool",
            "key": "nat",
        },
        {"rkey": "nat"},
        "Post the binding of a window of type 1 to [addr, addr + length) of a region; length 0 unbinds it. `rkey` is "
        "what the handle holds afterwards. (A window of type 2 is bound by post_send of BIND_MW.) `access` as for "
        "reg_mr. After a binding that failed the consumer mends the handle: `key` is what it is made to hold before.",
        optional=frozenset({"mr", "addr", "length", "access", "fence", "key"}),
    ),
    # -- fast registration, Linux 2.6.27 to 4.3 ------------------------------------------------------
    "alloc_fast_reg_mr": Verb(
        {"pd": "handle", "max_page_list_len": "nat"},
        {"mr": "handle", "key": "nat"},
        "A region for FAST_REG_MR, as alloc_mr.",
    ),
    "alloc_fast_reg_page_list": Verb(
        {"max_page_list_len": "nat"},
        {"list": "handle", "max_page_list_len_actual": "nat"},
        "A page list of at least the asked length, its entries 0.",
    ),
    "free_fast_reg_page_list": Verb({"list": "handle"}, {}, "Free a page list."),
    "set_page_list": Verb(
        {"list": "handle", "pages": "nats"},
        {},
        "The consumer's CPU stores the first entries of a page list: DMA addresses of pages.",
    ),
    # -- what the device says ------------------------------------------------------------------------
    "query_device": Verb(
        {},
        {**_LIMITS, "atomic_cap": "text", "device_cap_flags": "nat"},
        "Attributes of the device by their names in the header; `atomic_cap` is NONE, HCA or GLOB.",
    ),
    "query_port": Verb(
        {"port_num": "nat"},
        {
            **named("text", "state max_mtu active_mtu link_layer"),
            **named("nat", "lid sm_lid gid_tbl_len pkey_tbl_len max_msg_sz"),
        },
        "Attributes of a port. `state`: PORT_ACTIVE and so on; MTUs: MTU_1024 and so on; `link_layer`: INFINIBAND, "
        "ETHERNET or UNSPECIFIED. Absent `port_num`: the port that the adapter uses.",
        optional=frozenset({"port_num"}),
    ),
    "query_gid": Verb(
        {"port_num": "nat", "index": "nat"},
        {"gid": "hex"},
        "An entry of a port's GID table. Absent parameters: those that the adapter uses.",
        optional=frozenset({"port_num", "index"}),
    ),
}
