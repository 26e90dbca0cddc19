"""The options of softhca: one table, one parser.

Theory of operation
-------------------
Where the sources of the field leave a device free, softhca can take each branch; which one is an option.
Two kinds exist: a *choice* among named values and a *number*.  :data:`OPTIONS` is the only place that knows
the names, the defaults and the one-line explanations; :func:`parse` turns the text of the command line into
a frozen :class:`Settings`.  The option ``fault`` is different in kind: it breaks the device on purpose
(see :mod:`verbs_adapters.softhca.faults`); ``also`` and ``without`` change what it declares
(:mod:`verbs_adapters.softhca.capabilities`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from verbs_adapters.contract import CAPABILITIES, UsageError
from verbs_adapters.softhca.faults import FAULTS
from verbs_adapters.softhca.scripts import SCRIPTS

MTUS = tuple(f"MTU_{1 << shift}" for shift in range(8, 13))


class Option(msgspec.Struct, frozen=True):
    """One option: its default, its known values (none named: any natural number), and what it does."""

    default: str
    known: tuple[str, ...]
    doc: str


OPTIONS: dict[str, Option] = {
    # -- which device ------------------------------------------------------------------------------
    "api": Option(
        "linux-kernel",
        ("linux-kernel", "linux-kernel-2008", "linux-user", "networkdirect", "winverbs"),
        "the verbs of today's kernel, the page lists of Linux 2.6.27 to 4.3, those of a user process, or of Windows",
    ),
    "transport": Option(
        "roce",
        ("roce", "ib", "iwarp"),
        "iwarp: the sink of a READ needs REMOTE_WRITE, and an error ends the stream for both sides",
    ),
    "pace": Option(
        "random",
        ("random", "lazy", "eager"),
        "how much the engine runs per call: by chance, only at poll and settle, or everything at once",
    ),
    "also": Option("", (), "comma list of features to have besides the usual ones; see FEATURES"),
    "without": Option("", (), "comma list of features not to have"),
    "threads": Option(
        "0", (), "how many threads run the engine while calls are made; with 0 the calls run it, by `pace`"
    ),
    "fault": Option("", (), "comma list of faults to switch on; see FAULTS"),
    # -- sizes -------------------------------------------------------------------------------------
    "max_qp_wr": Option("1024", (), "largest send or receive queue"),
    "max_cqe": Option("4096", (), "largest completion queue"),
    "max_pages": Option("256", (), "largest page vector of a region"),
    "max_objects": Option("65536", (), "how many objects of each kind may live at once"),
    "max_srq_wr": Option("1024", (), "largest shared receive queue"),
    "max_srq_sge": Option("16", (), "most elements of a receive of a shared queue"),
    "max_rd_atomic": Option("16", (), "most READs and atomics that a queue pair may have under way, either way"),
    "first_psn": Option("0", (), "number of the first packet of a connection, where the consumer does not say"),
    "list_slack": Option("0", (), "entries that a page list has beyond what was asked"),
    "cq_slack": Option("0", (), "entries that a completion queue has beyond what was asked"),
    "qp_slack": Option("0", (), "slots that each work queue has beyond what was asked"),
    "srq_slack": Option("0", (), "slots that a shared receive queue has beyond what was asked"),
    "max_sge": Option("16", (), "SGEs that a work request may have, if the queue pair was created for them"),
    "sge_slack": Option("0", (), "SGEs that each queue takes beyond what was asked"),
    "max_inline": Option("256", (), "bytes of inline data that a queue pair may ask for"),
    "inline_slack": Option("0", (), "bytes of inline data that a queue pair takes beyond what was asked"),
    "max_sge_rd": Option("2", (), "sinks that one READ may have; on iWARP many devices take 1"),
    "retries": Option("7", (), "how often a request is sent again to a peer that does not answer"),
    "mtu": Option("MTU_1024", MTUS, "the usual path MTU of a connection"),
    "wire": Option(
        "healthy",
        ("healthy", "rough", *SCRIPTS),
        "healthy, or rough by chance, or a script: packets of one kind are lost, come twice or come late; not on iwarp",
    ),
    "port_mtu": Option("MTU_4096", MTUS, "the largest MTU that the port can have"),
    "active_mtu": Option("MTU_4096", MTUS, "the MTU of the port's link, if `port_mtu` is not below it"),
    "path_mtu_bound": Option(
        "active",
        ("active", "largest", "any"),
        "up to which MTU a path MTU is taken: the active one, the port's, any; packets are of the active one at most",
    ),
    # -- what the sources leave open ---------------------------------------------------------------
    "stale_inv": Option("accept", ("accept", "refuse"), "LOCAL_INV of an INVALID region with another key byte"),
    "local_inv_early": Option(
        "false",
        ("false", "true"),
        "an unfenced LOCAL_INV or REG_MR may overtake earlier unfinished WRs of its SQ",
    ),
    "bad_op_status": Option(
        "LOC_QP_OP_ERR",
        ("LOC_QP_OP_ERR", "MW_BIND_ERR", "LOC_PROT_ERR"),
        "status of a failing REG_MR, FAST_REG_MR or LOCAL_INV",
    ),
    "reg_check": Option(
        "execute",
        ("execute", "post"),
        "where a FAST_REG_MR with more pages than its region can have is refused",
    ),
    "map_read": Option(
        "post", ("post", "execute"), "when REG_MR takes the region's page vector: at post or when it executes"
    ),
    "empty_reg": Option(
        "refuse", ("refuse", "accept"), "registering zero bytes: an error, or a region that grants nothing"
    ),
    "unaligned_atomic": Option(
        "execute", ("execute", "post"), "where an atomic to an address that is no multiple of 8 is refused"
    ),
    "atomic_length": Option(
        "done",
        ("done", "LOC_LEN_ERR", "REM_ACCESS_ERR"),
        "an atomic with buffers for more than 8 bytes: done, or the status it fails with",
    ),
    "short_receive": Option(
        "drop",
        ("drop", "use"),
        "UC, UD: a receive that is too short, or whose RDMA_WRITE_WITH_IMM is refused, waits again, or fails by itself",
    ),
    "long_datagram": Option(
        "SUCCESS", ("SUCCESS", "LOC_LEN_ERR"), "status of a datagram longer than the port's MTU, which is never sent"
    ),
    "foreign_ah": Option(
        "LOC_QP_OP_ERR",
        ("LOC_QP_OP_ERR", "SUCCESS"),
        "status of a datagram whose address handle is of another protection domain; it is never sent",
    ),
    "failed_send": Option("SQE", ("SQE", "ERR"), "where a send that fails takes a queue pair of the type UC or UD"),
    "refused_imm": Option(
        "LOC_ACCESS_ERR",
        ("LOC_ACCESS_ERR", "LOC_PROT_ERR", "LOC_QP_OP_ERR", "REM_ACCESS_ERR", "WR_FLUSH_ERR"),
        "status of the receive that a refused RDMA_WRITE_WITH_IMM took",
    ),
    "send_inv_failure": Option(
        "nak",
        ("nak", "silent"),
        "the peer of a refused remote invalidation gets REM_ACCESS_ERR, or RETRY_EXC_ERR as in IB",
    ),
    "failed_wr": Option(
        "remote",
        ("remote", "flush", "early"),
        "iwarp: a refused request has the status of the refusal, or is flushed; or it has succeeded before if it "
        "was a SEND or RDMA_WRITE",
    ),
    "no_receive": Option(
        "terminate", ("terminate", "wait"), "iwarp: a SEND that finds no receive ends the stream, or waits"
    ),
    "sink_qp_right": Option(
        "check", ("check", "ignore"), "iwarp: whether a READ needs REMOTE_WRITE of its own queue pair"
    ),
    "recv_check": Option("used", ("used", "whole"), "check a receive's SGEs as far as the message reaches, or in full"),
    "rq_slot": Option(
        "poll", ("poll", "consume"), "a receive slot is free again when its completion is polled, or before"
    ),
    "no_channel": Option("accept", ("accept", "refuse"), "arming a completion queue that has no channel"),
    "unread": Option("quiet", ("quiet", "tell"), "whether arming a queue that holds entries tells an event at once"),
    "cq_events": Option(
        "each", ("each", "merged"), "an event of a queue that has one in its channel: told too, or left out"
    ),
    "controlled_qkey": Option("accept", ("accept", "refuse"), "a Q_Key with its highest bit set"),
    "masks": Option(
        "exact",
        ("exact", "uverbs"),
        "what a mask means: what it names, or what uverbs makes of it (AV in SQD brings PORT)",
    ),
    "srq_modify": Option("both", ("both", "one"), "whether modify_srq takes length and limit at once"),
    "drain_event": Option(
        "asked", ("asked", "always"), "SQ_DRAINED is told if EN_SQD_ASYNC_NOTIFY asked for it, or always, as rxe does"
    ),
    "srq_limit_at_create": Option(
        "ignore", ("ignore", "take"), "what create_srq makes of srq_limit, which its man page calls irrelevant"
    ),
    "purge_cqes": Option("false", ("false", "true"), "destroy and RESET take the QP's entries out of the CQs"),
    "overrun": Option("drop", ("drop", "sticky"), "a CQ that overran: lose that entry, or every later one too"),
    "poison": Option("false", ("false", "true"), "fill the meaningless fields of failed completions with junk"),
    "psn": Option("strict", ("strict", "ignore"), "whether a pair works of which one side alone was connected anew"),
    "dma_lkey": Option(
        "zero", ("zero", "reserved"), "local_dma_lkey is 0, or a key of a reserved index; always 0 in linux-user"
    ),
    "local_rkey": Option(
        "same", ("same", "zero"), "the rkey that reg_mr answers for a region without remote rights: its lkey, or 0"
    ),
    "dereg_bound": Option(
        "refuse",
        ("refuse", "accept"),
        "a region with bound windows cannot go or change, or they open nothing then",
    ),
    "destroy_bound": Option(
        "accept",
        ("accept", "refuse"),
        "a queue pair can go through which a window of type 2 is bound, or, on iWARP and with windows of type 2A, not",
    ),
    "malformed_bind": Option(
        "execute",
        ("execute", "post"),
        "where a binding that can never work is refused, a zero-based one of type 1 say",
    ),
    "post_bind_type_1": Option(
        "accept",
        ("accept", "refuse", "fail"),
        "a BIND_MW of a window of type 1, which bind_mw is for: done, refused, or posted and not done",
    ),
    "stale_handle": Option("refuse", ("refuse", "accept"), "a binding whose handle did not hold the key in force"),
    "bind_no_rights": Option("accept", ("accept", "refuse"), "iwarp: a binding that grants nothing"),
    "idle_window_inv": Option("accept", ("accept", "refuse"), "invalidating a window of type 2 that is not bound"),
    "closed_window_inv": Option(
        "refuse", ("refuse", "accept"), "a peer's invalidation of a window, or on a queue pair, without remote rights"
    ),
    "overlapped": Option(
        "random", ("random", "at_once", "pending"), "whether overlapped requests are done at once or are pending"
    ),
    "rereg_key": Option("same", ("same", "new"), "the keys of a region after rereg_mr"),
    "rereg_translation": Option("accept", ("accept", "refuse"), "whether rereg_mr can move a region"),
    "key_byte": Option("random", ("random", "zero"), "the first low byte of a new region's key"),
}
"""Every option by name."""

LISTS: dict[str, tuple[str, Iterable[str]]] = {
    "also": ("feature", CAPABILITIES),
    "without": ("feature", CAPABILITIES),
    "fault": ("fault", FAULTS),
}
"""The options that are comma lists, each with what a name stands for and the names that there are."""


OTHER_NAME = "personality"
"""Another name of the option ``api``."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one device, parsed."""

    api: str
    transport: str
    pace: str
    threads: int
    also: frozenset[str]
    without: frozenset[str]
    fault: frozenset[str]
    max_qp_wr: int
    max_cqe: int
    max_pages: int
    max_objects: int
    max_srq_wr: int
    max_srq_sge: int
    max_rd_atomic: int
    first_psn: int
    list_slack: int
    cq_slack: int
    qp_slack: int
    srq_slack: int
    max_sge: int
    sge_slack: int
    max_inline: int
    inline_slack: int
    max_sge_rd: int
    retries: int
    mtu: str
    wire: str
    port_mtu: str
    active_mtu: str
    path_mtu_bound: str
    stale_inv: str
    local_inv_early: bool
    bad_op_status: str
    reg_check: str
    map_read: str
    empty_reg: str
    unaligned_atomic: str
    atomic_length: str
    short_receive: str
    long_datagram: str
    foreign_ah: str
    failed_send: str
    refused_imm: str
    send_inv_failure: str
    failed_wr: str
    no_receive: str
    sink_qp_right: str
    recv_check: str
    rq_slot: str
    no_channel: str
    unread: str
    cq_events: str
    controlled_qkey: str
    masks: str
    srq_modify: str
    drain_event: str
    srq_limit_at_create: str
    purge_cqes: bool
    overrun: str
    poison: bool
    psn: str
    dma_lkey: str
    local_rkey: str
    dereg_bound: str
    destroy_bound: str
    malformed_bind: str
    post_bind_type_1: str
    stale_handle: str
    bind_no_rights: str
    idle_window_inv: str
    closed_window_inv: str
    overlapped: str
    rereg_key: str
    rereg_translation: str
    key_byte: str


