"""The objects of a program, by their handles."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.layout import QpCap
from verbs_adapters.rdma_core.agent.library import Errno, made, succeed
from verbs_adapters.rdma_core.agent.memory import Buffer
from verbs_adapters.rdma_core.agent.names import RNR_RETRIES_ENDLESS
from verbs_adapters.rdma_core.agent.values import address_of


class Address:
    """What another queue pair must know of one to be connected to it: numbers, port, a GID, and reads at a time."""

    FORMAT = struct.Struct("!IIHBB16s")

    def __init__(self, number: int, first_psn: int, lid: int, mtu: int, reads: int, gid: bytes) -> None:
        self.number, self.first_psn, self.lid, self.mtu, self.reads, self.gid = number, first_psn, lid, mtu, reads, gid

    @classmethod
    def parse(cls, text: str) -> Address:
        """From the form in which it travels."""
        data = bytes.fromhex(text)
        if len(data) != cls.FORMAT.size:
            raise ValueError(f"an address of {len(data)} bytes")
        return cls(*cls.FORMAT.unpack(data))

    def __str__(self) -> str:
        return self.FORMAT.pack(self.number, self.first_psn, self.lid, self.mtu, self.reads, self.gid).hex()


class Pair:
    """A queue pair, and what of it decides how long `settle` must wait."""

    def __init__(self, pointer: Any, kind: str, caps: QpCap, serial: int) -> None:
        self.pointer = pointer
        self.kind = kind
        self.number: int = pointer.contents.qp_num
        self.caps = caps
        self.first_psn = serial * 4096 & 0xFFFFFF  # apart, so that no late packet of one fits another
        self.peer: Pair | Address | None = None
        self.rnr_retry = RNR_RETRIES_ENDLESS
        self.sends = 0  # posted and not known to be retired
        self.waited = 0  # of these, how many `settle` has given up

    def outstanding(self) -> bool:
        """Whether sends may be outstanding that `settle` has not waited for in vain."""
        return self.sends > self.waited


class Objects:
    """The open device and what the program made on it; the verbs are in the classes that derive from this one."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self._library = opened.library
        self._ops = opened.context.ops
        self._handles = 0
        self._serial = 0
        self._buffers: dict[int, Buffer] = {}
        self._pds: dict[int, Any] = {}
        self._mrs: dict[int, Any] = {}
        self._mws: dict[int, Any] = {}
        self._channels: dict[int, Any] = {}
        self._cqs: dict[int, Any] = {}
        self._srqs: dict[int, Any] = {}
        self._ahs: dict[int, Any] = {}
        self._qps: dict[int, Pair] = {}
        self._by_number: dict[int, Pair] = {}
        self._busy = False

    def make_pd(self) -> Any:
        """ibv_alloc_pd."""
        return made(self._library.ibv_alloc_pd(self.opened.address))

    def make_cq(self, cqe: int, channel: Any = None, vector: int = 0) -> Any:
        """ibv_create_cq."""
        return made(self._library.ibv_create_cq(self.opened.address, cqe, None, channel, vector))

    def _new(self, table: dict[int, Any], thing: Any) -> int:
        self._handles += 1
        table[self._handles] = thing
        return self._handles

    @staticmethod
    def _find(table: Mapping[int, Any], handle: int) -> Any:
        thing = table.get(handle)
        if thing is None:
            raise Errno("EINVAL")
        return thing

    def _end(self, table: dict[int, Any], handle: int, verb: Callable[[Any], int]) -> dict[str, Any]:
        """Call a verb that ends an object; if it succeeds, the handle names nothing any more."""
        succeed(verb(self._find(table, handle)))
        del table[handle]
        return {}

    @staticmethod
    def _handle_at(table: Mapping[int, Any], address: int) -> int:
        """The handle of the object at an address; 0 if it is none of the program's."""
        for handle, thing in table.items():
            if address_of(thing.pointer if isinstance(thing, Pair) else thing) == address:
                return handle
        return 0
