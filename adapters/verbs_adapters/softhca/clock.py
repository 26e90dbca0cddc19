"""The virtual clock: timers, and time that passes only when nothing else can happen.

Theory of operation
-------------------
The device's time is a number of nanoseconds.  It stands still while any micro-step is enabled, and jumps to the next
timer when none is, so a program that waits for a timeout waits no real time, and two runs are the same.  A timer
cannot be taken back: whoever set it looks, when it fires, whether it still matters.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Clock:
    """Time, and what is to happen in it."""

    def __init__(self) -> None:
        self.now = 0
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._set = 0

    @property
    def waits(self) -> bool:
        """Whether a timer is running."""
        return bool(self._timers)

    def after(self, delay: int, action: Callable[[], None]) -> None:
        """Do something so many nanoseconds from now; timers of one moment fire in the order they were set."""
        self._set += 1
        heappush(self._timers, (self.now + delay, self._set, action))

    def advance(self) -> bool:
        """Let time pass until the next timer fires; whether there was one."""
        if not self._timers:
            return False
        self.now, _, action = heappop(self._timers)
        action()
        return True
