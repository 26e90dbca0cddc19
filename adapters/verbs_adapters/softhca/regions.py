"""The verbs of regions and page lists.

Theory of operation
-------------------
A user process registers its own memory by address (``reg_mr``); a kernel consumer allocates a region and posts
its registration.

To change a region (``rereg_mr``) is to deregister and to register it under the same handle (``ibv_rereg_mr(3)``): the
old :class:`Region` is gone, and whatever was bound to it or still names it finds nothing there.  What no flag names
is taken over from it.  A change that fails has changed nothing; the library says of some failures that the region
cannot be used any more, which a consumer may believe.

A region to which windows are bound refuses to go or to change (EBUSY), or, as an option, leaves them without a
region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verbs_adapters.softhca.arguments import Refused, access_bits, narrow
from verbs_adapters.softhca.capabilities import WINVERBS
from verbs_adapters.softhca.mapping import Unmappable, map_sg, page_shift
from verbs_adapters.softhca.memory import Buffer
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.region import (
    ADDRESS_SPACE,
    HINTS,
    LOCAL_WRITE,
    MW_BIND,
    REMOTE,
    REMOTE_WRITE,
    SYSTEM_PAGE_SHIFT,
    ZERO_BASED,
    Mapping,
    PageList,
    ProtectionDomain,
    Region,
)
from verbs_adapters.softhca.registrar import OperationError

if TYPE_CHECKING:
    from verbs_adapters.softhca.overlapped import Later
    from verbs_adapters.softhca.queue import Overlap

Args = dict[str, Any]
REREG_FLAGS = frozenset({"CHANGE_TRANSLATION", "CHANGE_PD", "CHANGE_ACCESS"})


class Regions:
    """The verbs that make, change and destroy regions and page lists."""

    def __init__(self, objects: Objects) -> None:
        self._settings = objects.settings
        self._faults = objects.faults
        self._rights = objects.offer.rights
        if "hints-refused" in self._faults:
            self._rights = {name: bit for name, bit in self._rights.items() if name not in HINTS}
        self._pds = objects.pds
        self._regions = objects.regions
        self._lists = objects.lists
        self._keys = objects.keys
        self._memory = objects.memory
        self._registrar = objects.registrar
        self._enter = objects.enter
        self._room = objects.room
        self._forget = objects.forget
        self._goes_with_domain = objects.settings.api == WINVERBS

    # -- fast registration -------------------------------------------------------------------------
    def alloc_mr(self, args: Args) -> Args:
        return self._new_region(args["pd"], args["max_num_sg"])

    def alloc_fast_reg_mr(self, args: Args) -> Args:
        return self._new_region(args["pd"], args["max_page_list_len"])

    def _new_region(self, pd_handle: int, max_pages: int) -> Args:
        pd = find(self._pds, pd_handle)
        if not 1 <= max_pages <= self._settings.max_pages:
            if "failed-alloc-leaks-pd-reference" in self._faults:
                pd.users += 1
            raise Refused
        self._room(self._regions)
        key = self._keys.new_key()
        region = Region(pd, key, max_pages)
        self._keys.enter(key, region)
        pd.users += 1
        return {"mr": self._enter(self._regions, region), "key": key}

    # -- the consumer's memory ---------------------------------------------------------------------
    def reg_mr(self, args: Args) -> Args:
        addr, access = args["addr"], access_bits(args["access"], self._rights)
        pd = find(self._pds, args["pd"])
        self._room(self._regions)
        try:
            self._check_rights(access)
            mapping, buffer = self._map(addr, args["length"], access)
        except Refused:
            if "failed-alloc-leaks-pd-reference" in self._faults:
                pd.users += 1
            raise
        pd.users += 1
        region = self._of_memory(pd, self._keys.new_key(), access, mapping, buffer)
        return {"mr": self._enter(self._regions, region), **self._both_keys(region)}

    def _check_rights(self, access: int) -> None:
        try:
            self._registrar.check_access(access)
        except OperationError:
            raise Refused from None

    def _map(self, addr: int, length: int, access: int) -> tuple[Mapping, Buffer | None]:
        """The consumer's memory, pinned; the order of checks is the kernel's."""
        try:
            self._registrar.check_length(length)
        except OperationError:
            raise Refused from None
        page = 1 << SYSTEM_PAGE_SHIFT
        if addr + length > ADDRESS_SPACE - page:  # its last page would end beyond what 64 bits count
            raise Refused
        buffer = self._memory.pin(addr, length)
        if buffer is None and length:
            raise Refused("EFAULT")
        pages = range(addr & -page, addr + length, page)
        iova = 0 if access & ZERO_BASED else addr
        return Mapping(iova, length, SYSTEM_PAGE_SHIFT, addr % page, pages), buffer

    def _of_memory(
        self, pd: ProtectionDomain, key: int, access: int, mapping: Mapping, buffer: Buffer | None
    ) -> Region:
        """A VALID region of the consumer's memory, which the index of the key names from now on."""
        region = Region(pd, key, max_pages=0)
        region.validate(key, access, mapping)
        region.pinned = buffer
        self._keys.enter(key, region)
        return region

    def _both_keys(self, region: Region) -> Args:
        local_only = not region.access & REMOTE and self._settings.local_rkey == "zero"
        return {"lkey": region.key, "rkey": 0 if local_only else region.key}

    def register_later(self, pd: ProtectionDomain, args: Args, later: Later) -> tuple[Overlap, Args]:
        """An overlapped registration, and the keys that it has from the start.

        The index is taken at once; the key opens nothing until the registration is done, and is given back if that
        fails.  Remote write brings local write with it.  In WinVerbs a region does not keep its protection domain, but
        goes with it; only what is under way keeps it (``WvPdDeallocate``).
        """
        access = access_bits(args["access"], self._rights) | MW_BIND
        if access & REMOTE_WRITE:
            access |= LOCAL_WRITE
        self._room(self._regions)
        region = Region(pd, self._keys.new_key(), max_pages=0)

        def work(request: Overlap) -> None:
            try:
                mapping, region.pinned = self._map(args["addr"], args["length"], access)
            except Refused:
                if request.handle:
                    self._forget(region)
                raise
            region.validate(region.key, access, mapping)
            request.region = region
            if self._goes_with_domain:
                pd.users -= 1
                pd.regions[region] = None

        request = later.begin(work)
        self._keys.enter(region.key, region)
        pd.users += 1
        return request, self._both_keys(region)

    def deregister_later(self, region: Region, later: Later) -> Overlap:
        """An overlapped deregistration."""
        if region.windows:  # ND_DEVICE_BUSY, whatever ibv_dereg_mr would do
            raise Refused("EBUSY")
        if self._goes_with_domain:
            del region.pd.regions[region]
            region.pd.users += 1
        return later.begin(lambda _: self._forget(region))

    def rereg_mr(self, args: Args) -> Args:
        flags = set(args["flags"])
        old = find(self._regions, args["mr"])
        self._check_change(flags, args)
        if old.windows and self._settings.dereg_bound == "refuse":
            raise Refused("EBUSY")
        pd, access, mapping, buffer = old.pd, old.access, old.mapping, old.pinned
        assert mapping is not None
        if "CHANGE_ACCESS" in flags:
            access = access_bits(args.get("access", ()), self._rights)
            self._check_rights(access)
        if "CHANGE_PD" in flags:
            pd = find(self._pds, args.get("pd", 0))
        if "CHANGE_TRANSLATION" in flags or ("rereg-takes-unflagged-range" in self._faults and args.get("length")):
            if self._settings.rereg_translation == "refuse":
                raise Refused("EOPNOTSUPP")
            mapping, buffer = self._map(args["addr"], args["length"], access)
            if old.pinned is not None:
                self._memory.unpin(old.pinned)
        if "rereg-leaves-domains-counted" not in self._faults:
            old.pd.users -= 1
            pd.users += 1
        key = self._keys.new_key() if self._settings.rereg_key == "new" else old.key
        self._keys.remove(old)
        old.alive = False
        region = self._of_memory(pd, key, access, mapping, buffer)
        self._regions[args["mr"]] = region
        return self._both_keys(region)

    def _check_change(self, flags: set[str], args: Args) -> None:
        """What the library refuses, and the kernel: a change of nothing."""
        moved = "CHANGE_TRANSLATION" in flags and not (args.get("addr") and args.get("length"))
        rights = args.get("access") and "CHANGE_ACCESS" not in flags
        if moved or rights or not flags or flags - REREG_FLAGS:
            raise Refused

    def dereg_mr(self, args: Args) -> None:
        region = find(self._regions, args["mr"])
        bound = region.windows and "region-freed-under-windows" not in self._faults
        if bound and self._settings.dereg_bound == "refuse":
            if "refused-dereg-says-done" in self._faults:
                del self._regions[args["mr"]]
                return
            raise Refused("EBUSY")
        del self._regions[args["mr"]]
        self._forget(region)

    def map_mr_sg(self, args: Args) -> Args:
        region = find(self._regions, args["mr"])
        elements = [(item["addr"], narrow(item["length"])) for item in args["sg"]]
        any_size = "any-page-size-accepted" in self._faults
        try:
            shift = page_shift(narrow(args["page_size"]), any_size=any_size)
            mapped, mapping = map_sg(elements, narrow(args["offset"]), shift, region.max_pages)
        except Unmappable:
            raise Refused from None
        region.map_sets[region.map_set] = mapping
        return {"n": mapped, "iova": mapping.iova, "length": mapping.length}

    def update_fast_reg_key(self, args: Args) -> Args:
        region = find(self._regions, args["mr"])
        region.key = region.key & ~0xFF | narrow(args["byte"], 8)
        if "key-leaks-before-reg" in self._faults:
            region.hw_key = region.key
        return {"key": region.key}

    # -- page lists --------------------------------------------------------------------------------
    def alloc_fast_reg_page_list(self, args: Args) -> Args:
        if not 1 <= args["max_page_list_len"] <= self._settings.max_pages:
            raise Refused
        self._room(self._lists)
        pages = PageList(args["max_page_list_len"] + self._settings.list_slack)
        return {"list": self._enter(self._lists, pages), "max_page_list_len_actual": len(pages.pages)}

    def free_fast_reg_page_list(self, args: Args) -> None:
        pages = find(self._lists, args["list"])
        del self._lists[args["list"]]
        pages.pages[:] = [0] * len(pages.pages)  # the memory is someone else's now

    def set_page_list(self, args: Args) -> None:
        pages = find(self._lists, args["list"]).pages
        if len(args["pages"]) > len(pages):
            raise Refused
        pages[: len(args["pages"])] = args["pages"]
