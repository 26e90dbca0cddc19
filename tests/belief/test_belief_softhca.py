"""Logs of another implementation: the search and the exact checker accept what softhca does."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from oracle import Exact, Oracle, TooLarge
from programs import SETTLE, model

from verbs_adapters.softhca import SoftHca
from verbs_conformance.engine import Engine
from verbs_conformance.session import Session
from verbs_conformance.step import Step
from verbs_reference.belief import Action, Inconclusive
from verbs_reference.model import Model

STATES = 4_000
LOGS = 5


class Recorded(Session):
    """A session that keeps what the belief was told."""

    def __init__(self, machine: Model, seed: int) -> None:
        backend = SoftHca({})
        backend.reset(seed)
        super().__init__(Engine(machine), backend, backend.hello())
        self.actions: list[Action] = []
        observe, settle = self.belief.observe, self.belief.settle

        def told(action: Action) -> object:
            self.actions.append(action)
            return observe(action)

        def silent() -> object:
            self.actions.append(SETTLE)
            return settle()

        self.belief.observe = told  # type: ignore[assignment, method-assign]
        self.belief.settle = silent  # type: ignore[assignment, method-assign]


def steps(rng: random.Random, shared: bool) -> Iterator[Step]:
    """Two connected queue pairs whose work requests race for two regions."""
    yield Step("open_device", {}, {"#0": "hca0"})
    yield Step("alloc_pd", {"hca": "hca0"}, {"#0": "pd0"})
    for i in (0, 1):
        yield Step("create_cq", {"hca": "hca0", "cqe": "32"}, {"#0": f"cq{i}"})
        cq = "cq0" if shared else f"cq{i}"
        args = {"pd": "pd0", "send_cq": cq, "recv_cq": cq, "max_send_wr": "8", "max_recv_wr": "8"}
        yield Step("create_qp", args, {"#0": f"qp{i}"})
    for state in ("INIT", "RTR", "RTS"):
        for i in (0, 1):
            peer = {"peer": f"qp{1 - i}", "access": "{REMOTE_WRITE, REMOTE_READ}"}
            yield Step("modify_qp", {"qp": f"qp{i}", "state": state, **peer})
    for i in (0, 1):
        yield Step("alloc_buffer", {"length": "4096"}, {"#0": f"buf{i}"})
        yield Step("alloc_mr", {"pd": "pd0", "max_num_sg": "2"}, {"#0": f"mr{i}"})
        sg = {"sg": f"[sg(addr=buf{i}.addr, length=256)]", "offset": "0", "page_size": "4096"}
        yield Step("map_mr_sg", {"mr": f"mr{i}", **sg})
    posts = [_post(rng, i, 10 * i + k) for i in (0, 1) for k in range(4)]
    posts += [_receive(rng.randrange(2), k) for k in (30, 31)]
    rng.shuffle(posts)
    for post in posts:
        yield post
        while rng.random() < 0.6:
            yield Step("poll_cq", {"cq": f"cq{rng.randrange(2)}"})
    yield Step("settle", {})
    yield Step("drain", {"cq": "cq0"})
    yield Step("drain", {"cq": "cq1"})


def _post(rng: random.Random, qp: int, wr_id: int) -> Step:
    mr = rng.randrange(2)
    key = f"tag(mr{mr}.first, {rng.choice([1, 1, 2])})"
    opcode = rng.choice(["REG_MR", "REG_MR", "LOCAL_INV", "RDMA_WRITE", "SEND_WITH_INV", "SEND"])
    sg_list = f"[sge(addr=buf{qp}.addr + 1024, length=16, lkey=pd0.local_dma_lkey)]"
    more = {
        "REG_MR": {"mr": f"mr{mr}", "key": key, "access": "{LOCAL_WRITE, REMOTE_WRITE}"},
        "LOCAL_INV": {"invalidate_rkey": key},
        "RDMA_WRITE": {"sg_list": sg_list, "remote_addr": f"mr{mr}.map_iova + 8", "rkey": key},
        "SEND_WITH_INV": {"sg_list": sg_list, "invalidate_rkey": key},
        "SEND": {"sg_list": sg_list},
    }[opcode]
    signaled = rng.choice(["true", "true", "false"])
    return Step("post_send", {"qp": f"qp{qp}", "opcode": opcode, "wr_id": str(wr_id), "signaled": signaled, **more})


def _receive(qp: int, wr_id: int) -> Step:
    sg_list = f"[sge(addr=buf{qp}.addr + 2048, length=64, lkey=pd0.local_dma_lkey)]"
    return Step("post_recv", {"qp": f"qp{qp}", "wr_id": str(wr_id), "sg_list": sg_list})


@pytest.mark.parametrize("seed", range(3))
def test_what_softhca_does_is_accepted_by_both(seed: int) -> None:
    done = 0
    for attempt in range(10 * LOGS):
        rng = random.Random(f"softhca/{seed}/{attempt}")
        session = Recorded(model(), rng.randrange(1 << 30))
        if _is_judged(session, steps(rng, shared=rng.random() < 0.4)):
            done += _oracle_agrees(session.actions)
        if done == LOGS:
            return
    pytest.fail("the oracle got too large too often")


def _is_judged(session: Session, program: Iterator[Step]) -> bool:
    """Run a program; False if the search met a limit."""
    for step in program:
        for _, outcome in session.run(step):
            if isinstance(outcome.problem, Inconclusive):
                return False
            assert outcome.problem is None, (str(step), outcome)
    return True


def _oracle_agrees(log: list[Action]) -> bool:
    """Whether the exact checker accepts the log; False if it got too large."""
    exact = Exact(Oracle(model(), STATES))
    try:
        for action in log:
            assert exact.settle() if action is SETTLE else exact.observe(action)
    except TooLarge:
        return False
    return True
