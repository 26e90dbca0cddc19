"""Completions, flush, order and completion queues: what shows each fault, and what a correct device answers."""

from __future__ import annotations

from typing import Any

from softhca_case import GOOD, OFF, Case
from softhca_rig import PAGE, Rig


def lengths(rig: Rig) -> Any:
    rig.recv(rig.b, 1, rig.sge(PAGE, 64))
    rig.send(rig.a, 1, rig.sge(0, 8))
    rig.do("settle")
    return [entry["byte_len"] for entry in rig.poll_all(rig.rcq)]


def failing_ids(rig: Rig) -> Any:
    rig.send(rig.a, 5, rig.sge(0, 8, 0xBAD00))
    return rig.sent()


def unsignalled_read(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.read(key, PAGE, rig.sge(0, 8), signaled=False)
    return rig.sent()


def flush_receives(rig: Rig) -> Any:
    for wr_id in (1, 2, 3):
        rig.recv(rig.b, wr_id)
    rig.move(rig.b, "ERR")
    return rig.got(), rig.sent()


def read_into_unwritable(rig: Rig) -> Any:
    _, source = rig.registered(PAGE, 64)
    _, sink = rig.registered(2 * PAGE, 64, access=())
    rig.read(source, PAGE, rig.sge(2 * PAGE, 8, sink))
    return rig.sent()


def own_number(rig: Rig) -> Any:
    rig.write(0, 0, 0)
    rig.do("settle")
    return [entry["qp_num"] == rig.qpn[rig.a] for entry in rig.poll_all(rig.scq)]


def flush_sends(rig: Rig) -> Any:
    rig.send(rig.a, 1)
    rig.send(rig.a, 2, signaled=False)
    rig.move(rig.a, "ERR")
    return rig.sent(), rig.got()


def post_in_error(rig: Rig) -> Any:
    rig.move(rig.a, "ERR")
    rig.send(rig.a, 1, signaled=False)
    rig.recv(rig.a, 2)
    return rig.sent(), rig.got()


def flush_from_init(rig: Rig) -> Any:
    rig.move(rig.a, "INIT")
    rig.recv(rig.a, 1)
    rig.move(rig.a, "ERR")
    return rig.got()


def peer_of_failed(rig: Rig) -> Any:
    rig.move(rig.a, "ERR")
    rig.do("settle")
    return rig.state(rig.b)


def fenced_send(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.put(PAGE, b"answer!!")
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 8))
    rig.read(key, PAGE, rig.sge(3 * PAGE, 8), wr_id=1)
    rig.read(key, PAGE, rig.sge(2 * PAGE, 8), wr_id=2)
    rig.send(rig.a, 3, rig.sge(2 * PAGE, 8), fence=True)
    rig.do("settle")
    return rig.get(8 * PAGE, 8)


