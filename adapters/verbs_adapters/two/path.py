"""The path between two sides: two queue pairs of the harness that talk to each other when time is to pass.

Each agent knows the pace of its own device; only a message from one to the other and back shows how long the network
between them takes, and it takes its turn behind what the sides have sent each other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Protocol, runtime_checkable

from verbs_adapters.contract import OK, Answer, Backend, Trouble, Value

PATIENCE = 5.0
"""Seconds in which a message arrives or the retries of its sender end."""

GLANCES = 20
"""So often a completion is looked for before time is made to pass, which a backend in virtual time needs."""


class Lost(Exception):
    """The two sides cannot talk to each other; the text says what was seen."""


class Ended(Exception):
    """A side did not answer."""

    def __init__(self, side: int, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.side, self.trouble = side, trouble


@runtime_checkable
class Batching(Protocol):
    """A side that takes several calls in one round trip, which is what a walk mostly costs."""

    def batch(self, calls: Sequence[tuple[str, Mapping[str, Value]]]) -> list[Answer | Trouble]:
        """The answers, up to the first trouble."""


class Path:
    """A queue pair on each side, connected to the one on the other, with a receive posted."""

    def __init__(self, sides: Sequence[Backend]) -> None:
        self._sides = sides
        self._cqs: list[int] = []
        self._qps: list[int] = []
        for side in range(len(sides)):
            pd = self._do(side, "alloc_pd")["pd"]
            cq = self._do(side, "create_cq", cqe=16)["cq"]
            depths = {"max_send_wr": 4, "max_recv_wr": 4}
            self._cqs.append(cq)
            self._qps.append(self._do(side, "create_qp", pd=pd, send_cq=cq, recv_cq=cq, **depths)["qp"])
        there = [self._do(side, "qp_address", qp=qp)["address"] for side, qp in enumerate(self._qps)]
        for state in ("INIT", "RTR", "RTS"):
            for side, qp in enumerate(self._qps):
                more = {"remote": there[1 - side]} if state == "RTR" else {}
                self._do(side, "modify_qp", qp=qp, state=state, access=[], **more)
        for side, qp in enumerate(self._qps):
            self._do(side, "post_recv", qp=qp, wr_id=1, sg_list=[])

    def walk(self) -> None:
        """A message in each direction, each acknowledged; `Lost` if one is not."""
        send = {"wr_id": 2, "opcode": "SEND", "signaled": True, "fence": False, "sg_list": []}
        for side, qp in enumerate(self._qps):
            self._do(side, "post_send", qp=qp, **send)
        left, until = dict.fromkeys(range(len(self._sides)), 2), time.monotonic() + PATIENCE
        for look in count(1):
            left = {side: entries - self._arrived(side, entries) for side, entries in left.items()}
            left = {side: entries for side, entries in left.items() if entries}
            if not left:
                break
            if time.monotonic() > until:
                raise Lost("no completion")
            for side in left if look % GLANCES == 0 else ():
                self._do(side, "settle")
        for side, qp in enumerate(self._qps):
            self._do(side, "post_recv", qp=qp, wr_id=1, sg_list=[])

    def _arrived(self, side: int, entries: int) -> int:
        """How many completions have come, of so many that are to come."""
        found = [entry for entry in self._all(side, [("poll_cq", {"cq": self._cqs[side]})] * entries) if entry["n"]]
        for entry in found:
            if entry["status"] != "SUCCESS":
                raise Lost(str(entry["status"]))
        return len(found)

    def _do(self, side: int, verb: str, /, **args: Any) -> Mapping[str, Any]:
        return self._all(side, [(verb, args)])[0]

    def _all(self, side: int, calls: Sequence[tuple[str, Mapping[str, Value]]]) -> list[Mapping[str, Any]]:
        backend = self._sides[side]
        if len(calls) > 1 and isinstance(backend, Batching):
            answers = backend.batch(calls)
        else:
            answers = [backend.call(verb, args) for verb, args in calls]
        made: list[Mapping[str, Any]] = []
        for (verb, _), answer in zip(calls, answers, strict=False):
            if isinstance(answer, Trouble):
                raise Ended(side, answer)
            if answer.result != OK:
                raise Lost(f"{verb} answers {answer.result}")
            made.append(answer.out)
        return made
