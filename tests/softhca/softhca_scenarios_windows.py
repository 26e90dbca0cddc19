"""Windows, changed regions, lists and inline data, overlapped requests: what shows each fault, and what is right."""

from __future__ import annotations

from typing import Any

from softhca_case import Case
from softhca_rig import ALL, PAGE, Rig

USER: dict[str, Any] = {"api": "linux-user"}
ND: dict[str, Any] = {"api": "networkdirect", "connect": False, "overlapped": "pending"}
GOOD = [(1, "SUCCESS")]
REFUSED = [(1, "REM_ACCESS_ERR")]
BOUND = [(50, "SUCCESS")]
BAD_BIND = [(50, "MW_BIND_ERR")]
START, LENGTH = PAGE + 100, 1000  # of the windows here


def reg(rig: Rig, offset: int = PAGE, access: tuple[str, ...] = ("LOCAL_WRITE", "MW_BIND")) -> dict[str, Any]:
    """A region of two pages."""
    return rig.do("reg_mr", pd=rig.pd, addr=rig.addr + offset, length=2 * PAGE, access=list(access))


def window(rig: Rig, kind: str = "TYPE_2") -> dict[str, Any]:
    """A window, with a region to bind it to."""
    return {**rig.do("alloc_mw", pd=rig.pd, type=kind), "region": reg(rig)["mr"]}


def bind(rig: Rig, made: dict[str, Any], **more: Any) -> int:
    """Bind it through b; the key."""
    where = {"mr": made["region"], "addr": rig.addr + START, "length": LENGTH, "access": ["REMOTE_WRITE"]}
    args = {"qp": rig.b, "mw": made["mw"], "wr_id": 50, "signaled": True, **where, **more}
    if more.get("opcode") is None:
        key: int = rig.do("bind_mw", **args)["rkey"]
        return key
    rig.do("post_send", **{"fence": False, "rkey": 7, **args})
    return int(made["rkey"]) & ~0xFF | 7


def bind_2(rig: Rig, made: dict[str, Any], **more: Any) -> int:
    return bind(rig, made, opcode="BIND_MW", **more)


def write(rig: Rig, key: int, at: int = START) -> list[tuple[int, str]]:
    """From a, eight bytes to an offset of the buffer."""
    sges = [rig.sge(0, 8, reg(rig, 0)["lkey"])]
    rig.post(rig.a, "RDMA_WRITE", sg_list=sges, remote_addr=rig.addr + at, rkey=key)
    return rig.sent()


def bind_for_writing_to_readable(rig: Rig) -> Any:
    made = window(rig)
    made["region"] = reg(rig, access=("MW_BIND",))["mr"]
    bind_2(rig, made)
    return rig.sent()


def bind_around_the_end(rig: Rig) -> Any:
    bind_2(rig, window(rig), length=2**64 - PAGE)
    return rig.sent()


def free_region_of_window(rig: Rig) -> Any:
    made = window(rig)
    key = bind_2(rig, made)
    first = rig.sent()
    return first, rig.result("dereg_mr", mr=made["region"]), write(rig, key)


def bind_outside(rig: Rig) -> Any:
    bind_2(rig, window(rig), length=3 * PAGE)
    return rig.sent()


def bind_zero_based(rig: Rig) -> Any:
    bind(rig, window(rig, "TYPE_1"), access=["REMOTE_WRITE", "ZERO_BASED"])
    return rig.sent()


def bind_in_error(rig: Rig) -> Any:
    made = window(rig)
    rig.move(rig.b, "ERR")
    bind_2(rig, made)
    return rig.sent()


def invalidate_type_1(rig: Rig) -> Any:
    key = bind(rig, window(rig, "TYPE_1"))
    rig.inv(rig.b, key)
    return rig.sent()


def invalidate_through_the_other(rig: Rig) -> Any:
    key = bind_2(rig, window(rig))
    first = rig.sent()
    rig.inv(rig.a, key)
    return first, rig.sent()


def write_by_the_key_returned(rig: Rig) -> Any:
    key = bind(rig, window(rig, "TYPE_1"))
    return rig.sent(), write(rig, key)


def bind_twice(rig: Rig) -> Any:
    made = window(rig)
    key = bind_2(rig, made)
    first = rig.sent()
    bind_2(rig, made, key=key)
    return first, rig.sent()


def write_beside_the_window(rig: Rig) -> Any:
    key = bind_2(rig, window(rig))
    return rig.sent(), write(rig, key, START + LENGTH)


