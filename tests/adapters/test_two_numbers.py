"""Numbers of two sides never mean two things outside, and each side sees its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbs_adapters.contract import VERBS, AdapterError
from verbs_adapters.rdma_core.agent.names import words
from verbs_adapters.two import numbers, translation
from verbs_adapters.two.numbers import FIRST, SECOND, SIDES, Keys, Numbers
from verbs_adapters.two.translation import Mixed, Translation

SAME_ON_BOTH = frozenset(
    words(
        """
    accepted alt_port_num alt_timeout byte byte_len comp_vector compare_add cqe cqe_actual device_cap_flags dlid
    dlid_path_bits
    en_sqd_async_notify gid_tbl_len hca hop_limit imm_data index length lid max_ah max_cq max_cqe max_dest_rd_atomic
    max_inline_data max_inline_data_actual max_mr max_mr_size max_msg_sz max_mw max_num_sg max_page_list_len
    max_page_list_len_actual max_pd max_pkeys max_qp max_qp_init_rd_atom max_qp_rd_atom max_qp_wr max_rd_atomic
    max_recv_sge max_recv_sge_actual max_recv_wr max_recv_wr_actual max_send_sge max_send_sge_actual max_send_wr
    max_send_wr_actual max_sge max_sge_actual max_sge_rd max_srq max_srq_sge max_srq_wr max_wr max_wr_actual
    min_rnr_timer n nevents offset page_list_len page_shift page_size phys_port_cnt pkey_index pkey_tbl_len port_num
    qkey rate_limit remote_qkey retry_cnt rnr_retry rq_psn sgid_index sl slid sm_lid sq_psn srq_limit swap timeout
    wr_id
    """
    )
)
"""Parameters and outputs of the type `nat` that mean the same on both sides."""

KEY = st.integers(1, 2**32 - 1)


def test_every_number_of_the_contract_is_known() -> None:
    names = {
        name
        for verb in VERBS.values()
        for shape in (verb.params, verb.out)
        for name, kind in shape.items()
        if kind == "nat"
    }

    assert names - (translation.ADDRESSES | translation.KEYS | translation.QP_NUMBERS | SAME_ON_BOTH) == set()


@given(st.lists(st.tuples(st.sampled_from(SIDES), KEY)))
def test_keys_are_told_apart(named: list[tuple[int, int]]) -> None:
    keys = Keys()
    outer = {(side, real): keys.outer(side, real) for side, real in named}

    assert len(set(outer.values())) == len(outer)
    for (side, real), key in outer.items():
        assert keys.real(side, key) == real
        assert key & 0xFF == real & 0xFF
        assert keys.outer(side, real) == key


@given(st.lists(st.tuples(st.sampled_from(SIDES), KEY), min_size=1), KEY)
def test_what_a_side_never_named_is_nothing_there(named: list[tuple[int, int]], made_up: int) -> None:
    keys = Keys()
    outer = {keys.outer(side, real): side for side, real in named}

    for side in SIDES:
        live = {real >> 8 for owner, real in named if owner == side}
        for key in (made_up, *outer):
            belongs = any(known >> 8 == key >> 8 and owner == side for known, owner in outer.items())
            assert (keys.real(side, key) >> 8 in live) == belongs


def test_one_number_keeps_its_value_where_it_can() -> None:
    found = Numbers(24)

    assert found.outer(FIRST, 17) == 17
    assert found.outer(SECOND, 17) == 2**24 - 2
    assert found.outer(SECOND, 18) == 18
    assert (found.real(FIRST, 17), found.real(SECOND, 2**24 - 2), found.real(SECOND, 18)) == (17, 17, 18)
    assert found.real(SECOND, 17) not in {17, 18}
    assert found.real(FIRST, 18) == 18


def test_no_key_is_no_key_on_either_side() -> None:
    keys = Keys()

    assert [keys.outer(side, 5) for side in SIDES] == [5, (2**24 - 2) << 8 | 5]
    assert [(keys.outer(side, 0), keys.real(side, 0)) for side in SIDES] == [(0, 0), (0, 0)]
    assert keys.real(FIRST, 2**32 + 5) == 2**32 + 5  # wider than a key: as it is, so that the agent refuses it


@given(st.integers(1 << 16, (1 << 57) - 1), st.sampled_from(SIDES))
def test_addresses_come_back(real: int, side: int) -> None:
    outer = numbers.outer_address(side, real)

    assert numbers.real_address(side, outer) == real
    assert numbers.real_address(1 - side, outer) >= 1 << 62, "the other side has no memory there"
    assert numbers.outer_address(side, real + 4096) == outer + 4096


def test_addresses_that_are_no_memory_stay_what_they_are() -> None:
    for address in (0, 8, 4096, 2**64 - 1024, 2**64 - 1):
        assert [numbers.real_address(side, address) for side in SIDES] == [address, address]
    with pytest.raises(AdapterError, match="bit 62"):
        numbers.outer_address(FIRST, 1 << 62)


def test_a_call_is_for_the_side_of_its_objects() -> None:
    found = Translation()
    one, other = (numbers.outer_handle(side, 3) for side in SIDES)

    assert found.side("alloc_pd", {}) == FIRST
    assert found.side("alloc_pd", {"hca": 2}) == SECOND
    assert found.side("destroy_qp", {"qp": other}) == SECOND
    assert found.side("modify_qp", {"qp": one, "state": "RTR", "peer": other}) == FIRST
    queues = {"send_cq": one, "recv_cq": one}
    with pytest.raises(Mixed):
        found.side("create_qp", {"pd": other, **queues})
    with pytest.raises(Mixed):
        found.side("alloc_pd", {"hca": 3})
    with pytest.raises(Mixed):
        found.side("create_qp", {"pd": one, "send_cq": one, "recv_cq": other})


def test_a_work_request_names_what_is_here_and_what_is_there() -> None:
    found = Translation()
    here = found.outward("reg_mr", {"mr": 1, "lkey": 0x1100, "rkey": 0x1100}, FIRST, FIRST)
    there = found.outward("reg_mr", {"mr": 1, "lkey": 0x1100, "rkey": 0x2200}, SECOND, SECOND)
    buffer = found.outward("alloc_buffer", {"buf": 1, "addr": 0x10000}, SECOND, SECOND)
    assert here["lkey"] != there["lkey"]
    request = {
        "qp": numbers.outer_handle(FIRST, 7),
        "opcode": "RDMA_WRITE",
        "sg_list": [{"addr": 0x10000, "length": 64, "lkey": here["lkey"]}],
        "remote_addr": buffer["addr"] + 5,
        "rkey": there["rkey"] + 1,
    }

    assert found.inward("post_send", request, FIRST, SECOND) == {
        "qp": 7,
        "opcode": "RDMA_WRITE",
        "sg_list": [{"addr": 0x10000, "length": 64, "lkey": 0x1100}],
        "remote_addr": 0x10005,
        "rkey": 0x2201,
    }
    assert found.inward("post_send", {"opcode": "LOCAL_INV", "invalidate_rkey": 0x1100}, FIRST, SECOND) == {
        "opcode": "LOCAL_INV",
        "invalidate_rkey": 0x1100,
    }


def test_what_names_the_peer_is_of_the_peers_side() -> None:
    found = Translation()
    one, other = (found.outward("create_qp", {"qp": 5, "qp_num": 17}, side, side) for side in SIDES)
    assert one["qp_num"] != other["qp_num"]

    seen = found.outward("query_qp", {"state": "RTS", "dest_qp_num": 17}, FIRST, SECOND)
    assert seen["dest_qp_num"] == other["qp_num"]
    asked = {"qp": one["qp"], "state": "RTR", "dest_qp_num": other["qp_num"]}
    assert found.inward("modify_qp", asked, FIRST, SECOND) == {"qp": 5, "state": "RTR", "dest_qp_num": 17}
    assert found.outward("query_qp", {"dest_qp_num": 0}, SECOND, SECOND) == {"dest_qp_num": 0}


def test_no_object_is_no_object_of_either_side() -> None:
    found = Translation()

    assert found.outward("get_async_event", {"n": 0, "async_event": 0}, SECOND, SECOND) == {"n": 0, "async_event": 0}
    assert found.side("modify_qp", {"qp": numbers.outer_handle(SECOND, 1), "peer": 0}) == SECOND
