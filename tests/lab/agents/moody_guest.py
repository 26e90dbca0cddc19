"""An agent for a guest that goes wrong in a way of your choice: each verb but one has its own."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

HELLO = {
    "contract": "1.0",
    "name": "moody",
    "version": "1.0",
    "device": "none",
    "api": ["linux-user"],
    "transport": ["roce"],
}


def panic() -> None:
    """Have the kernel panic."""
    with open("/proc/sysrq-trigger", "w", encoding="ascii") as file:
        file.write("c")


def warn() -> None:
    """Have the kernel report a bug and live on."""
    with open("/dev/kmsg", "w", encoding="ascii") as file:
        file.write("<3>BUG: KASAN: slab-use-after-free in a driver that is not there\n")


def block() -> None:
    """Make a call of the kernel that does not come back."""
    _, end = os.pipe()
    while True:
        os.write(end, b"x" * 65536)


MOODS: dict[str, Callable[[], object]] = {
    "create_cq": panic,
    "destroy_cq": warn,
    "alloc_buffer": block,
    "free_buffer": lambda: time.sleep(3600),
    "dealloc_pd": lambda: os._exit(3),
    "settle": lambda: print("this is not JSON", flush=True),
}


def content(request: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request."""
    if request["op"] == "hello":
        return {"protocol": "1.0", "hello": HELLO}
    if request["op"] != "call":
        return {"ok": True}
    mood = MOODS.get(request["verb"])
    if mood is not None:
        mood()
    return {"answer": {"result": "0", "out": {"pd": 1, "local_dma_lkey": 0} if mood is None else {}}}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **content(asked)}), flush=True)