def free_one_of_two(rig: Rig) -> Any:
    made = window(rig)
    key = bind_2(rig, made)
    other = {**rig.do("alloc_mw", pd=rig.pd, type="TYPE_2"), "region": made["region"]}
    bind_2(rig, other)
    rig.inv(rig.b, key)
    rig.sent()
    rig.do("dealloc_mw", mw=made["mw"])
    return rig.result("dereg_mr", mr=made["region"])


def write_zero_based(rig: Rig) -> Any:
    key = bind_2(rig, window(rig), access=["REMOTE_WRITE", "ZERO_BASED"])
    rig.sent()
    rig.put(0, b"12345678")
    write(rig, key, -rig.addr)
    return rig.get(START, 8)


def write_by_a_binding_from(*slots_before: int) -> Any:
    """A write through a window whose binding stands behind so many other requests."""

    def scenario(rig: Rig) -> Any:
        for wr_id in slots_before:
            rig.post(rig.b, "RDMA_WRITE", wr_id, sg_list=[], remote_addr=0, rkey=0)
        made = window(rig)
        key = bind_2(rig, made)
        return len(rig.sent()) - len(slots_before), write(rig, key)

    return scenario


# -- changed regions -----------------------------------------------------------------------------------
def change_rights_alone(rig: Rig) -> Any:
    made = reg(rig, access=())
    what = {"addr": rig.addr + 8 * PAGE, "length": PAGE}
    rig.call("rereg_mr", mr=made["mr"], flags=["CHANGE_ACCESS"], access=list(ALL), **what)
    return write(rig, made["rkey"])


def free_the_domain_it_left(rig: Rig) -> Any:
    pd = rig.do("alloc_pd")["pd"]
    made = rig.do("reg_mr", pd=pd, addr=rig.addr, length=8, access=[])
    rig.do("rereg_mr", mr=made["mr"], flags=["CHANGE_PD"], pd=rig.pd)
    return rig.result("dealloc_pd", pd=pd)


def register_with_a_hint(rig: Rig) -> Any:
    return rig.result("reg_mr", pd=rig.pd, addr=rig.addr, length=8, access=["RELAXED_ORDERING"])


# -- lists and inline data -----------------------------------------------------------------------------
def inlining(rig: Rig) -> dict[str, Any]:
    """Another pair, which takes eight bytes inline."""
    fields = {"send_cq": rig.scq, "recv_cq": rig.rcq, "max_send_wr": 4, "max_recv_wr": 4, "max_inline_data": 8}
    rig.a, rig.b = (rig.do("create_qp", pd=rig.pd, **fields)["qp"] for _ in range(2))
    rig.connect(rig.a, rig.b)
    return reg(rig, 8 * PAGE, ("LOCAL_WRITE",))


def change_what_was_inline(rig: Rig) -> Any:
    sink = inlining(rig)["lkey"]
    source = reg(rig, 0)["lkey"]
    rig.put(0, b"first")
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 8, sink))
    rig.send(rig.a, 1, rig.sge(0, 5, source), inline=True)
    rig.put(0, b"other")
    rig.sent()
    return rig.get(8 * PAGE, 5)


def too_much_inline(rig: Rig) -> Any:
    sink, source = inlining(rig)["lkey"], reg(rig, 0)["lkey"]
    rig.recv(rig.b, 1, rig.sge(8 * PAGE, 64, sink))
    refused = rig.send(rig.a, 1, rig.sge(0, 9, source), inline=True)
    rig.send(rig.a, 2, rig.sge(0, 4, source), inline=True)
    return refused, rig.sent()


def a_list(rig: Rig, *lengths: int) -> Any:
    sink, source = inlining(rig)["lkey"], reg(rig, 0)["lkey"]
    for wr_id in range(len(lengths)):
        rig.recv(rig.b, wr_id, rig.sge(8 * PAGE, 64, sink))
    sges = [rig.sge(0, length, source) for length in lengths]
    ids = list(range(len(lengths)))
    rig.do("post_send_list", qp=rig.a, wr_ids=ids, sg_list=sges, signaled=True, inline=True)
    return [wr_id for wr_id, _ in rig.sent()]


def list_of_three(rig: Rig) -> Any:
    return a_list(rig, 1, 2, 3)


