"""Programs, and logs that a conforming device can have written: the model itself, run under a random
schedule.

A *program* is a list of calls as functions of what earlier calls returned; a :class:`Device` answers
them from a model state in which it takes random internal steps between the calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from verbs_reference.belief import Action
from verbs_reference.contents import UNKNOWN
from verbs_reference.model import CallCase, Model
from verbs_reference.pending import Analysis
from verbs_reference.store import NeedChoice
from verbs_spec.loader import load
from verbs_spec.profiles import select

SETTLE = Action("settle", ())
BASE = 1 << 32
BYTES = 256
CQES = 32
REMOTE = frozenset({"REMOTE_WRITE", "REMOTE_READ"})
RIGHTS = REMOTE | {"LOCAL_WRITE"}
TWINS = {
    "MEM_MGT_ERR": ["LOC_QP_OP_ERR", "MW_BIND_ERR"],
    "REM_INVALIDATE_ERR": ["REM_ACCESS_ERR", "REM_INV_REQ_ERR"],
    "RECV_INVALIDATE_ERR": ["LOC_ACCESS_ERR", "LOC_QP_OP_ERR"],
    "RECV_BUFFER_ERR": ["LOC_PROT_ERR"],
}
"""Statuses of the specification that the enumerators of libibverbs have no name for, and what a device
reports."""

Env = dict[str, Any]
Make = Callable[["Device"], tuple[str, Env]]


@cache
def model(api: str = "linux-kernel") -> Model:
    """The model of the specification under one API profile."""
    return Model(select(load(), api, "roce"))


@cache
def analysis(api: str = "linux-kernel") -> Analysis:
    """What is derived from the model once."""
    return Analysis(model(api))


class Device:
    """A conforming device: one state of the model, and chance."""

    def __init__(self, machine: Model, rng: random.Random) -> None:
        self.model = machine
        self.store = machine.store()
        self.rng = rng
        self.names: Env = {}
        self.log: list[Action] = []
        self._numbers = 1_000_000
        self._keys = 0

    # -- internal steps --------------------------------------------------------------------------

    def step(self, *, optional: bool = True) -> bool:
        """Take one internal step by chance; whether there was one."""
        ready = [
            (f, number)
            for f in self.model.families
            if optional or not f.optional
            for number in self.store.active[f.trigger]
        ]
        self.rng.shuffle(ready)
        return any(self._take(family, number) for family, number in ready)

    def _take(self, family: Any, number: int) -> bool:
        case = self._chosen(lambda: family.pick(self.store, number))
        if case >= 0:
            family.cases[case].effect(self.store, number)
        self.store.once = {}
        self.store.journal.clear()
        return bool(case >= 0)

    def _chosen(self, work: Callable[[], Any]) -> Any:
        """Do something, taking an option by chance where a choice is open."""
        store = self.store
        store.once = {}
        while True:
            try:
                return work()
            except NeedChoice as e:
                options, stable = self.model.voc.choices[e.name]
                option = self.rng.choice(options)
                (store.options if stable else store.once)[e.name] = option

    def run(self, most: int) -> None:
        """Take some steps."""
        for _ in range(self.rng.randrange(most + 1)):
            if not self.step():
                return

    # -- calls -----------------------------------------------------------------------------------

    def call(self, name: str, **given: Any) -> Action | None:
        """Make a call and note it; None if it would break the consumer's duty."""
        code = self.model.calls[name]
        args = tuple(given.get(p, self.model.voc.default(t)) for p, t in code.params.items())
        causes = [c for c in code.causes if not c.always]  # this device has memory
        held = [c for c in causes if c.guard and self._chosen(partial(c.guard, self.store, *args))]
        if any(c.undefined for c in held):
            return None
        must = [c for c in held if c.rule.level != "may"]
        if must or (held and self.rng.random() < 0.5):
            cause = self.rng.choice(must or held)
            outputs = tuple(self.model.voc.default(t) for t in code.outputs.values())
            return self._note(name, args, self.rng.choice(sorted(cause.returns)), outputs)
        case = next(c for c in code.successes if c.guard is None or c.guard(self.store, *args))
        found = self._outputs(name, dict(zip(code.params, args, strict=True)))
        outputs = tuple(found.get(o, self.model.voc.default(t)) for o, t in code.outputs.items())
        assert case.outputs is None or case.outputs(self.store, *args, *outputs), (name, args, outputs)
        if case.effect is not None:
            case.effect(self.store, *args, *outputs)
        self.store.journal.clear()
        return self._note(name, args, "0", outputs)

    def _holds(self, cause: CallCase, args: tuple[Any, ...]) -> bool:
        guard = cause.guard
        assert guard is not None
        return bool(self._chosen(lambda: guard(self.store, *args)))

    def _note(self, name: str, args: tuple[Any, ...], result: str, outputs: tuple[Any, ...]) -> Action:
        self.log.append(Action(name, args, result, outputs))
        return self.log[-1]

    def settle(self) -> None:
        """Do everything that must be done."""
        while self.step(optional=self.rng.random() < 0.3) or self.step(optional=False):
            pass
        self.log.append(SETTLE)

    def get(self, kind: str, number: int, field: str) -> Any:
        """A field of an object."""
        return self.store.objects[number][self.model.layout.slot[kind][field]]

    def _outputs(self, name: str, args: Env) -> Env:
        method: Callable[[Env], Env] | None = getattr(self, "_out_" + name, None)
        made = method(args) if method is not None else {}
        for output in self.model.calls[name].creates:
            self._numbers += 1
            made[output] = self._numbers
        return made

    def _out_open_device(self, _: Env) -> Env:
        return {
            "max_qp_wr": 64, "max_cqe": 64, "max_fast_reg_page_list_len": 8, "min_page_size": 512,
            "max_page_size": 1 << 20, "mem_mgt_extensions": True, "fast_reg_page_list": True,
        }  # fmt: skip

    def _out_create_cq(self, args: Env) -> Env:
        return {"cqe_actual": args["cqe"]}

    def _out_create_qp(self, args: Env) -> Env:
        return {
            "qp_num": self._numbers,
            "max_send_wr_actual": args["max_send_wr"],
            "max_recv_wr_actual": args["max_recv_wr"],
            "max_send_sge_actual": 2,
            "max_recv_sge_actual": 2,
        }

    def _out_alloc_buffer(self, _: Env) -> Env:
        self._keys += 1
        return {"addr": BASE + self._keys * 65536}

    def _out_alloc_mr(self, _: Env) -> Env:
        self._keys += 1
        return {"key": self._keys * 256}

    _out_alloc_fast_reg_mr = _out_alloc_mr

    def _out_alloc_fast_reg_page_list(self, args: Env) -> Env:
        return {"max_page_list_len_actual": args["max_page_list_len"]}

    def _out_map_mr_sg(self, args: Env) -> Env:
        sg = args["sg"]
        return {
            "n": len(sg),
            "iova": sg[0][0] + args["offset"],
            "length": sum(s[1] for s in sg) - args["offset"],
        }

    def _out_update_fast_reg_key(self, args: Env) -> Env:
        return {"key": self.get("mr", args["mr"], "index") * 256 + args["byte"]}

    def _out_query_qp(self, args: Env) -> Env:
        return {"state": self.get("qp", args["qp"], "state")}

    def _out_read_buffer(self, args: Env) -> Env:
        data = self.store.load(((self.get("buf", args["buf"], "addr") + args["offset"], args["length"]),))
        return {"data": "".join(chr(self.rng.randrange(256)) if c == UNKNOWN else c for c in data)}

    def _out_poll_cq(self, args: Env) -> Env:
        queue = self.get("cq", args["cq"], "q")
        if not queue:
            return {}
        entry = dict(zip(self.model.voc.records["cqe"], queue[0], strict=True))
        status = self.rng.choice(TWINS.get(entry["status"], [entry["status"]]))
        made = {"n": 1, "wr_id": entry["id"], "status": status, "qp_num": self.get("qp", entry["qp"], "num")}
        if status == "SUCCESS":
            made |= {"opcode": entry["opcode"], "byte_len": entry["byte_len"]}
            made |= {"wc_flags": entry["flags"], "invalidate_rkey": entry["inv"]}
        return made


