"""Unreliable connections and datagrams."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import PAGE, Rig

GOOD = [(1, "SUCCESS")]
SEEDS = range(8)
GRH = 40


class Pair(Rig):
    """A rig whose queue pairs are of another type."""

    def __init__(self, kind: str, seed: int = 0, **options: Any) -> None:
        self.kind = kind
        super().__init__(seed, **options)

    def new_qp(self, pd: int, depth: int = 16) -> int:
        sizes = {"max_send_wr": depth, "max_recv_wr": depth}
        made = self.do("create_qp", pd=pd, send_cq=self.scq, recv_cq=self.rcq, qp_type=self.kind, **sizes)
        self.qpn[made["qp"]] = made["qp_num"]
        return int(made["qp"])

    def datagram(self, wr_id: int = 1, length: int = 8, opcode: str = "SEND", **more: Any) -> str:
        if "ah" not in more:
            more["ah"] = self.do("create_ah", pd=self.pd)["ah"]
        fields = {"remote_qpn": self.qpn[self.b], "sg_list": [self.sge(0, length)], **more}
        return self.post(self.a, opcode, wr_id, **fields)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", [0, 8, 700])
def test_unreliable_connection(seed: int, length: int) -> None:
    rig = Pair("UC", seed, mtu="MTU_256")
    _, key = rig.registered(PAGE, 1000)
    rig.put(0, b"x" * 700)
    rig.recv(rig.b, 9, rig.sge(4 * PAGE, 700))
    rig.send(rig.a, 1, rig.sge(0, length))
    rig.write(key, PAGE, length, 2)
    assert rig.sent() == [(1, "SUCCESS"), (2, "SUCCESS")]
    (entry,) = rig.poll_all(rig.rcq)
    assert (entry["status"], entry["byte_len"]) == ("SUCCESS", length)
    assert rig.get(4 * PAGE, 700).count(b"x") == rig.get(PAGE, 700).count(b"x") == length


@pytest.mark.parametrize("rq_slot", ["poll", "consume"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_cannot_be_taken_is_dropped(seed: int, rq_slot: str) -> None:
    """Neither side is told, and the next message gets through."""
    rig = Pair("UC", seed, mtu="MTU_256", rq_slot=rq_slot)
    rig.send(rig.a, 1)
    rig.write(0xBAD00, PAGE, 600, 2)
    assert rig.sent() == [(1, "SUCCESS"), (2, "SUCCESS")]
    rig.recv(rig.b, 9, rig.sge(4 * PAGE, 300))
    rig.send(rig.a, 3, rig.sge(0, 700))
    rig.send(rig.a, 4, rig.sge(0, 300))
    assert rig.sent() == [(3, "SUCCESS"), (4, "SUCCESS")]
    assert rig.got() == [(9, "SUCCESS")]
    assert (rig.state(rig.a), rig.state(rig.b)) == ("RTS", "RTS")
    assert [rig.recv(rig.b, wr_id) for wr_id in range(17)] == ["0"] * 16 + ["ENOMEM"]


@pytest.mark.parametrize(("wire", "taken"), [("duplicated-request", 1), ("late-request", 0), ("lost-request", 0)])
@pytest.mark.parametrize("kind", ["UC", "UD"])
def test_a_fabric_delivers_once_and_in_order(kind: str, wire: str, taken: int) -> None:
    rig = Pair(kind, wire=wire)
    for wr_id in (8, 9):
        rig.recv(rig.b, wr_id, rig.sge(PAGE, GRH + 8))
    sent = rig.datagram() if kind == "UD" else rig.send(rig.a, 1, rig.sge(0, 8))
    assert (sent, rig.sent()) == ("0", GOOD)
    assert rig.got() == [(8, "SUCCESS")] * taken


def test_a_short_receive_may_fail_by_itself() -> None:
    rig = Pair("UC", short_receive="use")
    rig.recv(rig.b, 8, rig.sge(PAGE, 4))
    rig.recv(rig.b, 9, rig.sge(PAGE, 8))
    rig.send(rig.a, 1, rig.sge(0, 8))
    rig.send(rig.a, 2, rig.sge(0, 8))
    assert rig.got() == [(8, "LOC_LEN_ERR"), (9, "SUCCESS")]
    assert rig.state(rig.b) == "RTS"


@pytest.mark.parametrize(("where", "state"), [("SQE", "SQE"), ("ERR", "ERR")])
def test_a_send_that_fails(where: str, state: str) -> None:
    """In SQE receives go on, and the send queue starts again with RTS."""
    rig = Pair("UC", failed_send=where, api="linux-user")
    rig.recv(rig.a, 9)
    rig.send(rig.a, 1, rig.sge(0, 8, 0xBAD00))
    rig.send(rig.a, 2)
    assert rig.sent() == [(1, "LOC_PROT_ERR"), (2, "WR_FLUSH_ERR")]
    assert rig.state(rig.a) == state
    rig.send(rig.b, 3)
    assert rig.sent() == [(3, "SUCCESS")]
    assert rig.got() == [(9, "SUCCESS" if where == "SQE" else "WR_FLUSH_ERR")]
    if where == "SQE":
        assert rig.move(rig.a, "RTS") == "0"
        rig.send(rig.a, 4)
        assert rig.sent() == [(4, "SUCCESS")]


def test_what_a_type_does_not_have() -> None:
    for kind, opcodes in (("UC", ("RDMA_READ",)), ("UD", ("RDMA_READ", "RDMA_WRITE"))):
        rig = Pair(kind)
        for opcode in opcodes:
            assert rig.post(rig.a, opcode, sg_list=[], remote_addr=0, rkey=0) == "EINVAL"


@pytest.mark.parametrize(("transport", "there"), [("roce", True), ("ib", False)])
@pytest.mark.parametrize(("opcode", "more"), [("SEND", {}), ("SEND_WITH_IMM", {"imm_data": 5})])
def test_datagram(transport: str, there: bool, opcode: str, more: dict[str, int]) -> None:
    rig = Pair("UD", transport=transport)
    rig.put(0, b"datagram")
    rig.put(PAGE, b"\xff" * 64)
    rig.recv(rig.b, 9, rig.sge(PAGE, 30), rig.sge(PAGE + 30, 18))
    assert rig.datagram(opcode=opcode, **more) == "0"
    assert rig.sent() == GOOD
    (entry,) = rig.poll_all(rig.rcq)
    assert (entry["status"], entry["byte_len"], entry["src_qp"]) == ("SUCCESS", GRH + 8, rig.qpn[rig.a])
    assert entry["wc_flags"] == ["GRH"] * there + ["WITH_IMM"] * bool(more)
    assert entry.get("imm_data") == more.get("imm_data")
    assert rig.get(PAGE + GRH, 9) == b"datagram\xff"
    assert rig.get(PAGE, 1) == (b"\x60" if there else b"\xff")


@pytest.mark.parametrize(
    "how",
    [{"remote_qpn": 5}, {"remote_qkey": 7}, {"dgid": "11" * 16}, {"state": "ERR"}, {"length": 9}, {"length": 4097}],
)
def test_a_datagram_that_nobody_takes(how: dict[str, Any]) -> None:
    rig = Pair("UD")
    rig.recv(rig.b, 9, rig.sge(PAGE, GRH + 8))
    if "dgid" in how:
        how = {"ah": rig.do("create_ah", pd=rig.pd, **how)["ah"]}
    if "state" in how:
        rig.move(rig.b, "ERR")
        rig.got()
        how = {}
    rig.datagram(**how)
    assert rig.sent() == GOOD
    assert rig.got() == []
    assert rig.state(rig.a) == "RTS"


def test_the_senders_own_key() -> None:
    rig = Pair("UD")
    rig.recv(rig.b, 9, rig.sge(PAGE, GRH))
    rig.datagram(length=0, remote_qkey=0x80000000)
    assert (rig.sent(), rig.got()) == (GOOD, [(9, "SUCCESS")])


def test_address_handles() -> None:
    rig = Pair("UD", transport="roce")
    for wrong in ({"port_num": 0}, {"port_num": 2}, {"sgid_index": 9}, {"is_global": False}, {"peer": 9999}):
        assert rig.result("create_ah", pd=rig.pd, **wrong) == "EINVAL"
    pd = rig.do("alloc_pd")["pd"]
    ah = rig.do("create_ah", pd=pd, peer=rig.b)["ah"]
    assert rig.result("dealloc_pd", pd=pd) == "EBUSY"
    rig.datagram(ah=ah)
    assert rig.sent() == [(1, "LOC_QP_OP_ERR")]
    rig.do("destroy_ah", ah=ah)
    assert (rig.result("dealloc_pd", pd=pd), rig.result("destroy_ah", ah=ah)) == ("0", "EINVAL")
    assert rig.datagram(ah=ah) == "EINVAL"
