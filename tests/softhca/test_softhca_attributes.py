"""modify_qp and query_qp with a mask: what each move needs and takes, what fits, draining."""

from __future__ import annotations

from typing import Any

import pytest
from softhca_rig import Rig

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.attributes import OF_BIT, chosen
from verbs_adapters.softhca.options import parse
from verbs_adapters.softhca.transitions import STATES, STEPS, TYPES

BITS = sorted(OF_BIT)
VALUES: dict[str, Any] = {
    "qkey": 7,
    "pkey_index": 0,
    "port_num": 1,
    "path_mtu": "MTU_512",
    "timeout": 5,
    "retry_cnt": 3,
    "rnr_retry": 2,
    "rq_psn": 0x123456,
    "sq_psn": 0xFFFFFF,
    "max_rd_atomic": 4,
    "max_dest_rd_atomic": 5,
    "min_rnr_timer": 6,
    "path_mig_state": "ARMED",
    "en_sqd_async_notify": 1,
    "hop_limit": 9,
}
WAY = {"RESET": (), "INIT": ("INIT",), "RTR": ("INIT", "RTR"), "RTS": ("INIT", "RTR", "RTS")}
WAY |= {"SQD": (*WAY["RTS"], "SQD"), "ERR": ("INIT", "ERR")}


class Masked(Rig):
    """Two queue pairs of a type, `a` taken to a state."""

    def __init__(self, state: str = "RESET", kind: str = "RC", **options: Any) -> None:
        super().__init__(0, api="linux-user", connect=False, **options)
        self.a, self.b = self.new_typed(kind), self.new_typed(kind)
        for step in WAY[state]:
            assert self.move(self.a, step, self.b) == "0"

    def new_typed(self, kind: str, **more: Any) -> int:
        fields = {"pd": self.pd, "send_cq": self.scq, "recv_cq": self.rcq, "max_send_wr": 8, "max_recv_wr": 8}
        made = self.do("create_qp", qp_type=kind, **fields, **more)
        self.qpn[made["qp"]] = made["qp_num"]
        return int(made["qp"])

    def modify(self, mask: list[str], state: str = "RESET", **values: Any) -> str:
        access = ["REMOTE_READ"]
        return self.result("modify_qp", qp=self.a, state=state, mask=mask, peer=self.b, access=access, **values)

    def query(self, *mask: str) -> dict[str, Any]:
        return self.do("query_qp", qp=self.a, mask=list(mask))


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in ("UC", "UD")])
@pytest.mark.parametrize("before", sorted(WAY))
@pytest.mark.parametrize("after", STATES)
def test_a_move_needs_what_is_required_and_takes_no_more(before: str, after: str, kind: str) -> None:
    rig = Masked(before, kind)
    before_all = rig.query(*BITS)
    step = STEPS.get((before, after, kind))
    extra = ["CAP"] if step is None else [bit for bit in BITS if bit not in step.taken][:1]
    needed = ["STATE", *sorted(step.required if step else ())]
    refused = [[bit for bit in needed if bit != lacking] for lacking in needed[1:]]
    refused += [[*needed, bit] for bit in extra]
    for mask in refused:
        assert rig.modify(mask, after) == "EINVAL"
        assert rig.query(*BITS) == before_all
    assert rig.modify(needed, after) == ("0" if step else "EINVAL")
    assert rig.state(rig.a) == (after if step else before)


def test_the_table_has_as_many_moves_as_the_kernel() -> None:
    assert len(STEPS) == 132
    assert len({key[:2] for key in STEPS}) == 22
    assert not any(after == "SQE" for _, after, _ in STEPS)


def test_what_was_set_is_told() -> None:
    rig = Masked("INIT")
    given = {name: value for name, value in VALUES.items() if name not in ("qkey", "port_num", "en_sqd_async_notify")}
    assert rig.modify(["STATE", *sorted(STEPS["INIT", "RTR", "RC"].required)], "RTR", **given) == "0"
    assert rig.modify(["STATE", *sorted(STEPS["RTR", "RTS", "RC"].required)], "RTS", **given) == "0"
    told = rig.query("PATH_MTU", "TIMEOUT", "RETRY_CNT", "RNR_RETRY", "RQ_PSN", "SQ_PSN", "AV", "DEST_QPN", "CAP")
    for name in ("path_mtu", "timeout", "retry_cnt", "rnr_retry", "rq_psn", "sq_psn", "hop_limit"):
        assert told[name] == given[name]
    assert (told["dest_qp_num"], told["qp_type"], told["sq_draining"]) == (rig.qpn[rig.b], "RC", False)
    assert (told["max_send_wr"], told["max_recv_wr"]) == (8, 8)
    assert "pkey_index" not in told


