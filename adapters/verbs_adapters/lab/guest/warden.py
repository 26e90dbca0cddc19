"""The guest's supervisor: starts the agent, and says how it is doing when the host asks.

Two virtio ports lead to the host.  `agent` is the agent's standard input and output; what it writes to standard error
goes to the console.  On `warden` each line is a question, answered by one line of JSON:

    hello       {"boot": seconds since the kernel started}
    agent       {"status": exit status or null, "tasks": [{"pid", "state", "syscall", "stack"}, ...]}

and when the agent ends, {"status": ...} is sent unasked.  A guest whose warden does not answer hangs as a whole.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import Any


def port(name: str) -> int:
    """The device of a virtio port, waiting for it to come up."""
    while True:
        for entry in os.listdir("/sys/class/virtio-ports"):
            if text(f"/sys/class/virtio-ports/{entry}/name") == name:
                return os.open(f"/dev/{entry}", os.O_RDWR)
        time.sleep(0.02)


def text(path: str) -> str:
    """What a file of the kernel says; nothing if it does not."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """A process and all that come from it."""
    children = map(int, text(f"/proc/{pid}/task/{pid}/children").split())
    return [pid, *(one for child in children for one in descendants(child))]


def task(pid: int) -> dict[str, Any]:
    """What a process is doing."""
    return {
        "pid": pid,
        "state": text(f"/proc/{pid}/stat").rpartition(")")[2][1:2],
        "syscall": text(f"/proc/{pid}/syscall").split(" ")[0],
        "stack": text(f"/proc/{pid}/stack"),
    }


def main() -> None:
    """Serve for ever; the host ends the machine."""
    agent_port, warden_port = port("agent"), port("warden")
    agent = subprocess.Popen(  # noqa: S603 - the agent beside this file
        [sys.executable, "/verbspec/main.py", *sys.argv[1:]], stdin=agent_port, stdout=agent_port, cwd="/"
    )
    os.close(agent_port)
    ended = os.pidfd_open(agent.pid)

    def tell(content: dict[str, Any]) -> None:
        os.write(warden_port, json.dumps(content).encode() + b"\n")

    waiting = [warden_port, ended]
    unread = b""
    tell({"boot": time.monotonic()})
    while True:
        ready, _, _ = select.select(waiting, [], [])
        if ended in ready:
            waiting.remove(ended)
            tell({"status": agent.wait()})
        if warden_port in ready:
            data = os.read(warden_port, 4096)
            if not data:  # nobody is connected
                time.sleep(0.1)
            unread += data
        while b"\n" in unread:
            question, _, unread = unread.partition(b"\n")
            if question == b"agent":
                living = agent.poll() is None
                tell({"status": agent.poll(), "tasks": [task(pid) for pid in descendants(agent.pid) if living]})
            else:
                tell({"boot": time.monotonic()})


if __name__ == "__main__":
    main()
