"""Regions and their mappings.

Theory of operation
-------------------
A region has two faces.  The *handle* is what the consumer's driver library keeps in memory: the key to be
used next and the page vector that ``map_mr_sg`` prepared.  The *hardware* face is what the device checks
accesses against: state, key in force, rights, mapping.  Only the execution of a registration copies from
the first to the second; that is why updating a key byte or preparing a new vector changes nothing for
accesses under way (draft-hilland-rddp-verbs 7.2, 7.3.2.5).

A :class:`Mapping` translates addresses of the region to DMA addresses, to the byte: pages of one size, a
power of two, and an offset of the first byte in the first page.

A region of the consumer's own memory (``reg_mr``) is VALID from the first moment to the last, and has no
handle face.  It pins its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from verbs_adapters.softhca.memory import Buffer, BusFault

LOCAL_WRITE = 1
REMOTE_WRITE = 2
REMOTE_READ = 4
REMOTE_ATOMIC = 8
MW_BIND = 16
ZERO_BASED = 32
REMOTE = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC
ACCESS_BITS = {"LOCAL_WRITE": LOCAL_WRITE, "REMOTE_WRITE": REMOTE_WRITE, "REMOTE_READ": REMOTE_READ}
"""The rights that every device knows."""
USER_BITS = {"REMOTE_ATOMIC": REMOTE_ATOMIC, "MW_BIND": MW_BIND, "ZERO_BASED": ZERO_BASED, "HUGETLB": 0}
"""Besides, in the API of a user process; the kernel's core knows them whatever the device can do with them."""
HINTS = {"RELAXED_ORDERING": 0, "UNKNOWN_HINT": 0}
"""Flags of the range that a device which does not know them takes and ignores (``IB_ACCESS_OPTIONAL``)."""

MIN_PAGE_SHIFT = 9
MAX_PAGE_SHIFT = 20
SYSTEM_PAGE_SHIFT = 12
ADDRESS_SPACE = 1 << 64


class Mapping(NamedTuple):
    """Bytes `iova` to `iova + length`, backed by pages of `2**shift` bytes."""

    iova: int
    length: int
    shift: int
    fbo: int
    pages: Sequence[int]

    def pieces(self, addr: int, length: int, shift: int) -> Iterator[tuple[int, int]]:
        """The DMA ranges (address, length) behind `length` bytes at `addr`, in order."""
        offset = addr - self.iova + self.fbo
        while length > 0:
            index, inside = offset >> shift, offset & ((1 << shift) - 1)
            if not 0 <= index < len(self.pages):
                raise BusFault(f"page {index} of a vector of {len(self.pages)}")
            size = min(length, (1 << shift) - inside)
            yield self.pages[index] + inside, size
            offset += size
            length -= size


class ProtectionDomain:
    """A protection domain, the number of objects that keep it, and the regions that go with it."""

    __slots__ = ("regions", "users")

    def __init__(self) -> None:
        self.users = 0
        self.regions: dict[Region, None] = {}  # of WinVerbs alone


class AddressHandle(NamedTuple):
    """Where a datagram goes, and whether that is this device's port."""

    pd: ProtectionDomain
    reaches: bool
    is_global: bool
    dgid: str
    sl: int
    hop_limit: int


class PageList:
    """A page list of the 2008 interface: memory that the consumer writes and the device reads."""

    __slots__ = ("pages",)

    def __init__(self, length: int) -> None:
        self.pages = [0] * length


class Region:
    """One region: handle face and hardware face."""

    __slots__ = (
        "access",
        "alive",
        "first_key",
        "hw_key",
        "index",
        "key",
        "map_set",
        "map_sets",
        "mapping",
        "max_pages",
        "pd",
        "pinned",
        "valid",
        "windows",
    )

    def __init__(self, pd: ProtectionDomain, key: int, max_pages: int) -> None:
        self.pd = pd
        self.index = key >> 8
        self.first_key = key
        self.max_pages = max_pages
        self.alive = True
        self.windows = 0  # that are bound to it
        # the handle face
        self.key = key
        self.map_sets: list[Mapping | None] = [None, None]
        self.map_set = 0
        # the hardware face; rights outlive invalidation (draft 7.8), the mapping does not
        self.valid = False
        self.hw_key = key
        self.access = 0
        self.mapping: Mapping | None = None
        self.pinned: Buffer | None = None

    def take_mapping(self, faults: frozenset[str]) -> Mapping | None:
        """What a registration registers: the vector that was mapped last, however often it is taken."""
        mapping = self.map_sets[self.map_set]
        if "reg-alternates-map-sets" in faults:
            self.map_set ^= 1
        return mapping

    def validate(self, key: int, access: int, mapping: Mapping) -> None:
        """INVALID to VALID."""
        self.valid = True
        self.hw_key = key
        self.access = access
        self.mapping = mapping

    def invalidate(self) -> None:
        """To INVALID."""
        self.valid = False