@pytest.mark.parametrize(
    "wrong",
    [
        {"path_mtu": "UNKNOWN"},
        {"max_dest_rd_atomic": 17},
        {"min_rnr_timer": 32},
        {"dest_qp_num": 1 << 24},
        {"is_global": False},
        {"dgid": "00"},
        {"sgid_index": 1},
        {"rq_psn": 1 << 32},
        {"sl": 16},
    ],
)
def test_values_that_do_not_fit_change_nothing(wrong: dict[str, Any]) -> None:
    rig = Masked("INIT")
    mask = ["STATE", *sorted(STEPS["INIT", "RTR", "RC"].required)]
    before = rig.query(*BITS)
    assert rig.modify(mask, "RTR", **wrong) == "EINVAL"
    assert rig.query(*BITS) == before
    assert rig.modify(mask, "RTR") == "0"


def test_sequence_numbers_are_cut_to_24_bits_and_must_agree() -> None:
    rig = Rig(api="linux-user", connect=False)
    for state, values in (("INIT", {}), ("RTR", {"rq_psn": 0x1000007}), ("RTS", {"sq_psn": 7})):
        for qp, peer in ((rig.a, rig.b), (rig.b, rig.a)):
            assert rig.result("modify_qp", qp=qp, peer=peer, access=[], state=state, **values) == "0"
    assert rig.do("query_qp", qp=rig.b, mask=["RQ_PSN"])["rq_psn"] == 7
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1)
    assert rig.sent() == [(1, "SUCCESS")]


@pytest.mark.parametrize(
    ("transport", "result"), [("roce", "EINVAL"), ("ib", "0")], ids=["roce has none", "ib has one"]
)
def test_alternate_paths(transport: str, result: str) -> None:
    rig = Masked("RTS", transport=transport)
    assert rig.modify(["ALT_PATH"]) == result


@pytest.mark.parametrize(
    ("claimed", "result"), [("RTS", "0"), ("RTR", "EINVAL"), ("ERR", "EINVAL"), ("UNKNOWN", "EINVAL")]
)
def test_the_current_state_has_to_be_true(claimed: str, result: str) -> None:
    rig = Masked("RTS")
    assert rig.modify(["STATE", "CUR_STATE", "ACCESS_FLAGS"], "RTS", cur_qp_state=claimed) == result
    assert rig.query("ACCESS_FLAGS")["access"] == (["REMOTE_READ"] if result == "0" else list(rig.access))


def test_without_state_in_the_mask_the_state_stays() -> None:
    rig = Masked("RTS")
    assert rig.modify(["MIN_RNR_TIMER"], "ERR", min_rnr_timer=3) == "0"
    assert (rig.state(rig.a), rig.query("MIN_RNR_TIMER")["min_rnr_timer"]) == ("RTS", 3)


def test_signalling_all_and_creation_are_told() -> None:
    rig = Masked("RTS")
    rig.a = rig.new_typed("RC", sq_sig_all=True)
    assert rig.query()["sq_sig_all"] is True
    rig.connect(rig.a, rig.b)
    rig.recv(rig.b, 1)
    rig.send(rig.a, 1, signaled=False)
    assert rig.sent() == [(1, "SUCCESS")]


@pytest.mark.parametrize(("masks", "result"), [("exact", "EINVAL"), ("uverbs", "0")])
def test_uverbs_drops_what_a_type_has_not(masks: str, result: str) -> None:
    rig = Masked("RTR", "XRC_RECV", masks=masks)
    required = ["STATE", *sorted(STEPS["RTR", "RTS", "XRC_RECV"].required)]
    assert rig.modify([*required, "RETRY_CNT"], "RTS") == result


@pytest.mark.parametrize(("controlled_qkey", "qkey", "errno"), [("accept", 1 << 31, ""), ("refuse", 1 << 31, "EPERM")])
def test_keys_for_the_privileged(controlled_qkey: str, qkey: int, errno: str) -> None:
    settings = parse({"controlled_qkey": controlled_qkey})
    assert chosen(frozenset({"QKEY"}), {"qkey": qkey - 1}, settings) == {"qkey": qkey - 1}
    if errno:
        with pytest.raises(Refused) as refused:
            chosen(frozenset({"QKEY"}), {"qkey": qkey}, settings)
        assert refused.value.errno == errno
    else:
        assert chosen(frozenset({"QKEY"}), {"qkey": qkey}, settings) == {"qkey": qkey}


