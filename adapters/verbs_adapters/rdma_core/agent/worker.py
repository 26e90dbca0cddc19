"""The worker: it opens the device and answers requests, until a reset."""

from __future__ import annotations

import argparse
import ctypes as c
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.consumer import UNMEASURED, Consumer
from verbs_adapters.rdma_core.agent.device import Opened
from verbs_adapters.rdma_core.agent.inquiry import Features
from verbs_adapters.rdma_core.agent.library import Errno, Misunderstood, Unusable
from verbs_adapters.rdma_core.agent.wire import PROTOCOL, Marker, Wire, parse, trouble

DONE, HANDED_OVER = 10, 11
"""How a worker ends: the conversation is over, or the supervisor is to go on with it."""


class Worker:
    """Answers requests on one open device, until a reset."""

    def __init__(self, wire: Wire, marker: Marker, options: argparse.Namespace) -> None:
        self._wire, self._marker = wire, marker
        self._options = options
        self._consumer: Consumer | None = None
        self._opened: Opened | None = None
        self._why: str | None = None
        self._ready = False

    def run(self) -> int:
        """Answer until the input ends, `close`, or a second `reset`; how that was."""
        while True:
            line = self._wire.read()
            if line is None:
                return DONE
            if not line.strip():
                continue
            try:
                request = parse(line)
            except Misunderstood as error:
                self._wire.write({"id": 0, "trouble": trouble("garbage", "glue", str(error))})
                continue
            if request.get("op") == "reset" and self._ready:
                self._wire.pending[:0] = line + b"\n"
                return HANDED_OVER
            self._marker.enter(request["id"], str(request.get("verb", request.get("op"))))
            reply = self._reply(request)
            for event in list(self._events(request)):
                self._wire.write({"id": 0, "event": event})
            self._marker.clear()
            self._wire.write({"id": request["id"], **reply})
            if request.get("op") == "close":
                return DONE

    def _events(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if self._consumer is not None and request.get("verb", "settle") == "settle":
            yield from self._consumer.events()

    def _reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._answer(request)
        except Misunderstood as error:
            return {"trouble": trouble("garbage", "glue", str(error))}
        except Unusable as error:
            return {"trouble": trouble("crash", "glue", str(error))}
        except Exception as error:
            said = f"the agent failed: {type(error).__name__}: {error}"
            return {"trouble": trouble("crash", "glue", said, traceback.format_exc())}

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        op = request.get("op")
        if op == "hello":
            if str(request.get("protocol")).partition(".")[0] != PROTOCOL.partition(".")[0]:
                raise Misunderstood(f"this agent speaks version {PROTOCOL}, not {request.get('protocol')}")
            self._open()
            assert self._opened is not None
            return {"protocol": PROTOCOL, "hello": self._opened.hello(Features(self._opened).found())}
        if op == "reset":
            if type(request.get("seed")) is not int:
                raise Misunderstood("a reset has a number `seed`")
            self._open()
            self._ready = True
            return {"ok": True}
        if op == "call":
            return self._perform(request)
        if op == "batch":
            return self._perform_all(request)
        if op == "close":
            return {"ok": True}
        raise Misunderstood(f"`{op}` is not an operation; known: hello, reset, call, batch, close")

    def _open(self) -> None:
        if self._opened is not None:
            return
        if self._why is not None:
            raise Unusable(self._why)
        try:
            self._opened = Opened(self._options)
            self._consumer = Consumer(self._opened)
        except Unusable as error:
            self._why = str(error)
            raise
        except Errno as error:
            self._why = f"the device cannot be queried: {error}"
            raise Unusable(self._why) from error
        try:
            self._marker.quiet = self._consumer.start_clock(self._options.quiet or self._marker.quiet)
        except (Errno, Unusable) as error:
            self._consumer.quiet = self._marker.quiet = UNMEASURED
            self._warn(self._opened, error)

    def _warn(self, opened: Opened, error: Exception) -> None:
        gid = ":".join(opened.gid.hex()[i : i + 4] for i in range(0, 32, 4))
        print(
            f"agent: two queue pairs of {opened.name} cannot talk to each other ({error}) through port "
            f"{opened.port_number}, GID index {opened.gid_index} ({gid}). If every transfer fails, give another "
            "`-o gid_index=NUMBER`.",
            file=sys.stderr,
            flush=True,
        )

    def _perform_all(self, request: Mapping[str, Any]) -> dict[str, Any]:
        calls = request.get("calls")
        if not isinstance(calls, list):
            raise Misunderstood("a batch has a list `calls`")
        outcomes: list[dict[str, Any]] = []
        for call in calls:
            if not isinstance(call, dict):
                raise Misunderstood("each of `calls` is an object")
            try:
                self._marker.enter(request["id"], str(call.get("verb")))
                outcomes.append(self._perform(call))
            except (Misunderstood, Unusable) as error:
                outcomes.append({"trouble": trouble("garbage", "glue", str(error))})
                break
        return {"batch": outcomes}

    def _perform(self, call: Mapping[str, Any]) -> dict[str, Any]:
        verb, args = call.get("verb"), call.get("args")
        if not isinstance(verb, str) or not isinstance(args, dict):
            raise Misunderstood("a call has a text `verb` and an object `args`")
        if not self._ready:
            raise Misunderstood(f"`{verb}` came before the first reset")
        assert self._consumer is not None
        function = self._consumer.verbs.get(verb)
        if function is None:
            return {"answer": {"result": "EOPNOTSUPP"}}
        try:
            return {"answer": {"result": "0", "out": function(args)}}
        except Errno as error:
            return {"answer": {"result": str(error)}}
        except (KeyError, TypeError, ValueError, AttributeError, c.ArgumentError) as error:
            raise Misunderstood(f"`{verb}` cannot be called with these arguments: {error!r}") from error
