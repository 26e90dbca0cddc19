"""SoftHca: the backend that the contract sees.

Theory of operation
-------------------
Every call is checked against the contract, lets some time pass in the engine, and is dispatched to the verb.
A verb that refuses raises :class:`Refused` inside; outside it is an :class:`Answer` with the errno's name.
A device that died (a fault does that) answers :class:`Trouble` until it is reset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from verbs_adapters.contract import (
    CONTRACT_VERSION,
    OK,
    AdapterError,
    Answer,
    Hello,
    Trouble,
    Value,
)
from verbs_adapters.softhca.access import DeviceCrash
from verbs_adapters.softhca.ah import Ahs
from verbs_adapters.softhca.arguments import Refused, check
from verbs_adapters.softhca.capabilities import NETWORKDIRECT, declared, offer
from verbs_adapters.softhca.channel import Channels
from verbs_adapters.softhca.cq import Cqs
from verbs_adapters.softhca.event import Events
from verbs_adapters.softhca.networkdirect import Connections, RegionObjects, WindowObjects
from verbs_adapters.softhca.objects import Objects
from verbs_adapters.softhca.options import parse
from verbs_adapters.softhca.overlapped import Overlapped
from verbs_adapters.softhca.pairs import Pairs
from verbs_adapters.softhca.port import Ports, limits
from verbs_adapters.softhca.posting import Posting
from verbs_adapters.softhca.regions import Regions
from verbs_adapters.softhca.srq import Srqs
from verbs_adapters.softhca.threads import Workers
from verbs_adapters.softhca.windows import WindowVerbs
from verbs_adapters.softhca.winverbs import MemoryKeys
from verbs_adapters.softhca.words import told, word

VERSION = "0.1"
FIRST_SEED = 0

OWNERS = (
    *(RegionObjects, WindowObjects, Connections, MemoryKeys, Overlapped),
    *(Ports, Ahs, Regions, WindowVerbs, Cqs, Channels, Pairs, Srqs, Events, Posting),
)
"""Whose methods the verbs are, besides those of Objects; softhca has not all verbs of the contract."""


Call = Callable[[Any], dict[str, Any] | None]


class SoftHca:
    """A software HCA behind the adapter contract."""

    def __init__(self, options: Mapping[str, str], /) -> None:
        self._settings = parse(options)
        self._open = True
        self._declared = declared(self._settings)
        self._offer = offer(self._settings.api, self._declared)
        self._places = [
            (verb, place)
            for place, owner in enumerate((Objects, *OWNERS))
            for verb in self._offer.verbs
            if hasattr(owner, verb)
        ]
        self._start(FIRST_SEED)
        self._workers: Workers | None = None
        if self._settings.threads:
            self._workers = Workers(self._settings.threads, self._step, self._died)

    def _start(self, seed: int) -> None:
        self._objects = Objects(self._settings, seed, self._offer)
        self._engine = self._objects.engine
        self._crash: Trouble | None = None
        parts = (self._objects, *(owner(self._objects) for owner in OWNERS))
        self._calls: dict[str, Call] = {verb: getattr(parts[place], verb) for verb, place in self._places}
        if self._settings.api == NETWORKDIRECT:
            poll = self._calls["poll_cq"]
            self._calls["poll_cq"] = lambda args: told(poll(args) or {})

    def hello(self) -> Hello:
        """Say what this device is and promises."""
        settings = self._settings
        return Hello(
            contract=CONTRACT_VERSION,
            name="softhca",
            version=VERSION,
            device=f"softhca-{settings.transport}",
            api=(settings.api,),
            transport=(settings.transport,),
            capabilities=self._declared,
            limits=limits(settings, self._declared),
        )

    def reset(self, seed: int) -> Trouble | None:
        """A fresh device context."""
        self._require_open()
        if self._workers is None:
            self._start(seed)
        else:
            self._workers.perform(partial(self._start, seed))
        return None

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Perform one verb; in the threaded mode from any thread."""
        self._require_open()
        workers = self._workers
        if workers is None:
            return self._call(verb, args)
        answer = workers.perform(partial(self._call, verb, args))
        if verb == "settle":
            workers.rest()
        workers.give_way(empty=isinstance(answer, Answer) and answer.out.get("n") == 0)
        return answer

    def _call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        if self._crash is not None:
            return self._crash
        unknown = self._offer.unknown.get(verb)
        if unknown is not None and not unknown.isdisjoint(args):
            return Answer("EOPNOTSUPP")
        check(verb, args)
        perform = self._calls.get(verb)
        if perform is None:
            return Answer("EOPNOTSUPP")
        try:
            self._engine.before_call()
            try:
                out = perform(args)
            except Refused as refusal:
                self._engine.after_call()
                return Answer(word(self._settings.api, refusal))
            self._engine.after_call()
        except DeviceCrash as crash:
            return self._died(crash, f"during {verb}")
        return Answer(OK) if out is None else Answer(OK, out)

    def wait(self, channel: int, seconds: float) -> bool:
        """Sleep until a completion channel has an event, at most so long; whether it has one.

        Without threads nothing happens while the caller sleeps, so the device runs until it has one or is idle."""
        self._require_open()
        told = self._objects.channels.get(channel)
        if told is None:
            raise AdapterError(f"softhca was asked to wait on the channel {channel}, which it does not have")
        if self._workers is not None:
            return self._workers.wait(told.has_event, seconds)
        while not told.has_event() and self._engine.step():
            pass
        return told.has_event()

    def _step(self) -> bool:
        return self._crash is None and self._engine.step()

    def _died(self, crash: Exception, when: str = "on its own") -> Trouble:
        self._crash = Trouble(
            "crash", "backend", f"softhca ended {when}: {crash if isinstance(crash, DeviceCrash) else repr(crash)}"
        )
        return self._crash

    def close(self) -> None:
        """Give everything back."""
        self._require_open()
        self._open = False
        if self._workers is not None:
            self._workers.close()

    def _require_open(self) -> None:
        if not self._open:
            raise AdapterError("softhca was called after close; nothing may be called afterwards")
