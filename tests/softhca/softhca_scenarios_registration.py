"""Registering and invalidating: what shows each fault, and what a correct device answers."""

from __future__ import annotations

from typing import Any

from softhca_case import BAD_OP, GOOD, NO_ACCESS, Case
from softhca_rig import PAGE, Rig


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


CASES: dict[str, Case] = {
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
}
"""By fault."""
