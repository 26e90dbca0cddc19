"""Asynchronous events: what a device tells unasked, and the verbs that take and acknowledge it.

Theory of operation
-------------------
An event has a name and is about an element: a queue pair, a completion queue or a shared receive queue.  It waits in
one queue of the device until it is taken; between taking and acknowledging it keeps its element, whose destruction
would wait in a library and is answered EDEADLK here.  Events of an element that is destroyed before they were taken
are never seen (``ib_uverbs_release_uevent``); they are passed over when their turn comes.

A device without ASYNCHRONOUS_EVENTS keeps none.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from verbs_adapters.softhca.arguments import Refused

if TYPE_CHECKING:
    from verbs_adapters.softhca.objects import Objects

Args = dict[str, Any]


class Element:
    """What an event can be about: an object with a handle, which events that were taken keep."""

    __slots__ = ("gone", "handle", "taken")

    kind: str

    def __init__(self) -> None:
        self.handle = 0
        self.gone = False
        self.taken = 0  # events that were taken and not acknowledged

    def require_acknowledged(self) -> None:
        """Refuse to go while events that were taken are not acknowledged."""
        if self.taken:
            raise Refused("EDEADLK")


class EventQueue:
    """The asynchronous events of one device."""

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._waiting: deque[tuple[str, Element]] = deque()
        self._taken: dict[int, Element] = {}
        self._last = 0

    def tell(self, name: str, element: Element) -> None:
        """Something has happened to an element."""
        if self._kept:
            self._waiting.append((name, element))

    def take(self) -> tuple[int, str, Element] | None:
        """The next event, its number and its element; those about elements that are gone are passed over."""
        while self._waiting:
            name, element = self._waiting.popleft()
            if not element.gone:
                self._last += 1
                element.taken += 1
                self._taken[self._last] = element
                return self._last, name, element
        return None

    def acknowledge(self, number: int) -> None:
        """An event that was taken keeps its element no longer."""
        element = self._taken.pop(number, None)
        if element is None:
            raise Refused
        element.taken -= 1


class Events:
    """The verbs of asynchronous events."""

    def __init__(self, objects: Objects) -> None:
        self._queue = objects.events
        self._faults = objects.faults

    def get_async_event(self, _args: Args) -> Args:
        taken = self._queue.take()
        if taken is None:
            return {"n": 0}
        number, name, element = taken
        if "event-names-nothing" in self._faults:
            return {"n": 1, "async_event": number, "event": name}
        return {"n": 1, "async_event": number, "event": name, element.kind: element.handle}

    def ack_async_event(self, args: Args) -> None:
        self._queue.acknowledge(args["async_event"])
