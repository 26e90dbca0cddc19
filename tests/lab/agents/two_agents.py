"""Two rdma-core agents in one guest, each with a soft-RoCE device of its own, behind the guest's one stream.

A request says in `side` which of the two it is for.  The two devices are at the ends of the guest's pair of virtual
Ethernet devices.  Their addresses are both this machine's, and what is sent to one's own address takes no wire; so the
tables of routes are asked in another order: for what one device sends to the other first those that lead to the wire.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

AGENT = ""  # whoever sends this file here puts the agent's source into it
DEVICES = {"rxe0": ("v0", "10.99.0.1"), "rxe1": ("v1", "10.99.0.2")}


def run(words: str) -> None:
    """Run a command of the guest."""
    subprocess.run(words.split(), check=True, stdout=sys.stderr)


def set_up() -> None:
    """Give the guest its second device, and have packages between the two take the wire."""
    (here, one), (there, other) = DEVICES.values()
    run(f"ip addr add {other}/24 dev {there}")
    run("ip rule add pref 300 lookup local")
    for number, (device, source, target, facing) in enumerate(
        ((here, one, other, there), (there, other, one, here)), 1
    ):
        Path(f"/proc/sys/net/ipv4/conf/{device}/accept_local").write_text("1", encoding="ascii")
        Path(f"/proc/sys/net/ipv4/conf/{device}/rp_filter").write_text("0", encoding="ascii")
        address = Path(f"/sys/class/net/{facing}/address").read_text(encoding="ascii").strip()
        run(f"ip neigh replace {target} lladdr {address} dev {device} nud permanent")
        run(f"ip route add {target} dev {device} src {source} table {100 + number}")
        run(f"ip rule add pref {100 + number} iif {device} lookup local")
        run(f"ip rule add pref {200 + number} from {source} to {target} lookup {100 + number}")
    run("ip rule del pref 0")
    run(f"rdma link add rxe1 type rxe netdev {there}")


def main() -> None:
    """Carry requests to the agents and their answers back, until one of them ends."""
    set_up()
    file = Path("/tmp/agent.py")
    file.write_text(AGENT, encoding="utf-8")
    pipe = subprocess.PIPE
    commands = [[sys.executable, "-u", str(file), f"--device={name}"] for name in DEVICES]
    agents = [subprocess.Popen(command, stdin=pipe, stdout=pipe) for command in commands]
    outputs = [agent.stdout.fileno() for agent in agents if agent.stdout is not None]
    unread = b""
    while True:
        ready, _, _ = select.select([0, *outputs], [], [])
        for descriptor in ready:
            data = os.read(descriptor, 1 << 16)
            if not data:
                sys.exit(f"two_agents: {'the input' if descriptor == 0 else 'an agent'} has ended")
            if descriptor == 0:
                *lines, unread = (unread + data).split(b"\n")
                for line in lines:
                    agent = agents[json.loads(line)["side"]]
                    assert agent.stdin is not None
                    agent.stdin.write(line + b"\n")
                    agent.stdin.flush()
            else:
                while data:
                    data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
