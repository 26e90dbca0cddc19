"""Contents of memory, as text, and the places that hold them.

Characters 0 to 255 are bytes; one more stands for a byte that may be anything.  A place is a start and a length."""

from __future__ import annotations

import re

UNKNOWN = "\u0100"
"""A byte of memory that may hold anything."""

Places = tuple[tuple[int, int], ...]


def walk_pages(pages: tuple[int, ...], page_size: int, first: int, start: int, length: int) -> Places:
    """The places of ``length`` bytes from byte ``start`` of a region that begins ``first`` bytes into its
    pages."""
    made: list[tuple[int, int]] = []
    position = first + start
    while length > 0 and page_size > 0:
        index, offset = divmod(position, page_size)
        if index >= len(pages):
            break
        count = min(length, page_size - offset)
        made.append((pages[index] + offset, count))
        position += count
        length -= count
    return tuple(made)


def slice_places(places: Places, start: int, length: int) -> Places:
    """The places of ``length`` bytes from byte ``start`` of what these places hold."""
    made: list[tuple[int, int]] = []
    for first, size in places:
        if start >= size:
            start -= size
            continue
        count = min(size - start, length)
        if count:
            made.append((first + start, count))
        start, length = 0, length - count
        if not length:
            break
    return tuple(made)


_KNOWN = re.compile(f"[^{UNKNOWN}]+")
"""Stretches of content that are known."""


def same_bytes(left: str, right: str) -> bool:
    """Whether two contents can be equal, given that unknown bytes may hold anything."""
    if left == right:
        return True
    if len(left) != len(right) or (UNKNOWN not in left and UNKNOWN not in right):
        return False
    for known in _KNOWN.finditer(right):
        start, piece = known.start(), known[0]
        if left.startswith(piece, start):
            continue
        other = left[start : known.end()]
        if UNKNOWN not in other or not all(piece.startswith(part[0], part.start()) for part in _KNOWN.finditer(other)):
            return False
    return True


def added(content: str, number: int) -> str:
    """A number in memory, its low byte first, with another added, without what it carries over the end.

    An unknown byte stays so, and a byte is unknown where the carry from below is.
    """
    made = []
    low = high = 0
    for byte in content:
        number, more = divmod(number, 256)
        known = byte != UNKNOWN
        least, most = (ord(byte) if known else 0), (ord(byte) if known else 255)
        made.append(chr((least + more + low) % 256) if known and low == high else UNKNOWN)
        low, high = (least + more + low) // 256, (most + more + high) // 256
    return "".join(made)


def exchanged(content: str, expected: int, number: int) -> str:
    """A number in memory, its low byte first: another in its place if it was the expected one.

    If it may have been, every byte may be anything.
    """
    if not same_bytes(content, _digits(expected, len(content))):
        return content
    return _digits(number, len(content)) if UNKNOWN not in content else UNKNOWN * len(content)


def _digits(number: int, length: int) -> str:
    """A number as bytes, its low byte first, without what does not fit."""
    low: int = number % 256**length
    return low.to_bytes(length, "little").decode("latin-1")
