"""When a rule of the specification is wrong, a refusal names it among at most five suspects."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from programs import RIGHTS, SETTLE, Device, Env, analysis, model, prepare

from verbs_conformance.acquittal import named
from verbs_reference.belief import Action, Belief, Refused
from verbs_reference.model import Model
from verbs_reference.pending import Analysis
from verbs_spec.document import Spec
from verbs_spec.loader import load
from verbs_spec.profiles import select
from verbs_spec.text import Text


@cache
def original() -> Spec:
    """The specification under the profiles of these tests."""
    return select(load(), "linux-kernel", "roce")


def changed(rule: str, old: str, new: str) -> Model:
    """The model of a specification in which one text of one rule is another."""
    spec = original()
    parts: dict[str, Any] = {"calls": dict(spec.calls), "families": dict(spec.families)}
    for group in parts.values():
        for name, owner in group.items():
            rules = tuple(_changed(r, old, new) if r.id == rule else r for r in owner.rules)
            if rules != owner.rules:
                group[name] = replace(owner, rules=rules)
                return Model(replace(spec, **parts))
    raise AssertionError(f"no {old!r} in rule {rule}")


def _changed(rule: Any, old: str, new: str) -> Any:
    for field in ("do", "outputs", "returns"):
        value = getattr(rule, field, None)
        if field == "returns" and value and old in value:
            return replace(rule, returns=tuple(Text(new, v.where) if v == old else v for v in value))
        if isinstance(value, Text) and old in value:
            return replace(rule, **{field: Text(value.replace(old, new, 1), value.where, quoted=True)})
    return rule


class Story:
    """A device that does what is asked of it at once, and its log."""

    def __init__(self) -> None:
        self.device = Device(model(), random.Random(1))
        prepare(self.device, shared=False)
        self.n: Env = self.device.names

    def call(self, name: str, **args: object) -> Action:
        """A call, and everything that follows from it."""
        action = self.device.call(name, **args)
        assert action is not None
        while self.device.step(optional=False):
            pass
        return action

    def poll(self, *queues: int) -> None:
        """Poll the completion queues until they are empty."""
        for i in queues or (0, 1):
            while self.device.get("cq", self.n[f"cq{i}"], "q"):
                self.call("poll_cq", cq=self.n[f"cq{i}"])

    def register(self, mr: int = 0, qp: int = 1) -> None:
        """A fast registration."""
        key = self.n[f"key{mr}"] + 1
        self.send(qp, "REG_MR", mr=self.n[f"mr{mr}"], key=key, access=RIGHTS)

    def send(self, qp: int, opcode: str, **args: object) -> None:
        """A signalled work request."""
        self.call("post_send", qp=self.n[f"qp{qp}"], wr_id=9, opcode=opcode, signaled=True, **args)

    def write(self, opcode: str = "RDMA_WRITE", length: int = 8) -> None:
        """A write, or a read, through the first region."""
        addr, key = self.device.get("mr", self.n["mr0"], "map_iova"), self.n["key0"] + 1
        self.send(0, opcode, sg_list=((self.n["addr0"], length, 0),), remote_addr=addr, rkey=key)

    def receive(self, length: int = 16) -> None:
        """A receive on the second queue pair."""
        sg_list = ((self.n["addr1"] + 200, length, 0),)
        self.call("post_recv", qp=self.n["qp1"], wr_id=5, sg_list=sg_list)

    def message(self, opcode: str = "SEND", **args: object) -> None:
        """A message to the second queue pair."""
        self.send(0, opcode, sg_list=((self.n["addr0"], 8, 0),), **args)

    def look(self) -> None:
        """Read the second buffer."""
        self.call("read_buffer", buf=self.n["buf1"], offset=0, length=256)


def _stored(s: Story) -> None:
    s.call("read_buffer", buf=s.n["buf0"], offset=0, length=256)


def _registered(s: Story) -> None:
    s.register()
    s.poll()


def _written(s: Story) -> None:
    _registered(s)
    s.write()
    s.poll()
    s.look()


def _invalidated(s: Story) -> None:
    _registered(s)
    s.send(1, "LOCAL_INV", invalidate_rkey=s.n["key0"] + 1)
    s.poll()
    s.write()
    s.poll()


def _twice(s: Story) -> None:
    _registered(s)
    s.register()
    s.poll()


def _sent(s: Story) -> None:
    s.receive()
    s.message()
    s.poll()
    s.look()


def _too_long(s: Story) -> None:
    s.receive(4)
    s.message()
    s.poll()


def _sent_with_inv(s: Story) -> None:
    _registered(s)
    s.receive()
    s.message("SEND_WITH_INV", invalidate_rkey=s.n["key0"] + 1)
    s.poll()
    s.write()
    s.poll()


def _flushed(s: Story) -> None:
    s.receive()
    s.call("modify_qp", qp=s.n["qp1"], state="ERR")
    s.send(1, "LOCAL_INV", invalidate_rkey=0)
    s.poll()


def _refused(s: Story) -> None:
    s.write()
    s.poll()
    s.call("query_qp", qp=s.n["qp0"])
    s.call("query_qp", qp=s.n["qp1"])


def _source_fault(s: Story) -> None:
    s.send(0, "SEND", sg_list=((s.n["addr0"], 8, 77),))
    s.poll()
    s.call("query_qp", qp=s.n["qp0"])


def _ended(s: Story) -> None:
    s.call("destroy_cq", cq=s.n["cq0"])
    for i in (0, 1):
        s.call("destroy_qp", qp=s.n[f"qp{i}"])
        s.call("destroy_cq", cq=s.n[f"cq{i}"])


def _reset(s: Story) -> None:
    s.call("modify_qp", qp=s.n["qp0"], state="RESET")
    s.call("post_recv", qp=s.n["qp0"], wr_id=1, sg_list=())
    s.call("modify_qp", qp=s.n["qp0"], state="RTR")
    s.call("query_qp", qp=s.n["qp0"])


CHANGES: list[tuple[str, str, str, Callable[[Story], None]]] = [
    ("qp/destroy", "qp.send_cq.users -= 1", "qp.state = RESET", _ended),
    ("qp/destroy", "qp.recv_cq.users -= 1", "qp.state = RESET", _ended),
    ("qp/create", "send_cq.users += 1", "send_cq.users += 2", _ended),
    ("cq/destroy-busy", "EBUSY", "ENOMEM", _ended),
    ("reg/done", "m.state = VALID", "m.access = {}", _written),
    ("reg/done", "m.key = w.key", "m.access = w.access", _written),
    ("reg/done", "m.access = w.access", "m.access = {LOCAL_WRITE}", _written),
    ("reg/done", "m.length = m.map_length", "m.length = 0", _written),
    ("reg/valid", "fail_local(q, w, MEM_MGT_ERR)", "fail_local(q, w, LOC_LEN_ERR)", _twice),
    ("inv/done", "v.state = INVALID", "v.state = VALID", _invalidated),
    ("write/done", "store(remote_places(w), w.data)", "w.qp.cut = false", _written),
    ("write/done", "answer(w, SUCCESS)", "answer(w, REM_OP_ERR)", _written),
    ("sq/sent", "w.data = load(flat(places(q, s) for s in w.sg_list))", "w.bytes = w.bytes", _written),
    ("send/done", "store(flat(receive_places(q, s) for s in r.sg_list), w.data)", "w.qp.cut = false", _sent),
    ("send/done", "used(q, r, SUCCESS, w.bytes)", "used(q, r, SUCCESS, 1)", _sent),
    ("send/too-long", "used(q, r, LOC_LEN_ERR, 0)", "used(q, r, LOC_PROT_ERR, 0)", _too_long),
    ("send/too-long", "REM_INV_REQ_ERR)", "REM_OP_ERR)", _too_long),
    ("send/invalidated", "v.state = INVALID", "v.state = VALID", _sent_with_inv),
    ("send/invalidated", "r.inv = w.inv", "r.inv = 0", _sent_with_inv),
    ("send/invalidated", "r.flags = {WITH_INVALIDATE}", "r.flags = {}", _sent_with_inv),
    ("rdma/refused", "refuse(q, w, REM_ACCESS_ERR)", "refuse(q, w, REM_OP_ERR)", _refused),
    ("sq/complete-failed", "status=w.status", "status=WR_FLUSH_ERR", _refused),
    ("sq/source-fault", "fail_local(q, w, LOC_PROT_ERR)", "finish(w, LOC_LEN_ERR)", _source_fault),
    ("sq/flush", "finish(w, WR_FLUSH_ERR)", "finish(w, LOC_LEN_ERR)", _flushed),
    ("rq/flushed", "WR_FLUSH_ERR, 0)", "LOC_LEN_ERR, 0)", _flushed),
    ("rq/completed", "status=r.status", "status=WR_FLUSH_ERR", _sent),
    ("sq/complete-signaled", "id=w.id", "id=w.id + 1", _written),
    ("sq/complete-signaled", "status=SUCCESS", "status=LOC_LEN_ERR", _written),
    ("cq/poll-recv", "byte_len == head(cq.q).byte_len", "byte_len == 0", _sent),
    ("qp/modify", "qp.access = access", "qp.cut = false", _written),
    ("qp/modify", "qp.peer = peer", "qp.cut = false", _sent),
    ("qp/modify", "qp.state = state", "qp.cut = false", _reset),
    ("qp/modify-illegal", "EINVAL", "ENOMEM", _reset),
    ("wr/post-recv-reset", "EINVAL", "ENOMEM", _reset),
    (
        "buf/write",
        "store(span(buf.addr + offset, size(data)), data)",
        "store(span(buf.addr, 1), data)",
        _stored,
    ),
]


def judged(machine: Model, log: list[Action]) -> tuple[Belief, Refused | None]:
    """What a model says to a log."""
    belief = Belief(machine, Analysis(machine, analysis()))
    for action in log:
        found = belief.settle() if action is SETTLE else belief.observe(action)
        if found is not None:
            assert isinstance(found, Refused), found
            return belief, found
    return belief, None


@cache
def told(tell: Callable[[Story], None]) -> tuple[list[Action], frozenset[str]]:
    """The log of a story, and the rules that may have fired in it."""
    story = Story()
    tell(story)
    while story.device.step(optional=False):
        pass
    log = [*story.device.log, SETTLE, *_empty_polls(story)]
    belief, refused = judged(model(), log)
    assert refused is None
    return log, belief.possible()


def passed_without(rule: str) -> dict[str, int]:
    """In how many stories each rule fired of those that a change of this rule leaves as they are."""
    fired = (told(tell)[1] for tell in {tell: None for _, _, _, tell in CHANGES})
    return dict(Counter(other for rules in fired if rule not in rules for other in rules))


@pytest.mark.parametrize(("rule", "old", "new", "tell"), CHANGES)
def test_the_changed_rule_is_among_the_suspects(rule: str, old: str, new: str, tell: Callable[[Story], None]) -> None:
    _, found = judged(changed(rule, old, new), told(tell)[0])
    assert found is not None, "the change is not noticed"
    suspects = named(found.suspects, passed_without(rule))
    assert len(suspects) <= 5
    assert rule in suspects, (suspects, found.suspects)


def _empty_polls(story: Story) -> list[Action]:
    made = []
    for i in (0, 1):
        if story.n[f"cq{i}"] in story.device.store.live["cq"]:
            action = story.device.call("poll_cq", cq=story.n[f"cq{i}"])
            assert action is not None
            made.append(action)
    return made