def told_of_a_list(rig: Rig) -> Any:
    inlining(rig)
    source = reg(rig, 0)["lkey"]
    sges = [rig.sge(0, length, source) for length in (1, 9)]
    fields = {"wr_ids": [0, 1], "sg_list": sges, "signaled": True, "inline": True}
    return rig.do("post_send_list", qp=rig.a, **fields)["accepted"]


def pieces_inline(rig: Rig) -> Any:
    inlining(rig)
    source = reg(rig, 0)["lkey"]
    return rig.send(rig.a, 1, rig.sge(0, 8, source), rig.sge(8, 1, source), inline=True)


def uneven_pieces(rig: Rig) -> Any:
    source = reg(rig, 0)["lkey"]
    rig.recv(rig.b, 1, rig.sge(0, 64, source))
    rig.send(rig.a, 1, rig.sge(64, 1, source), rig.sge(100, 7, source))
    rig.do("settle")
    return [entry["byte_len"] for entry in rig.poll_all(rig.rcq)]


def list_with_a_bad_one(rig: Rig) -> Any:
    return a_list(rig, 1, 9, 3)


# -- overlapped requests -------------------------------------------------------------------------------
def notified(*kinds: str) -> Any:
    def scenario(rig: Rig) -> Any:
        rig.do("connect_qp", qp=rig.a, peer=rig.b)
        asked = [rig.do("notify_cq", cq=rig.rcq, type=kind)["request"] for kind in kinds]
        rig.recv(rig.b, 1)
        rig.send(rig.a, 1)
        rig.do("settle")
        return [rig.result("get_overlapped_result", request=request) for request in asked]

    return scenario


CASES: dict[str, Case] = {
    "bind-checks-old-rights": Case(bind_for_writing_to_readable, BAD_BIND, USER),
    "bind-range-wraps": Case(bind_around_the_end, BAD_BIND, USER),
    "region-freed-under-windows": Case(free_region_of_window, (BOUND, "EBUSY", GOOD), USER),
    "refused-dereg-says-done": Case(free_region_of_window, (BOUND, "EBUSY", GOOD), USER),
    "bind-failure-says-protection": Case(bind_outside, BAD_BIND, USER),
    "failed-bind-says-success": Case(bind_outside, BAD_BIND, USER),
    "zero-based-type-1-accepted": Case(bind_zero_based, BAD_BIND, USER),
    "flushed-bind-is-bind-error": Case(bind_in_error, [(50, "WR_FLUSH_ERR")], USER),
    "type-1-windows-invalidated": Case(invalidate_type_1, [*BOUND, (200, "LOC_QP_OP_ERR")], USER),
    "window-inv-ignores-queue-pair": Case(invalidate_through_the_other, (BOUND, [(200, "LOC_QP_OP_ERR")]), USER),
    "old-window-key-returned": Case(write_by_the_key_returned, (BOUND, GOOD), USER),
    "type-2-moves-silently": Case(bind_twice, (BOUND, BAD_BIND), USER),
    "window-checked-against-region": Case(write_beside_the_window, (BOUND, REFUSED), USER),
    "window-count-dropped-twice": Case(free_one_of_two, "EBUSY", USER),
    "zero-based-adds-region-start": Case(write_zero_based, b"12345678", USER),
    "binding-visible-late": Case(write_by_a_binding_from(), (1, GOOD), USER),
    "binding-at-ring-end-is-lost": Case(write_by_a_binding_from(1), (1, GOOD), {**USER, "depth": 2}),
    "rereg-takes-unflagged-range": Case(change_rights_alone, GOOD, USER),
    "rereg-leaves-domains-counted": Case(free_the_domain_it_left, "0", USER),
    "hints-refused": Case(register_with_a_hint, "0", USER),
    "inline-read-at-execution": Case(change_what_was_inline, b"first", {**USER, "pace": "lazy"}),
    "refused-inline-is-sent": Case(too_much_inline, ("EINVAL", [(2, "SUCCESS")]), USER),
    "list-in-reverse": Case(list_of_three, [0, 1, 2], USER),
    "list-goes-on-after-the-bad-one": Case(list_with_a_bad_one, [0], USER),
    "bad-request-not-named": Case(told_of_a_list, 1, USER),
    "inline-pieces-checked-alone": Case(pieces_inline, "EINVAL", USER),
    "length-of-the-first-element": Case(uneven_pieces, [8], USER),
    "error-notification-arms": Case(notified("ERRORS"), ["ND_PENDING"], ND),
    "new-notification-cancels-older": Case(notified("ANY", "ANY"), ["0", "0"], ND),
}
"""By fault."""
