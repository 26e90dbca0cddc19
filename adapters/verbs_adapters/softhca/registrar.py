"""Memory management operations: registering and invalidating regions.

Theory of operation
-------------------
Registration moves a region from INVALID to VALID and puts key, rights and mapping in force together, when
the work request executes and not before.  It fails, and changes nothing, if the region is VALID already, if
its protection domain is not the queue pair's, if the key's upper 24 bits are not the region's, or if the
vector cannot be used (``rxe_reg_fast_mr``; draft-hilland-rddp-verbs 7.3.2.5).

Invalidation moves it back.  A VALID region asks for the whole key and the same protection domain; a remote
invalidation also for a remote right of the queue pair and of the region (draft 7.8).  On an INVALID region
invalidation succeeds and changes nothing; whether the key's low byte is looked at there is an option.

Bindings and windows are the affair of :mod:`~verbs_adapters.softhca.mw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verbs_adapters.softhca.keys import KeyTable
from verbs_adapters.softhca.mapping import Unmappable, from_page_list
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.region import (
    LOCAL_WRITE,
    MAX_PAGE_SHIFT,
    MIN_PAGE_SHIFT,
    REMOTE,
    REMOTE_ATOMIC,
    REMOTE_WRITE,
    Mapping,
    Region,
)

if TYPE_CHECKING:
    from verbs_adapters.softhca.mw import Windows


class OperationError(Exception):
    """A registration, binding or invalidation that cannot be done; its status, unless that is the device's usual."""

    def __init__(self, reason: str, status: str = "") -> None:
        super().__init__(reason)
        self.status = status


