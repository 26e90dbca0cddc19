"""Keys, access checks and bytes: what shows each fault, and what a correct device answers."""

from __future__ import annotations

from typing import Any

from softhca_case import BAD_OP, GOOD, NO_ACCESS, Case
from softhca_rig import PAGE, Rig


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
}
"""By fault."""
