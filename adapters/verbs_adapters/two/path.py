"""The path between two sides: two queue pairs of the harness that talk to each other when time is to pass.

Each agent knows the pace of its own device; only a message from one to the other and back shows how long the network
between them takes, and it takes its turn behind what the sides have sent each other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from verbs_adapters.contract import OK, Answer, Backend, Trouble

PATIENCE = 5.0
"""Seconds in which a message arrives or the retries of its sender end."""


class Lost(Exception):
    """The two sides cannot talk to each other; the text says what was seen."""


class Ended(Exception):
    """A side did not answer."""

    def __init__(self, side: int, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.side, self.trouble = side, trouble


class Path:
    """A queue pair on each side, connected to the one on the other."""

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

    def trip(self) -> None:
        """A message in each direction, each acknowledged; `Lost` if one is not."""
        for sender in range(len(self._sides)):
            receiver = 1 - sender
            self._do(receiver, "post_recv", qp=self._qps[receiver], wr_id=1, sg_list=[])
            send = {"opcode": "SEND", "signaled": True, "fence": False, "sg_list": []}
            self._do(sender, "post_send", qp=self._qps[sender], wr_id=2, **send)
            left, until = [sender, receiver], time.monotonic() + PATIENCE
            while left:
                left = [side for side in left if not self._arrived(side)]
                if left and time.monotonic() > until:
                    raise Lost("no completion")
                for side in left:
                    self._do(side, "settle")

    def _arrived(self, side: int) -> bool:
        entry = self._do(side, "poll_cq", cq=self._cqs[side])
        if entry["n"] and entry["status"] != "SUCCESS":
            raise Lost(str(entry["status"]))
        return bool(entry["n"])

    def _do(self, side: int, verb: str, /, **args: Any) -> Mapping[str, Any]:
        answer = self._sides[side].call(verb, args)
        if isinstance(answer, Trouble):
            raise Ended(side, answer)
        if not isinstance(answer, Answer) or answer.result != OK:
            raise Lost(f"{verb} answers {answer.result}")
        return answer.out