class Registrar:
    """Executes memory management operations against the key table."""

    def __init__(self, keys: KeyTable, windows: Windows, settings: Settings) -> None:
        self._keys = keys
        self._windows = windows
        self._settings = settings
        self._faults = settings.fault

    def execute(self, qp: QueuePair, wqe: Wqe) -> None:
        """Do what a LOCAL_INV, REG_MR, FAST_REG_MR or BIND_MW says, or raise and change nothing."""
        if wqe.opcode == "LOCAL_INV":
            self._local_invalidate(qp, wqe.invalidate_rkey)
        elif wqe.binding is not None:
            self._windows.bind(qp, wqe.binding)
        else:
            self._register(qp, wqe)

    # -- registration ------------------------------------------------------------------------------
    def check(self, qp: QueuePair, wqe: Wqe) -> Region:
        """Refuse a registration that cannot work whatever state the region is in."""
        region = wqe.region or self._keys.find(wqe.key)
        if region is None or not region.alive:
            raise OperationError(f"key {wqe.key:#010x} names no region")
        if region.pd is not qp.pd:
            raise OperationError("region and queue pair are in different protection domains")
        if wqe.key >> 8 != region.index:
            raise OperationError(f"key {wqe.key:#010x} has another index than the region's {region.index:#x}")
        self.check_access(wqe.access)
        self._check_pages(region, wqe)
        return region

    def check_posted(self, wqe: Wqe) -> None:
        """Refuse what a driver may see without asking the device: a page list too long for its region."""
        region = self._keys.find(wqe.key)
        if region is not None:
            self._check_pages(region, wqe)

    def _check_pages(self, region: Region, wqe: Wqe) -> None:
        if wqe.page_list_len > region.max_pages:
            raise OperationError(f"{wqe.page_list_len} pages for a region of at most {region.max_pages}")

    def check_access(self, access: int) -> None:
        """Refuse rights that no region may have."""
        needs_local = access & (REMOTE_WRITE | REMOTE_ATOMIC) and not access & LOCAL_WRITE
        if needs_local and "remote-write-without-local-write" not in self._faults:
            raise OperationError("REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE")

    def check_length(self, length: int) -> None:
        """Refuse a region of no bytes, unless the device has such regions."""
        refused = self._settings.empty_reg == "refuse" and "empty-region-has-no-bounds" not in self._faults
        if length == 0 and refused:
            raise OperationError("a region of no bytes")

    def _register(self, qp: QueuePair, wqe: Wqe) -> None:
        faults = self._faults
        try:
            region = self.check(qp, wqe)
            mapping = self._mapping(region, wqe)
        except OperationError:
            self._leave_traces(qp, wqe)
            raise
        access = wqe.access
        if "slot-keeps-old-fields" in faults:
            access |= qp.slot_access.get(qp.slot, 0)
            qp.slot_access[qp.slot] = wqe.access
        region.validate(wqe.key, access, mapping)
        qp.last_registered = region

    def _leave_traces(self, qp: QueuePair, wqe: Wqe) -> None:
        """What a failed registration leaves behind: nothing, unless the device is broken."""
        if "failed-reg-leaks-reference" in self._faults:
            qp.pd.users += 1
        region = wqe.region or self._keys.find(wqe.key)
        if region is not None:
            if "failed-reg-changes-the-key" in self._faults:
                region.hw_key = wqe.key
            if "failed-reg-leaves-valid" in self._faults:
                region.valid = True

    def _mapping(self, region: Region, wqe: Wqe) -> Mapping:
        if region.valid and "reg-of-valid-accepted" not in self._faults:
            raise OperationError("the region is VALID; it has to be invalidated first")
        if wqe.opcode == "FAST_REG_MR":
            mapping = self._from_page_list(wqe)
        else:
            at_execution = self._settings.map_read == "execute"
            taken = region.take_mapping(self._faults) if at_execution else wqe.mapping
            if taken is None:
                raise OperationError("nothing was mapped into the region")
            mapping = taken
        self.check_length(mapping.length)
        return mapping

    def _from_page_list(self, wqe: Wqe) -> Mapping:
        assert wqe.page_list is not None
        known = MIN_PAGE_SHIFT <= wqe.page_shift <= MAX_PAGE_SHIFT
        if not known and "any-page-size-accepted" not in self._faults:
            raise OperationError(f"pages of 2**{wqe.page_shift} bytes are outside what the device can do")
        pages = wqe.page_list.pages[: wqe.page_list_len]  # fetched by DMA: as the list is now
        try:
            return from_page_list(pages, wqe.page_shift, wqe.iova_start, wqe.length)
        except Unmappable as error:
            raise OperationError(str(error)) from None

    # -- invalidation ------------------------------------------------------------------------------
    def _local_invalidate(self, qp: QueuePair, key: int) -> None:
        faults = self._faults
        if self._keys.find_window(key) is not None:
            self._windows.invalidate(qp, key)
            return
        region = self._named(qp, key)
        if "local-inv-needs-remote-rights" in faults and not region.access & REMOTE:
            raise OperationError("the region has no remote rights")
        if "inv-of-invalid-hits-another" in faults and not region.valid and qp.last_registered:
            region = qp.last_registered
        if "inv-visible-late" in faults:
            qp.late.append(region.invalidate)
        elif "inv-does-nothing" not in faults:
            region.invalidate()

    def remote_invalidate(self, qp: QueuePair, key: int) -> None:
        """Do what an arriving SEND_WITH_INV says."""
        if self._keys.find_window(key) is not None:
            self._windows.remote_invalidate(qp, key)
            return
        if "unknown-key-invalidated" in self._faults and self._keys.find(key) is None:
            return
        region = self._named(qp, key)
        closed = not (qp.access & REMOTE and region.access & REMOTE)
        if closed and "remote-inv-of-local-region" not in self._faults:
            raise OperationError("queue pair or region allows nothing remote")
        region.invalidate()

    def invalidate_by_index(self, key: int) -> None:
        """Invalidate without any check; no correct path leads here."""
        region = self._keys.find(key)
        if region is not None:
            region.invalidate()

    def _named(self, qp: QueuePair, key: int) -> Region:
        """The region that an invalidation names, its key and protection domain checked."""
        region = self._keys.find(key)
        if region is None:
            raise OperationError(f"key {key:#010x} names no region")
        if not region.max_pages:
            raise OperationError("the region is of the consumer's memory and VALID until it is deregistered")
        if region.pd is not qp.pd and "inv-ignores-pd" not in self._faults:
            raise OperationError("region and queue pair are in different protection domains")
        compare = region.valid or self._settings.stale_inv == "refuse"
        if compare and key != region.hw_key and "inv-ignores-key-byte" not in self._faults:
            raise OperationError(f"key {key:#010x}: the key in force is {region.hw_key:#010x}")
        return region