# -- programs ------------------------------------------------------------------------------------


def prepare(device: Device, *, shared: bool, regions: int = 2) -> None:
    """Two connected queue pairs with a completion queue each or one for both, a buffer each, and regions."""
    n = device.names

    def make(name: str, call: str, **args: Any) -> None:
        action = device.call(call, **args)
        assert action is not None
        code = device.model.calls[call]
        n[name] = dict(zip(code.outputs, action.outputs, strict=True))[code.creates[0]]

    make("hca", "open_device")
    make("pd", "alloc_pd", hca=n["hca"])
    make("cq0", "create_cq", hca=n["hca"], cqe=CQES)
    if shared:
        n["cq1"] = n["cq0"]
    else:
        make("cq1", "create_cq", hca=n["hca"], cqe=CQES)
    for i in (0, 1):
        cq = n[f"cq{i}"]
        make(f"qp{i}", "create_qp", pd=n["pd"], send_cq=cq, recv_cq=cq, max_send_wr=8, max_recv_wr=8)
        make(f"buf{i}", "alloc_buffer", length=BYTES)
        n[f"addr{i}"] = device.get("buf", n[f"buf{i}"], "addr")
    for state in ("INIT", "RTR", "RTS"):
        for i in (0, 1):
            device.call("modify_qp", qp=n[f"qp{i}"], state=state, peer=n[f"qp{1 - i}"], access=REMOTE)
    for i in range(regions):
        make(f"mr{i}", "alloc_mr", pd=n["pd"], max_num_sg=1)
        n[f"key{i}"] = device.get("mr", n[f"mr{i}"], "first")
        device.call("map_mr_sg", mr=n[f"mr{i}"], sg=((n["addr1"] + 64 * i, 64),), offset=0, page_size=512)
    data = "".join(chr(1 + i % 200) for i in range(64))
    device.call("write_buffer", buf=n["buf0"], offset=0, data=data)


