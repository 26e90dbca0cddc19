"""The key table: from a 32-bit key to the region it names.

Theory of operation
-------------------
A key is 24 bits of index, chosen by the device, and 8 low bits that belong to the consumer
(include/rdma/ib_verbs.h; draft-hilland-rddp-verbs 7.2).  The table maps indices to regions and, apart from
them, to windows; no two share one.  Indices are
handed out upwards from a start that the seed chooses, skipping those in use, so that an index comes back
only after all others: a stale key must not name a new region soon.  Index 0 is reserved for the key that
addresses memory by DMA address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verbs_adapters.softhca.mw import Window
    from verbs_adapters.softhca.region import Region

INDICES = 1 << 24
RESERVED_INDEX = 1


class KeyTable:
    """Regions and windows by key index."""

    def __init__(self, chance: Callable[[], float], faults: frozenset[str], *, random_byte: bool) -> None:
        self._chance = chance
        self._faults = faults
        self._random_byte = random_byte
        self._regions: dict[int, Region] = {}
        self.windows: dict[int, Window] = {}
        self._next = RESERVED_INDEX + 1 + int(chance() * 0x8000)
        self._freed: list[int] = []

    def new_key(self) -> int:
        """A key whose index is free; :meth:`enter` takes it into use."""
        if "freed-key-reused-at-once" in self._faults and self._freed:
            return self._freed.pop()
        index = self._next
        while index in self._regions or index in self.windows or index <= RESERVED_INDEX:
            index = (index + 1) % INDICES
        self._next = (index + 1) % INDICES
        byte = int(self._chance() * 256) if self._random_byte else 0
        return index << 8 | byte

    def enter(self, key: int, region: Region) -> None:
        """Let the index of `key` name `region`."""
        self._regions[key >> 8] = region

    def remove(self, region: Region) -> None:
        """Forget a region; its index names nothing from now on."""
        del self._regions[region.index]
        if "freed-key-reused-at-once" in self._faults:
            self._freed.append(region.hw_key)

    def find(self, key: int) -> Region | None:
        """The region that the index of `key` names; the low byte is not looked at."""
        return self._regions.get(key >> 8)

    # -- windows -----------------------------------------------------------------------------------
    def enter_window(self, window: Window) -> None:
        """Let the index of a window name it."""
        self.windows[window.index] = window

    def remove_window(self, window: Window) -> None:
        """Forget a window."""
        del self.windows[window.index]

    def find_window(self, key: int) -> Window | None:
        """The window that the index of `key` names; the low byte is not looked at."""
        return self.windows.get(key >> 8)
