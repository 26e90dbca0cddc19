"""The objects of a device, and the verbs on memory, protection domains, regions and page lists.

Theory of operation
-------------------
Handles of all kinds come from one counter and are never used again, so that a stale handle, or one of
another kind, names nothing and is answered EINVAL.  An object that others use refuses to go (EBUSY): a
protection domain with regions or queue pairs, a completion queue with queue pairs.  A verb that fails has
changed nothing.

A user process registers its own memory by address (``reg_mr``); a kernel consumer allocates a region and posts
its registration.
"""

from __future__ import annotations

import random
from typing import Any, TypeVar

from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.arguments import Refused, access_bits, narrow
from verbs_adapters.softhca.capabilities import Offer
from verbs_adapters.softhca.engine import Engine
from verbs_adapters.softhca.event import EventQueue
from verbs_adapters.softhca.keys import RESERVED_INDEX, KeyTable
from verbs_adapters.softhca.mapping import Unmappable, map_sg, page_shift
from verbs_adapters.softhca.memory import MAX_BUFFER, Buffer, Memory
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import Channel, CompletionQueue, SharedReceives
from verbs_adapters.softhca.region import (
    ADDRESS_SPACE,
    REMOTE,
    SYSTEM_PAGE_SHIFT,
    Mapping,
    PageList,
    ProtectionDomain,
    Region,
)
from verbs_adapters.softhca.registrar import OperationError, Registrar

Args = dict[str, Any]
Thing = TypeVar("Thing")


def find(table: dict[int, Thing], handle: int) -> Thing:
    """The object that a handle names."""
    thing = table.get(handle)
    if thing is None:
        raise Refused
    return thing


class Objects:
    """One device context: its objects and the verbs on them."""

    def __init__(self, settings: Settings, seed: int, offer: Offer) -> None:
        self.settings = settings
        self.offer = offer
        self.faults = settings.fault
        chance = random.Random(seed).random  # noqa: S311 - a schedule, not a secret
        self._chance = chance
        user = settings.api == "linux-user"
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
        self.registrar = Registrar(self.keys, settings)
        self.events = EventQueue(kept="ASYNCHRONOUS_EVENTS" in offer.declared)
        self.engine = Engine(settings, chance, self.keys, protection, self.registrar, self.events)
        self._last_handle = int(chance() * 16)
        self.first_qpn = 2 + int(chance() * 1000)
        self.buffers: dict[int, Buffer] = {}
        self.pds: dict[int, ProtectionDomain] = {}
        self.cqs: dict[int, CompletionQueue] = {}
        self.channels: dict[int, Channel] = {}
        self.srqs: dict[int, SharedReceives] = {}
        self.qps: dict[int, QueuePair] = {}
        self.numbers: dict[int, QueuePair] = {}
        self.regions: dict[int, Region] = {}
        self.lists: dict[int, PageList] = {}

    def enter(self, table: dict[int, Thing], thing: Thing) -> int:
        """Give an object its handle."""
        self._last_handle += 1
        table[self._last_handle] = thing
        return self._last_handle

    def room(self, table: dict[int, Any]) -> None:
        """Refuse one more object than may live at once."""
        if len(table) >= self.settings.max_objects:
            raise Refused("ENOMEM")

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

    # -- regions -----------------------------------------------------------------------------------
    def alloc_mr(self, args: Args) -> Args:
        return self._new_region(args["pd"], args["max_num_sg"])

    def alloc_fast_reg_mr(self, args: Args) -> Args:
        return self._new_region(args["pd"], args["max_page_list_len"])

    def _new_region(self, pd_handle: int, max_pages: int) -> Args:
        pd = find(self.pds, pd_handle)
        if not 1 <= max_pages <= self.settings.max_pages:
            if "failed-alloc-leaks-pd-reference" in self.faults:
                pd.users += 1
            raise Refused
        self.room(self.regions)
        key = self.keys.new_key()
        region = Region(pd, key, max_pages)
        self.keys.enter(key, region)
        pd.users += 1
        return {"mr": self.enter(self.regions, region), "key": key}

    def reg_mr(self, args: Args) -> Args:
        addr, length, access = args["addr"], args["length"], access_bits(args["access"])
        pd = find(self.pds, args["pd"])
        self.room(self.regions)
        try:
            region = self._of_memory(pd, addr, length, access)
        except Refused:
            if "failed-alloc-leaks-pd-reference" in self.faults:
                pd.users += 1
            raise
        pd.users += 1
        local_only = not access & REMOTE and self.settings.local_rkey == "zero"
        rkey = 0 if local_only else region.key
        return {"mr": self.enter(self.regions, region), "lkey": region.key, "rkey": rkey}

    def _of_memory(self, pd: ProtectionDomain, addr: int, length: int, access: int) -> Region:
        """A VALID region of the consumer's memory; the order of checks is the kernel's."""
        try:
            self.registrar.check_access(access)
            self.registrar.check_length(length)
        except OperationError:
            raise Refused from None
        page = 1 << SYSTEM_PAGE_SHIFT
        if addr + length > ADDRESS_SPACE - page:  # its last page would end beyond what 64 bits count
            raise Refused
        buffer = self.memory.pin(addr, length)
        if buffer is None and length:
            raise Refused("EFAULT")
        region = Region(pd, self.keys.new_key(), max_pages=0)
        pages = range(addr & -page, addr + length, page)
        region.validate(region.key, access, Mapping(addr, length, SYSTEM_PAGE_SHIFT, addr % page, pages))
        region.pinned = buffer
        self.keys.enter(region.key, region)
        return region

    def dereg_mr(self, args: Args) -> None:
        region = find(self.regions, args["mr"])
        if region.pinned is not None:
            self.memory.unpin(region.pinned)
        del self.regions[args["mr"]]
        self.keys.remove(region)
        region.alive = False
        region.pd.users -= 1

    def map_mr_sg(self, args: Args) -> Args:
        region = find(self.regions, args["mr"])
        elements = [(item["addr"], narrow(item["length"])) for item in args["sg"]]
        any_size = "any-page-size-accepted" in self.faults
        try:
            shift = page_shift(narrow(args["page_size"]), any_size=any_size)
            mapped, mapping = map_sg(elements, narrow(args["offset"]), shift, region.max_pages)
        except Unmappable:
            raise Refused from None
        region.map_sets[region.map_set] = mapping
        return {"n": mapped, "iova": mapping.iova, "length": mapping.length}

    def update_fast_reg_key(self, args: Args) -> Args:
        region = find(self.regions, args["mr"])
        region.key = region.key & ~0xFF | narrow(args["byte"], 8)
        if "key-leaks-before-reg" in self.faults:
            region.hw_key = region.key
        return {"key": region.key}

    # -- page lists --------------------------------------------------------------------------------
    def alloc_fast_reg_page_list(self, args: Args) -> Args:
        if not 1 <= args["max_page_list_len"] <= self.settings.max_pages:
            raise Refused
        self.room(self.lists)
        pages = PageList(args["max_page_list_len"] + self.settings.list_slack)
        return {"list": self.enter(self.lists, pages), "max_page_list_len_actual": len(pages.pages)}

    def free_fast_reg_page_list(self, args: Args) -> None:
        pages = find(self.lists, args["list"])
        del self.lists[args["list"]]
        pages.pages[:] = [0] * len(pages.pages)  # the memory is someone else's now

    def set_page_list(self, args: Args) -> None:
        pages = find(self.lists, args["list"]).pages
        if len(args["pages"]) > len(pages):
            raise Refused
        pages[: len(args["pages"])] = args["pages"]
