"""What judging costs: rule evaluations and checked calls a second, with few and with many live objects.

The backend's own time is left out.  Run it as a script; it prints one line a figure.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

from verbs_adapters.contract import Answer, Hello, Trouble, Value
from verbs_adapters.softhca import SoftHca
from verbs_conformance.engine import Engine
from verbs_conformance.session import Session
from verbs_conformance.step import Step
from verbs_reference.model import Model
from verbs_spec.loader import load
from verbs_spec.profiles import select


class Timed:
    """A backend whose own time can be taken off."""

    def __init__(self, seed: int) -> None:
        self.backend = SoftHca({})
        self.backend.reset(seed)
        self.spent = 0.0

    def hello(self) -> Hello:
        """What the backend says of itself."""
        return self.backend.hello()

    def reset(self, seed: int) -> Trouble | None:
        """A fresh device."""
        return self.backend.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """A call, with its time noted."""
        start = time.perf_counter()
        try:
            return self.backend.call(verb, args)
        finally:
            self.spent += time.perf_counter() - start

    def close(self) -> None:
        """Nothing to close."""


def setup() -> Iterator[Step]:
    """Two connected queue pairs, each with a registered region."""
    yield Step("open_device", {}, {"#0": "hca0"})
    yield Step("alloc_pd", {"hca": "hca0"}, {"#0": "pd0"})
    for i in (0, 1):
        yield Step("create_cq", {"hca": "hca0", "cqe": "64"}, {"#0": f"cq{i}"})
        args = {
            "pd": "pd0",
            "send_cq": f"cq{i}",
            "recv_cq": f"cq{i}",
            "max_send_wr": "16",
            "max_recv_wr": "16",
        }
        yield Step("create_qp", args, {"#0": f"qp{i}"})
    for state in ("INIT", "RTR", "RTS"):
        for i in (0, 1):
            more = {"peer": f"qp{1 - i}", "access": "{REMOTE_WRITE, REMOTE_READ}"}
            yield Step("modify_qp", {"qp": f"qp{i}", "state": state, **more})
    for i in (0, 1):
        yield Step("alloc_buffer", {"length": "16384"}, {"#0": f"buf{i}"})
        yield Step("alloc_mr", {"pd": "pd0", "max_num_sg": "4"}, {"#0": f"mr{i}"})
        sg = {"sg": f"[sg(addr=buf{i}.addr, length=8192)]", "offset": "0", "page_size": "4096"}
        yield Step("map_mr_sg", {"mr": f"mr{i}", **sg})
        rights = {"key": f"tag(mr{i}.first, 1)", "access": "{LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ}"}
        yield send(i, "REG_MR", "1", mr=f"mr{i}", **rights)
        yield Step("settle", {})
        yield Step("drain", {"cq": f"cq{i}"})


def send(qp: int, opcode: str, wr_id: str, **more: str) -> Step:
    """A signalled work request."""
    return Step("post_send", {"qp": f"qp{qp}", "opcode": opcode, "wr_id": wr_id, "signaled": "true", **more})


def transfer(rng: random.Random, qp: int, slot: int) -> list[Step]:
    """A write, a read, or a receive and a message, each with places of its own."""
    kind = rng.choice(["RDMA_WRITE", "RDMA_READ", "SEND"])
    place = 8192 + slot * 64 + (2048 if kind == "RDMA_READ" else 0)
    local = {"sg_list": f"[sge(addr=buf{qp}.addr + {place}, length=64, lkey=pd0.local_dma_lkey)]"}
    if kind != "SEND":
        remote = {"remote_addr": f"mr{1 - qp}.map_iova + {slot * 64}", "rkey": f"tag(mr{1 - qp}.first, 1)"}
        return [send(qp, kind, str(slot), **local, **remote)]
    sink = f"[sge(addr=buf{1 - qp}.addr + {12288 + slot * 64}, length=64, lkey=pd0.local_dma_lkey)]"
    return [
        Step("post_recv", {"qp": f"qp{1 - qp}", "wr_id": str(slot), "sg_list": sink}),
        send(qp, kind, str(slot), **local),
    ]


def directed(rng: random.Random, length: int) -> Iterator[Step]:
    """One thing at a time: a transfer, silence, and its completions."""
    for i in range(length):
        yield from transfer(rng, i % 2, i % 32)
        yield Step("settle", {})
        yield Step("drain", {"cq": "cq0"})
        yield Step("drain", {"cq": "cq1"})


def mixed(rng: random.Random, length: int) -> Iterator[Step]:
    """Transfers that overlap, polls, and calls between them."""
    for i in range(length):
        qp, draw = rng.randrange(2), rng.random()
        if draw < 0.15:
            yield from transfer(rng, qp, i % 32)
        elif draw < 0.25:
            yield Step("query_qp", {"qp": f"qp{qp}"})
        elif draw < 0.35:
            yield Step("update_fast_reg_key", {"mr": f"mr{qp}", "byte": "2"})
        elif draw < 0.45:
            yield Step("settle", {})
            yield Step("drain", {"cq": "cq0"})
            yield Step("drain", {"cq": "cq1"})
        else:
            yield Step("poll_cq", {"cq": f"cq{qp}"})


def costs(engine: Engine, program: Iterator[Step], extra: int = 0) -> tuple[list[float], list[bool]]:
    """The cost of each checked call, and whether something was in flight; with some regions more."""
    backend = Timed(1)
    session = Session(engine, backend, backend.hello())
    for step in setup():
        session.run(step)
    for i in range(extra):
        session.run(Step("alloc_mr", {"pd": "pd0", "max_num_sg": "4"}, {"#0": f"more{i}"}))
    gc.collect()
    gc.freeze()
    made, flying = [], []
    for step in program:
        backend.spent, calls = 0.0, session.calls
        busy = session.belief.unobserved()
        start = time.perf_counter()
        for _, outcome in session.run(step):
            assert outcome.problem is None, (str(step), outcome)
        spent = time.perf_counter() - start - backend.spent
        count = max(session.calls - calls, 1)
        made += [spent / count] * count
        flying += [busy] * count
    return made, flying


def chance(seed: int) -> random.Random:
    """Numbers that repeat."""
    return random.Random(seed)  # noqa: S311 - nothing secret


def evaluations(model: Model) -> float:
    """How many guards of calls are evaluated in a second."""
    store = model.store()
    guards = [
        (c.guard, tuple(model.voc.default(t) for t in code.params.values()))
        for code in model.calls.values()
        for c in code.causes
        if c.guard is not None and "choice" not in str(c.rule.cause)
    ]
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < 0.5:
        for guard, args in guards:
            guard(store, *args)
        count += len(guards)
    return count / (time.perf_counter() - start)


def show(name: str, made: tuple[list[float], list[bool]]) -> None:
    """One line."""
    spent, flying = made
    p99: Any = statistics.quantiles(spent, n=100)[98]
    print(
        f"{name}: {1 / statistics.mean(spent):.0f} checked calls/s, "
        f"median {statistics.median(spent) * 1e6:.0f} us, mean {statistics.mean(spent) * 1e6:.0f} us, "
        f"p99 {p99 * 1e6:.0f} us, in flight {sum(flying) / len(flying):.0%}"
    )


def main() -> None:
    """Print the figures."""
    model = Model(select(load(), "linux-kernel", "roce"))
    engine = Engine(model)
    print(f"guards: {evaluations(model):.0f} evaluations/s")
    costs(engine, mixed(chance(0), 200))
    show("directed program", costs(engine, directed(chance(1), 100)))
    show("random program", costs(engine, mixed(chance(1), 1000)))
    for extra in (0, 10_000):
        show(f"{10 + extra} live objects", costs(engine, mixed(chance(2), 1000), extra))


if __name__ == "__main__":
    main()
