"""What a test of user verbs needs: calls that must succeed, and objects as they are mostly made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from verbs_adapters.contract import Answer, Trouble
from verbs_adapters.remote.client import RemoteBackend

ALL = ["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "MW_BIND"]
SIZE = 65536

Out = dict[str, Any]


class Place(NamedTuple):
    """A buffer with a region over it."""

    buf: int
    addr: int
    mr: int
    lkey: int
    rkey: int

    def sge(self, offset: int, length: int) -> dict[str, int]:
        """A part of it, for local use."""
        return {"addr": self.addr + offset, "length": length, "lkey": self.lkey}


class Consumer:
    """A fresh context with a protection domain, a completion queue, and a region over a buffer."""

    def __init__(self, backend: RemoteBackend) -> None:
        self.backend = backend
        assert backend.reset(1) is None
        backend.events()
        self.pd: int = self.do("alloc_pd")["pd"]
        self.cq: int = self.do("create_cq", cqe=32)["cq"]
        buffer = self.do("alloc_buffer", length=SIZE)
        region = self.do("reg_mr", pd=self.pd, addr=buffer["addr"], length=SIZE, access=ALL)
        self.place = Place(buffer["buf"], buffer["addr"], region["mr"], region["lkey"], region["rkey"])
        self._ids = 0

    def call(self, verb: str, /, **args: Any) -> Answer | Trouble:
        """Whatever comes of a call."""
        return self.backend.call(verb, args)

    def do(self, verb: str, /, **args: Any) -> Out:
        """A call that must succeed."""
        answer = self.call(verb, **args)
        assert isinstance(answer, Answer), answer
        assert answer.result == "0", (verb, args, answer)
        return answer.out

    def fails(self, verb: str, /, **args: Any) -> str:
        """A call that must fail; its errno."""
        answer = self.call(verb, **args)
        assert isinstance(answer, Answer), answer
        assert answer.result != "0", (verb, args)
        return answer.result

    # -- queue pairs -------------------------------------------------------------------------------

    def qp(self, kind: str = "RC", **more: Any) -> Out:
        """A queue pair in RESET."""
        queues = {"send_cq": self.cq, "recv_cq": self.cq} | {k: more.pop(k) for k in tuple(more) if k.endswith("_cq")}
        return self.do("create_qp", pd=self.pd, max_send_wr=8, max_recv_wr=8, qp_type=kind, **queues, **more)

    def connect(self, one: Out, other: Out, states: Sequence[str] = ("INIT", "RTR", "RTS"), **more: Any) -> None:
        """Bring both to a state, each the other's peer."""
        for state in states:
            for qp, peer in ((one, other), (other, one)):
                self.do("modify_qp", qp=qp["qp"], state=state, peer=peer["qp"], access=ALL, **more)

    def pair(self, kind: str = "RC", **more: Any) -> tuple[Out, Out]:
        """Two connected queue pairs; what is more is of the second."""
        one, other = self.qp(kind), self.qp(kind, **more)
        self.connect(one, other)
        return one, other

    # -- work --------------------------------------------------------------------------------------

    def send(self, qp: Out, opcode: str = "SEND", /, **more: Any) -> int:
        """Post a signalled request; its wr_id."""
        self._ids += 1
        args = {"wr_id": self._ids, "opcode": opcode, "signaled": True, "fence": False} | more
        self.do("post_send", qp=qp["qp"], **args)
        return self._ids

    def receive(self, qp: Out, *sges: dict[str, int]) -> int:
        """Post a receive; its wr_id."""
        self._ids += 1
        self.do("post_recv", qp=qp["qp"], wr_id=self._ids, sg_list=list(sges))
        return self._ids

    def drain(self, cq: int | None = None) -> dict[int, Out]:
        """All completions after the device has settled, by wr_id."""
        self.do("settle")
        found = {}
        while (entry := self.do("poll_cq", cq=self.cq if cq is None else cq))["n"]:
            assert entry["wr_id"] not in found, "a request completes once"
            found[entry["wr_id"]] = entry
        return found

    def status(self, number: int) -> str:
        """How a request ended, with nothing left in the queue afterwards."""
        return str(self.drain()[number]["status"])

    def state(self, qp: Out) -> str:
        """The state of a queue pair."""
        return str(self.do("query_qp", qp=qp["qp"])["state"])

    def write(self, offset: int, data: str) -> None:
        """Store bytes in the buffer."""
        self.do("write_buffer", buf=self.place.buf, offset=offset, data=data)

    def read(self, offset: int, length: int) -> str:
        """Load bytes from the buffer."""
        return str(self.do("read_buffer", buf=self.place.buf, offset=offset, length=length)["data"])