class Maker:
    """Makes calls of a program; ``wr_id`` says which post it was."""

    def __init__(self, rng: random.Random, regions: int = 2) -> None:
        self.rng = rng
        self.regions = regions
        self.wr_id = 100

    def send(self, qp: int) -> Make:
        """A random work request for a send queue."""
        rng = self.rng
        self.wr_id += 1
        mr = rng.randrange(self.regions)
        kind = rng.choice(
            ["REG_MR", "REG_MR", "LOCAL_INV", "LOCAL_INV", "RDMA_WRITE", "SEND_WITH_INV", "SEND", "RDMA_READ"]
        )
        byte = rng.choice([1, 1, 1, 2])
        args: Env = {
            "wr_id": self.wr_id,
            "opcode": kind,
            "signaled": rng.random() < 0.7,
            "fence": rng.random() < 0.15,
        }
        length = rng.choice([8, 8, 16, 0])
        rights = rng.choice([RIGHTS, RIGHTS, RIGHTS, frozenset({"LOCAL_WRITE"}), frozenset({"REMOTE_WRITE"})])

        def make(device: Device) -> tuple[str, Env]:
            n = device.names
            key = n[f"key{mr}"] + byte
            own = {"sg_list": ((n[f"addr{qp}"] + 192, length, 0),)}
            more: Env = {
                "REG_MR": {"mr": n[f"mr{mr}"], "key": key, "access": rights},
                "LOCAL_INV": {"invalidate_rkey": key},
                "RDMA_WRITE": {**own, "remote_addr": n["addr1"] + 64 * mr + 8, "rkey": key},
                "RDMA_READ": {**own, "remote_addr": n["addr1"] + 64 * mr + 8, "rkey": key},
                "SEND": own,
                "SEND_WITH_INV": {**own, "invalidate_rkey": key},
            }[kind]
            return "post_send", {"qp": n[f"qp{qp}"], **args, **more}

        return make

    def receive(self, qp: int) -> Make:
        """A receive, now and then one that is too short or through a region."""
        self.wr_id += 1
        wr_id = self.wr_id
        length = self.rng.choice([16, 16, 16, 4])
        mr = self.rng.choice([None, None, 0])

        def make(device: Device) -> tuple[str, Env]:
            n = device.names
            lkey, addr = (0, n[f"addr{qp}"] + 224) if mr is None else (n[f"key{mr}"] + 1, n["addr1"] + 16)
            return "post_recv", {"qp": n[f"qp{qp}"], "wr_id": wr_id, "sg_list": ((addr, length, lkey),)}

        return make

    def look(self) -> Make:
        """Something that observes or disturbs without being a work request."""
        qp = self.rng.randrange(2)
        kind = self.rng.choice(["query_qp", "query_qp", "read_buffer", "read_buffer", "error", "key", "write_buffer"])
        if kind == "error" and self.rng.random() < 0.6:
            kind = "query_qp"

        def make(device: Device) -> tuple[str, Env]:
            n = device.names
            if kind == "key":
                return "update_fast_reg_key", {"mr": n["mr0"], "byte": 2}
            if kind == "error":
                return "modify_qp", {"qp": n[f"qp{qp}"], "state": "ERR"}
            if kind == "query_qp":
                return kind, {"qp": n[f"qp{qp}"]}
            if kind == "write_buffer":
                return kind, {"buf": n["buf1"], "offset": 8, "data": "\x07" * 8}
            return kind, {"buf": n["buf1"], "offset": 0, "length": BYTES}

        return make


