"""Atomics, packets, datagrams and immediate data: what shows each fault, and what a correct device answers."""

from __future__ import annotations

from typing import Any

from softhca_case import GOOD, Case
from softhca_rig import ALL, PAGE, Rig

USER: dict[str, Any] = {"api": "linux-user", "access": (*ALL, "REMOTE_ATOMIC")}
NUMBER = bytes(range(1, 9))
ADDED = bytes([2, *range(2, 9)])
LONG = 3000  # bytes: three packets of the usual size


def region(rig: Rig, offset: int = PAGE, *more: str) -> int:
    """A region of two pages with every right; its key."""
    access = [*ALL, "REMOTE_ATOMIC", *more]
    return int(rig.do("reg_mr", pd=rig.pd, addr=rig.addr + offset, length=2 * PAGE, access=access)["rkey"])


# -- atomics ---------------------------------------------------------------------------------------------
def add_one(rig: Rig, at: int = PAGE, **more: Any) -> None:
    """From a, to a number of the buffer; the old number comes to its beginning."""
    target, sink = region(rig), region(rig, 0)
    rig.put(PAGE, NUMBER)
    fields = {"sg_list": [rig.sge(0, 8, sink)], "remote_addr": rig.addr + at, "rkey": target, "compare_add": 1}
    rig.post(rig.a, "ATOMIC_FETCH_AND_ADD", 1, **fields, **more)


def old_number(rig: Rig) -> Any:
    add_one(rig)
    return rig.sent(), rig.get(0, 8)


def new_number(rig: Rig) -> Any:
    add_one(rig)
    return rig.sent(), rig.get(PAGE, 8)


def misaligned(rig: Rig) -> Any:
    add_one(rig, PAGE + 4)
    return rig.sent()


def send_behind_an_atomic(rig: Rig) -> Any:
    """A fenced SEND of what the atomic answers."""
    rig.recv(rig.b, 1, rig.sge(PAGE + 100, 8, region(rig)))
    add_one(rig)
    rig.send(rig.a, 2, rig.sge(0, 8, region(rig, 0)), fence=True)
    rig.do("settle")
    return rig.get(PAGE + 100, 8)


def queue_after_an_atomic(rig: Rig) -> Any:
    add_one(rig)
    rig.do("settle")
    for qp in (rig.a, rig.b):
        rig.do("destroy_qp", qp=qp)
    return rig.result("destroy_cq", cq=rig.rcq)


# -- packets ---------------------------------------------------------------------------------------------
def three_writes(rig: Rig) -> Any:
    for wr_id in (1, 2, 3):
        rig.write(0, 0, 0, wr_id)
    return rig.sent()


def one_message_for_two_receives(rig: Rig) -> Any:
    for wr_id in (1, 2):
        rig.recv(rig.b, wr_id)
    rig.send(rig.a, 1)
    return rig.sent(), rig.got()


def message_without_receive(rig: Rig) -> Any:
    """A receiver that is not ready costs none of the tries that silence has; it comes in time."""
    rig.send(rig.a, 1)
    return rig.sent()


def write_and_message_without_receive(rig: Rig) -> Any:
    rig.write(0, 0, 0)
    rig.send(rig.a, 2)
    return rig.sent()


def invalidate_nothing(rig: Rig) -> Any:
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=0xBAD00)
    return rig.sent(), rig.got()