def local_op_behind_a_waiting_send(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    rig.send(rig.a, 1)
    rig.reg(rig.a, mr, key)
    return rig.sent()


def overrun(rig: Rig) -> Any:
    for wr_id in range(3):
        rig.write(0, 0, 0, wr_id=wr_id)
    rig.do("settle")
    return rig.state(rig.a)


def fill_a_cq(rig: Rig) -> Any:
    for wr_id in range(2):
        rig.write(0, 0, 0, wr_id=wr_id)
    return rig.sent(), rig.state(rig.a)


def destroy_a_neighbour(rig: Rig) -> Any:
    other = rig.new_qp(rig.pd)
    rig.write(0, 0, 0)
    rig.do("settle")
    rig.do("destroy_qp", qp=other)
    return rig.sent()


def empty(rig: Rig, *wr_ids: int, opcode: str = "RDMA_WRITE", **more: Any) -> None:
    """Requests of no bytes."""
    for wr_id in wr_ids:
        rig.post(rig.a, opcode, wr_id, sg_list=[], remote_addr=0, rkey=0, **more)


def done_and_error(rig: Rig) -> Any:
    empty(rig, 1, signaled=False)
    rig.do("settle")
    rig.move(rig.a, "ERR")
    return rig.sent()


def flush_around_the_ring(rig: Rig) -> Any:
    empty(rig, 1)
    rig.sent()
    for wr_id in (2, 3):
        rig.send(rig.a, wr_id)
    rig.move(rig.a, "ERR")
    return rig.sent()


def error_behind_a_message(rig: Rig) -> Any:
    """Whether more receives were successful than messages were sent."""
    for wr_id in (1, 2, 3):
        rig.recv(rig.b, wr_id)
    rig.send(rig.a, 1)
    for _ in range(2):  # each lets a little happen
        rig.do("poll_cq", cq=rig.scq)
    rig.move(rig.b, "ERR")
    return [status for _, status in rig.got()].count("SUCCESS") > 1


def silent_registration(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    rig.reg(rig.a, mr, key, signaled=False)
    empty(rig, 1)
    return rig.sent()


def write_and_reads(rig: Rig) -> Any:
    empty(rig, 1)
    empty(rig, 2, 3, 4, opcode="RDMA_READ")
    return [wr_id for wr_id, _ in rig.sent()]


def send_too_many(rig: Rig) -> Any:
    return rig.send(rig.a, 1, *[rig.sge(0, 1)] * 3)


def neighbours(rig: Rig) -> Any:
    """What is left when a queue pair goes that had nothing to report."""
    empty(rig, 1, 2)
    rig.do("settle")
    rig.do("destroy_qp", qp=rig.b)
    return rig.sent()


def old_entry(rig: Rig) -> Any:
    empty(rig, 1)
    rig.do("settle")
    rig.do("destroy_qp", qp=rig.a)
    rig.new_qp(rig.pd)
    return [entry["qp_num"] == rig.qpn[rig.a] for entry in rig.poll_all(rig.scq)]


def queue_of_no_entries(rig: Rig) -> Any:
    return rig.result("create_cq", cqe=0)


FLUSH_3: Any = ([(1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR"), (3, "WR_FLUSH_ERR")], [])
FLUSH_2: Any = ([(1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR")], [])

CASES: dict[str, Case] = {
    "byte-len-zero": Case(lengths, [8]),
    "wr-id-lost-on-error": Case(failing_ids, [(5, "LOC_PROT_ERR")]),
    "first-error-is-flush": Case(failing_ids, [(5, "LOC_PROT_ERR")]),
    "unsignalled-read-completes": Case(unsignalled_read, []),
    "nop-completion": Case(flush_receives, FLUSH_3),
    "flushed-receive-is-success": Case(flush_receives, FLUSH_3),
    "receives-not-flushed": Case(flush_receives, FLUSH_3),
    "receives-flushed-backwards": Case(flush_receives, FLUSH_3),
    "bad-read-sink-unreported": Case(read_into_unwritable, [(1, "LOC_PROT_ERR")]),
    "peer-qp-num": Case(own_number, [True]),
    "flushed-sends-say-success": Case(flush_sends, FLUSH_2),
    "flush-lands-in-other-cq": Case(flush_sends, FLUSH_2),
    "posted-in-error-never-flushed": Case(post_in_error, ([(1, "WR_FLUSH_ERR")], [(2, "WR_FLUSH_ERR")])),
    "no-flush-from-rtr": Case(flush_from_init, [(1, "WR_FLUSH_ERR")], OFF),
    "error-flushes-peer": Case(peer_of_failed, "RTS"),
    "fence-released-by-any-read": Case(fenced_send, b"answer!!"),
    "fence-ignored": Case(fenced_send, b"answer!!"),
    "send-completions-out-of-order": Case(local_op_behind_a_waiting_send, []),
    "overrun-goes-unnoticed": Case(overrun, "ERR", {"cqe": 2}),
    "cq-holds-one-less": Case(fill_a_cq, ([(0, "SUCCESS"), (1, "SUCCESS")], "RTS"), {"cqe": 2}),
    "done-sends-are-flushed": Case(done_and_error, []),
    "flush-ends-with-the-ring": Case(flush_around_the_ring, [(2, "WR_FLUSH_ERR"), (3, "WR_FLUSH_ERR")], {"depth": 2}),
    "message-completes-every-receive": Case(error_behind_a_message, False),
    "silent-local-operation-never-retires": Case(silent_registration, GOOD),
    "read-overtakes": Case(write_and_reads, [1, 2, 3, 4]),
    "too-many-elements-taken": Case(send_too_many, "EINVAL"),
    "cleaning-takes-one-too-many": Case(neighbours, [(1, "SUCCESS"), (2, "SUCCESS")], {"purge_cqes": "true"}),
    "old-entry-names-new-pair": Case(old_entry, [True]),
    "empty-queue-accepted": Case(queue_of_no_entries, "EINVAL"),
    "destroy-purges-whole-cq": Case(destroy_a_neighbour, GOOD),
}
"""By fault."""
