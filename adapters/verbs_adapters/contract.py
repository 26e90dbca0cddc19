"""The adapter contract: what a backend must offer to be judged.

Theory of operation
-------------------
A *backend* is one implementation of verbs: a device with its driver and library, or a model of one.
The suite talks to it through one small protocol, :class:`Backend`:

``hello``   says what the backend is and what it promises (profiles, capabilities, limits);
``reset``   gives a fresh device context: no objects, nothing in flight;
``call``    performs one verb and answers with what the verb returned.

Everything that crosses the contract is a plain value (:data:`Value`), so that the same contract can be
spoken in one process, over a pipe to a child process, or to another machine.  Verbs are named as in
rdma-core or the kernel, without ``ibv_`` or ``ib_``; enumerators as in the headers, without ``IBV_``.
:data:`VERBS` lists each verb with its parameters and outputs; it describes shapes only and says nothing
about what a correct device does.

Results are values, never exceptions.  A verb that fails answers with the errno's name and no outputs.
What keeps a verb from being answered at all (the device crashed, the agent sent garbage, the deadline
passed) is a :class:`Trouble`, which says whose fault it is.

Handles are non-zero integers chosen by the backend, unique among the live objects of their kind.
Keys, QP numbers and addresses are numbers as the device would give them.

The contract has a version.  A change that old backends cannot answer raises the major number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

CONTRACT_VERSION = "1.0"

Value = None | bool | int | str | Sequence["Value"] | Mapping[str, "Value"]
"""What may cross the contract.  Byte strings travel as lower-case hexadecimal text."""

OK = "0"
"""The result of a verb that succeeded."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend says of itself, once, before anything else.

    ``capabilities`` names optional features; ``api`` and ``transport`` the profiles it can be judged
    under, the preferred one first; ``limits`` device attributes by their verbs name (``max_qp_wr``,
    ``max_fast_reg_page_list_len``, ...), each a promise.
    """

    contract: str
    name: str
    version: str
    device: str
    firmware: str = ""
    kernel: str = ""
    api: tuple[str, ...]
    transport: tuple[str, ...]
    capabilities: tuple[str, ...] = ()
    limits: dict[str, int] = {}


class Answer(msgspec.Struct, frozen=True):
    """What a verb returned: ``"0"`` or an errno's name, and on success its outputs by name."""

    result: str
    out: dict[str, Any] = {}


class Trouble(msgspec.Struct, frozen=True):
    """Why a verb was not answered.

    ``kind`` is one of *crash* (it ended), *hang* (no answer before the deadline), *late* (an answer came
    after the deadline), *garbage* (an answer that is not of the contract).  ``whose`` is ``backend`` for
    the device or driver under test and ``glue`` for the agent, the adapter or the harness.
    """

    kind: Literal["crash", "hang", "late", "garbage"]
    whose: Literal["backend", "glue"]
    message: str
    evidence: str = ""


class Event(msgspec.Struct, frozen=True):
    """Something that a backend tells unasked: a name (of an asynchronous event, or the backend's own) and facts.

    It is evidence for people; no rule depends on when it comes.
    """

    name: str
    data: dict[str, Any] = {}


class AdapterError(Exception):
    """The backend cannot be set up or the adapter was used wrongly; never a verdict on the device."""