def long_pattern(rig: Rig) -> bytes:
    pattern = bytes(at // 7 % 256 for at in range(LONG))
    rig.put(PAGE, pattern)
    return pattern


def long_read(rig: Rig) -> Any:
    pattern = long_pattern(rig)
    rig.read(region(rig), PAGE, rig.sge(8 * PAGE, LONG, region(rig, 8 * PAGE)))
    rig.do("settle")
    (entry,) = rig.poll_all(rig.scq)
    return entry["status"], entry["byte_len"], rig.get(8 * PAGE, LONG) == pattern


def long_write(rig: Rig) -> Any:
    pattern = long_pattern(rig)
    sges = [rig.sge(PAGE, LONG, region(rig))]
    rig.post(rig.a, "RDMA_WRITE", sg_list=sges, remote_addr=rig.addr + 8 * PAGE, rkey=region(rig, 8 * PAGE))
    return rig.sent(), rig.get(8 * PAGE, LONG) == pattern


def refused_read(rig: Rig) -> Any:
    rig.read(0xBAD00, PAGE, rig.sge(0, 8, rig.registered(0, 64)[1]))
    return rig.sent()


# -- datagrams and immediate data ------------------------------------------------------------------------
def immediate(rig: Rig) -> Any:
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_IMM", sg_list=[], imm_data=0x01020304)
    rig.do("settle")
    return [entry["imm_data"] for entry in rig.poll_all(rig.rcq)]


def datagrams(rig: Rig, *lengths: int) -> list[dict[str, Any]]:
    """Messages of such lengths between queue pairs of the type UD that have receives of 100 bytes; what completes."""
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4, "qp_type": "UD"}
    made = [rig.do("create_qp", pd=rig.pd, **fields) for _ in range(2)]
    key = region(rig)
    for at, pair in enumerate(made):
        for state in ("INIT", "RTR", "RTS"):
            rig.move(pair["qp"], state)
        for wr_id in range(4 * at):
            rig.recv(pair["qp"], wr_id, rig.sge(PAGE, 100, key))
    ah = rig.do("create_ah", pd=rig.pd)["ah"]
    sender, receiver = made
    for length in lengths:
        sges = [rig.sge(PAGE + 1000, length, key)]
        rig.post(sender["qp"], "SEND", sg_list=sges, ah=ah, remote_qpn=receiver["qp_num"])
    rig.do("settle")
    return [{**entry, "known": entry.get("src_qp") == sender["qp_num"]} for entry in rig.poll_all(rig.rcq)]


def source(rig: Rig) -> Any:
    return [(entry["known"], entry["wc_flags"]) for entry in datagrams(rig, 8)]


def too_long_and_short(rig: Rig) -> Any:
    return [(entry["status"], entry["byte_len"]) for entry in datagrams(rig, 80, 8)]


THREE = [(wr_id, "SUCCESS") for wr_id in (1, 2, 3)]
CASES: dict[str, Case] = {
    "refused-read-sends-zeros": Case(refused_read, [(1, "REM_ACCESS_ERR")]),
    "atomic-keeps-completion-queue": Case(queue_after_an_atomic, "0", USER),
    "misaligned-atomic-executed": Case(misaligned, [(1, "REM_INV_REQ_ERR")], USER),
    "atomic-answers-the-new-number": Case(old_number, (GOOD, NUMBER), USER),
    "atomic-answers-backwards": Case(old_number, (GOOD, NUMBER), USER),
    "fence-ignores-atomics": Case(send_behind_an_atomic, NUMBER, USER),
    "numbers-outgrow-their-bits": Case(three_writes, THREE, {**USER, "first_psn": "16777215"}),
    "not-ready-counts-as-silence": Case(message_without_receive, [], {**USER, "retries": "1"}),
    "duplicate-atomic-executed": Case(new_number, (GOOD, ADDED), {**USER, "wire": "duplicated-atomic"}),
    "duplicate-message-executed": Case(
        one_message_for_two_receives, (GOOD, GOOD), {**USER, "wire": "lost-acknowledgement"}
    ),
    "answers-taken-as-they-come": Case(
        long_read, ("SUCCESS", LONG, True), {**USER, "wire": "duplicated-read-response"}
    ),
    "last-packet-not-counted": Case(long_read, ("SUCCESS", LONG, True), USER),
    "duplicate-atomic-answered-anew": Case(old_number, (GOOD, NUMBER), {**USER, "wire": "lost-atomic-response"}),
    "rest-of-read-begins-anew": Case(long_read, ("SUCCESS", LONG, True), {**USER, "wire": "lost-rest-of-read"}),
    "any-acknowledgement-will-do": Case(
        write_and_message_without_receive, GOOD, {**USER, "wire": "duplicated-acknowledgement"}
    ),
    "unknown-key-invalidated": Case(invalidate_nothing, ([(1, "REM_ACCESS_ERR")], [(1, "REM_INV_REQ_ERR")])),
    "lost-packet-is-fatal": Case(three_writes, THREE, {**USER, "wire": "lost-request"}),
    "missing-packet-unnoticed": Case(long_write, (GOOD, True), {**USER, "wire": "lost-middle"}),
    "immediate-bytes-swapped": Case(immediate, [0x01020304], USER),
    "datagram-source-untold": Case(source, [(True, ["GRH"])], USER),
    "route-header-untold": Case(source, [(True, ["GRH"])], USER),
    "too-long-datagram-is-an-error": Case(too_long_and_short, [("SUCCESS", 48)], USER),
}
"""By fault."""
