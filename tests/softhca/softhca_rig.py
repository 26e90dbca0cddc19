"""A consumer for the tests of softhca: verbs with defaults, and two connected queue pairs."""

from __future__ import annotations

from typing import Any

from verbs_adapters.contract import Answer
from verbs_adapters.softhca import SoftHca

ALL = ("LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ")
PAGE = 4096


class Rig:
    """A device, and on it a buffer of 64 KiB, two completion queues and two connected queue pairs.

    ``a`` sends to ``scq`` and receives from ``rcq``; so does ``b``.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        access: tuple[str, ...] = ALL,
        depth: int = 16,
        cqe: int = 64,
        two_pds: bool = False,
        connect: bool = True,
        **options: str,
    ) -> None:
        self.hca = SoftHca(options)
        self.hca.reset(seed)
        self.access = access
        self.mr = self.key = 0  # for programs that use one region throughout
        self.trace: list[str] = []
        self.accepted: list[tuple[int, str, int, bool]] = []  # qp, verb, wr_id, signaled
        self.polled: list[tuple[int, dict[str, Any]]] = []
        made = self.do("alloc_pd")
        self.pd, self.dma = made["pd"], made["local_dma_lkey"]
        self.pd_b = self.do("alloc_pd")["pd"] if two_pds else self.pd
        self.scq = self.do("create_cq", cqe=cqe)["cq"]
        self.rcq = self.do("create_cq", cqe=cqe)["cq"]
        self.qpn: dict[int, int] = {}
        self.a = self.new_qp(self.pd, depth)
        self.b = self.new_qp(self.pd_b, depth)
        made = self.do("alloc_buffer", length=16 * PAGE)
        self.buf, self.addr = made["buf"], made["addr"]
        if connect:
            self.connect(self.a, self.b)

    # -- verbs -------------------------------------------------------------------------------------
    def call(self, verb: str, **args: Any) -> Answer:
        answer = self.hca.call(verb, args)
        self.trace.append(repr(answer))
        assert isinstance(answer, Answer), answer
        if verb == "poll_cq" and answer.out.get("n"):
            self.polled.append((args["cq"], answer.out))
        elif verb in ("post_send", "post_recv") and answer.result == "0":
            self.accepted.append((args["qp"], verb, args["wr_id"], args.get("signaled", True)))
        return answer

    def do(self, verb: str, **args: Any) -> dict[str, Any]:
        answer = self.call(verb, **args)
        assert answer.result == "0", (verb, args, answer)
        return answer.out

    def result(self, verb: str, **args: Any) -> str:
        return self.call(verb, **args).result

    # -- queue pairs -------------------------------------------------------------------------------
    def new_qp(self, pd: int, depth: int = 16) -> int:
        made = self.do("create_qp", pd=pd, send_cq=self.scq, recv_cq=self.rcq, max_send_wr=depth, max_recv_wr=depth)
        qp: int = made["qp"]
        self.qpn[qp] = made["qp_num"]
        return qp

    def move(self, qp: int, state: str, peer: int = 0) -> str:
        return self.result("modify_qp", qp=qp, state=state, peer=peer, access=list(self.access))

    def connect(self, first: int, second: int) -> None:
        for state in ("INIT", "RTR", "RTS"):
            for qp, peer in ((first, second), (second, first)):
                assert self.move(qp, state, peer) == "0"

    def state(self, qp: int) -> str:
        return str(self.do("query_qp", qp=qp)["state"])

    # -- bytes -------------------------------------------------------------------------------------
    def put(self, offset: int, data: bytes) -> None:
        self.do("write_buffer", buf=self.buf, offset=offset, data=data.hex())

    def get(self, offset: int, length: int) -> bytes:
        return bytes.fromhex(self.do("read_buffer", buf=self.buf, offset=offset, length=length)["data"])

    def sge(self, offset: int, length: int, lkey: int | None = None) -> dict[str, int]:
        return {"addr": self.addr + offset, "length": length, "lkey": self.dma if lkey is None else lkey}

    # -- regions -----------------------------------------------------------------------------------
    def region(self, pages: int = 4, pd: int | None = None) -> tuple[int, int]:
        made = self.do("alloc_mr", pd=self.pd if pd is None else pd, max_num_sg=pages)
        return made["mr"], made["key"]

    def map(self, mr: int, offset: int, length: int, page: int = PAGE) -> dict[str, Any]:
        sg = [{"addr": self.addr + offset, "length": length}]
        return self.do("map_mr_sg", mr=mr, sg=sg, offset=0, page_size=page)

    def reg(self, qp: int, mr: int, key: int, access: tuple[str, ...] = ALL, wr_id: int = 100, **more: Any) -> str:
        return self.post(qp, "REG_MR", wr_id, mr=mr, key=key, access=list(access), **more)

    def registered(
        self, offset: int, length: int, *, access: tuple[str, ...] = ALL, qp: int | None = None
    ) -> tuple[int, int]:
        """A VALID region over the buffer, registered through b."""
        mr, key = self.region(pd=self.pd_b)
        self.map(mr, offset, length)
        assert self.reg(qp or self.b, mr, key, access) == "0"
        assert self.sent() == [(100, "SUCCESS")]
        return mr, key

    # -- work requests -----------------------------------------------------------------------------
    def post(self, qp: int, opcode: str, wr_id: int = 1, **fields: Any) -> str:
        fields = {"signaled": True, "fence": False, **fields}
        return self.result("post_send", qp=qp, wr_id=wr_id, opcode=opcode, **fields)

    def recv(self, qp: int, wr_id: int = 1, *sges: dict[str, int]) -> str:
        return self.result("post_recv", qp=qp, wr_id=wr_id, sg_list=list(sges))

    def send(self, qp: int, wr_id: int = 1, *sges: dict[str, int], **more: Any) -> str:
        return self.post(qp, "SEND", wr_id, sg_list=list(sges), **more)

    def write(self, rkey: int, offset: int, length: int, wr_id: int = 1, **more: Any) -> str:
        """From a, from the buffer's start, to `offset` by rkey."""
        fields = {"qp": self.a, "remote_addr": self.addr + offset, **more}
        return self.post(opcode="RDMA_WRITE", wr_id=wr_id, sg_list=[self.sge(0, length)], rkey=rkey, **fields)

    def read(self, rkey: int, offset: int, sink: dict[str, int], wr_id: int = 1, **more: Any) -> str:
        fields = {"qp": self.a, "remote_addr": self.addr + offset, **more}
        return self.post(opcode="RDMA_READ", wr_id=wr_id, sg_list=[sink], rkey=rkey, **fields)

    def inv(self, qp: int, key: int, wr_id: int = 200, **more: Any) -> str:
        return self.post(qp, "LOCAL_INV", wr_id, invalidate_rkey=key, **more)

    # -- completions -------------------------------------------------------------------------------
    def poll_all(self, cq: int) -> list[dict[str, Any]]:
        found = []
        while (out := self.do("poll_cq", cq=cq))["n"]:
            found.append(out)
        return found

    def done(self, cq: int) -> list[tuple[int, str]]:
        """Settle, then everything in a completion queue, as (wr_id, status)."""
        self.do("settle")
        return [(out["wr_id"], out["status"]) for out in self.poll_all(cq)]

    def sent(self) -> list[tuple[int, str]]:
        return self.done(self.scq)

    def got(self) -> list[tuple[int, str]]:
        return self.done(self.rcq)