# -- draining ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("asked", "drain_event", "told"), [(1, "asked", 1), (0, "asked", 0), (0, "always", 1)])
def test_what_has_started_is_finished_and_the_rest_waits(asked: int, drain_event: str, told: int) -> None:
    seen = set()
    for seed in range(24):
        rig = Rig(seed, api="linux-user", drain_event=drain_event, pace="lazy")
        for wr_id in (1, 2, 3):
            rig.recv(rig.b, wr_id)
            rig.send(rig.a, wr_id)
        polled = [rig.do("poll_cq", cq=rig.scq) for _ in range(seed % 12)]  # each lets a little happen
        done = [(out["wr_id"], out["status"]) for out in polled if out["n"]]
        mask = ["STATE", "EN_SQD_ASYNC_NOTIFY"]
        rig.do("modify_qp", qp=rig.a, state="SQD", mask=mask, en_sqd_async_notify=asked, peer=0, access=[])
        draining = rig.do("query_qp", qp=rig.a, mask=[])["sq_draining"]
        if draining:
            assert rig.move(rig.a, "RTS") == "EINVAL"
        assert rig.send(rig.a, 4) == "0"
        rig.recv(rig.b, 4)
        done += rig.sent()
        seen.add((draining, len(done)))
        assert drained(rig) == told
        assert rig.move(rig.a, "RTS") == "0"
        assert done + rig.sent() == [(wr_id, "SUCCESS") for wr_id in (1, 2, 3, 4)]
    assert {draining for draining, _ in seen} == {True, False}
    assert {count for _, count in seen} >= {1, 2, 3}


def drained(rig: Rig) -> int:
    """How many events say so."""
    events = []
    while (out := rig.do("get_async_event"))["n"]:
        events.append(out["event"])
    return events.count("SQ_DRAINED")


def test_without_the_feature_there_are_no_masks_and_no_drained_state() -> None:
    rig = Rig(api="linux-user", without="QP_ATTRIBUTES,XRC,RAW_PACKET")
    assert rig.result("modify_qp", qp=rig.a, state="RTS", mask=["STATE"]) == "EOPNOTSUPP"
    assert rig.result("query_qp", qp=rig.a, mask=[]) == "EOPNOTSUPP"
    assert rig.move(rig.a, "SQD") == "EINVAL"


# -- the device and its port ------------------------------------------------------------------------------
def test_the_device_answers_what_it_promises() -> None:
    rig = Rig(api="linux-user", max_qp_wr="77")
    told, promised = rig.do("query_device"), rig.hca.hello().limits
    assert told["max_qp_wr"] == 77
    port = rig.do("query_port")
    told |= {name: int(port[name].removeprefix("MTU_")) for name in ("max_mtu", "active_mtu")}
    assert promised.items() <= told.items()
    assert told["device_cap_flags"] & 1 << 13  # SRQ_RESIZE
    plain = Rig(api="linux-user", without="SRQ_RESIZE,ATOMIC").do("query_device")
    assert (plain["device_cap_flags"] & 1 << 13, plain["atomic_cap"]) == (0, "NONE")


def test_the_port_limits_the_path() -> None:
    rig = Masked("INIT", port_mtu="MTU_2048")
    port = rig.do("query_port")
    assert (port["state"], port["active_mtu"], port["link_layer"]) == ("PORT_ACTIVE", "MTU_2048", "ETHERNET")
    assert rig.do("query_gid", index=port["gid_tbl_len"] - 1)["gid"] == rig.do("query_gid", port_num=1)["gid"]
    for verb, wrong in (("query_port", {"port_num": 2}), ("query_gid", {"index": port["gid_tbl_len"]})):
        assert rig.result(verb, **wrong) == "EINVAL"
    mask = ["STATE", *sorted(STEPS["INIT", "RTR", "RC"].required)]
    assert rig.modify(mask, "RTR", path_mtu="MTU_4096") == "EINVAL"
    assert rig.modify(mask, "RTR", path_mtu="MTU_2048") == "0"


@pytest.mark.parametrize(
    ("bound", "refused", "told"),
    [
        ("active", ("MTU_2048", "MTU_4096"), "MTU_1024"),
        ("largest", ("MTU_4096",), "MTU_1024"),
        ("any", (), "MTU_1024"),
    ],
)
def test_a_path_that_the_link_is_too_small_for(bound: str, refused: tuple[str, ...], told: str) -> None:
    """Drivers compare with the active MTU (hns), with the largest (rxe), or with none and cut (rdmavt)."""
    mask = ["STATE", *sorted(STEPS["INIT", "RTR", "RC"].required)]
    for path_mtu in ("MTU_2048", "MTU_4096"):
        rig = Masked("INIT", port_mtu="MTU_2048", active_mtu="MTU_1024", path_mtu_bound=bound)
        result = rig.modify(mask, "RTR", path_mtu=path_mtu)
        assert result == ("EINVAL" if path_mtu in refused else "0")
        if result == "0":
            assert rig.query("PATH_MTU")["path_mtu"] == told