class UsageError(AdapterError):
    """Whoever chose the adapter or its options is to mend them: no such name, or a value that cannot be used.

    Nothing has been started.  Where a name is wrong, :meth:`unknown` words it.
    """

    @classmethod
    def unknown(cls, whose: str, what: str, word: str, known: Iterable[str]) -> UsageError:
        """``whose`` has no ``what`` of this name: with what may have been meant, and all that there are."""
        names = list(known)
        close = get_close_matches(word, names, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
        return cls(f"{whose} has no {what} {word!r}{hint} Known: {', '.join(names) or '(none)'}.")


@runtime_checkable
class Backend(Protocol):
    """One implementation of verbs, ready to be driven by one thread."""

    def hello(self) -> Hello:
        """Say what this backend is; the same answer each time."""

    def reset(self, seed: int) -> Trouble | None:
        """Start from a fresh device context; ``seed`` fixes every choice that the backend makes by chance."""

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Perform one verb of :data:`VERBS` with arguments by name."""

    def close(self) -> None:
        """Give everything back.  Nothing may be called afterwards."""


@runtime_checkable
class EventSource(Protocol):
    """A backend that tells events."""

    def events(self) -> list[Event]:
        """What has happened since the last time, in order."""


class BackendFactory(Protocol):
    """What an entry point of the group ``verbspec.adapters`` names: options in, backend out.

    ``options`` holds the ``-o KEY=VALUE`` pairs of the command line as text.  An unknown key or an
    unusable value raises :class:`UsageError` with the list of what is known.
    """

    def __call__(self, options: Mapping[str, str], /) -> Backend:
        """Make a backend."""


class Verb(msgspec.Struct, frozen=True):
    """The shape of one verb: parameter and output types by name, and one sentence.

    Types: ``handle`` (an object), ``handle?`` (0 for none), ``nat`` (0 to 2**64-1), ``bool``, ``text``
    (an enumerator), ``flags`` (a list of enumerators without repeats), ``hex`` (bytes), ``nats``,
    ``sges`` (a list of ``{"addr", "length", "lkey"}``), ``sg`` (a list of ``{"addr", "length"}``).
    """

    params: dict[str, str]
    out: dict[str, str]
    doc: str


VERBS: dict[str, Verb] = {
    # -- what the suite itself needs: memory and time ----------------------------------------------
    "alloc_buffer": Verb(
        {"length": "nat"},
        {"buf": "handle", "addr": "nat"},
        "Memory of the consumer, zeroed, aligned to 64 KiB, mapped for DMA: `addr` is its DMA address. "
        "Buffers never overlap, and each is followed by at least one unmapped page. In the API `linux-user` "
        "`addr` is the consumer's own (virtual) address.",
    ),
    "free_buffer": Verb({"buf": "handle"}, {}, "Give a buffer back."),
    "write_buffer": Verb({"buf": "handle", "offset": "nat", "data": "hex"}, {}, "The consumer's CPU stores bytes."),
    "read_buffer": Verb(
        {"buf": "handle", "offset": "nat", "length": "nat"},
        {"data": "hex"},
        "The consumer's CPU loads bytes.",
    ),
    "settle": Verb(
        {},
        {},
        "Wait until the device has nothing left to do that it will do without further input: all "
        "executable work executed, all completions in their CQs. A backend in virtual time lets it pass.",
    ),
    # -- protection domains ------------------------------------------------------------------------
    "alloc_pd": Verb(
        {},
        {"pd": "handle", "local_dma_lkey": "nat"},
        "`local_dma_lkey` addresses the consumer's memory by DMA address without a region, for local use; "
        "0 in the API `linux-user`, where no key does.",
    ),
    "dealloc_pd": Verb({"pd": "handle"}, {}, "Free a protection domain."),
    # -- completion queues -------------------------------------------------------------------------
    "create_cq": Verb(
        {"cqe": "nat"}, {"cq": "handle", "cqe_actual": "nat"}, "A completion queue of at least `cqe` entries."
    ),
    "destroy_cq": Verb({"cq": "handle"}, {}, "Destroy a completion queue."),
    "poll_cq": Verb(
        {"cq": "handle"},
        {
            "n": "nat",
            "wr_id": "nat",
            "status": "text",
            "opcode": "text",
            "qp_num": "nat",
            "byte_len": "nat",
            "wc_flags": "flags",
            "invalidate_rkey": "nat",
        },
        "Take at most one entry. `n` is 0 (then no other output) or 1. `opcode` is one of SEND, RDMA_WRITE, "
        "RDMA_READ, LOCAL_INV, REG_MR (also for FAST_REG_MR), RECV. `wc_flags`: WITH_INVALIDATE. On a "
        "failed entry only wr_id, status, qp_num mean something; the rest may hold anything of its type.",
    ),
    # -- queue pairs -------------------------------------------------------------------------------
    "create_qp": Verb(
        {
            "pd": "handle",
            "send_cq": "handle",
            "recv_cq": "handle",
            "max_send_wr": "nat",
            "max_recv_wr": "nat",
        },
        {"qp": "handle", "qp_num": "nat", "max_send_wr_actual": "nat", "max_recv_wr_actual": "nat"},
        "A reliable connected queue pair; each work request takes up to two SGEs and is signalled by its own flag.",
    ),
    "destroy_qp": Verb({"qp": "handle"}, {}, "Destroy a queue pair."),
    "modify_qp": Verb(
        {"qp": "handle", "state": "text", "peer": "handle?", "access": "flags"},
        {},
        "Move to `state` (RESET, INIT, RTR, RTS, ERR). `access` (LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ) is "
        "taken at INIT, `peer` (the QP at the other end) at RTR; elsewhere both are ignored. The adapter "
        "fills in the other attributes that the step requires: infinite RNR retry, a finite transport "
        "retry, enough outstanding reads. The suite may send the enumerator UNKNOWN, which stands for a value "
        "outside the enumeration; the adapter passes on a number that the headers do not name.",
    ),
    "query_qp": Verb(
        {"qp": "handle"},
        {"state": "text"},
        "The state of a queue pair, by the name in the headers; UNKNOWN for a value outside the enumeration.",
    ),
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
        "there. `access`: LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ. The region is valid at once and its first "
        "byte has the address `addr`.",
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
        },
        {},
        "Post one work request. SEND and SEND_WITH_INV use sg_list (and invalidate_rkey), RDMA_WRITE and "
        "RDMA_READ sg_list, remote_addr and rkey, LOCAL_INV invalidate_rkey, REG_MR mr, key and access, "
        "FAST_REG_MR key (which names the region), access, list, page_list_len, page_shift, iova_start and "
        "length. Parameters that an opcode does not use are absent. `access`: LOCAL_WRITE, REMOTE_WRITE, "
        "REMOTE_READ.",
    ),
    "post_recv": Verb({"qp": "handle", "wr_id": "nat", "sg_list": "sges"}, {}, "Post one receive."),
}
"""Every verb of the contract."""

CAPABILITIES = {
    "MEM_MGT_EXTENSIONS": "fast registration: alloc_mr, map_mr_sg, REG_MR, LOCAL_INV, SEND_WITH_INV",
    "FAST_REG_PAGE_LIST": "the page-list form of Linux 2.6.27 to 4.3: FAST_REG_MR and its two allocators",
}
"""Optional features that a backend may declare, each with its meaning."""
