"""The threaded mode: real threads run the engine while callers post and poll.

Theory of operation
-------------------
With the option ``threads=N`` the micro-steps are not the calls' any more: N threads take them, one at a time, while
any number of the consumer's threads call verbs.  One lock is around every micro-step and every call, so each sees the
device whole; which comes next is for the operating system to decide, and no seed brings it back.  What this mode
tries is that nothing is left half done when the lock is given back, and that a consumer relies on nothing but what it
was told.

A thread sleeps while there is nothing to do.  After a call the others may have the lock; one that found nothing (an
empty poll) gives them a moment.  ``settle`` waits until there is nothing to do, and :meth:`Workers.wait` until
something is so, such as a completion channel having an event.  A device that dies, for whatever reason, does so in
whichever thread it was, and the next call says so.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

MOMENT = 20e-6
"""Seconds that an empty-handed caller gives the others."""

T = TypeVar("T")


class Workers:
    """The threads of one device, which take its micro-steps."""

    def __init__(self, count: int, step: Callable[[], bool], died: Callable[[Exception], object]) -> None:
        self._step = step
        self._died = died
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._done = threading.Condition(self._lock)
        self._pending = False  # something may be enabled
        self._stepping = 0  # threads in a micro-step; more than one if a step gives the lock away, which none should
        self._closing = False
        self._threads = [threading.Thread(target=self._run, name=f"softhca-{at}", daemon=True) for at in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (self._pending or self._closing):
                    self._work.wait()
                if self._closing:
                    return
                self._advance()
            os.sched_yield()  # whoever waits for the lock may have it

    def _advance(self) -> None:
        self._stepping += 1
        try:
            self._pending = self._step()
        except Exception as crash:  # whatever it is, the device ends and says so
            self._pending = False
            self._died(crash)
        self._stepping -= 1
        self._done.notify_all()

    def perform(self, action: Callable[[], T]) -> T:
        """Do something to the device; the threads go on with what it brings about."""
        with self._lock:
            try:
                return action()
            finally:
                self._pending = True
                self._work.notify()

    def give_way(self, *, empty: bool) -> None:
        """Let the threads have the lock, for a moment if the caller found nothing."""
        if empty:
            time.sleep(MOMENT)
        else:
            os.sched_yield()

    def rest(self) -> None:
        """Wait until there is nothing to do."""
        with self._lock:
            while self._pending or self._stepping:
                self._done.wait()

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so, at most so long; whether it is."""
        with self._lock:
            return self._done.wait_for(until, seconds)

    def close(self) -> None:
        """End the threads."""
        with self._lock:
            self._closing = True
            self._work.notify_all()
        for thread in self._threads:
            thread.join()
