"""A whole agent of the remote protocol in the standard library: the good one that the bad ones are bent from.

It knows two verbs, `alloc_pd` and `settle`; it has no others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

HELLO = {
    "contract": "1.0",
    "name": "toy",
    "version": "1.0",
    "device": "toy0",
    "api": ["linux-user"],
    "transport": ["ib"],
}

pds = 0


def requests() -> Iterator[dict[str, Any]]:
    """What the harness asks, until it closes our standard input."""
    for line in sys.stdin:
        yield json.loads(line)


def send(reply: dict[str, Any]) -> None:
    """Write one reply, at once."""
    print(json.dumps(reply), flush=True)


def perform(verb: str) -> dict[str, Any]:
    """One verb."""
    global pds  # noqa: PLW0603 - a protocol in a page
    if verb == "settle":
        return {"result": "0", "out": {}}
    if verb != "alloc_pd":
        return {"result": "ENOSYS"}
    pds += 1
    return {"result": "0", "out": {"pd": pds, "local_dma_lkey": 0}}


def reply_to(request: dict[str, Any]) -> dict[str, Any]:
    """The good reply to a request."""
    global pds  # noqa: PLW0603
    content: dict[str, Any] = {"ok": True}
    if request["op"] == "hello":
        content = {"protocol": "1.0", "hello": HELLO}
    elif request["op"] == "reset":
        pds = 0
    elif request["op"] == "call":
        content = {"answer": perform(request["verb"])}
    elif request["op"] == "batch":
        content = {"batch": [{"answer": perform(call["verb"])} for call in request["calls"]]}
    return {"id": request["id"], **content}


def main() -> None:
    """Serve until told to close."""
    for request in requests():
        send(reply_to(request))
        if request["op"] == "close":
            break


if __name__ == "__main__":
    main()
