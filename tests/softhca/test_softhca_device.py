"""The contract, options, determinism, pace, and what softhca may import."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from softhca_rig import PAGE, Rig

import verbs_adapters.softhca
from verbs_adapters.contract import VERBS, AdapterError, Backend, Trouble, UsageError
from verbs_adapters.softhca import SoftHca
from verbs_adapters.softhca.faults import FAULTS
from verbs_adapters.softhca.options import OPTIONS

Act = Callable[[Rig, random.Random, tuple[int, int], int], None]


def act_register(rig: Rig, draw: random.Random, ends: tuple[int, int], wr_id: int) -> None:
    rig.map(rig.mr, draw.randrange(0, 15 * PAGE), draw.randrange(1, PAGE))
    rig.reg(ends[0], rig.mr, rig.key, wr_id=wr_id)


def act_invalidate(rig: Rig, draw: random.Random, ends: tuple[int, int], wr_id: int) -> None:
    rig.inv(ends[0], rig.key, wr_id, signaled=draw.random() < 0.7, fence=draw.random() < 0.2)


def act_write(rig: Rig, draw: random.Random, ends: tuple[int, int], wr_id: int) -> None:
    offset, length = draw.randrange(0, 15 * PAGE), draw.randrange(64)
    rig.write(rig.key, offset, length, wr_id, qp=ends[0], signaled=draw.random() < 0.7)


def act_read(rig: Rig, draw: random.Random, ends: tuple[int, int], wr_id: int) -> None:
    sink = rig.sge(0, draw.randrange(64))
    offset = draw.randrange(0, 15 * PAGE)
    rig.read(rig.key, offset, sink, wr_id, qp=ends[0], signaled=draw.random() < 0.7)


def act_receive(rig: Rig, draw: random.Random, ends: tuple[int, int], wr_id: int) -> None:
    rig.recv(ends[1], wr_id, rig.sge(draw.randrange(0, 15 * PAGE), 64))


def act_send(rig: Rig, draw: random.Random, ends: tuple[int, int], wr_id: int) -> None:
    sge = rig.sge(0, draw.randrange(64))
    rig.send(ends[0], wr_id, sge, signaled=draw.random() < 0.7, fence=draw.random() < 0.2)


def act_fail(rig: Rig, draw: random.Random, ends: tuple[int, int], _wr_id: int) -> None:
    if draw.random() < 0.2:
        rig.move(ends[0], "ERR")


def act_reconnect(rig: Rig, _draw: random.Random, ends: tuple[int, int], _wr_id: int) -> None:
    if rig.state(ends[0]) == "ERR":
        for qp in ends:
            rig.move(qp, "RESET")
        rig.connect(*ends)


def act_poll(rig: Rig, draw: random.Random, _ends: tuple[int, int], _wr_id: int) -> None:
    for cq in (rig.scq, rig.rcq):
        if draw.random() < 0.3:
            rig.poll_all(cq)
        else:
            rig.do("poll_cq", cq=cq)


ACTS: tuple[Act, ...] = (
    act_register,
    act_invalidate,
    act_write,
    act_read,
    act_receive,
    act_receive,
    act_send,
    act_send,
    act_fail,
    act_reconnect,
    act_poll,
    act_poll,
)


def program(rig: Rig, seed: int, length: int = 120) -> None:
    """A random program of mostly legal calls, the same for every device of the same options."""
    draw = random.Random(seed)
    rig.mr, rig.key = rig.region()
    for wr_id in range(length):
        ends = draw.choice(((rig.a, rig.b), (rig.b, rig.a)))
        draw.choice(ACTS)(rig, draw, ends, wr_id)
    drain(rig)


def drain(rig: Rig) -> None:
    rig.do("settle")
    for cq in (rig.scq, rig.rcq):
        rig.poll_all(cq)


def check_reports(rig: Rig) -> None:
    """Nothing is reported twice, out of order, or without need; nothing that must be is missing."""
    by_num = {num: qp for qp, num in rig.qpn.items()}
    reported: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for cq, out in rig.polled:
        verb = "post_send" if cq == rig.scq else "post_recv"
        reported.setdefault((by_num[out["qp_num"]], verb), []).append((out["wr_id"], out["status"]))
    for queue, entries in reported.items():
        posted = {wr_id: signaled for qp, verb, wr_id, signaled in rig.accepted if (qp, verb) == queue}
        ids = [wr_id for wr_id, _ in entries]
        assert ids == sorted(set(ids))
        assert all(posted[wr_id] or status != "SUCCESS" for wr_id, status in entries)


def test_same_seed_same_trace() -> None:
    traces = []
    for _ in range(2):
        rig = Rig(7)
        program(rig, 3)
        traces.append("\n".join(rig.trace))
    assert traces[0] == traces[1]


def test_reset_forgets() -> None:
    rig = Rig(7)
    program(rig, 3)
    fresh = Rig(7)
    rig.hca.reset(7)
    calls: list[tuple[str, dict[str, Any]]] = [("alloc_pd", {}), ("alloc_buffer", {"length": 5})]
    fresh.hca.reset(7)
    assert [rig.hca.call(*call) for call in calls] == [fresh.hca.call(*call) for call in calls]


def test_seeds_differ_in_schedule() -> None:
    """The same calls; what is visible when differs."""
    seen = set()
    for seed in range(20):
        rig = Rig(seed)
        for wr_id in range(6):
            rig.write(0, 0, 0, wr_id)
        seen.add(tuple(rig.do("poll_cq", cq=rig.scq)["n"] for _ in range(8)))
    assert len(seen) > 5


def test_no_order_between_queue_pairs() -> None:
    orders = set()
    for seed in range(20):
        rig = Rig(seed, pace="lazy")
        rig.write(0, 0, 0, 1)
        rig.write(0, 0, 0, 2, qp=rig.b)
        orders.add(tuple(wr_id for wr_id, _ in rig.sent()))
    assert orders == {(1, 2), (2, 1)}


@pytest.mark.parametrize("pace", ["lazy", "random", "eager"])
def test_polling_alone_gets_everything_done(pace: str) -> None:
    rig = Rig(pace=pace)
    for wr_id in range(4):
        rig.recv(rig.b, wr_id, rig.sge(PAGE, 8))
        rig.send(rig.a, wr_id, rig.sge(0, 8))
    wanted = {rig.scq: 4, rig.rcq: 4}
    for _ in range(200):
        for cq in wanted:
            wanted[cq] -= rig.do("poll_cq", cq=cq)["n"]
    assert set(wanted.values()) == {0}


def test_lazy_does_nothing_by_itself() -> None:
    rig = Rig(pace="lazy")
    rig.put(0, b"data")
    rig.recv(rig.b, 1, rig.sge(PAGE, 4))
    rig.send(rig.a, 1, rig.sge(0, 4))
    for _ in range(50):
        assert rig.get(PAGE, 4) == bytes(4)


def test_eager_does_everything_at_once() -> None:
    rig = Rig(pace="eager")
    rig.put(0, b"data")
    rig.recv(rig.b, 1, rig.sge(PAGE, 4))
    rig.send(rig.a, 1, rig.sge(0, 4))
    assert rig.get(PAGE, 4) == b"data"


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    """Settling ends, each signalled success and each failure is reported once, and in order."""
    choices = random.Random(seed)
    options: dict[str, Any] = {
        name: choices.choice(option.known)
        for name, option in OPTIONS.items()
        if option.known and name not in ("api", "purge_cqes")
    }
    rig = Rig(seed, depth=200, cqe=400, **options)
    program(rig, seed)
    for cq in (rig.scq, rig.rcq):
        assert rig.poll_all(cq) == []
    for qp in (rig.a, rig.b):
        rig.move(qp, "ERR")
    drain(rig)
    check_reports(rig)
    for left in rig.hca._objects.qps.values():  # nothing is left anywhere
        queues = (left.pending, left.started, left.receives, left.received, left.lanes.requests)
        assert not any(queues)
        assert (left.sq_used, left.rq_used) == (left.silent, 0)


def test_it_is_a_backend() -> None:
    assert isinstance(SoftHca({}), Backend)
    hello = SoftHca({"api": "linux-kernel-2008", "transport": "iwarp"}).hello()
    assert (hello.api, hello.transport) == (("linux-kernel-2008",), ("iwarp",))
    assert "FAST_REG_PAGE_LIST" in hello.capabilities
    assert "MEM_MGT_EXTENSIONS" not in hello.capabilities


def test_the_other_interface_is_not_supported() -> None:
    rig = Rig()
    assert rig.result("alloc_fast_reg_mr", pd=rig.pd, max_page_list_len=1) == "EOPNOTSUPP"
    rig = Rig(api="linux-kernel-2008")
    assert rig.result("alloc_mr", pd=rig.pd, max_num_sg=1) == "EOPNOTSUPP"
    assert rig.post(rig.a, "REG_MR", mr=1, key=1, access=[]) == "EINVAL"


@pytest.mark.parametrize(
    ("verb", "args", "says"),
    [
        ("resize_cq", {}, "resize_cq"),
        ("create_cq", {}, "without cqe"),
        ("create_cq", {"cqe": "7"}, "not of type nat"),
        ("create_cq", {"cqe": True}, "not of type nat"),
        ("create_cq", {"cqe": 1 << 64}, "not of type nat"),
        ("create_cq", {"cqe": 7, "flags": 1}, "'flags'"),
        ("write_buffer", {"buf": 1, "offset": 0, "data": "0G"}, "not of type hex"),
        ("map_mr_sg", {"mr": 1, "sg": [{"addr": 1}], "offset": 0, "page_size": 1}, "not of type sg"),
        ("modify_qp", {"qp": 1, "state": "INIT", "access": ["A", "A"]}, "not of type flags"),
        (
            "post_send",
            {"qp": 1, "wr_id": 1, "opcode": "SEND", "signaled": True, "fence": False},
            "without sg_list",
        ),
    ],
)
def test_misuse(verb: str, args: dict[str, Any], says: str) -> None:
    with pytest.raises(AdapterError, match=says):
        SoftHca({}).call(verb, args)


def test_unused_parameters_are_misuse() -> None:
    with pytest.raises(AdapterError, match="rkey, which SEND does not use"):
        Rig().send(1, 1, rkey=5)


def test_what_a_driver_would_refuse() -> None:
    rig = Rig()
    assert rig.post(rig.a, "ATOMIC") == "EINVAL"
    assert rig.send(rig.a, 1, *[rig.sge(0, 1)] * 3) == "EINVAL"
    assert rig.send(rig.a, 1, {"addr": 0, "length": 1, "lkey": 1 << 32}) == "EINVAL"
    assert rig.result("modify_qp", qp=rig.a, state="RTS") == "0"
    rig.access = ("MW_BIND",)
    rig.move(rig.a, "RESET")
    assert rig.move(rig.a, "INIT") == "EINVAL"
    assert rig.state(rig.a) == "RESET"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"speed": "1"}, "no option 'speed'. Known: active_mtu, also, api"),
        ({"pace": "laz"}, r"no value 'laz'\. Known: random, lazy, eager; did you mean 'lazy'\?"),
        ({"max_cqe": "-1"}, "natural number"),
        ({"api": "winverbs", "personality": "linux-user"}, "they are one option"),
        ({"fault": "none"}, "no fault 'none'.* Known: "),
        ({"without": "XRCC"}, "no feature 'XRCC'. Known: .*; did you mean 'XRC'"),
    ],
)
def test_bad_options(options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        SoftHca(options)


def test_the_api_has_two_names() -> None:
    assert SoftHca({"personality": "winverbs"}).hello().api == ("winverbs",)
    assert SoftHca({"personality": "winverbs", "api": "winverbs"}).hello().api == ("winverbs",)


def test_crash_lasts_until_reset() -> None:
    rig = Rig(fault="receive-into-region-crashes")
    _, key = rig.registered(PAGE, 64)
    rig.recv(rig.b, 1, rig.sge(PAGE, 8, key))
    rig.send(rig.a, 1, rig.sge(0, 8))
    for _ in range(2):
        trouble = rig.hca.call("settle", {})
        assert isinstance(trouble, Trouble)
        assert (trouble.kind, trouble.whose) == ("crash", "backend")
    rig.hca.reset(0)
    assert not isinstance(rig.hca.call("settle", {}), Trouble)


def test_closed() -> None:
    hca = SoftHca({})
    hca.close()
    with pytest.raises(AdapterError, match="after close"):
        hca.call("settle", {})


def test_every_verb_is_there() -> None:
    for verb in VERBS:
        with pytest.raises(AdapterError, match=f"^{verb} was called with"):
            SoftHca({}).call(verb, {"unknown": 1})


def test_a_device_without_a_feature() -> None:
    """It does not declare it, and has nothing that it brings."""
    rig = Rig(without="MEM_MGT_EXTENSIONS")
    assert "MEM_MGT_EXTENSIONS" not in rig.hca.hello().capabilities
    assert rig.inv(rig.a, 1) == "EINVAL"
    assert rig.result("alloc_mr", pd=rig.pd, max_num_sg=1) == "EOPNOTSUPP"
    assert rig.send(rig.a, 1) == "0"


def test_what_it_lacks_is_not_supported() -> None:
    rig = Rig(without="QP_ATTRIBUTES,UD")
    assert rig.result("alloc_mw", pd=rig.pd, type="TYPE_1") == "EOPNOTSUPP"
    assert rig.result("create_ah", pd=rig.pd) == "EOPNOTSUPP"
    assert rig.result("get_async_event") == "EOPNOTSUPP"
    assert rig.result("create_cq", cqe=4, channel=1) == "EOPNOTSUPP"
    assert rig.result("query_qp", qp=rig.a, mask=["CAP"]) == "EOPNOTSUPP"
    assert rig.state(rig.a) == "RTS"


def test_buffers() -> None:
    rig = Rig()
    one = rig.do("alloc_buffer", length=70000)
    two = rig.do("alloc_buffer", length=1)
    assert one["addr"] % 65536 == two["addr"] % 65536 == 0
    assert two["addr"] >= one["addr"] + 70000 + PAGE
    assert rig.result("read_buffer", buf=two["buf"], offset=1, length=1) == "EINVAL"
    rig.do("free_buffer", buf=one["buf"])
    assert rig.result("read_buffer", buf=one["buf"], offset=0, length=1) == "EINVAL"
    rig.send(rig.a, 1, {"addr": one["addr"], "length": 1, "lkey": rig.dma})
    assert rig.sent() == [(1, "LOC_PROT_ERR")]


def test_it_imports_only_the_contract_of_ours() -> None:
    ours = ("verbs_", "spec", "reference", "conformance", "reports")
    for path in Path(verbs_adapters.softhca.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                own = name.startswith(("verbs_adapters.softhca", "verbs_adapters.contract"))
                assert own or not name.startswith(ours), (path.name, name)


def test_many_objects_do_not_slow_the_engine() -> None:
    """The engine looks at queue pairs with work only: idle ones never enter its set."""
    rig = Rig()
    for _ in range(300):
        rig.new_qp(rig.pd)
    rig.do("settle")
    rig.write(0, 0, 0)
    assert len(rig.hca._engine._active) <= 2


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_broken_device_still_answers(fault: str) -> None:
    """A fault gives wrong answers, never an exception of ours and never an endless settle."""
    for seed in range(3):
        program(Rig(seed, depth=8, cqe=20, fault=fault), seed)
