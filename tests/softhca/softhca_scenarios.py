"""For each fault of softhca, what a consumer does to see it, and what a correct device answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from softhca_rig import PAGE, Rig


class Case(NamedTuple):
    """What to do, what a correct device makes of it, and how the rig is set up."""

    scenario: Callable[[Rig], Any]
    right: Any
    rig: dict[str, Any] = {}  # noqa: RUF012 - never written


# -- keys and access checks ------------------------------------------------------------------------
def read_into_local_write_only(rig: Rig) -> Any:
    _, source = rig.registered(PAGE, 64)
    _, sink = rig.registered(2 * PAGE, 64, access=("LOCAL_WRITE",))
    rig.read(source, PAGE, rig.sge(2 * PAGE, 8, sink))
    return rig.sent()


def write_wrapping(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.write(key, 0, 1024, remote_addr=2**64 - 1024)
    return rig.sent()


def write_to_empty_region(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 0)
    rig.reg(rig.b, mr, key)
    rig.sent()
    if rig.state(rig.b) == "ERR":
        return "no region"
    rig.write(key, PAGE, 8)
    return rig.sent()


def zero_length_with_bad_key(rig: Rig) -> Any:
    rig.write(0xDEADBE00, 0, 0)
    return rig.sent()


def write_with_new_byte(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    new = rig.do("update_fast_reg_key", mr=mr, byte=(key + 1) & 0xFF)["key"]
    rig.reg(rig.b, mr, new)
    rig.sent()
    rig.write(new, PAGE, 8)
    return rig.sent()


def write_with_old_byte(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    new = rig.do("update_fast_reg_key", mr=mr, byte=(key + 1) & 0xFF)["key"]
    rig.reg(rig.b, mr, new)
    rig.sent()
    rig.write(key, PAGE, 8)
    return rig.sent()


def same_key_after_dereg(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.do("dereg_mr", mr=mr)
    return rig.region()[1] == key


def write_to_any(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.write(key, PAGE, 8)
    return rig.sent()


def mixed_sges(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.put(PAGE, b"region")
    rig.put(0, b"direct")
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 12))
    rig.send(rig.a, 1, rig.sge(PAGE, 6, key), rig.sge(0, 6))
    return rig.sent(), rig.get(8 * PAGE, 12)


def small_pages(rig: Rig) -> Any:
    mr, key = rig.region(pages=4)
    sg = [{"addr": rig.addr + at * 512, "length": 512} for at in (9, 3)]
    rig.do("map_mr_sg", mr=mr, sg=sg, offset=0, page_size=512)
    rig.reg(rig.b, mr, key)
    rig.sent()
    rig.put(0, b"x" * 16)
    rig.write(key, 9 * 512 + 504, 16)
    return rig.sent(), rig.get(9 * 512 + 504, 8), rig.get(3 * 512, 8)


def last_byte(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.write(key, PAGE + 56, 8)
    return rig.sent()


def byte_past_end(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.write(key, PAGE + 57, 8)
    return rig.sent()


def write_to_read_only(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64, access=("LOCAL_WRITE", "REMOTE_READ"))
    rig.put(0, b"secret!!")
    rig.write(key, PAGE, 8)
    return rig.sent(), rig.get(PAGE, 8)


def receive_without_local_write(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64, access=("REMOTE_READ",))
    rig.recv(rig.b, 1, rig.sge(PAGE, 8, key))
    rig.send(rig.a, 1, rig.sge(0, 8))
    return rig.sent(), rig.got()


def register_remote_write_alone(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    rig.reg(rig.b, mr, key, ("REMOTE_WRITE",))
    return rig.sent()


def use_region_of_other_pd(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.send(rig.a, 1, rig.sge(PAGE, 8, key))
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 8))
    return rig.sent()


# -- fast registration -----------------------------------------------------------------------------
def update_byte_only(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)
    rig.do("update_fast_reg_key", mr=mr, byte=(key + 1) & 0xFF)
    rig.write(key, PAGE, 8)
    return rig.sent()


def invalidate_local_region(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64, access=("LOCAL_WRITE",))
    rig.inv(rig.b, key)
    return rig.sent()


def remote_invalidate_local_region(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64, access=("LOCAL_WRITE",))
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 8))
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    return [status == "SUCCESS" for _, status in rig.sent()]


def register_twice(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)
    rig.map(mr, 2 * PAGE, 64)
    rig.inv(rig.b, key)
    rig.reg(rig.b, mr, key)
    rig.inv(rig.b, key)
    rig.reg(rig.b, mr, key)
    rig.sent()
    rig.write(key, 2 * PAGE, 8)
    return rig.sent()


def register_valid(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)
    rig.reg(rig.b, mr, key)
    return rig.sent()


def tear_down_after_failure(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)
    rig.reg(rig.b, mr, key)
    rig.sent()
    return [
        rig.result("destroy_qp", qp=rig.a),
        rig.result("destroy_qp", qp=rig.b),
        rig.result("dereg_mr", mr=mr),
        rig.result("dealloc_pd", pd=rig.pd),
    ]


def write_after_invalidation_was_polled(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.inv(rig.b, key)
    for _ in range(20):
        if rig.do("poll_cq", cq=rig.scq)["n"]:
            break
    rig.write(key, PAGE, 8)
    return rig.sent()


def invalidate_other_invalid(rig: Rig) -> Any:
    _, other = rig.region()
    _, key = rig.registered(PAGE, 64)
    rig.inv(rig.b, other)
    rig.sent()
    rig.write(key, PAGE, 8)
    return rig.sent()


def invalidate_with_stale_key(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.inv(rig.b, key ^ 1)
    return rig.sent()


def invalidate_in_other_pd(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.inv(rig.a, key)
    return rig.sent()


def write_after_invalidation(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.inv(rig.b, key)
    rig.sent()
    rig.write(key, PAGE, 8)
    return rig.sent()


def map_tiny_pages(rig: Rig) -> Any:
    mr, _ = rig.region()
    sg = [{"addr": rig.addr, "length": 256}]
    return rig.result("map_mr_sg", mr=mr, sg=sg, offset=0, page_size=256)


def post_invalidation(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    return rig.inv(rig.b, key)


def wrap_the_queue(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)  # slot 0 of a queue of 2
    rig.inv(rig.b, key)
    rig.sent()
    rig.reg(rig.b, mr, key, ("LOCAL_WRITE",))
    rig.sent()
    rig.write(key, PAGE, 8)
    return rig.sent()


def send_with_invalidate(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    rig.do("settle")
    (entry,) = rig.poll_all(rig.rcq)
    return entry["wc_flags"], entry["invalidate_rkey"] == key


def receive_into_region(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1, rig.sge(PAGE, 8, key))
    rig.send(rig.a, 1, rig.sge(0, 8))
    return rig.hca.call("settle", {})


def opcodes(rig: Rig) -> Any:
    mr, key = rig.region()
    rig.map(mr, PAGE, 64)
    rig.reg(rig.b, mr, key)
    rig.inv(rig.b, key)
    rig.do("settle")
    return [entry["opcode"] for entry in rig.poll_all(rig.scq)]


def invalidation_behind_a_waiting_send(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.send(rig.b, 1)  # waits: a has no receive
    rig.inv(rig.b, key, fence=True)
    rig.write(key, PAGE, 8)
    return rig.sent()


def local_use_after_invalidation(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.inv(rig.b, key)
    rig.recv(rig.a, 1, rig.sge(8 * PAGE, 8))
    rig.send(rig.b, 1, rig.sge(PAGE, 8, key))
    return rig.sent()


def valid_after_failed_registration(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)
    rig.reg(rig.b, mr, key ^ 1)
    rig.sent()
    rig.do("destroy_qp", qp=rig.b)
    rig.do("modify_qp", qp=rig.a, state="RESET")
    rig.b = rig.new_qp(rig.pd)
    rig.connect(rig.a, rig.b)
    rig.write(key, PAGE, 8)
    return rig.sent()


def invalid_after_failed_registration(rig: Rig) -> Any:
    mr, key = rig.registered(PAGE, 64)
    rig.inv(rig.b, key)
    rig.reg(rig.b, mr, key, ("REMOTE_WRITE",))
    rig.sent()
    rig.send(rig.a, 1, rig.sge(PAGE, 8, key))
    return rig.sent()


def send_with_invalidate_waits(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.post(rig.a, "SEND_WITH_INV", sg_list=[], invalidate_rkey=key)
    rig.do("settle")
    rig.recv(rig.a, 1, rig.sge(8 * PAGE, 8))
    rig.send(rig.b, 1, rig.sge(PAGE, 8, key))
    return rig.sent()


# -- objects and states ----------------------------------------------------------------------------
def free_used_pd(rig: Rig) -> Any:
    return rig.result("dealloc_pd", pd=rig.pd), rig.result("alloc_mr", pd=rig.pd, max_num_sg=1)


def destroy_used_cq(rig: Rig) -> Any:
    return rig.result("destroy_cq", cq=rig.scq)


def free_pd_after_failed_alloc(rig: Rig) -> Any:
    pd = rig.do("alloc_pd")["pd"]
    return rig.result("alloc_mr", pd=pd, max_num_sg=0), rig.result("dealloc_pd", pd=pd)


def destroy_cq_after_failed_create(rig: Rig) -> Any:
    cq = rig.do("create_cq", cqe=1)["cq"]
    failed = rig.result("create_qp", pd=rig.pd, send_cq=cq, recv_cq=cq, max_send_wr=2**20, max_recv_wr=1)
    return failed, rig.result("destroy_cq", cq=cq)


def fresh_state(rig: Rig) -> Any:
    return rig.state(rig.new_qp(rig.pd))


def rts_to_rts(rig: Rig) -> Any:
    return rig.move(rig.a, "RTS")


def unknown_state(rig: Rig) -> Any:
    return rig.move(rig.a, "SQX"), rig.state(rig.a)


def receive_posted_in_init(rig: Rig) -> Any:
    for qp in (rig.a, rig.b):
        rig.move(qp, "INIT")
    rig.recv(rig.b, 7, rig.sge(PAGE, 8))
    for state in ("RTR", "RTS"):
        rig.move(rig.a, state, rig.b)
        rig.move(rig.b, state, rig.a)
    rig.send(rig.a, 1, rig.sge(0, 8))
    return rig.got()


def reset_twice(rig: Rig) -> Any:
    return rig.move(rig.a, "RESET"), rig.move(rig.a, "RESET"), rig.move(rig.a, "INIT")


def init_to_rts(rig: Rig) -> Any:
    rig.move(rig.a, "INIT")
    return rig.move(rig.a, "RTS"), rig.state(rig.a)


def refused_modify(rig: Rig) -> Any:
    _, key = rig.registered(PAGE, 64)
    rig.access = ()
    refused = rig.move(rig.b, "INIT")
    rig.write(key, PAGE, 8)
    return refused, rig.sent()


# -- posting ---------------------------------------------------------------------------------------
def fill_the_queue(rig: Rig) -> Any:
    return [rig.send(rig.a, wr_id) for wr_id in range(3)]  # of 2; none is polled


def sge_after_empty_sge(rig: Rig) -> Any:
    rig.put(0, b"payload!")
    rig.recv(rig.b, 1, rig.sge(PAGE, 8))
    rig.send(rig.a, 1, rig.sge(0, 0), rig.sge(0, 8))
    rig.do("settle")
    return rig.get(PAGE, 8)


def unsignalled_rounds(rig: Rig) -> Any:
    results = []
    for _ in range(3):
        results.append(rig.write(0, 0, 0, signaled=False))
        results.append(rig.write(0, 0, 0))
        rig.sent()
    return results


def refused_send_runs(rig: Rig) -> Any:
    rig.move(rig.a, "INIT")
    refused = rig.write(0, 0, 0)
    rig.move(rig.b, "INIT")
    for state in ("RTR", "RTS"):
        rig.move(rig.a, state, rig.b)
        rig.move(rig.b, state, rig.a)
    return refused, rig.sent()


# -- completions -----------------------------------------------------------------------------------
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


# -- order and completion queues -------------------------------------------------------------------
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


GOOD = [(1, "SUCCESS")]
NO_ACCESS = [(1, "REM_ACCESS_ERR")]
BAD_OP = [(100, "LOC_QP_OP_ERR")]
FLUSH_3: Any = ([(1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR"), (3, "WR_FLUSH_ERR")], [])
FLUSH_2: Any = ([(1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR")], [])
OFF = {"connect": False}
READ_ONLY = {"access": ("REMOTE_READ",)}

CASES: dict[str, Case] = {
    "any-right-is-enough": Case(read_into_local_write_only, [(1, "LOC_PROT_ERR")], {"transport": "iwarp"}),
    "range-end-wraps": Case(write_wrapping, NO_ACCESS),
    "empty-region-has-no-bounds": Case(write_to_empty_region, "no region"),
    "zero-length-checks-key": Case(zero_length_with_bad_key, GOOD),
    "key-byte-fixed-at-alloc": Case(write_with_new_byte, GOOD),
    "data-ignores-key-byte": Case(write_with_old_byte, NO_ACCESS),
    "freed-key-reused-at-once": Case(same_key_after_dereg, False),
    "qp-rights-swapped": Case(write_to_any, NO_ACCESS, READ_ONLY),
    "qp-rights-ignored": Case(write_to_any, NO_ACCESS, READ_ONLY),
    "first-sge-decides-kind": Case(mixed_sges, (GOOD, b"regiondirect")),
    "steps-in-system-pages": Case(small_pages, (GOOD, b"x" * 8, b"x" * 8)),
    "last-byte-refused": Case(last_byte, GOOD),
    "one-byte-past-end-allowed": Case(byte_past_end, NO_ACCESS),
    "region-rights-ignored": Case(write_to_read_only, (NO_ACCESS, bytes(8))),
    "refused-write-writes-anyway": Case(write_to_read_only, (NO_ACCESS, bytes(8))),
    "sink-needs-no-local-write": Case(receive_without_local_write, ([(1, "REM_OP_ERR")], [(1, "LOC_PROT_ERR")])),
    "remote-write-without-local-write": Case(register_remote_write_alone, BAD_OP),
    "data-ignores-pd": Case(use_region_of_other_pd, [(1, "LOC_PROT_ERR")], {"two_pds": True}),
    "key-leaks-before-reg": Case(update_byte_only, GOOD),
    "local-inv-needs-remote-rights": Case(invalidate_local_region, [(200, "SUCCESS")]),
    "remote-inv-of-local-region": Case(remote_invalidate_local_region, [False]),
    "reg-alternates-map-sets": Case(register_twice, GOOD),
    "reg-of-valid-accepted": Case(register_valid, BAD_OP),
    "failed-reg-leaks-reference": Case(tear_down_after_failure, ["0", "0", "0", "0"]),
    "inv-visible-late": Case(write_after_invalidation_was_polled, NO_ACCESS),
    "inv-of-invalid-hits-another": Case(invalidate_other_invalid, GOOD),
    "inv-ignores-key-byte": Case(invalidate_with_stale_key, [(200, "LOC_QP_OP_ERR")]),
    "inv-ignores-pd": Case(invalidate_in_other_pd, [(200, "LOC_QP_OP_ERR")], {"two_pds": True}),
    "inv-does-nothing": Case(write_after_invalidation, NO_ACCESS),
    "any-page-size-accepted": Case(map_tiny_pages, "EINVAL"),
    "local-inv-advertised-but-refused": Case(post_invalidation, "0"),
    "slot-keeps-old-fields": Case(wrap_the_queue, NO_ACCESS, {"depth": 2}),
    "inv-key-in-wrong-field": Case(send_with_invalidate, (["WITH_INVALIDATE"], True)),
    "receive-into-region-crashes": Case(receive_into_region, None),
    "opcode-table-shifted": Case(opcodes, ["REG_MR", "LOCAL_INV"]),
    "local-inv-at-post": Case(invalidation_behind_a_waiting_send, GOOD),
    "local-side-survives-inv": Case(local_use_after_invalidation, [(200, "SUCCESS"), (1, "LOC_PROT_ERR")]),
    "failed-reg-changes-the-key": Case(valid_after_failed_registration, GOOD),
    "failed-reg-leaves-valid": Case(invalid_after_failed_registration, [(1, "LOC_PROT_ERR")]),
    "send-inv-also-at-requester": Case(send_with_invalidate_waits, GOOD),
    "pd-freed-under-children": Case(free_used_pd, ("EBUSY", "0")),
    "refused-destroy-frees-handle": Case(free_used_pd, ("EBUSY", "0")),
    "cq-destroyed-under-qp": Case(destroy_used_cq, "EBUSY"),
    "failed-alloc-leaks-pd-reference": Case(free_pd_after_failed_alloc, ("EINVAL", "0")),
    "failed-create-leaks-cq-reference": Case(destroy_cq_after_failed_create, ("EINVAL", "0")),
    "new-qp-starts-in-init": Case(fresh_state, "RESET", OFF),
    "rts-to-rts-refused": Case(rts_to_rts, "0"),
    "unknown-state-is-error": Case(unknown_state, ("EINVAL", "RTS")),
    "init-receives-lost": Case(receive_posted_in_init, [(7, "SUCCESS")], OFF),
    "reset-twice-breaks-init": Case(reset_twice, ("0", "0", "0"), OFF),
    "illegal-moves-accepted": Case(init_to_rts, ("EINVAL", "INIT"), OFF),
    "refused-modify-takes-access": Case(refused_modify, ("EINVAL", GOOD)),
    "full-queue-hidden": Case(fill_the_queue, ["0", "0", "ENOMEM"], {"depth": 2}),
    "queue-holds-one-less": Case(fill_the_queue, ["0", "0", "ENOMEM"], {"depth": 2}),
    "empty-sge-ends-the-list": Case(sge_after_empty_sge, b"payload!"),
    "unsignalled-slots-never-freed": Case(unsignalled_rounds, ["0"] * 6, {"depth": 3}),
    "refused-post-stays-queued": Case(refused_send_runs, ("EINVAL", []), OFF),
    "post-before-rts-accepted": Case(refused_send_runs, ("EINVAL", []), OFF),
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
    "destroy-purges-whole-cq": Case(destroy_a_neighbour, GOOD),
}
"""By fault."""
