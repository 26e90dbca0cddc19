"""A consumer who breaks its duty is told so, with the rule; what depends on the objects is not judged, the
rest is."""

from __future__ import annotations

import random
from typing import Any

import pytest
from programs import BYTES, Device, analysis, model, prepare

from verbs_reference.belief import Action, Belief, ConsumerError, Refused

OLD = "linux-kernel-2008"


class Pair:
    """A device that answers and a belief that judges; both see the same calls."""

    def __init__(self, api: str) -> None:
        self.device = Device(model(api), random.Random(1))
        self.belief = Belief(model(api), analysis(api))

    def call(self, name: str, **args: object) -> Action:
        """Make a legal call."""
        action = self.device.call(name, **args)
        assert action is not None, name
        assert self.belief.duty(action) is None
        assert self.belief.observe(action) is None
        return action

    def wrong(self, name: str, **args: object) -> ConsumerError:
        """Make a call that breaks a duty."""
        assert self.device.call(name, **args) is None
        code = self.device.model.calls[name]
        values = tuple(args.get(p, self.device.model.voc.default(t)) for p, t in code.params.items())
        outputs = tuple(self.device.model.voc.default(t) for t in code.outputs.values())
        action = Action(name, values, "0", outputs)
        found = self.belief.duty(action)
        assert found is not None
        objects = self.belief.taint(found.objects)
        assert self.belief.observe(action) is None
        return ConsumerError(found.rule, objects)

    def make(self, name: str, **args: object) -> int:
        """A call that makes an object."""
        code = self.device.model.calls[name]
        return int(dict(zip(code.outputs, self.call(name, **args).outputs, strict=True))[code.creates[0]])


def connected(api: str) -> Pair:
    """Two connected queue pairs."""
    pair = Pair(api)
    n = pair.device.names
    if api == "linux-kernel":
        prepare(pair.device, shared=False)
        for action in pair.device.log:
            assert pair.belief.observe(action) is None
        return pair
    n["hca"] = pair.make("open_device")
    n["pd"] = pair.make("alloc_pd", hca=n["hca"])
    n["buf1"] = pair.make("alloc_buffer", length=BYTES)
    for i in (0, 1):
        n[f"cq{i}"] = pair.make("create_cq", hca=n["hca"], cqe=16)
        both = {"send_cq": n[f"cq{i}"], "recv_cq": n[f"cq{i}"]}
        n[f"qp{i}"] = pair.make("create_qp", pd=n["pd"], **both, max_send_wr=4, max_recv_wr=4)
    for state in ("INIT", "RTR", "RTS"):
        for i in (0, 1):
            pair.call("modify_qp", qp=n[f"qp{i}"], state=state, peer=n[f"qp{1 - i}"])
    return pair


def registering() -> Pair:
    """A fast registration with a page list is under way."""
    pair = connected(OLD)
    n = pair.device.names
    n["list"] = pair.make("alloc_fast_reg_page_list", hca=n["hca"], max_page_list_len=2)
    n["mr"] = pair.make("alloc_fast_reg_mr", pd=n["pd"], max_page_list_len=2)
    pair.call("set_page_list", list=n["list"], pages=(pair.device.get("buf", n["buf1"], "addr"),))
    key = pair.device.get("mr", n["mr"], "first") + 1
    pair.call(
        "post_send", qp=n["qp0"], wr_id=1, opcode="FAST_REG_MR", signaled=True, key=key, list=n["list"],
        access=frozenset({"LOCAL_WRITE"}), page_list_len=1, page_shift=12, iova_start=0, length=64,
    )  # fmt: skip
    return pair


EDITS = {
    "list/set-owned": ("set_page_list", {"pages": (0,)}),
    "list/free-owned": ("free_fast_reg_page_list", {}),
}


@pytest.mark.parametrize("rule", EDITS)
def test_a_page_list_is_the_drivers_until_the_completion_is_polled(rule: str) -> None:
    call, args = EDITS[rule]
    early = registering()
    while early.device.step():
        pass
    found = early.wrong(call, list=early.device.names["list"], **args)
    assert found.rule == rule
    assert {early.device.names["list"], early.device.names["qp0"]} <= found.objects

    late = registering()
    while late.device.step():
        pass
    late.call("poll_cq", cq=late.device.names["cq0"])
    late.call(call, list=late.device.names["list"], **args)


@pytest.mark.parametrize(
    ("rule", "call", "args"),
    [
        ("mr/map-owned", "map_mr_sg", {"sg": ((1 << 32, 64),), "page_size": 512}),
        ("mr/dereg-owned", "dereg_mr", {}),
    ],
)
def test_a_region_is_the_drivers_while_it_is_registered(rule: str, call: str, args: dict[str, object]) -> None:
    for polled in (False, True):
        pair = connected("linux-kernel")
        n = pair.device.names
        if call == "map_mr_sg":
            args = {**args, "sg": ((n["addr1"], 64),)}
        pair.call("post_send", qp=n["qp0"], wr_id=1, opcode="REG_MR", signaled=True, mr=n["mr0"], key=n["key0"] + 1)
        while pair.device.step():
            pass
        if polled:
            pair.call("poll_cq", cq=n["cq0"])
            pair.call(call, mr=n["mr0"], **args)
        else:
            assert pair.wrong(call, mr=n["mr0"], **args).rule == rule


def test_what_depends_on_the_objects_is_not_judged_and_the_rest_is() -> None:
    pair = connected("linux-kernel")
    n = pair.device.names
    other = pair.make("create_cq", hca=n["hca"], cqe=4)
    both = {"send_cq": other, "recv_cq": other}
    third = pair.make("create_qp", pd=n["pd"], **both, max_send_wr=4, max_recv_wr=4)
    pair.call("post_send", qp=n["qp0"], wr_id=1, opcode="REG_MR", signaled=True, mr=n["mr0"], key=n["key0"] + 1)
    found = pair.wrong("dereg_mr", mr=n["mr0"])
    assert {n["mr0"], n["qp0"], n["qp1"], n["cq0"], n["pd"]} <= found.objects
    assert not {other, third, n["mr1"]} & found.objects
    model = pair.device.model

    def told(call: str, **seen: Any) -> tuple[Any, ...]:
        return tuple(seen.get(o, model.voc.default(kind)) for o, kind in model.calls[call].outputs.items())

    outputs = told("poll_cq", n=1, wr_id=1, status="LOC_LEN_ERR", opcode="REG_MR")
    assert pair.belief.observe(Action("poll_cq", (n["cq0"],), "0", outputs)) is None
    assert isinstance(pair.belief.observe(Action("poll_cq", (other,), "0", outputs)), Refused)
    assert isinstance(pair.belief.observe(Action("query_qp", (third,), "0", told("query_qp", state="RTS"))), Refused)


def test_what_is_made_of_unjudged_objects_is_not_judged() -> None:
    pair = connected("linux-kernel")
    n = pair.device.names
    pair.call("post_send", qp=n["qp0"], wr_id=1, opcode="REG_MR", signaled=True, mr=n["mr0"], key=n["key0"] + 1)
    pair.wrong("dereg_mr", mr=n["mr0"])
    number = pair.belief.number()
    args = (n["pd"], n["cq0"], n["cq0"], 4, 4)
    assert pair.belief.observe(Action("create_qp", args, "0", (number, 7, 4, 4))) is None
    assert pair.belief.observe(Action("query_qp", (number,), "0", ("RTS",))) is None