Program = list[Make | str]
"""Calls, and ``cq0`` or ``cq1`` where a poll stands."""


def program(rng: random.Random, sends: int = 4, receives: int = 2, looks: int = 2, polls: float = 0.6) -> Program:
    """A random order of posts on both queue pairs and what else there is, with polls between."""
    maker = Maker(rng)
    parts: Program = [maker.send(i) for i in (0, 1) for _ in range(sends)]
    parts += [maker.receive(rng.randrange(2)) for _ in range(receives)]
    parts += [maker.look() for _ in range(rng.randrange(looks + 1))]
    rng.shuffle(parts)
    made: Program = []
    for part in parts:
        made.append(part)
        while rng.random() < polls:
            made.append(f"cq{rng.randrange(2)}")
    return made


def honest(parts: Program, rng: random.Random, *, shared: bool, pace: int = 6) -> list[Action]:
    """The log of one run, to the end: everything settled and every completion polled."""
    device = Device(model(), rng)
    prepare(device, shared=shared)
    slot = device.model.layout.slot["cq"]["q"]
    for part in parts:
        if isinstance(part, str):
            cq = device.names[part]
            device.run(pace)
            while not device.store.objects[cq][slot] and rng.random() < 0.9 and device.step():
                pass
            device.call("poll_cq", cq=cq)
        else:
            device.run(pace)
            call, args = part(device)
            device.call(call, **args)
    device.settle()
    for cq in dict.fromkeys((device.names["cq0"], device.names["cq1"])):
        while device.store.objects[cq][slot]:
            device.call("poll_cq", cq=cq)
        device.call("poll_cq", cq=cq)
    return device.log


# -- altered logs --------------------------------------------------------------------------------

STATUSES = [
    "SUCCESS",
    "WR_FLUSH_ERR",
    "LOC_QP_OP_ERR",
    "LOC_PROT_ERR",
    "REM_ACCESS_ERR",
    "REM_INV_REQ_ERR",
    "RETRY_EXC_ERR",
]


def altered(log: list[Action], rng: random.Random) -> tuple[str, list[Action]] | None:
    """The log with one completion changed, dropped, doubled or swapped with another; None if it has too
    few."""
    code = model().calls["poll_cq"]
    place = list(code.outputs).index("n")
    polls = [i for i, a in enumerate(log) if a.call == "poll_cq" and a.outputs[place]]
    kind = rng.choice(["status", "drop", "double", "swap"])
    if len(polls) < (2 if kind == "swap" else 1):
        return None
    i = rng.choice(polls)
    made = list(log)
    if kind == "status":
        made[i] = _with_status(log[i], rng, list(code.outputs).index("status"))
    elif kind == "drop":
        del made[i]
    elif kind == "double":
        made.insert(i, log[i])
    else:
        j = rng.choice([p for p in polls if p != i])
        made[i], made[j] = (Action("poll_cq", log[a].args, "0", log[b].outputs) for a, b in ((i, j), (j, i)))
    return kind, made


def _with_status(action: Action, rng: random.Random, place: int) -> Action:
    status = rng.choice([s for s in STATUSES if s != action.outputs[place]])
    outputs = (*action.outputs[:place], status, *action.outputs[place + 1 :])
    return Action(action.call, action.args, action.result, outputs)


def numbered(seed: int, count: int) -> Iterator[tuple[int, random.Random]]:
    """Random sources that do not depend on each other."""
    for i in range(count):
        yield i, random.Random(f"{seed}/{i}")
