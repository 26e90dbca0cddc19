"""The numbers that a drawn program is made of.

Hypothesis likes simple numbers, begins each round with the simplest of all, and makes a program anew with parts of it
repeated.  As draws of a program that is the same few programs again and again.  So what it draws is stirred: the
numbers for a step depend on all that was drawn for the program until then, evenly and repeatably.  Programs that begin
alike are alike as far as they do, and from there on have nothing in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

SIZE = 128
"""So many numbers come of one stirring."""


class Chance:
    """Stirs what is drawn for one program, which begins with these numbers."""

    def __init__(self, *begin: int) -> None:
        self._state = b""
        self.stir(begin)

    def stir(self, words: Sequence[int]) -> list[int]:
        """Numbers of 0 to 15 for what was drawn now."""
        text = ",".join(map(str, words)).encode()
        self._state = blake2b(self._state + text, digest_size=SIZE // 2).digest()
        return [half for byte in self._state for half in (byte >> 4, byte & 15)]
