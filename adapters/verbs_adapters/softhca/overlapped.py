"""Overlapped requests: what is asked for now and answered later, and the notifications of completion queues.

Theory of operation
-------------------
A :class:`Overlap` stands for an OVERLAPPED structure.  It is done at once, or it is *pending* and done when the
device's time has come to it (:mod:`~verbs_adapters.softhca.clock`); which, chance decides unless an option does.
Asking for its outcome changes nothing.

A notification is pending until the queue tells of a completion, and then all that are pending are done together
(``IND2CompletionQueue::Notify``; WinOFED ``wv_cq.c``).  The queue is armed as in every other API; one for errors arms
nothing.  In NetworkDirect entries that came since the queue last told of one count for the next request, so that none
is missed between an empty poll and the request; WinVerbs lets the consumer poll again instead (``ib_ci.h``).  A queue
that lost an entry ends all of its requests, and is of no use from then on.

A cancelled registration goes on: as in WinVerbs there is nothing in the device that could be called off (``wv_pd.c``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.capabilities import NETWORKDIRECT
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.queue import ANY, CANCELLED, DONE, OVERRUN, SOLICITED, WAITING, CompletionQueue, Overlap

Args = dict[str, Any]
KINDS = {"ANY": ANY, "SOLICITED": SOLICITED, "ERRORS": 0}
DELAY = 1000  # nanoseconds of the device's time


class Later:
    """Makes requests, and does what they are for."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings

    def begin(self, work: Callable[[Overlap], None], *, late: bool | None = None) -> Overlap:
        """Make a request and do its work, now or later; what it refuses now is no request."""
        request = Overlap(WAITING)
        if late is None:
            late = self.pending()
        if late:
            self._objects.engine.later(DELAY, lambda: self._perform(request, work))
        else:
            work(request)
            request.outcome = DONE
        request.handle = self._objects.enter(self._objects.requests, request)
        return request

    def _perform(self, request: Overlap, work: Callable[[Overlap], None]) -> None:
        try:
            work(request)
        except Refused as refusal:
            request.outcome = refusal.errno
        else:
            request.outcome = DONE

    def pending(self) -> bool:
        """Whether the next request is done later."""
        choice = self._settings.overlapped
        return choice == "pending" or (choice == "random" and self._objects.chance() < 0.5)


def answered(request: Overlap) -> Args:
    """What a method that makes a request answers."""
    return {"request": request.handle, "pending": request.outcome == WAITING}


class Overlapped:
    """The verbs that ask for outcomes and notifications."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._faults = objects.faults
        self._later = Later(objects)
        self._counts_what_came = objects.settings.api == NETWORKDIRECT

    def get_overlapped_result(self, args: Args) -> None:
        self._outcome(args)

    def get_registration(self, args: Args) -> Args:
        region = self._outcome(args).region
        if region is None:
            raise Refused
        return {"mr": self._objects.enter(self._objects.regions, region), "lkey": region.key, "rkey": region.key}

    def _outcome(self, args: Args) -> Overlap:
        request = find(self._objects.requests, args["request"])
        if request.outcome != DONE:
            raise Refused(request.outcome)
        return request

    def cancel_overlapped_requests(self, args: Args) -> None:
        if args.get("cq"):
            find(self._objects.cqs, args["cq"]).end_requests(CANCELLED)
        else:
            find(self._objects.holders, args.get("region", 0))

    def notify_cq(self, args: Args) -> Args:
        cq = find(self._objects.cqs, args["cq"])
        kind = KINDS.get(args["type"])
        if kind == 0 and "error-notification-arms" in self._faults:
            kind = ANY
        if kind is None:
            raise Refused
        if cq.failed:
            raise Refused(OVERRUN)
        request = Overlap(WAITING)
        request.handle = self._objects.enter(self._objects.requests, request)
        if kind == 0:
            cq.for_errors.append(request)
        else:
            self._arm(cq, kind, request)
        return answered(request)

    def _arm(self, cq: CompletionQueue, kind: int, request: Overlap) -> None:
        missed = self._counts_what_came and cq.has_untold(kind)
        if "new-notification-cancels-older" in self._faults:
            cq.end_requests(CANCELLED)
        if missed and not cq.requests and not self._later.pending():
            cq.last_told = cq.entries[-1]
            request.outcome = DONE
            return
        cq.requests.append(request)
        cq.armed = max(cq.armed, kind)
        if missed:
            self._objects.engine.later(DELAY, lambda: cq.ring(solicited=True) if request.outcome == WAITING else None)
