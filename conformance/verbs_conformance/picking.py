"""How the numbers that are drawn for a step choose among what may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from verbs_conformance.shapes import Menu, Shape

T = TypeVar("T")
USUAL, NEAR = 11, 15
"""Of sixteen draws for a call so many leave every argument as usual, and the next, up to the second, all but one."""
MIXED = 10
"""Where several arguments may be unusual, so many of sixteen draws leave one as usual."""
OTHERS = 6
"""Of sixteen draws so many choose among all objects of a kind, the others among the first, which work together."""
FIRST = 2
"""So many are the first."""
TRIES = 4
"""So many steps are drawn for one, of which the one least like what was made before is taken."""


def one_of(known: Sequence[T], draws: Sequence[int]) -> T:
    """One of several, by three numbers of 0 to 15."""
    return known[(draws[0] << 8 | draws[1] << 4 | draws[2]) % len(known)]


def parts(draws: Sequence[int]) -> Iterator[Sequence[int]]:
    """The draws for each of the steps among which one is chosen."""
    size = len(draws) // TRIES
    return (draws[i * size : (i + 1) * size] for i in range(TRIES))


class Picker:
    """Turns draws of 0 to 15 into entries: one says how unusual the call is, one where, then one a menu."""

    def __init__(self, shape: Shape, draws: Sequence[int], *, tame: bool) -> None:
        manner, where, *rest = draws
        self.manner = manner % USUAL if tame else manner
        self.left = iter(rest)
        free = [m.name for m in shape.menus if m.entries[0] != "each" and len(m.entries) > 1]
        self.odd = free[where % len(free)] if free else ""

    def __call__(self, menu: Menu, offered: Sequence[str]) -> str:
        if len(offered) == 1:
            return offered[0]
        draw = next(self.left)
        if menu.entries[0] == "each":
            return offered[draw % (len(offered) if draw < OTHERS else min(len(offered), FIRST))]
        usual = menu.name != self.odd if self.manner < NEAR else draw < MIXED
        if self.manner < USUAL or usual:
            return offered[0]
        return offered[1 + draw % (len(offered) - 1)]
