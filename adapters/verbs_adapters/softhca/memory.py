"""The consumer's memory as the device sees it: buffers at DMA addresses.

Theory of operation
-------------------
Each buffer is a real ``bytearray`` at a DMA address aligned to 64 KiB.  The address space is cut into
chunks of 64 KiB, and a table names the buffer of each mapped chunk, so that an address is looked up in
constant time however many buffers live.  At least one chunk after a buffer stays unmapped; addresses are
handed out upwards and never a second time, so that an access through a stale address faults instead of
hitting a new buffer.

An access to an address that no buffer covers raises :class:`BusFault`, as an IOMMU would.
"""

from __future__ import annotations

from collections.abc import Callable

CHUNK_SHIFT = 16  # 64 KiB, the alignment that the contract promises
FIRST_CHUNK = 0x1_0000  # DMA addresses start at 4 GiB, so that nothing fits 32 bits by luck
MAX_BUFFER = 1 << 26


class BusFault(Exception):
    """The device touched an address that is not mapped."""


class Buffer:
    """One buffer of the consumer."""

    __slots__ = ("addr", "data")

    def __init__(self, addr: int, length: int) -> None:
        self.addr = addr
        self.data = bytearray(length)


class Memory:
    """All buffers, by DMA address."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._chunks: dict[int, Buffer] = {}
        self._next = FIRST_CHUNK

    def alloc(self, length: int) -> Buffer:
        """A zeroed buffer of `length` bytes, at least 1."""
        gap = 1 + int(self._chance() * 3)  # distances differ by seed, so that no caller relies on them
        buffer = Buffer(self._next << CHUNK_SHIFT, length)
        chunks = _chunks(buffer)
        self._next += len(chunks) + gap
        for chunk in chunks:
            self._chunks[chunk] = buffer
        return buffer

    def free(self, buffer: Buffer) -> None:
        """Unmap a buffer."""
        for chunk in _chunks(buffer):
            del self._chunks[chunk]

    def covers(self, addr: int, length: int) -> bool:
        """Whether one buffer holds the whole range."""
        buffer = self._chunks.get(addr >> CHUNK_SHIFT)
        return buffer is not None and addr - buffer.addr + length <= len(buffer.data)

    def read(self, addr: int, length: int) -> bytes:
        """Load bytes by DMA."""
        buffer, start = self._find(addr, length)
        return bytes(buffer.data[start : start + length])

    def write(self, addr: int, data: bytes) -> None:
        """Store bytes by DMA."""
        buffer, start = self._find(addr, len(data))
        buffer.data[start : start + len(data)] = data

    def _find(self, addr: int, length: int) -> tuple[Buffer, int]:
        buffer = self._chunks.get(addr >> CHUNK_SHIFT)
        if buffer is None or addr - buffer.addr + length > len(buffer.data):
            raise BusFault(f"DMA of {length} bytes at {addr:#x}: no buffer covers it")
        return buffer, addr - buffer.addr


def _chunks(buffer: Buffer) -> range:
    first = buffer.addr >> CHUNK_SHIFT
    last = (buffer.addr + len(buffer.data) - 1) >> CHUNK_SHIFT
    return range(first, last + 1)
