"""Numbers of two sides, told apart: handles, addresses, keys and QP numbers.

Theory of operation
-------------------
Two devices choose their numbers without knowing of each other, so one number may mean a thing of either.  The suite
looks numbers up among all that it knows; so what it sees are *outer* numbers, of which none means two things, and each
side sees its own, *real* ones.

*Handles* are doubled, and the last bit is the side.  *Addresses* of the second side have bit 62, which no address of a
process has, turned over; small ones and those of the upper half, where no memory of a process lies, stay, so that a
range that wraps around still does.  *Keys* and *QP numbers* have no bit to spare: an outer number is dealt out when a
side first names the real one, the same number where it is free.  Of keys only the upper 24 bits are dealt out; the low
8 are the consumer's and stay, and so does the key 0, which stands for no key.

A number that a side has never named (one that the program made up, or a stranger's) must mean nothing there either.
It goes to that side as it is, or, where that is something real there, as a number that is nothing.
"""

from __future__ import annotations

from verbs_adapters.contract import AdapterError

FIRST, SECOND = 0, 1
SIDES = (FIRST, SECOND)

FAR = 1 << 62
"""The bit that tells addresses of the second side."""

_LEAST = 1 << 16
"""No buffer has a smaller address."""

_UPPER_HALF = 1 << 63

KEY_INDEX_BITS, QP_NUMBER_BITS = 24, 24

WELL_KNOWN = frozenset({0, 1, (1 << QP_NUMBER_BITS) - 1})
"""QP numbers that mean the same everywhere: those of management, and that of multicast."""


def outer_handle(side: int, real: int) -> int:
    """A handle as the suite sees it; 0 stays none."""
    return real << 1 | side if real else 0


def real_handle(outer: int) -> tuple[int, int]:
    """The side of a handle, and what it is there."""
    return outer & 1, outer >> 1


def outer_address(side: int, real: int) -> int:
    """An address that a side has given, as the suite sees it."""
    if real & FAR and real < _UPPER_HALF:
        raise AdapterError(
            f"an address of the {('first', 'second')[side]} side is {real:#x}; bit 62 is needed to tell the two sides' "
            "memory apart. This adapter cannot judge these two devices together."
        )
    return real_address(side, real)


def real_address(side: int, outer: int) -> int:
    """An address as a side sees it; what belongs to the other side, or to nobody, is no memory there."""
    return outer ^ FAR if side == SECOND and _LEAST <= outer < _UPPER_HALF else outer


class Numbers:
    """One kind of numbers that are dealt out."""

    def __init__(self, bits: int) -> None:
        self._outer: tuple[dict[int, int], dict[int, int]] = ({}, {})
        """For each side, what its real numbers are outside."""
        self._real: dict[int, tuple[int, int]] = {}
        """For each outer number its side and what it is there."""
        self._last = (1 << bits) - 2  # all ones is a number that nobody gives

    def outer(self, side: int, real: int) -> int:
        """The outer number of a real one, dealt out now if need be."""
        known = self._outer[side].get(real)
        if known is None:
            known = real if real not in self._real else self._unused(self._real)
            self._outer[side][real] = known
            self._real[known] = (side, real)
        return known

    def real(self, side: int, outer: int) -> int:
        """What an outer number is on a side; a number that is nothing there if it is not that side's."""
        owner, real = self._real.get(outer, (side, outer))
        named = self._outer[side]
        if outer in self._real and owner == side:
            return real
        return outer if outer not in named else self._unused(named)

    def _unused(self, used: dict[int, int] | dict[int, tuple[int, int]]) -> int:
        """The highest number that is not in use."""
        number = self._last
        while number in used:
            number -= 1
        return number


class QpNumbers:
    """Numbers of queue pairs."""

    def __init__(self) -> None:
        self._numbers = Numbers(QP_NUMBER_BITS)

    def outer(self, side: int, real: int) -> int:
        """A number that a side has given, as the suite sees it."""
        return real if real in WELL_KNOWN else self._numbers.outer(side, real)

    def real(self, side: int, outer: int) -> int:
        """A number as a side sees it; what is wider than one is nobody's."""
        return outer if outer in WELL_KNOWN or outer >> QP_NUMBER_BITS else self._numbers.real(side, outer)


class Keys:
    """Keys: 24 bits that the device chose, and 8 of the consumer."""

    def __init__(self) -> None:
        self._indices = Numbers(KEY_INDEX_BITS)

    def outer(self, side: int, real: int) -> int:
        """A key that a side has given, as the suite sees it."""
        return self._indices.outer(side, real >> 8) << 8 | real & 0xFF if real else 0

    def real(self, side: int, outer: int) -> int:
        """A key as a side sees it; what is wider than a key is nobody's."""
        return self._indices.real(side, outer >> 8) << 8 | outer & 0xFF if 0 < outer < 1 << 32 else outer
