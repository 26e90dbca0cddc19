"""Completion channels: arming completion queues, and the events that follow.

Theory of operation
-------------------
A completion queue is *armed* by ``req_notify_cq``, for the next completion or for the next that is solicited or has
failed.  The next entry of that kind puts one event on the queue's channel and disarms it.  Entries that are there
already do not count.  Arming for any completion raises what was armed for solicited ones; nothing lowers it (IBTA
C11-31 and C11-32, as rdmavt quotes them).

Events are told one for each arming, in order.  Those of a queue that is destroyed before they were taken are passed
over.  A queue with events that were taken and not acknowledged stays (EDEADLK), and so does a channel with queues
(EBUSY).  A queue without a channel can be armed; nobody hears of it.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.queue import ANY, SOLICITED, Channel

Args = dict[str, Any]


class Channels:
    """The verbs of completion events."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.faults

    def create_comp_channel(self, _args: Args) -> Args:
        self._objects.room(self._objects.channels)
        return {
            "channel": self._objects.enter(self._objects.channels, Channel(merges=self._settings.cq_events == "merged"))
        }

    def destroy_comp_channel(self, args: Args) -> None:
        channel = find(self._objects.channels, args["channel"])
        if channel.users:
            raise Refused("EBUSY")
        del self._objects.channels[args["channel"]]

    def req_notify_cq(self, args: Args) -> None:
        cq = find(self._objects.cqs, args["cq"])
        if cq.channel is None and self._settings.no_channel == "refuse":
            raise Refused
        asked = SOLICITED if args["solicited_only"] else ANY
        if cq.armed and "arming-again-disarms" in self._faults:
            asked = cq.armed = 0
        if cq.deaf or "arming-unseen" in self._faults:
            return
        if "arming-waits-for-a-poll" in self._faults:
            cq.postponed = asked
            return
        cq.armed = asked if "arming-is-lowered" in self._faults else max(cq.armed, asked)
        if cq.entries and (self._settings.unread == "tell" or "old-entries-tell" in self._faults):
            cq.ring(solicited=True)

    def get_cq_event(self, args: Args) -> Args:
        cq = find(self._objects.channels, args["channel"]).take()
        if cq is None:
            return {"n": 0}
        if "taking-an-event-disarms" in self._faults:
            cq.armed = 0
        return {"n": 1, "cq": cq.handle}

    def ack_cq_events(self, args: Args) -> None:
        cq = find(self._objects.cqs, args["cq"])
        if args["nevents"] > cq.events:
            raise Refused
        cq.events -= args["nevents"]