def parse(options: Mapping[str, str]) -> Settings:
    """Turn option text into settings, or say what is wrong with it and what is known."""
    if OTHER_NAME in options:
        options = _one_name(options)
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise UsageError.unknown("softhca", "option", unknown[0], sorted(OPTIONS))
    values = {name: _value(name, option, options.get(name)) for name, option in OPTIONS.items()}
    return msgspec.convert(values, Settings)


def _one_name(options: Mapping[str, str]) -> dict[str, str]:
    """Options in which the API has one name."""
    given = {name: text for name, text in options.items() if name != OTHER_NAME}
    if given.setdefault("api", options[OTHER_NAME]) != options[OTHER_NAME]:
        raise UsageError(
            f"softhca was given api={given['api']} and {OTHER_NAME}={options[OTHER_NAME]}; they are one option"
        )
    return given


def _value(name: str, option: Option, text: str | None) -> object:
    text = option.default if text is None else text.strip()
    if name in LISTS:
        return _names(text, *LISTS[name])
    if not option.known:
        return _number(name, text)
    if text not in option.known:
        raise UsageError.unknown(f"softhca's option {name}", "value", text, option.known)
    return text == "true" if option.known == ("false", "true") else text


def _number(name: str, text: str) -> int:
    # 9 digits suffice for every size here, and keep one option from asking for all memory
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise UsageError(f"softhca was given {name}={text!r}; it takes a natural number below 10**9")
    return int(text)


def _names(text: str, what: str, known: Iterable[str]) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names - set(known))
    if unknown:
        raise UsageError.unknown("softhca", what, unknown[0], sorted(known))
    return names
