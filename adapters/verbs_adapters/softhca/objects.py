"""The objects of a device, and the verbs on memory, protection domains, regions and page lists.

Theory of operation
-------------------
Handles of all kinds come from one counter and are never used again, so that a stale handle, or one of
another kind, names nothing and is answered EINVAL.  An object that others use refuses to go (EBUSY): a
protection domain with regions or queue pairs, a completion queue with queue pairs.  A verb that fails has
changed nothing.

Here are the verbs on memory and protection domains; other objects have modules of their own.
"""

from __future__ import annotations

import random
from typing import Any, TypeVar

from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.capabilities import OF_PROCESS, Offer
from verbs_adapters.softhca.engine import Engine
from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.keys import RESERVED_INDEX, KeyTable
from verbs_adapters.softhca.memory import MAX_BUFFER, Buffer, Memory
from verbs_adapters.softhca.mw import Window, Windows
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import DONE, WAITING, Channel, CompletionQueue, Overlap, SharedReceives
from verbs_adapters.softhca.region import (
    SYSTEM_PAGE_SHIFT,
    AddressHandle,
    PageList,
    ProtectionDomain,
    Region,
)
from verbs_adapters.softhca.registrar import Registrar

Args = dict[str, Any]
Thing = TypeVar("Thing")


def find(table: dict[int, Thing], handle: int) -> Thing:
    """The object that a handle names."""
    thing = table.get(handle)
    if thing is None:
        raise Refused
    return thing


class Holder:
    """A region object of NetworkDirect: what it holds, or waits for."""

    __slots__ = ("pd", "request")

    def __init__(self, pd: ProtectionDomain) -> None:
        self.pd = pd
        self.request: Overlap | None = None

    @property
    def taken(self) -> bool:
        """Whether it holds a registration or waits for one; one that failed is none."""
        return self.request is not None and self.request.outcome in (WAITING, DONE)


class Objects:
    """One device context: its objects and the verbs on the first of them."""

    def __init__(self, settings: Settings, seed: int, offer: Offer) -> None:
        self.settings = settings
        self.offer = offer
        self.faults = settings.fault
        chance = random.Random(seed).random  # noqa: S311 - a schedule, not a secret
        user = settings.api in OF_PROCESS
        self.chance = chance
        self.memory = Memory(chance, grain=1 << SYSTEM_PAGE_SHIFT if user else 1)
        self.keys = KeyTable(chance, settings.fault, random_byte=settings.key_byte == "random")
        reserved = RESERVED_INDEX << 8 | int(chance() * 256)
        self.dma_lkey = reserved if settings.dma_lkey == "reserved" and not user else 0
        protection = Protection(
            self.memory,
            self.keys,
            None if user else self.dma_lkey,
            settings,
        )
        self.registrar = Registrar(self.keys, Windows(self.keys, settings), settings)
        self.events = EventQueue(kept="ASYNCHRONOUS_EVENTS" in offer.declared)
        self.numbers: dict[int, QueuePair] = {}
        self.engine = Engine(
            settings, chance, self.keys, protection, self.registrar, events=self.events, numbers=self.numbers
        )
        self._last_handle = int(chance() * 16)
        self.first_qpn = 2 + int(chance() * 1000)
        self.buffers: dict[int, Buffer] = {}
        self.pds: dict[int, ProtectionDomain] = {}
        self.cqs: dict[int, CompletionQueue] = {}
        self.channels: dict[int, Channel] = {}
        self.srqs: dict[int, SharedReceives] = {}
        self.qps: dict[int, QueuePair] = {}
        self.ahs: dict[int, AddressHandle] = {}
        self.regions: dict[int, Region] = {}
        self.lists: dict[int, PageList] = {}
        self.windows: dict[int, Window] = {}
        self.requests: dict[int, Overlap] = {}
        self.holders: dict[int, Holder] = {}

    def enter(self, table: dict[int, Thing], thing: Thing) -> int:
        """Give an object its handle."""
        self._last_handle += 1
        table[self._last_handle] = thing
        return self._last_handle

    def room(self, table: dict[int, Any]) -> None:
        """Refuse one more object than may live at once."""
        if len(table) >= self.settings.max_objects:
            raise Refused("ENOMEM")

    def forget(self, region: Region) -> None:
        """A region is gone: its key, its memory, its use of the protection domain."""
        if region.pinned is not None:
            self.memory.unpin(region.pinned)
        self.keys.remove(region)
        region.alive = False
        region.pd.users -= 1

    # -- memory and time ---------------------------------------------------------------------------
    def alloc_buffer(self, args: Args) -> Args:
        length = args["length"]
        if length == 0:
            raise Refused
        if length > MAX_BUFFER:
            raise Refused("ENOMEM")
        buffer = self.memory.alloc(length)
        return {"buf": self.enter(self.buffers, buffer), "addr": buffer.addr}

    def free_buffer(self, args: Args) -> None:
        self.memory.free(find(self.buffers, args["buf"]))
        del self.buffers[args["buf"]]

    def write_buffer(self, args: Args) -> None:
        buffer, data, start = find(self.buffers, args["buf"]), bytes.fromhex(args["data"]), args["offset"]
        if start + len(data) > buffer.length:
            raise Refused
        buffer.data[start : start + len(data)] = data

    def read_buffer(self, args: Args) -> Args:
        buffer, start, length = find(self.buffers, args["buf"]), args["offset"], args["length"]
        if start + length > buffer.length:
            raise Refused
        return {"data": buffer.data[start : start + length].hex()}

    def settle(self, _args: Args) -> None:
        self.engine.settle()

    # -- protection domains ------------------------------------------------------------------------
    def alloc_pd(self, _args: Args) -> Args:
        self.room(self.pds)
        return {"pd": self.enter(self.pds, ProtectionDomain()), "local_dma_lkey": self.dma_lkey}

    def dealloc_pd(self, args: Args) -> None:
        pd = find(self.pds, args["pd"])
        if pd.users and "pd-freed-under-children" not in self.faults:
            if "refused-destroy-frees-handle" in self.faults:
                del self.pds[args["pd"]]
            raise Refused("EBUSY")
        del self.pds[args["pd"]]
        for region in pd.regions:
            pd.users += 1
            self.forget(region)
