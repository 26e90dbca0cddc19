"""A rig with memory windows of user verbs, and what its tests see."""

from __future__ import annotations

from typing import Any

from softhca_rig import PAGE, Rig

GOOD = [(1, "SUCCESS")]
REFUSED = [(1, "REM_ACCESS_ERR")]
BOUND = [(50, "SUCCESS")]
BAD_BIND = [(50, "MW_BIND_ERR")]
OPEN = ("REMOTE_WRITE", "REMOTE_READ")
START, LENGTH = PAGE + 100, 1000  # of the windows here
BINDABLE = ("LOCAL_WRITE", "MW_BIND")


class WindowRig(Rig):
    """b has a region of two pages with MW_BIND, a one to send from."""

    def __init__(self, *, region: tuple[str, ...] = BINDABLE, **options: Any) -> None:
        super().__init__(api="linux-user", **options)
        self.source = self.reg_mr(0, 4 * PAGE, ("LOCAL_WRITE",), self.pd)
        self.region_b = self.reg_mr(PAGE, 2 * PAGE, region, self.pd_b)

    def reg_mr(self, offset: int, length: int, access: tuple[str, ...], pd: int) -> dict[str, Any]:
        return self.do("reg_mr", pd=pd, addr=self.addr + offset, length=length, access=list(access))

    def window(self, kind: str = "TYPE_2", pd: int | None = None) -> None:
        made = self.do("alloc_mw", pd=self.pd_b if pd is None else pd, type=kind)
        self.first: int = made["rkey"]
        self.mw: int = made["mw"]

    def bind_args(self, **more: Any) -> dict[str, Any]:
        where = {"mr": self.region_b["mr"], "addr": self.addr + START, "length": LENGTH, "access": list(OPEN)}
        return {"qp": self.b, "mw": self.mw, "wr_id": 50, "signaled": True, **where, **more}

    def bind_1(self, **more: Any) -> int:
        key: int = self.do("bind_mw", **self.bind_args(**more))["rkey"]
        return key

    def post_bind(self, **more: Any) -> str:
        return self.result("post_send", **self.bind_args(**{"opcode": "BIND_MW", "fence": False, "rkey": 7, **more}))

    def bind_2(self, **more: Any) -> int:
        """A window of type 2 is bound; its key."""
        self.window()
        assert self.post_bind(**more) == "0"
        assert self.sent() == BOUND
        return self.first & ~0xFF | 7

    def bound(self, kind: str, **more: Any) -> int:
        if kind == "TYPE_2":
            return self.bind_2(**more)
        self.window(kind)
        key = self.bind_1(**more)
        assert self.sent() == BOUND
        return key

    def wrote(self, key: int, offset: int = START, length: int = 8, qp: int | None = None) -> list[tuple[int, str]]:
        sges = [self.sge(0, length, self.source["lkey"])]
        fields = {"sg_list": sges, "remote_addr": self.addr + offset, "rkey": key}
        assert self.post(self.a if qp is None else qp, "RDMA_WRITE", **fields) == "0"
        return self.sent()

    def reconnect(self) -> None:
        for qp in (self.a, self.b):
            self.move(qp, "RESET")
        self.connect(self.a, self.b)
