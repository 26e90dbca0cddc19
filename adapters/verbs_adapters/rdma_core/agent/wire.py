"""Lines on standard input and output, and what the worker tells the supervisor without them."""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.library import Misunderstood

PROTOCOL = "1.1"
MAX_LINE = 1 << 20

TOO_LONG = b"\xff"
"""Stands for a line that was longer than allowed and was skipped; it is no JSON."""


class Wire:
    """Lines on two file descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self.pending = bytearray()

    def read(self) -> bytes | None:
        """The next line, None at the end of input.  What follows the last newline is no line."""
        skipped, scanned = False, 0
        while True:
            end = self.pending.find(b"\n", scanned)
            if end >= 0:
                line = bytes(self.pending[:end])
                del self.pending[: end + 1]
                return TOO_LONG if skipped or end > MAX_LINE else line
            scanned = len(self.pending)
            if scanned > MAX_LINE:
                skipped, scanned = True, 0
                self.pending.clear()
            data = os.read(self._source, 1 << 16)
            if not data:
                return None
            self.pending += data

    def write(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_LINE + 1:
            said = f"the answer is {len(line)} bytes long, and a line has at most {MAX_LINE}; ask for less at a time"
            line = json.dumps({"id": message["id"], "trouble": trouble("garbage", "glue", said)}).encode() + b"\n"
        view = memoryview(line)
        while view:
            view = view[os.write(self._sink, view) :]


def trouble(kind: str, whose: str, message: str, evidence: str = "") -> dict[str, str]:
    """The contract's Trouble."""
    return {"kind": kind, "whose": whose, "message": message, "evidence": evidence}


def parse(line: bytes) -> dict[str, Any]:
    """The request that a line holds."""
    if line == TOO_LONG:
        raise Misunderstood(f"a line is longer than {MAX_LINE} bytes")
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misunderstood(f"a line is not JSON: {error}") from error
    if not isinstance(request, dict) or type(request.get("id")) is not int or request["id"] < 0:
        raise Misunderstood("a request is an object with a number `id`")
    return request


class Marker:
    """What the worker is doing, in memory that it shares with the supervisor.

    Nothing locks it: the supervisor believes only what it has seen unchanged for a long time.
    """

    FORMAT = struct.Struct("=qQd40s")

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, mmap.PAGESIZE)
        self._count = 0
        self.quiet = 0.0
        self.clear()

    def enter(self, number: int, what: str) -> None:
        """A request is being worked on."""
        self._count += 1
        self.FORMAT.pack_into(self._map, 0, number, self._count, self.quiet, what.encode()[:40])

    def clear(self) -> None:
        """It was answered."""
        self._count += 1
        self.FORMAT.pack_into(self._map, 0, -1, self._count, self.quiet, b"")

    def read(self) -> tuple[int, int, str]:
        """The request's id (-1 if none), the count of changes, and what; notes the worker's measure of quiet."""
        number, count, self.quiet, what = self.FORMAT.unpack_from(self._map, 0)
        return number, count, what.rstrip(b"\0").decode("utf-8", "replace")
