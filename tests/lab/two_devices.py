"""A backend of two soft-RoCE devices, which are in one guest of the lab; a run of the suite over it."""

from __future__ import annotations

import json
from pathlib import Path

from verbs_adapters import registry
from verbs_adapters.rdma_core.source import agent_source
from verbs_adapters.remote.client import RemoteBackend
from verbs_adapters.remote.links import Ending, Link, NoLine, Peer
from verbs_adapters.two.backend import TwoSides

AGENTS = Path(__file__).parent / "agents" / "two_agents.py"
DEADLINE, START_DEADLINE = 60.0, 300.0


class Guest:
    """The stream to a guest, which two agents share."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.link: Link | None = None
        self.ending: Ending | None = None

    def open(self, seconds: float) -> Link:
        """The link, opened by whoever comes first."""
        if self.link is None:
            self.link = self.peer.open(seconds)
        return self.link

    def end(self, patience: float) -> Ending:
        """End the guest for both; how it ended."""
        if self.link is not None:
            self.ending = self.link.end(patience)
            self.link = None
        assert self.ending is not None
        return self.ending


class SideLink:
    """The link to one agent: what is sent says for whom it is."""

    def __init__(self, guest: Guest, side: int, seconds: float) -> None:
        self._guest, self._side = guest, side
        self._link = guest.open(seconds)

    @property
    def stderr(self) -> bytes:
        """What the guest has said beside the answers."""
        return self._link.stderr

    @property
    def unread(self) -> bytes:
        """What nobody has received."""
        return self._link.unread

    def send(self, data: bytes) -> None:
        """Send one line, unless the other side has ended the guest."""
        if self._guest.link is self._link:
            self._link.send(json.dumps({**json.loads(data), "side": self._side}).encode() + b"\n")

    def receive(self, until: float) -> bytes | NoLine:
        """The next line; requests are made one at a time, so it is for this side."""
        return self._link.receive(until) if self._guest.link is self._link else NoLine.ENDED

    def end(self, patience: float = 0.0) -> Ending:
        """End the guest, unless the other side has."""
        return self._guest.end(patience)


class Side:
    """How one agent in the guest is reached."""

    stale = False

    def __init__(self, guest: Guest, side: int) -> None:
        self._guest, self._side = guest, side
        self.who = f"agent {side + 1} in the guest"

    def open(self, seconds: float) -> SideLink:
        """Its link."""
        return SideLink(self._guest, self._side, seconds)


def backend(folder: Path) -> TwoSides:
    """Two devices in a guest of the default kernel."""
    file = folder / "two_agents.py"
    text = AGENTS.read_text(encoding="utf-8").replace('AGENT = ""', f"AGENT = {agent_source().decode()!r}")
    file.write_text(text, encoding="utf-8")
    lab = registry.create("lab", {"api": "linux-user", "agent": str(file), "deadline": str(DEADLINE)})
    assert isinstance(lab, RemoteBackend)
    guest = Guest(lab._peer)
    one, other = (
        RemoteBackend(Side(guest, side), deadline=DEADLINE, start_deadline=START_DEADLINE, blame="glue")
        for side in (0, 1)
    )
    return TwoSides(one, other)
