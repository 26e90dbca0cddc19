"""Queue pairs, queues, completions and flush."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import PAGE, Rig

LEGAL = {
    ("RESET", "RESET"),
    ("RESET", "INIT"),
    ("INIT", "RESET"),
    ("INIT", "INIT"),
    ("INIT", "RTR"),
    ("INIT", "ERR"),
    ("RTR", "RESET"),
    ("RTR", "RTS"),
    ("RTR", "ERR"),
    ("RTS", "RESET"),
    ("RTS", "RTS"),
    ("RTS", "ERR"),
    ("ERR", "RESET"),
    ("ERR", "ERR"),
}
PATH = {"RESET": [], "INIT": ["INIT"], "RTR": ["INIT", "RTR"], "RTS": ["INIT", "RTR", "RTS"]}
PATH["ERR"] = ["INIT", "ERR"]
FLUSH = "WR_FLUSH_ERR"


def in_state(state: str, **options: Any) -> Rig:
    rig = Rig(connect=False, **options)
    for step in PATH[state]:
        assert rig.move(rig.a, step, rig.b) == "0"
    return rig


@pytest.mark.parametrize("before", PATH)
@pytest.mark.parametrize("after", PATH)
def test_moves(before: str, after: str) -> None:
    rig = in_state(before)
    legal = (before, after) in LEGAL
    assert rig.move(rig.a, after, rig.b) == ("0" if legal else "EINVAL")
    assert rig.state(rig.a) == (after if legal else before)


@pytest.mark.parametrize("before", PATH)
@pytest.mark.parametrize("text", ["UNKNOWN", "SQX", "", "rts"])
def test_unknown_state_is_refused(before: str, text: str) -> None:
    """Also from where a move to ERR would be legal, and in no other spelling."""
    rig = in_state(before)
    assert rig.move(rig.a, text, rig.b) == "EINVAL"
    assert rig.state(rig.a) == before


def test_rtr_needs_a_peer() -> None:
    rig = in_state("INIT")
    assert rig.move(rig.a, "RTR") == "EINVAL"
    assert rig.move(rig.a, "RTR", 9999) == "EINVAL"
    assert rig.state(rig.a) == "INIT"


@pytest.mark.parametrize("state", PATH)
def test_posting_by_state(state: str) -> None:
    rig = in_state(state)
    assert rig.send(rig.a, 1) == ("0" if state in ("RTS", "ERR") else "EINVAL")
    assert rig.recv(rig.a, 2) == ("EINVAL" if state == "RESET" else "0")
    if state == "ERR":
        assert (rig.sent(), rig.got()) == ([(1, FLUSH)], [(2, FLUSH)])
    elif state == "RTS":  # the peer is not there
        assert (rig.sent(), rig.got()) == ([(1, "RETRY_EXC_ERR")], [(2, FLUSH)])
    else:
        assert (rig.sent(), rig.got()) == ([], [])


def test_slots_come_back_with_polled_completions() -> None:
    rig = Rig(depth=3)
    for wr_id, signaled in ((1, False), (2, True), (3, True)):
        assert rig.write(0, 0, 0, wr_id, signaled=signaled) == "0"
    rig.do("settle")
    assert rig.write(0, 0, 0, 4) == "ENOMEM"
    assert rig.do("poll_cq", cq=rig.scq)["wr_id"] == 2
    assert [rig.write(0, 0, 0, wr_id) for wr_id in (4, 5, 6)] == ["0", "0", "ENOMEM"]


@pytest.mark.parametrize(("how", "result"), [("poll", "ENOMEM"), ("consume", "0")])
def test_receive_slots(how: str, result: str) -> None:
    rig = Rig(depth=1, rq_slot=how)
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1)
    rig.do("settle")
    assert rig.recv(rig.b, 2) == result
    rig.got()
    assert rig.recv(rig.b, 3) == ("0" if how == "poll" else "ENOMEM")


def test_send_waits_for_a_receive() -> None:
    rig = Rig()
    rig.put(0, b"hello")
    rig.send(rig.a, 1, rig.sge(0, 5))
    assert (rig.sent(), rig.got()) == ([], [])
    rig.recv(rig.b, 9, rig.sge(PAGE, 2), rig.sge(2 * PAGE, 4))
    assert (rig.sent(), rig.got()) == ([(1, "SUCCESS")], [(9, "SUCCESS")])
    assert (rig.get(PAGE, 2), rig.get(2 * PAGE, 4)) == (b"he", b"llo\0")


def test_both_directions_at_once() -> None:
    """A request that waits does not hold up the answers of its sender."""
    rig = Rig()
    rig.send(rig.a, 1)
    rig.do("settle")
    rig.recv(rig.a, 5)
    rig.send(rig.b, 2)
    assert (rig.sent(), rig.got()) == ([(2, "SUCCESS")], [(5, "SUCCESS")])


@pytest.mark.parametrize("gone", ["reset", "error", "destroyed", "other"])
def test_silent_peer(gone: str) -> None:
    rig = Rig()
    rig.send(rig.a, 1)
    rig.do("settle")
    if gone == "destroyed":
        rig.do("destroy_qp", qp=rig.b)
    else:
        rig.move(rig.b, "ERR" if gone == "error" else "RESET")
    if gone == "other":
        other = rig.new_qp(rig.pd)
        rig.connect(other, rig.b)
    rig.write(0, 0, 0, 2)
    assert rig.sent() == [(1, "RETRY_EXC_ERR"), (2, FLUSH)]
    assert rig.state(rig.a) == "ERR"


@pytest.mark.parametrize(("psn", "status"), [("strict", "RETRY_EXC_ERR"), ("ignore", "SUCCESS")])
def test_one_side_connected_anew(psn: str, status: str) -> None:
    rig = Rig(psn=psn)
    rig.write(0, 0, 0, 1)
    assert rig.sent() == [(1, "SUCCESS")]
    for state in ("RESET", "INIT", "RTR", "RTS"):
        rig.move(rig.b, state, rig.a)
    rig.write(0, 0, 0, 2)
    assert rig.sent() == [(2, status)]


def test_message_too_long() -> None:
    rig = Rig()
    rig.recv(rig.b, 1, rig.sge(PAGE, 7))
    rig.recv(rig.b, 2)
    rig.send(rig.a, 1, rig.sge(0, 8))
    rig.send(rig.a, 2)
    assert rig.sent() == [(1, "REM_INV_REQ_ERR"), (2, FLUSH)]
    assert rig.got() == [(1, "LOC_LEN_ERR"), (2, FLUSH)]
    assert rig.get(PAGE, 8) == bytes(8)


@pytest.mark.parametrize(("how", "status"), [("used", "SUCCESS"), ("whole", "REM_OP_ERR")])
def test_receive_that_exceeds_its_memory(how: str, status: str) -> None:
    rig = Rig(recv_check=how)
    rig.recv(rig.b, 1, rig.sge(16 * PAGE - 8, 16))
    rig.send(rig.a, 1, rig.sge(0, 8))
    assert rig.sent() == [(1, status)]


def test_first_failure_then_flush() -> None:
    for seed in range(20):
        rig = Rig(seed)
        rig.write(0, 0, 0, 1)
        rig.send(rig.a, 2, rig.sge(0, 8, 0xBAD00), signaled=False)
        rig.write(0, 0, 0, 3, signaled=False)
        rig.write(0, 0, 0, 4)
        rig.recv(rig.a, 5)
        assert rig.sent() == [(1, "SUCCESS"), (2, "LOC_PROT_ERR"), (3, FLUSH), (4, FLUSH)]
        assert rig.got() == [(5, FLUSH)]
        assert rig.state(rig.b) == "RTS"


def test_remote_access_error_takes_both_down() -> None:
    rig = Rig()
    rig.recv(rig.b, 7)
    rig.write(0xBAD00, 0, 8, 1)
    assert rig.sent() == [(1, "REM_ACCESS_ERR")]
    assert rig.got() == [(7, FLUSH)]
    assert (rig.state(rig.a), rig.state(rig.b)) == ("ERR", "ERR")


def test_connected_to_itself() -> None:
    rig = Rig(connect=False)
    for state in ("INIT", "RTR", "RTS"):
        rig.move(rig.a, state, rig.a)
    rig.put(0, b"self")
    rig.recv(rig.a, 1, rig.sge(PAGE, 4))
    rig.send(rig.a, 2, rig.sge(0, 4))
    assert (rig.sent(), rig.got()) == ([(2, "SUCCESS")], [(1, "SUCCESS")])
    assert rig.get(PAGE, 4) == b"self"
    rig.write(0xBAD00, 0, 8, 3)
    assert rig.sent() == [(3, FLUSH)]  # as the responder it is in ERR before it can hear the refusal
    assert rig.state(rig.a) == "ERR"


def test_reset_discards() -> None:
    rig = Rig()
    rig.send(rig.a, 1)
    rig.recv(rig.a, 2)
    rig.move(rig.a, "RESET")
    assert (rig.sent(), rig.got()) == ([], [])


def test_nothing_succeeds_after_err() -> None:
    for seed in range(40):
        rig = Rig(seed)
        for wr_id in range(6):
            rig.write(0, 0, 0, wr_id)
        rig.move(rig.a, "ERR")
        first = [out["status"] for out in rig.poll_all(rig.scq)]
        rest = rig.sent()
        assert all(status == FLUSH for _, status in rest)
        assert len(first) + len(rest) == 6


@pytest.mark.parametrize(("purge", "left"), [("false", 1), ("true", 0)])
def test_entries_of_a_destroyed_qp(purge: str, left: int) -> None:
    rig = Rig(purge_cqes=purge)
    rig.write(0, 0, 0)
    rig.do("settle")
    rig.do("destroy_qp", qp=rig.a)
    assert len(rig.sent()) == left


@pytest.mark.parametrize("overrun", ["drop", "sticky"])
def test_overrun_is_contained(overrun: str) -> None:
    rig = Rig(cqe=2, overrun=overrun)
    big = rig.do("create_cq", cqe=64)["cq"]
    rig.scq, small = big, rig.scq
    c, d = rig.new_qp(rig.pd), rig.new_qp(rig.pd)
    rig.connect(c, d)
    for wr_id in range(3):
        rig.write(0, 0, 0, wr_id)
    rig.write(0, 0, 0, 9, qp=c)
    assert rig.done(big) == [(9, "SUCCESS")]
    assert rig.done(small)[:2] == [(0, "SUCCESS"), (1, "SUCCESS")]
    assert (rig.state(rig.a), rig.state(c)) == ("ERR", "RTS")


def test_poison_spares_what_means_something() -> None:
    rig = Rig(poison="true")
    rig.move(rig.a, "ERR")
    rig.send(rig.a, 3)
    rig.do("settle")
    (entry,) = rig.poll_all(rig.scq)
    assert (entry["wr_id"], entry["status"], entry["qp_num"]) == (3, FLUSH, rig.qpn[rig.a])
    assert entry["byte_len"] > 0


def test_busy_objects() -> None:
    rig = Rig()
    mr, _ = rig.region()
    pd, cq = {"pd": rig.pd}, {"cq": rig.scq}
    assert (rig.result("dealloc_pd", **pd), rig.result("destroy_cq", **cq)) == ("EBUSY", "EBUSY")
    for qp in (rig.a, rig.b):
        rig.do("destroy_qp", qp=qp)
    assert (rig.result("dealloc_pd", **pd), rig.result("destroy_cq", **cq)) == ("EBUSY", "0")
    rig.do("dereg_mr", mr=mr)
    assert rig.result("dealloc_pd", **pd) == "0"
    gone: list[tuple[str, dict[str, Any]]] = [
        ("dealloc_pd", pd),
        ("destroy_cq", cq),
        ("poll_cq", cq),
        ("destroy_qp", {"qp": rig.a}),
        ("query_qp", {"qp": rig.a}),
        ("dereg_mr", {"mr": mr}),
        ("alloc_mr", {**pd, "max_num_sg": 1}),
    ]
    assert {verb: rig.result(verb, **args) for verb, args in gone} == {verb: "EINVAL" for verb, _ in gone}


def test_limits_are_kept() -> None:
    rig = Rig(max_qp_wr="16", max_cqe="64", max_pages="8", cq_slack="2", qp_slack="1")
    limits = rig.hca.hello().limits
    assert (limits["max_qp_wr"], limits["max_cqe"], limits["max_fast_reg_page_list_len"]) == (16, 64, 8)
    assert rig.do("create_cq", cqe=64)["cqe_actual"] == 66
    assert rig.result("create_cq", cqe=65) == "EINVAL"
    assert rig.result("create_cq", cqe=0) == "EINVAL"
    assert rig.result("alloc_mr", pd=rig.pd, max_num_sg=9) == "EINVAL"
    assert rig.result("alloc_mr", pd=rig.pd, max_num_sg=0) == "EINVAL"
    assert [rig.recv(rig.a, wr_id) for wr_id in range(18)] == ["0"] * 17 + ["ENOMEM"]


@pytest.mark.parametrize("slack", [0, 1, 5])
def test_queues_are_as_deep_as_answered(slack: int) -> None:
    rig = Rig(qp_slack=str(slack))
    cqs = {"send_cq": rig.scq, "recv_cq": rig.rcq}
    made = rig.do("create_qp", pd=rig.pd, **cqs, max_send_wr=3, max_recv_wr=2)
    assert (made["max_send_wr_actual"], made["max_recv_wr_actual"]) == (3 + slack, 2 + slack)
    other = rig.new_qp(rig.pd)
    rig.connect(made["qp"], other)
    sends = [rig.write(0, 0, 0, wr_id, qp=made["qp"]) for wr_id in range(4 + slack)]
    receives = [rig.recv(made["qp"], wr_id) for wr_id in range(3 + slack)]
    assert sends == ["0"] * (3 + slack) + ["ENOMEM"]
    assert receives == ["0"] * (2 + slack) + ["ENOMEM"]
    assert rig.sent() == [(wr_id, "SUCCESS") for wr_id in range(3 + slack)]


@pytest.mark.parametrize("slack", [0, 1, 5])
def test_completion_queues_are_as_deep_as_answered(slack: int) -> None:
    for extra in (0, 1):
        rig = Rig(cq_slack=str(slack), depth=32)
        cq = rig.do("create_cq", cqe=2)
        assert cq["cqe_actual"] == 2 + slack
        rig.scq = cq["cq"]
        c, d = rig.new_qp(rig.pd), rig.new_qp(rig.pd)
        rig.connect(c, d)
        for wr_id in range(2 + slack + extra):
            assert rig.write(0, 0, 0, wr_id, qp=c) == "0"
        rig.do("settle")
        assert rig.state(c) == ("ERR" if extra else "RTS")
        assert rig.sent()[: 2 + slack] == [(wr_id, "SUCCESS") for wr_id in range(2 + slack)]
