"""Packet sequence numbers: 24 bits, compared by distance.

Theory of operation
-------------------
Numbers wrap, so that neither is greater: one is *ahead* of another by up to half of all numbers, or behind it.
What is under way at one time never spans half of them.
"""

from __future__ import annotations

BITS = 24
MASK = (1 << BITS) - 1
HALF = 1 << (BITS - 1)


def plus(psn: int, count: int) -> int:
    """The number so many after this one."""
    return (psn + count) & MASK


def distance(psn: int, other: int) -> int:
    """How far `psn` is ahead of `other`; negative if it is behind."""
    return ((psn - other + HALF) & MASK) - HALF
