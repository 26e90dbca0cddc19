"""The consumer's memory as the device sees it: buffers at DMA addresses.

Theory of operation
-------------------
Each buffer is a real ``bytearray`` at a DMA address aligned to 64 KiB.  The address space is cut into
chunks of 64 KiB, and a table names the buffer of each mapped chunk, so that an address is looked up in
constant time however many buffers live.  At least one chunk after a buffer stays unmapped; addresses are
handed out upwards and never a second time, so that an access through a stale address faults instead of
hitting a new buffer.

An access to an address that no buffer covers raises :class:`BusFault`, as an IOMMU would.

A user process maps memory in whole pages, so there (``grain``) a buffer is followed by the rest of its last
page, which the consumer can register though it is not the buffer's.  A registration *pins* what it covers: the
device reaches it until the region is gone, even if the consumer gave the buffer back (``ib_umem_get``).
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

    __slots__ = ("addr", "data", "length", "mapped", "pins")

    def __init__(self, addr: int, length: int, grain: int = 1) -> None:
        self.addr = addr
        self.length = length  # what the consumer asked for; `data` ends with the last unit of memory
        self.data = bytearray(-(-length // grain) * grain)
        self.mapped = True
        self.pins = 0


class Memory:
    """All buffers, by DMA address."""

    def __init__(self, chance: Callable[[], float], grain: int = 1) -> None:
        self._chance = chance
        self._grain = grain
        self._chunks: dict[int, Buffer] = {}
        self._next = FIRST_CHUNK

    def alloc(self, length: int) -> Buffer:
        """A zeroed buffer of `length` bytes, at least 1."""
        gap = 1 + int(self._chance() * 3)  # distances differ by seed, so that no caller relies on them
        buffer = Buffer(self._next << CHUNK_SHIFT, length, self._grain)
        chunks = _chunks(buffer)
        self._next += len(chunks) + gap
        for chunk in chunks:
            self._chunks[chunk] = buffer
        return buffer

    def free(self, buffer: Buffer) -> None:
        """Unmap a buffer: for the consumer at once, for the device when no region pins it."""
        buffer.mapped = False
        self._release(buffer)

    def covers(self, addr: int, length: int) -> bool:
        """Whether one buffer holds the whole range."""
        return self._mapped(addr, length) is not None

    def pin(self, addr: int, length: int) -> Buffer | None:
        """Keep the buffer that holds the whole range, if one does, until :meth:`unpin`."""
        buffer = self._mapped(addr, length)
        if buffer is not None:
            buffer.pins += 1
        return buffer

    def unpin(self, buffer: Buffer) -> None:
        """Let go what :meth:`pin` kept."""
        buffer.pins -= 1
        self._release(buffer)

    def _mapped(self, addr: int, length: int) -> Buffer | None:
        buffer = self._chunks.get(addr >> CHUNK_SHIFT)
        held = buffer is not None and buffer.mapped and addr - buffer.addr + length <= len(buffer.data)
        return buffer if held else None

    def _release(self, buffer: Buffer) -> None:
        if not buffer.mapped and not buffer.pins:
            for chunk in _chunks(buffer):
                del self._chunks[chunk]

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
