"""Makes streams of kernel verbs as nobody should, and says what came of each and what is left when all is closed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from verbs_adapters.kverbs import agent

ROUNDS = 40
FOREIGN = 0x0A010203  # 10.1.2.3, which the guest does not have
RIGHTS = ("LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ")


class Pair:
    """Two queue pairs in RTR, each connected to the other, and a buffer."""

    def __init__(self, device: agent.Device) -> None:
        self.device = device
        pd = device.alloc_pd()
        cq = device.create_cq(16)["cq"]
        self.pd, self.lkey = pd["pd"], pd["local_dma_lkey"]
        self.buf = device.alloc_buffer(4096)
        self.a, self.b = (device.create_qp(self.pd, cq, cq, 4, 4)["qp"] for _ in range(2))
        for state in ("INIT", "RTR"):
            device.modify_qp(self.a, state, RIGHTS, self.b)
            device.modify_qp(self.b, state, RIGHTS, self.a)

    def connect(self, caller: int, called: int, address: int = 0, reads: int = 16) -> str:
        """Make a stream; the name of the errno."""
        try:
            self.device.ioctl("connect_qp", caller, called, address or self.device.address, reads)
        except agent.Refused as refused:
            return agent.name_of(refused.number)
        return "0"

    def fill(self, qp: int) -> None:
        """Leave work on a queue pair that nobody will see done; the first send ends the stream if none awaits it."""
        element = {"addr": self.buf["addr"], "length": 64, "lkey": self.lkey}
        self.device.post_recv(qp, 1, [element])
        for wr_id in (2, 3, 4):
            try:
                self.device.post_send(qp, wr_id, "SEND", sg_list=[element])
            except agent.Refused as refused:
                if refused.number != errno.ENOTCONN:  # the stream has ended already
                    raise


def left(name: str) -> dict[str, int]:
    """How many objects the core counts on the device, and how many sockets listen at ports of ours."""
    text = subprocess.run(["rdma", "-j", "res", "show"], capture_output=True, text=True, check=True).stdout
    (counts,) = (entry for entry in json.loads(text) if entry["ifname"] == name)
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    listening = sum(20000 <= int(row[1].rpartition(":")[2], 16) < 30000 and row[3] == "0A" for row in rows)
    return {kind: counts[kind] for kind in ("pd", "cq", "qp", "mr")} | {"listening": listening}


def refusals(device: agent.Device) -> dict[str, str]:
    """Streams that cannot be, and one that can."""
    pair, other = Pair(device), Pair(device)
    asked: dict[str, Callable[[], str]] = {
        "no queue pair": lambda: pair.connect(0, pair.b),
        "a buffer": lambda: pair.connect(pair.a, pair.buf["buf"]),
        "itself": lambda: pair.connect(pair.a, pair.a),
        "an address too long": lambda: pair.connect(pair.a, pair.b, address=1 << 32),
        "too many reads": lambda: pair.connect(pair.a, pair.b, reads=256),
        "more reads than the device has": lambda: pair.connect(pair.a, pair.b, reads=255),
        "a foreign address": lambda: pair.connect(pair.a, pair.b, address=FOREIGN),
        "good": lambda: pair.connect(pair.a, pair.b),
        "again": lambda: pair.connect(pair.a, pair.b),
        "from a third": lambda: pair.connect(other.a, pair.b),
    }
    return {what: call() for what, call in asked.items()}


def with_one_in_error(device: agent.Device) -> dict[str, str]:
    """A queue pair in ERR that calls, or is called."""
    found = {}
    for what, broken in (("calls", "a"), ("is called", "b")):
        pair = Pair(device)
        device.modify_qp(getattr(pair, broken), "ERR")
        found[what] = pair.connect(pair.a, pair.b)
    return found


def closing(device: agent.Device) -> int:
    """Close the device with streams in every condition; how often."""
    for turn in range(ROUNDS):
        pair = Pair(device)
        assert pair.connect(pair.a, pair.b) == "0"
        pair.fill(pair.a)
        if turn % 4 == 1:
            pair.fill(pair.b)
        if turn % 4 == 2:
            device.destroy_qp(pair.b)
        if turn % 4 == 3:
            device.modify_qp(pair.a, "ERR")
        device.open()
    return ROUNDS


def main() -> None:
    """Answer a line with all of it."""
    name = sys.argv[sys.argv.index("--device") + 1]
    before = left(name)
    device = agent.Device(name)
    for _ in sys.stdin:
        found: dict[str, Any] = {"refusals": refusals(device), "in error": with_one_in_error(device)}
        found["closed"] = closing(device)
        os.close(device.fd)
        found |= {"before": before, "left": left(name)}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
