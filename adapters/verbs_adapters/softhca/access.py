"""Access checks and data movement: every byte that the device loads or stores passes here.

Theory of operation
-------------------
An access names a key, an address and a length.  It is allowed if the key's index names a region, the region
is VALID, all 32 bits of the key equal the key in force, the protection domains agree, every right needed was
granted, and both ends lie inside the region, computed without wrap-around (draft-hilland-rddp-verbs 7.6.3).
No byte moves before the whole access was checked.  An access of no bytes checks nothing at all.

A remote access needs its right twice: from the region and from the queue pair it arrives at.  If the key names a
window, that takes the region's place: its bounds and its rights count.

``local_dma_lkey`` names no region: the address is a DMA address, and what is mapped is allowed.  A user process
has no such key.  A page that turns out unmapped while bytes move raises :class:`BusFault`; what moved before it
has moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from verbs_adapters.softhca.keys import KeyTable
from verbs_adapters.softhca.memory import Memory
from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.region import (
    ADDRESS_SPACE,
    LOCAL_WRITE,
    REMOTE_WRITE,
    SYSTEM_PAGE_SHIFT,
    ZERO_BASED,
    Mapping,
    ProtectionDomain,
    Region,
)

if TYPE_CHECKING:
    from verbs_adapters.softhca.mw import Window
    from verbs_adapters.softhca.qp import QueuePair


class Sge(NamedTuple):
    """One local scatter/gather element."""

    addr: int
    length: int
    lkey: int


def part(sges: Sequence[Sge], offset: int, length: int) -> Sequence[Sge]:
    """The elements, or parts of them, that hold so many bytes of a message from this offset on."""
    if offset == 0:
        return sges
    parts: list[Sge] = []
    for sge in sges:
        skipped = min(offset, sge.length)
        offset -= skipped
        taken = min(sge.length - skipped, length)
        length -= taken
        if taken:
            parts.append(Sge(sge.addr + skipped, taken, sge.lkey))
    return parts


class Target(NamedTuple):
    """What a remote access names."""

    rkey: int
    addr: int
    length: int


class ProtectionError(Exception):
    """An access that its key does not allow."""


class DeviceCrash(Exception):
    """The device died; only a fault brings this about."""


Piece = tuple[Region | None, int, int]
"""A checked range: region (none: by DMA address), address, length."""


class Protection:
    """The checks, and the movement of bytes that passed them."""

    def __init__(self, memory: Memory, keys: KeyTable, dma_lkey: int | None, settings: Settings) -> None:
        self._memory = memory
        self._keys = keys
        self._windows = keys.windows
        self._dma_lkey = dma_lkey
        self._faults = faults = settings.fault
        iwarp = settings.transport == "iwarp"
        # the sink of an iWARP READ is written by the peer's message, so it needs the peer's right too, from the
        # region (draft 7.4.2) and from the queue pair (Fig. 21). InfiniBand asks for local write only.
        self._read_sink_rights = LOCAL_WRITE | REMOTE_WRITE if iwarp else LOCAL_WRITE
        if "sink-needs-no-local-write" in faults:
            self._read_sink_rights = 0
        self.recv_sink_rights = self._read_sink_rights & LOCAL_WRITE
        self._sink_asks_qp = iwarp and settings.sink_qp_right == "check" and "qp-rights-ignored" not in faults

    # -- local side --------------------------------------------------------------------------------
    def check_read_sink(self, qp: QueuePair, sges: Sequence[Sge], length: int) -> list[Piece]:
        """Check where the answer to a READ, or so many bytes of it, is to go."""
        if self._sink_asks_qp and length and not qp.access & REMOTE_WRITE:
            raise ProtectionError("the queue pair lets no peer write, which the answer to a READ is")
        return self.check_local(qp.pd, sges, length, self._read_sink_rights)

    def check_local(self, pd: ProtectionDomain, sges: Sequence[Sge], limit: int, rights: int = 0) -> list[Piece]:
        """Check the first `limit` bytes of a scatter/gather list for `rights`."""
        pieces: list[Piece] = []
        by_dma = False
        for sge in sges:
            length = min(sge.length, limit)
            if length == 0:
                if "empty-sge-ends-the-list" in self._faults:
                    break
                continue
            limit -= length
            if not ("first-sge-decides-kind" in self._faults and pieces):
                by_dma = sge.lkey == self._dma_lkey
            if by_dma:
                self._check_dma(sge.addr, length, rights)
                pieces.append((None, sge.addr, length))
            else:
                region = self._check(pd, sge.lkey, sge.addr, length, rights, local=True)
                pieces.append((region, sge.addr, length))
        return pieces

    def _check_dma(self, addr: int, length: int, rights: int) -> None:
        if rights & REMOTE_WRITE:
            raise ProtectionError("the key for DMA addresses is for local use; this sink is written remotely")
        if not self._memory.covers(addr, length):
            raise ProtectionError(f"{length} bytes at DMA address {addr:#x} are not mapped")

    # -- remote side -------------------------------------------------------------------------------
    def check_remote(self, qp: QueuePair, target: Target, right: int) -> list[Piece]:
        """Check an access that the peer asks for."""
        rkey, addr, length = target
        if length == 0 and "zero-length-checks-key" not in self._faults:
            return []
        if not qp.access & right and "qp-rights-ignored" not in self._faults:
            raise ProtectionError("the queue pair does not allow it")
        if rkey >> 8 in self._windows:
            return [self._through(self._windows[rkey >> 8], qp, target, right)]
        needed = 0 if "region-rights-ignored" in self._faults else right
        region = self._check(qp.pd, rkey, addr, length, needed, local=False)
        return [(region, addr, length)]

    def _through(self, window: Window, qp: QueuePair, target: Target, right: int) -> Piece:
        """Check an access through a window against the window alone, and say where in its region it goes."""
        rkey, addr, length = target
        region = window.region
        if region is None or rkey != window.hw_key:
            raise ProtectionError(f"key {rkey:#010x} is not that of a bound window")
        if not window.serves(qp):
            raise ProtectionError("the window does not serve this queue pair")
        if not window.access & right:
            raise ProtectionError(f"right {right:#x} needed, {window.access:#x} granted by the window")
        offset = addr if window.access & ZERO_BASED else addr - window.addr
        inside = 0 <= offset <= window.length - length
        if "window-checked-against-region" in self._faults and region.mapping is not None:
            inside = self._inside(region.mapping, window.addr + offset, length)
        if not inside:
            raise ProtectionError(f"{length} bytes at {addr:#x} reach outside the window")
        if not region.alive and "region-freed-under-windows" not in self._faults:
            raise ProtectionError("the region behind the window is gone")
        if "zero-based-adds-region-start" in self._faults and window.access & ZERO_BASED and region.mapping is not None:
            return region, region.mapping.iova + offset, length
        return region, window.addr + offset, length

    # -- both --------------------------------------------------------------------------------------
    def _check(self, pd: ProtectionDomain, key: int, addr: int, length: int, rights: int, *, local: bool) -> Region:
        faults = self._faults
        region = self._keys.find(key)
        if region is None or region.mapping is None:
            raise ProtectionError(f"key {key:#010x} names no registered region")
        if not region.valid and not (local and "local-side-survives-inv" in faults):
            raise ProtectionError(f"the region of key {key:#010x} is INVALID")
        in_force = region.first_key if "key-byte-fixed-at-alloc" in faults else region.hw_key
        if key != in_force and "data-ignores-key-byte" not in faults:
            raise ProtectionError(f"key {key:#010x}: the key in force is {in_force:#010x}")
        if region.pd is not pd and "data-ignores-pd" not in faults:
            raise ProtectionError(f"the region of key {key:#010x} is in another protection domain")
        granted = region.access & rights
        if granted != rights and not ("any-right-is-enough" in faults and granted):
            raise ProtectionError(f"rights {rights:#x} needed, {region.access:#x} granted")
        if not self._inside(region.mapping, addr, length):
            raise ProtectionError(f"{length} bytes at {addr:#x} reach outside the region")
        return region

    def _inside(self, mapping: Mapping, addr: int, length: int) -> bool:
        faults = self._faults
        end, limit = addr + length, mapping.iova + mapping.length
        if "range-end-wraps" in faults:
            end %= ADDRESS_SPACE
        if "last-byte-refused" in faults:
            limit -= 1
        if "one-byte-past-end-allowed" in faults:
            limit += 1
        if "empty-region-has-no-bounds" in faults and mapping.length == 0:
            return True
        return mapping.iova <= addr and end <= limit

    def _ranges(self, piece: Piece) -> Iterator[tuple[int, int]]:
        region, addr, length = piece
        if region is None or region.mapping is None:
            return iter(((addr, length),))
        mapping = region.mapping
        if "empty-region-has-no-bounds" in self._faults and mapping.length == 0:
            return iter(((addr, length),))
        shift = SYSTEM_PAGE_SHIFT if "steps-in-system-pages" in self._faults else mapping.shift
        return mapping.pieces(addr, length, shift)

    def load(self, pieces: Sequence[Piece]) -> bytes:
        """The bytes of checked pieces, in order."""
        read = self._memory.read
        return b"".join(read(addr, size) for piece in pieces for addr, size in self._ranges(piece))

    def store(self, pieces: Sequence[Piece], data: bytes) -> None:
        """Put bytes into checked pieces, in order."""
        position = 0
        for piece in pieces:
            for addr, size in self._ranges(piece):
                self._memory.write(addr, data[position : position + size])
                position += size
