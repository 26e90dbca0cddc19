"""The belief's search and the exact checker say the same of honest and of altered logs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from oracle import Exact, Oracle, TooLarge
from programs import SETTLE, Device, altered, analysis, honest, model, numbered, prepare, program

from verbs_reference.belief import Action, Belief, Inconclusive, Refused

CHUNKS = 10
PROGRAMS = 10
LOGS = 10
"""So many programs a chunk, and honest logs a program; as many altered ones: 1,000 of each."""
STATES = 2_500
"""An oracle that needs more states is given up; another program is taken instead."""
OPTIONAL = {"cq/purge-stale", "sq/held", "sq/source-gone"}
"""Steps that need never happen: the search does not take them unless something depends on them."""


@dataclass
class Tally:
    """What was compared."""

    honest: int = 0
    altered: int = 0
    refused: int = 0
    largest: int = 0
    kinds: dict[str, int] = field(default_factory=dict)


def stirs(belief: Belief) -> bool:
    """Whether a step that need never happen has left something to do after the silence: it is not taken yet."""

    def due() -> bool:
        return any(not belief.search.is_optional(s) for s in belief.search.enabled())

    return any(belief._in(b, due) for b in belief.branches if not b.debts)


def judge(log: list[Action], exact: Exact) -> tuple[Belief, int | None]:
    """Both checkers over one log, in step: the belief, and where the log was refused."""
    belief = Belief(model(), analysis(), suspects=False)
    for i, action in enumerate(log):
        accepted = exact.settle() if action is SETTLE else exact.observe(action)
        found = belief.settle() if action is SETTLE else belief.observe(action)
        assert not isinstance(found, Inconclusive), found
        assert (found is None) == accepted, (i, action, found)
        if found is not None:
            assert isinstance(found, Refused)
            return belief, i
    if log[-1].call != "poll_cq" or log[-1].outputs[0]:
        return belief, None  # before silence the search has not taken what nothing depends on yet
    assert exact.settle()  # as the search does, where something need not but may happen yet
    assert set(belief.certain()) == exact.certain()
    seen, exactly = belief.possible() - OPTIONAL, exact.possible() - OPTIONAL
    assert seen <= exactly
    assert stirs(belief) or seen == exactly
    return belief, None


def compare(rng: random.Random, tally: Tally) -> bool:
    """One program's logs; False if the oracle got too large."""
    parts = program(rng)
    shared = rng.random() < 0.4
    oracle = Oracle(model(), STATES)
    try:
        for _ in range(LOGS):
            log = honest(parts, rng, shared=shared)
            belief, refused = judge(log, Exact(oracle))
            assert refused is None, "an honest log is refused"
            tally.honest += 1
            tally.largest = max(tally.largest, belief.largest)
            changed = next((c for c in (altered(log, rng) for _ in range(20)) if c is not None), None)
            if changed is not None:
                belief, refused = judge(changed[1], Exact(oracle))
                tally.altered += 1
                tally.refused += refused is not None
                tally.kinds[changed[0]] = tally.kinds.get(changed[0], 0) + 1
                tally.largest = max(tally.largest, belief.largest)
    except TooLarge:
        return False
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_search_agrees_with_the_oracle(chunk: int) -> None:
    tally = Tally()
    done = 0
    for _, rng in numbered(chunk, 20 * PROGRAMS):
        done += compare(rng, tally)
        if done == PROGRAMS:
            break
    print(tally)
    assert done == PROGRAMS
    assert tally.largest <= 64


def test_schedules_that_cannot_be_told_apart_are_accepted_and_an_impossible_one_is_not() -> None:
    """A write races with the invalidation of its key by the other queue pair."""

    def begin() -> Device:
        device = Device(model(), random.Random(1))
        prepare(device, shared=False)
        n = device.names
        rights = frozenset({"LOCAL_WRITE", "REMOTE_WRITE"})
        post = {"qp": n["qp1"], "signaled": True, "key": n["key0"] + 1, "access": rights}
        device.call("post_send", opcode="REG_MR", wr_id=1, mr=n["mr0"], **post)
        device.settle()
        device.call("poll_cq", cq=n["cq1"])
        write = {"sg_list": ((n["addr0"], 8, 0),), "remote_addr": n["addr1"], "rkey": n["key0"] + 1}
        device.call("post_send", qp=n["qp0"], wr_id=2, opcode="RDMA_WRITE", signaled=True, **write)
        device.call(
            "post_send",
            qp=n["qp1"],
            wr_id=3,
            opcode="LOCAL_INV",
            signaled=True,
            invalidate_rkey=n["key0"] + 1,
        )
        return device

    def poll(device: Device, told: tuple[str, int, str, str, str, int]) -> Action:
        cq, wr_id, status, opcode, qp, length = told
        n = device.names
        num = device.get("qp", n[qp], "num")
        seen = {"n": 1, "wr_id": wr_id, "status": status, "opcode": opcode, "qp_num": num, "byte_len": length}
        outputs = device.model.calls["poll_cq"].outputs
        return Action(
            "poll_cq", (n[cq],), "0", tuple(seen.get(o, device.model.voc.default(t)) for o, t in outputs.items())
        )

    def accepts(*polls: tuple[str, int, str, str, str, int]) -> bool:
        device = begin()
        log = [*device.log, *(poll(device, p) for p in polls)]
        return judge(log, Exact(Oracle(model())))[1] is None

    invalidated = ("cq1", 3, "SUCCESS", "LOCAL_INV", "qp1", 0)
    written = ("cq0", 2, "SUCCESS", "RDMA_WRITE", "qp0", 8)
    refused = ("cq0", 2, "REM_ACCESS_ERR", "RDMA_WRITE", "qp0", 8)
    assert accepts(invalidated, written)
    assert accepts(invalidated, refused)
    assert not accepts(("cq1", 3, "WR_FLUSH_ERR", "LOCAL_INV", "qp1", 0), written)
