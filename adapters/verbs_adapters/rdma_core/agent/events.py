"""Asynchronous events.

The agent reads each event when it tells it to the harness, and keeps it until the program takes it with
`get_async_event`.  What the program has not taken does not hold its object: the agent acknowledges it before the
object is destroyed, as the kernel forgets an event that nobody has read.  An event that the program has taken holds it
until the program acknowledges; the library would wait for that in the destroying verb, for ever, since there is one
thread: EDEADLK is said instead.
"""

from __future__ import annotations

import ctypes as c
import select
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.layout import AsyncEvent, Qp
from verbs_adapters.rdma_core.agent.library import Errno
from verbs_adapters.rdma_core.agent.names import CQ_EVENTS, EVENTS, PORT_EVENTS, QP_EVENTS, SRQ_EVENTS
from verbs_adapters.rdma_core.agent.objects import Objects, Pair
from verbs_adapters.rdma_core.agent.values import address_of


class Happened:
    """An event that was read from the device."""

    def __init__(self, event: AsyncEvent, name: str) -> None:
        self.event, self.name = event, name
        self.acknowledged = False

    @property
    def element(self) -> int:
        """The address of the object that it is about; 0 if it is about a port or the device."""
        return (self.event.element or 0) if self.name in (*QP_EVENTS, *SRQ_EVENTS, *CQ_EVENTS) else 0


class Events(Objects):
    """What has happened, told to the harness and given to the program."""

    MOST_KEPT = 1000

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._news: deque[dict[str, Any]] = deque(maxlen=self.MOST_KEPT)
        self._happened: deque[Happened] = deque()
        self._taken: dict[int, Happened] = {}

    def events(self) -> Iterator[dict[str, Any]]:
        """The events that have come since the last time, for the harness."""
        self._read()
        while self._news:
            yield self._news.popleft()
        while len(self._happened) > self.MOST_KEPT:
            self._acknowledge(self._happened.popleft())

    def _read(self) -> None:
        """Read what there is; all of it is kept that can be about the program."""
        poll = select.poll()
        poll.register(self.opened.context.async_fd, select.POLLIN)
        while poll.poll(0):
            event = AsyncEvent()
            if self._library.ibv_get_async_event(self.opened.address, c.byref(event)):
                return
            number = event.event_type
            happened = Happened(event, EVENTS[number] if 0 <= number < len(EVENTS) else str(number))
            data = {"qp_num": Qp.from_address(happened.element).qp_num} if happened.name in QP_EVENTS else {}
            self._news.append({"name": happened.name, "data": data})
            if happened.element and not self._object_of(happened):  # of a queue pair of the agent's own
                self._acknowledge(happened)
            else:
                self._happened.append(happened)

    def _acknowledge(self, happened: Happened) -> None:
        if not happened.acknowledged:
            self._library.ibv_ack_async_event(c.byref(happened.event))
        happened.acknowledged = True

    def _object_of(self, happened: Happened) -> dict[str, Any]:
        """The program's name of the element."""
        tables: list[tuple[str, list[str], dict[int, Any]]] = [
            ("qp", QP_EVENTS, self._qps),
            ("cq", CQ_EVENTS, self._cqs),
            ("srq", SRQ_EVENTS, self._srqs),
        ]
        for key, names, table in tables:
            if happened.name in names:
                handle = self._handle_at(table, happened.element)
                return {key: handle} if handle else {}
        if happened.name in PORT_EVENTS:
            return {"port_num": (happened.event.element or 0) & 0xFFFFFFFF}  # an int in that union
        return {}

    def verb_get_async_event(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_get_async_event, if there is one."""
        if not self._happened:
            self._read()
        if not self._happened:
            return {"n": 0}
        happened = self._happened.popleft()
        handle = self._new(self._taken, happened)
        return {"n": 1, "async_event": handle, "event": happened.name, **self._object_of(happened)}

    def verb_ack_async_event(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """ibv_ack_async_event."""
        self._acknowledge(self._find(self._taken, args["async_event"]))
        del self._taken[args["async_event"]]
        return {}

    def _destroy(self, table: dict[int, Any], handle: int, verb: Callable[[Any], int]) -> dict[str, Any]:
        """Destroy an object that events may be about."""
        thing = self._find(table, handle)
        address = address_of(thing.pointer if isinstance(thing, Pair) else thing)
        if any(taken.element == address and not taken.acknowledged for taken in self._taken.values()):
            raise Errno("EDEADLK")
        about = [happened for happened in self._happened if happened.element == address]
        for happened in about:
            self._acknowledge(happened)
        done = self._end(table, handle, verb)
        for happened in about:
            self._happened.remove(happened)
        return done
