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
:data:`VERBS` lists each verb with its parameters and outputs; it describes
shapes only and says nothing about what a correct device does.

Results are values, never exceptions.  A verb that fails answers with the errno's name, or the status word of an API
that has its own (``ND_CANCELED``), and no outputs.
What keeps a verb from being answered at all (the device crashed, the agent sent garbage, the deadline
passed) is a :class:`Trouble`, which says whose fault it is.

Handles are non-zero integers chosen by the backend, unique among the live objects of their kind.
Keys, QP numbers and addresses are numbers as the device would give them.

The contract has a version.  A change that old backends cannot answer raises the major number; a minor one adds
verbs, which a backend that lacks them answers with EOPNOTSUPP, and optional parameters, without which a verb does
what it did before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from verbs_adapters.contract.memory import MEMORY
from verbs_adapters.contract.overlapped import OVERLAPPED
from verbs_adapters.contract.pairs import PAIRS
from verbs_adapters.contract.queues import QUEUES
from verbs_adapters.contract.verb import Verb

__all__ = [
    "CAPABILITIES",
    "CONTRACT_VERSION",
    "OF_SEVERAL",
    "OK",
    "VERBS",
    "AdapterError",
    "Answer",
    "Backend",
    "BackendFactory",
    "Event",
    "EventSource",
    "Hello",
    "OtherDevice",
    "Trouble",
    "UsageError",
    "Value",
    "Verb",
]

CONTRACT_VERSION = "1.1"

Value = None | bool | int | str | Sequence["Value"] | Mapping[str, "Value"]
"""What may cross the contract.  Byte strings travel as lower-case hexadecimal text."""

OK = "0"
"""The result of a verb that succeeded."""


class OtherDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What a device beyond the first can do; ``capabilities`` and ``limits`` as in :class:`Hello`."""

    device: str
    capabilities: tuple[str, ...] = ()
    limits: dict[str, int] = {}


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend says of itself, once, before anything else.

    ``capabilities`` names optional features; ``api`` and ``transport`` the profiles it can be judged
    under, the preferred one first; ``limits`` device attributes by their verbs name (``max_qp_wr``,
    ``max_fast_reg_page_list_len``, ...), each a promise; ``max_mtu`` and ``active_mtu`` are those of the port,
    in bytes.  A backend with several devices, on one host or on more, tells of those beyond the first in
    ``others``; the parameter `hca` of a verb counts them from 1.
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
    others: tuple[OtherDevice, ...] = ()


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
        """``whose`` has no ``what`` of this name: with all that there are, and last, where a long text is not cut, with
        what may have been meant."""
        names = list(known)
        close = get_close_matches(word, names, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
        return cls(f"{whose} has no {what} {word!r}. Known: {', '.join(names) or '(none)'}{hint}")


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


VERBS: dict[str, Verb] = {**MEMORY, **QUEUES, **PAIRS, **OVERLAPPED}
"""Every verb of the contract."""

OF_SEVERAL = frozenset({"hca", "silent", "remote"})
"""Optional parameters that are absent wherever there is one device: `hca` (then 1, the first) names an opened device,
the others are between a backend of two sides and its sides."""

CAPABILITIES = {
    "MEM_MGT_EXTENSIONS": "fast registration: alloc_mr, map_mr_sg, REG_MR, LOCAL_INV, SEND_WITH_INV",
    "FAST_REG_PAGE_LIST": "the page-list form of Linux 2.6.27 to 4.3: FAST_REG_MR and its two allocators",
    "MEM_WINDOW": "memory windows of type 1: alloc_mw, bind_mw, dealloc_mw",
    "MEM_WINDOW_TYPE_2A": "memory windows of type 2 that are checked against their queue pair: BIND_MW, LOCAL_INV",
    "MEM_WINDOW_TYPE_2B": "as MEM_WINDOW_TYPE_2A, checked against queue pair and protection domain",
    "SRQ": "shared receive queues",
    "SRQ_RESIZE": "modify_srq with MAX_WR",
    "COMPLETION_CHANNELS": "completion channels: create_comp_channel, req_notify_cq, get_cq_event, ack_cq_events",
    "RESIZE_CQ": "resize_cq",
    "ASYNCHRONOUS_EVENTS": "get_async_event, ack_async_event",
    "REREG_MR": "rereg_mr",
    "ACCESS_FLAGS": "reg_mr passes on RELAXED_ORDERING, UNKNOWN_HINT and UNKNOWN_FLAG",
    "UC": "queue pairs of the type UC",
    "UD": "queue pairs of the type UD, and address handles",
    "XRC": "queue pairs of the types XRC_SEND and XRC_RECV",
    "RAW_PACKET": "queue pairs of the type RAW_PACKET",
    "QP_ATTRIBUTES": "modify_qp and query_qp with a mask, and the states SQD and SQE",
    "TWO_DEVICES": "two devices that are connected, the second one told of in `others`",
    "ATOMIC": "the work requests ATOMIC_CMP_AND_SWP and ATOMIC_FETCH_AND_ADD",
    "INLINE_DATA": "create_qp takes max_inline_data, post_send `inline`",
    "SGE_LISTS": "create_qp takes max_send_sge and max_recv_sge",
    "REQUEST_LISTS": "post_send_list and post_recv_list",
    "RNR_RETRY": "modify_qp takes rnr_retry below 7, so that a send that finds no receive can fail",
    "IMMEDIATE_DATA": "the work requests SEND_WITH_IMM and RDMA_WRITE_WITH_IMM, WITH_IMM and imm_data of poll_cq",
}
"""Optional features that a backend may declare, each with its meaning."""
