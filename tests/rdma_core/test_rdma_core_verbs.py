"""Each argument of each verb reaches its place in C, and what comes back is passed on: on a libibverbs that is ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rdma_core_rig import do, fails, fake_library

from verbs_adapters import registry
from verbs_adapters.contract import VERBS
from verbs_adapters.contract.overlapped import OVERLAPPED
from verbs_adapters.remote.client import RemoteBackend
from verbs_adapters.remote.shapes import wrong_arguments

ALL = ["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "MW_BIND"]
Out = dict[str, Any]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteBackend]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(fake_library(tmp_path_factory.mktemp("fake"))))
        backend = registry.create("rdma-core", {"deadline": "60"})
        assert isinstance(backend, RemoteBackend)
        backend.hello()
    yield backend
    backend.close()


@pytest.fixture
def backend(agent: RemoteBackend) -> RemoteBackend:
    """A fresh context."""
    assert agent.reset(1) is None
    agent.events()
    return agent


@pytest.fixture
def pd(backend: RemoteBackend) -> int:
    return int(do(backend, "alloc_pd")["pd"])


@pytest.fixture
def cq(backend: RemoteBackend) -> int:
    return int(do(backend, "create_cq", cqe=64)["cq"])


def qp(backend: RemoteBackend, pd: int, cq: int, **more: Any) -> Out:
    queues = {"pd": pd, "send_cq": cq, "recv_cq": cq, "max_send_wr": 4, "max_recv_wr": 4}
    return do(backend, "create_qp", **(queues | more))


def connect(backend: RemoteBackend, one: Out, other: Out) -> None:
    for state in ("INIT", "RTR", "RTS"):
        for own, peer in {one["qp"]: other["qp"], other["qp"]: one["qp"]}.items():
            do(backend, "modify_qp", qp=own, state=state, peer=peer, access=[])


def send(backend: RemoteBackend, own: Out, opcode: str, **more: Any) -> None:
    args = {"wr_id": 7, "opcode": opcode, "signaled": True, "fence": False, "sg_list": []} | more
    do(backend, "post_send", qp=own["qp"], **args)


def poll(backend: RemoteBackend, cq: int) -> list[Out]:
    found = []
    while (entry := do(backend, "poll_cq", cq=cq))["n"]:
        found.append(entry)
    return found


def region(backend: RemoteBackend, pd: int) -> Out:
    buffer = do(backend, "alloc_buffer", length=4096)
    return {**buffer, **do(backend, "reg_mr", pd=pd, addr=buffer["addr"], length=4096, access=ALL)}


def test_what_the_device_has_is_said_and_tried(agent: RemoteBackend) -> None:
    capabilities = agent.hello().capabilities
    declared = {"ATOMIC", "MEM_WINDOW", "MEM_WINDOW_TYPE_2B", "SRQ"}
    passed_on = {"ACCESS_FLAGS", "ASYNCHRONOUS_EVENTS", "COMPLETION_CHANNELS", "IMMEDIATE_DATA", "QP_ATTRIBUTES"}
    passed_on |= {"REQUEST_LISTS", "RNR_RETRY", "SGE_LISTS"}
    assert set(capabilities) == {*declared, *passed_on, "INLINE_DATA", "REREG_MR", "RESIZE_CQ", "UD"}


def test_the_device_is_asked(backend: RemoteBackend) -> None:
    device = do(backend, "query_device")
    assert (device["max_qp_wr"], device["atomic_cap"], device["max_mr_size"]) == (64, "HCA", 2**64 - 1)
    assert device["device_cap_flags"] == 1 << 10 | 1 << 17 | 1 << 24
    port = do(backend, "query_port")
    assert (port["state"], port["max_mtu"], port["active_mtu"]) == ("PORT_ACTIVE", "MTU_4096", "MTU_1024")
    assert port["link_layer"] == "ETHERNET"
    assert fails(backend, "query_port", port_num=3) == "EINVAL"
    assert do(backend, "query_gid")["gid"] == "00000000000000000000ffff0a000001"
    assert do(backend, "query_gid", index=0)["gid"] == "00" * 16


def test_a_region_is_changed(backend: RemoteBackend, pd: int) -> None:
    mr = region(backend, pd)
    assert fails(backend, "rereg_mr", mr=mr["mr"], flags=[]) == "EINVAL"
    assert fails(backend, "rereg_mr", mr=mr["mr"], flags=["CHANGE_PD"]) == "EINVAL"
    assert fails(backend, "rereg_mr", mr=mr["mr"], flags=["CHANGE_COLOR"]) == "EINVAL"
    move = {"mr": mr["mr"], "flags": ["CHANGE_TRANSLATION"], "length": 7}
    assert fails(backend, "rereg_mr", **move, addr=mr["addr"]) == "EPROTO"
    do(backend, "rereg_mr", **move, addr=mr["addr"] + 8)
    done = do(backend, "rereg_mr", mr=mr["mr"], flags=["CHANGE_PD", "CHANGE_ACCESS"], pd=pd, access=["REMOTE_READ"])
    assert done == {"lkey": mr["lkey"], "rkey": mr["rkey"] + 4}


def test_windows(backend: RemoteBackend, pd: int, cq: int) -> None:
    mr, own = region(backend, pd), qp(backend, pd, cq)
    connect(backend, own, own)
    place = {"mr": mr["mr"], "addr": mr["addr"] + 16, "length": 64, "access": ["REMOTE_READ"]}
    window = do(backend, "alloc_mw", pd=pd, type="TYPE_1")
    bind = {"qp": own["qp"], "mw": window["mw"], "wr_id": 5, "signaled": True}
    assert fails(backend, "bind_mw", **bind, **(place | {"length": 63})) == "EINVAL"
    assert do(backend, "bind_mw", **bind, **place) == {"rkey": window["rkey"] + 1}
    assert do(backend, "bind_mw", **bind, **place, key=0x900) == {"rkey": 0x901}
    assert [(entry["wr_id"], entry["opcode"]) for entry in poll(backend, cq)] == [(5, "BIND_MW")] * 2
    do(backend, "dealloc_mw", mw=window["mw"])

    typed = do(backend, "alloc_mw", pd=pd, type="TYPE_2")
    assert fails(backend, "bind_mw", **(bind | {"mw": typed["mw"]}), **place) == "EINVAL"
    send(backend, own, "BIND_MW", mw=typed["mw"], rkey=0x777, **place)
    assert [entry["opcode"] for entry in poll(backend, cq)] == ["BIND_MW"]
    for more in ({"mr": 0}, {"mw": 12345}, {"rkey": 2**32}, {"access": ["FLY"]}):
        wr = {"wr_id": 1, "opcode": "BIND_MW", "signaled": True, "fence": False, "mw": typed["mw"], **place} | more
        assert fails(backend, "post_send", qp=own["qp"], **wr) == "EINVAL", more
    assert fails(backend, "alloc_mw", pd=pd, type="TYPE_9") == "EINVAL"
    assert fails(backend, "alloc_mw", pd=pd, type="UNKNOWN") == "EINVAL"


def test_the_header_checks_a_binding_before_the_library_is_called(backend: RemoteBackend, pd: int, cq: int) -> None:
    mr, own = region(backend, pd), qp(backend, pd, cq)
    foreign = do(backend, "alloc_mw", pd=do(backend, "alloc_pd")["pd"], type="TYPE_1")
    bind = {"qp": own["qp"], "mw": foreign["mw"], "wr_id": 1, "signaled": True, "length": 64, "access": ["REMOTE_READ"]}
    assert fails(backend, "bind_mw", **bind, mr=mr["mr"], addr=mr["addr"] + 16) == "EPERM"
    assert fails(backend, "bind_mw", **bind) == "EINVAL"


def test_atomics(backend: RemoteBackend, pd: int, cq: int) -> None:
    mr, own = region(backend, pd), qp(backend, pd, cq)
    connect(backend, own, own)
    target = {"remote_addr": mr["addr"] + 64, "rkey": 0x77}
    sge = {"addr": mr["addr"], "length": 8, "lkey": 1}
    do(backend, "write_buffer", buf=mr["buf"], offset=64, data="05" + "00" * 7)
    send(backend, own, "ATOMIC_FETCH_AND_ADD", compare_add=3, sg_list=[sge], **target)
    send(
        backend,
        own,
        "ATOMIC_CMP_AND_SWP",
        compare_add=8,
        swap=2**64 - 1,
        sg_list=[{**sge, "addr": sge["addr"] + 8}],
        **target,
    )
    assert [entry["opcode"] for entry in poll(backend, cq)] == ["FETCH_ADD", "COMP_SWAP"]
    assert do(backend, "read_buffer", buf=mr["buf"], offset=0, length=16)["data"] == "05" + "00" * 7 + "08" + "00" * 7
    assert do(backend, "read_buffer", buf=mr["buf"], offset=64, length=8)["data"] == "ff" * 8


def test_immediate_data_is_a_number_of_the_host(backend: RemoteBackend, pd: int, cq: int) -> None:
    one, other = qp(backend, pd, cq), qp(backend, pd, cq)
    connect(backend, one, other)
    for opcode, arrives in (("SEND_WITH_IMM", "RECV"), ("RDMA_WRITE_WITH_IMM", "RECV_RDMA_WITH_IMM")):
        do(backend, "post_recv", qp=other["qp"], wr_id=3, sg_list=[])
        send(backend, one, opcode, imm_data=0x01020304)
        received, _ = poll(backend, cq)
        assert (received["opcode"], received["wc_flags"], received["imm_data"]) == (arrives, ["WITH_IMM"], 0x01020304)
    args: Out = {"qp": one["qp"], "wr_id": 1, "opcode": "SEND_WITH_IMM", "signaled": True, "fence": False}
    assert fails(backend, "post_send", **args, imm_data=2**32) == "EINVAL"


def test_a_list_says_how_many_were_taken(backend: RemoteBackend, pd: int, cq: int) -> None:
    mr, one, other = region(backend, pd), qp(backend, pd, cq), qp(backend, pd, cq)
    sges = [{"addr": mr["addr"], "length": length, "lkey": 1} for length in (8, 65, 16)]
    sends: Out = {"qp": one["qp"], "wr_ids": [11, 12, 13], "sg_list": sges, "signaled": True}
    assert do(backend, "post_send_list", **sends) == {"accepted": 0}
    connect(backend, one, other)
    receives: Out = {"qp": other["qp"], "wr_ids": [1, 2, 3], "sg_list": sges}
    assert do(backend, "post_recv_list", **receives) == {"accepted": 3}
    assert do(backend, "post_send_list", **sends, inline=True) == {"accepted": 1}
    assert [entry["wr_id"] for entry in poll(backend, cq) if entry["wr_id"] > 10] == [11]
    assert do(backend, "post_send_list", **{**sends, "wr_ids": [14, 15], "sg_list": sges[:2]}) == {"accepted": 2}
    assert [entry["wr_id"] for entry in poll(backend, cq) if entry["wr_id"] > 10] == [14, 15]
    assert fails(backend, "post_send_list", **{**sends, "wr_ids": [1]}) == "EINVAL"
    assert fails(backend, "post_recv_list", **{**receives, "wr_ids": [], "sg_list": []}) == "EINVAL"


def test_all_requests_are_signalled_if_asked(backend: RemoteBackend, pd: int, cq: int) -> None:
    own = qp(backend, pd, cq, sq_sig_all=True, max_inline_data=16, max_recv_sge=9)
    assert (own["max_inline_data_actual"], own["max_recv_sge_actual"]) == (31, 9)
    assert own["max_send_sge_actual"] >= 2
    assert do(backend, "query_qp", qp=own["qp"], mask=["CAP"])["sq_sig_all"] is True
    connect(backend, own, own)
    send(backend, own, "SEND", signaled=False)
    assert len(poll(backend, cq)) == 1
    assert fails(backend, "create_qp", pd=pd, send_cq=cq, recv_cq=cq, max_send_wr=2**32, max_recv_wr=1) == "EINVAL"
    assert fails(backend, "create_qp", pd=pd, send_cq=cq, recv_cq=cq, max_send_wr=1, max_recv_wr=1, qp_type="UC") == (
        "EOPNOTSUPP"
    )


def test_a_mask_is_passed_as_it_is(backend: RemoteBackend, pd: int, cq: int) -> None:
    own = qp(backend, pd, cq)
    step: Out = {"qp": own["qp"], "state": "INIT", "access": ["REMOTE_ATOMIC", "MW_BIND"]}
    required = ["STATE", "PKEY_INDEX", "PORT", "ACCESS_FLAGS"]
    for mask in (required[:-1], [*required, "QKEY"], [*required, "UNKNOWN"], [*required, "COLOR"], []):
        assert fails(backend, "modify_qp", **step, mask=mask) == "EINVAL", mask
    do(backend, "modify_qp", **step, mask=required, port_num=200, alt_timeout=9)
    found = do(backend, "query_qp", qp=own["qp"], mask=["PORT", "ACCESS_FLAGS", "ALT_PATH"])
    assert (found["port_num"], found["access"], found["alt_timeout"]) == (200, ["REMOTE_ATOMIC", "MW_BIND"], 9)
    assert found.keys() == {
        *("state", "qp_type", "sq_sig_all", "sq_draining"),
        *("port_num", "access", "alt_timeout", "alt_port_num"),
    }
    step = {"qp": own["qp"], "state": "RTR", "peer": own["qp"]}
    given = {"path_mtu": "MTU_1024", "rq_psn": 0xFFFFFF, "min_rnr_timer": 31, "dest_qp_num": own["qp_num"], "sl": 3}
    assert fails(backend, "modify_qp", **step, min_rnr_timer=256) == "EINVAL"
    assert fails(backend, "modify_qp", **step, path_mtu="MTU_9000") == "EINVAL"
    assert fails(backend, "modify_qp", **step, path_mtu="UNKNOWN") == "EPROTO"
    assert fails(backend, "modify_qp", **step, dgid="00" * 16) == "EPROTO"
    assert fails(backend, "modify_qp", **step, dgid="00") == "EINVAL"
    assert fails(backend, "modify_qp", **step, sgid_index=2) == "EPROTO"
    do(backend, "modify_qp", **step, **given)
    found = do(backend, "query_qp", qp=own["qp"], mask=["PATH_MTU", "RQ_PSN", "MIN_RNR_TIMER", "DEST_QPN", "AV", "CAP"])
    assert {name: found[name] for name in given} == given
    assert found["dgid"] == "00000000000000000000ffff0a000001"
    assert (found["is_global"], found["sgid_index"]) == (True, 1)


def test_a_datagram(backend: RemoteBackend, pd: int, cq: int) -> None:
    one, other = qp(backend, pd, cq, qp_type="UD"), qp(backend, pd, cq, qp_type="UD")
    for own in (one, other):
        for state in ("INIT", "RTR", "RTS"):
            do(backend, "modify_qp", qp=own["qp"], state=state)
    for wrong in ({"port_num": 9}, {"sgid_index": 0}, {"is_global": False}, {"dgid": "00" * 16}):
        assert fails(backend, "create_ah", pd=pd, **wrong) == "EINVAL"
    ah = do(backend, "create_ah", pd=pd, peer=other["qp"], hop_limit=3)["ah"]
    do(backend, "post_recv", qp=other["qp"], wr_id=3, sg_list=[])
    send(backend, one, "SEND", ah=ah, remote_qpn=other["qp_num"], remote_qkey=1)
    send(backend, one, "SEND", remote_qpn=other["qp_num"])
    assert [entry["opcode"] for entry in poll(backend, cq)] == ["SEND", "SEND"]
    send(backend, one, "SEND", ah=ah, remote_qpn=other["qp_num"])
    received, _ = poll(backend, cq)
    assert (received["wc_flags"], received["src_qp"], received["sl"]) == (["GRH"], one["qp_num"], 3)
    do(backend, "destroy_ah", ah=ah)
    assert fails(backend, "destroy_ah", ah=ah) == "EINVAL"


def test_a_shared_receive_queue(backend: RemoteBackend, pd: int, cq: int) -> None:
    assert fails(backend, "create_srq", pd=pd, max_wr=65) == "EINVAL"
    made = do(backend, "create_srq", pd=pd, max_wr=4)
    assert (made["max_wr_actual"], made["max_sge_actual"]) == (7, 2)
    srq = made["srq"]
    do(backend, "modify_srq", srq=srq, mask=["LIMIT"], srq_limit=2)
    assert do(backend, "query_srq", srq=srq) == {"max_wr": 7, "max_sge": 2, "srq_limit": 2}
    assert fails(backend, "modify_srq", srq=srq, mask=["LIMIT"], srq_limit=8) == "EINVAL"
    do(backend, "modify_srq", srq=srq, mask=["MAX_WR"], max_wr=2)
    for number in (1, 2):
        do(backend, "post_srq_recv", srq=srq, wr_id=number, sg_list=[])
    assert fails(backend, "post_srq_recv", srq=srq, wr_id=3, sg_list=[]) == "ENOMEM"
    one, other = qp(backend, pd, cq), qp(backend, pd, cq, srq=srq)
    connect(backend, one, other)
    send(backend, one, "SEND")
    assert [entry["wr_id"] for entry in poll(backend, cq)] == [2, 7]
    do(backend, "settle")
    assert [event.name for event in backend.events()] == ["SRQ_LIMIT_REACHED"]
    event = do(backend, "get_async_event")
    assert (event["event"], event["srq"]) == ("SRQ_LIMIT_REACHED", srq)
    assert fails(backend, "destroy_srq", srq=srq) == "EDEADLK"
    do(backend, "ack_async_event", async_event=event["async_event"])
    do(backend, "destroy_srq", srq=srq)


def test_events_are_told_and_given_and_hold_what_they_are_about(backend: RemoteBackend, pd: int, cq: int) -> None:
    one, other = qp(backend, pd, cq), qp(backend, pd, cq)
    connect(backend, one, other)
    assert do(backend, "get_async_event") == {"n": 0}
    for own in (one, other, one):
        do(backend, "modify_qp", qp=own["qp"], state="SQD")
    event = do(backend, "get_async_event")
    assert (event["n"], event["event"], event["qp"]) == (1, "SQ_DRAINED", one["qp"])
    do(backend, "settle")
    assert [event.data["qp_num"] for event in backend.events()] == [one["qp_num"], other["qp_num"], one["qp_num"]]
    do(backend, "destroy_qp", qp=other["qp"])  # nobody has taken that event
    assert fails(backend, "destroy_qp", qp=one["qp"]) == "EDEADLK"
    do(backend, "ack_async_event", async_event=event["async_event"])
    second = do(backend, "get_async_event")
    assert second["qp"] == one["qp"]
    assert do(backend, "get_async_event") == {"n": 0}
    assert fails(backend, "ack_async_event", async_event=event["async_event"]) == "EINVAL"
    do(backend, "ack_async_event", async_event=second["async_event"])
    do(backend, "destroy_qp", qp=one["qp"])


def test_completion_events(backend: RemoteBackend, pd: int, cq: int) -> None:
    channel = do(backend, "create_comp_channel")["channel"]
    assert fails(backend, "create_cq", cqe=4, channel=channel, comp_vector=1) == "EINVAL"
    own = do(backend, "create_cq", cqe=4, channel=channel)["cq"]
    one, other = qp(backend, pd, cq), qp(backend, pd, cq, recv_cq=own)
    connect(backend, one, other)
    for only, flags, events in ((False, {}, 1), (True, {}, 0), (True, {"solicited": True}, 1)):
        do(backend, "req_notify_cq", cq=own, solicited_only=only)
        do(backend, "post_recv", qp=other["qp"], wr_id=3, sg_list=[])
        send(backend, one, "SEND", **flags)
        expected = {"n": 1, "cq": own} if events else {"n": 0}
        assert do(backend, "get_cq_event", channel=channel) == expected
        assert do(backend, "get_cq_event", channel=channel) == {"n": 0}
    assert fails(backend, "destroy_comp_channel", channel=channel) == "EBUSY"
    do(backend, "destroy_qp", qp=other["qp"])
    assert fails(backend, "destroy_cq", cq=own) == "EDEADLK"
    do(backend, "ack_cq_events", cq=own, nevents=1)
    assert fails(backend, "ack_cq_events", cq=own, nevents=2) == "EINVAL"
    assert fails(backend, "destroy_cq", cq=own) == "EDEADLK"
    do(backend, "ack_cq_events", cq=own, nevents=1)
    do(backend, "destroy_cq", cq=own)
    do(backend, "destroy_comp_channel", channel=channel)
    assert fails(backend, "get_cq_event", channel=channel) == "EINVAL"


def test_a_completion_queue_is_resized(backend: RemoteBackend, cq: int) -> None:
    assert do(backend, "resize_cq", cq=cq, cqe=100) == {"cqe_actual": 101}
    assert fails(backend, "resize_cq", cq=cq, cqe=15) == "ENOSPC"
    assert fails(backend, "resize_cq", cq=cq, cqe=2**31) == "EINVAL"


ELSEWHERE = {
    *("alloc_mr", "map_mr_sg", "update_fast_reg_key"),
    *OVERLAPPED,
    *("alloc_fast_reg_mr", "alloc_fast_reg_page_list", "free_fast_reg_page_list", "set_page_list"),
}
"""Verbs that user space does not have."""


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - ELSEWHERE))
def test_each_verb_of_user_space_is_there(backend: RemoteBackend, verb: str) -> None:
    usual: Out = {key: [] for key in ("flags", "nats", "sges", "sg")} | dict.fromkeys(("handle", "handle?"), 77)
    usual |= {"nat": 1, "bool": False, "text": "RESET", "hex": "00"}
    args = {name: usual[kind] for name, kind in VERBS[verb].params.items() if name not in VERBS[verb].optional}
    assert wrong_arguments(verb, args) is None
    assert fails(backend, verb, **args) != "EOPNOTSUPP" or verb == "post_send"
