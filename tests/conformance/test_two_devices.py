"""Two devices behind one backend: the whole suite on two halves of softhca, which name different things alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from halves import Halves
from msgspec.structs import replace
from renaming import Renaming

from verbs_adapters.contract import Answer, Trouble
from verbs_adapters.two.backend import TwoSides
from verbs_conformance import program as programs
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program, full_steps
from verbs_conformance.run import Run, Settings
from verbs_conformance.spread import Spread
from verbs_conformance.target import engine
from verbs_reference.model import Model
from verbs_reports.results import read
from verbs_reports.summary import devices
from verbs_reports.verdicts import Verdict
from verbs_spec import profiles
from verbs_spec.loader import load

API, TRANSPORT = "linux-user", "roce"
FEATURES = ("two-devices",)
NO_SWEEP = ("[!s]*", "s[!w]*")

Place = Callable[[Program], tuple[Program, str]]


def spread() -> Spread:
    return Spread(engine(API, TRANSPORT, FEATURES), programs.fixtures())


def shipped(name: str) -> Program:
    (found,) = [
        p for p in programs.shipped("programs") if p.name == name and p.applies(API, TRANSPORT) and not p.feature
    ]
    return found


def lines(steps: str, fixture: str = "pair") -> Program:
    """A program of these lines."""
    made = "\n".join(f"  {line.strip()}" for line in steps.strip().splitlines())
    (found,) = programs.parse(f"program: own\nfixture: {fixture}\nsteps: |\n{made}\n", "own.yaml")
    return found


def judged(program: Program, **options: str) -> Judgement:
    """A program as it is, on two devices."""
    backend = TwoSides(*Halves(**options).halves)
    return Judge(engine(API, TRANSPORT, FEATURES), backend, backend.hello(), programs.fixtures()).run(program, 1)


# -- programs made over ------------------------------------------------------------------------------


def test_what_talks_is_put_on_different_devices() -> None:
    program = lines(
        """
        mr0 = reg_mr(pd=pd0, addr=buf1.addr, length=8192, access={LOCAL_WRITE, REMOTE_WRITE})
        own0 = reg_mr(pd=pd0, addr=buf0.addr, length=64, access={})
        post_send(qp=qp0, opcode=RDMA_WRITE, sg_list=[sge(lkey=own0.lkey)], remote_addr=mr0.iova, rkey=mr0.rkey)
        settle()
        drain(cq=cq0)
        read_buffer(buf=buf1, offset=0, length=buf1.length)
        """
    )

    made, alone = spread().place(program)

    assert alone == ""
    before, own = full_steps(made, {})
    text = [str(step) for step in before]
    assert text[:6] == [
        "hca0 = open_device()",
        "hca0_2 = open_device()",
        "pd0 = alloc_pd(hca=hca0)",
        "pd0_2 = alloc_pd(hca=hca0_2)",
        "cq0 = create_cq(hca=hca0, cqe=16)",
        "cq1_2 = create_cq(hca=hca0_2, cqe=16)",
    ]
    assert "qp1 = create_qp(pd=pd0_2, send_cq=cq1_2, recv_cq=cq1_2, max_send_wr=4, max_recv_wr=4)" in text
    assert "buf0 = alloc_buffer(length=16384)" in text
    assert "buf1 = alloc_buffer(length=16384, hca=hca0_2)" in text
    assert str(own[0]).startswith("mr0 = reg_mr(pd=pd0_2, addr=buf1.addr,")
    assert str(own[1]).startswith("own0 = reg_mr(pd=pd0, addr=buf0.addr,")
    assert list(map(str, own[2:])) == list(map(str, program.steps[2:]))
    assert made.fixture == "pair"
    assert made.whole().steps == (*before, *own)


def test_what_is_used_on_both_sides_is_there_twice() -> None:
    program = lines(
        """
        mr0 = reg_mr(pd=pd0, addr=buf1.addr, length=8192, access={LOCAL_WRITE, REMOTE_READ})
        post_send(qp=qp0, opcode=RDMA_READ, sg_list=[sge(lkey=mr0.lkey)], remote_addr=mr0.iova, rkey=mr0.rkey)
        dereg_mr(mr=mr0)
        """
    )

    made, alone = spread().place(program)

    assert alone == ""
    assert [str(step) for step in made.steps] == [
        "mr0 = reg_mr(pd=pd0, addr=buf1.addr, length=8192, access={LOCAL_WRITE, REMOTE_READ})",
        "mr0_2 = reg_mr(pd=pd0_2, addr=buf1_2.addr, length=8192, access={LOCAL_WRITE, REMOTE_READ})",
        "post_send(qp=qp0, opcode=RDMA_READ, sg_list=[sge(lkey=mr0.lkey)], remote_addr=mr0_2.iova, rkey=mr0_2.rkey)",
        "dereg_mr(mr=mr0)",
        "dereg_mr(mr=mr0_2)",
    ]


def test_a_field_that_leads_to_the_other_end_does_so_here() -> None:
    program = lines("modify_qp(qp=qp1, peer=qp1.peer, access={}, state=ERR)")

    made, alone = spread().place(program)

    assert alone == ""
    assert made.steps == program.steps


@pytest.mark.parametrize(
    ("steps", "fixture", "reason"),
    [
        ("pd0 = alloc_pd(hca=hca0)", "device", "nothing in it is at the other end of a connection"),
        ("modify_qp(qp=qp0, state=RTR, peer=qp0)", "initial", "qp0 would have to be on both devices"),
        ("hca1 = open_device()", "pair", "it opens 2 devices itself"),
        (
            "cq2 = create_cq(hca=hca0, cqe=4)\nqp2 = create_qp(pd=pd0, send_cq=cq2, recv_cq=cq2)\n"
            "modify_qp(qp=qp2, state=RTR, peer=qp0)\nmodify_qp(qp=qp2, state=RTR, peer=qp1)",
            "pair",
            "qp1 would have to be on both devices",
        ),
    ],
)
def test_what_cannot_be_made_over_stays_as_it_is(steps: str, fixture: str, reason: str) -> None:
    program = lines(steps, fixture)

    made, alone = spread().place(program)

    assert made is program
    assert alone.startswith(reason)


def test_programs_share_the_fixtures_that_come_out_alike() -> None:
    place = spread().place
    one, other = (place(shipped(name))[0] for name in ("regress/user-bytes-of-a-read", "regress/user-id-of-a-refusal"))

    assert one.before is not None
    assert one.before is other.before
    assert one.prefix == one.before.name != "pair"


def test_no_name_is_known_to_it() -> None:
    spec = profiles.select(load(), API, TRANSPORT)
    renaming = Renaming(spec, 4)
    fixtures = programs.fixtures()
    plain = Spread(Engine(Model(spec)), fixtures)
    other = Spread(Engine(Model(renaming.spec(spec))), {n: renaming.program(p) for n, p in fixtures.items()})
    compared = 0

    for program in programs.shipped("programs"):
        if program.applies(API, TRANSPORT):
            made, alone = plain.place(program)
            again, reason = other.place(renaming.program(program))
            assert bool(alone) == bool(reason), program.name
            if not alone:
                compared += 1
                assert again.whole().steps == tuple(map(renaming.step, made.whole().steps)), program.name

    assert compared > 150


# -- judged ------------------------------------------------------------------------------------------


def test_a_healthy_pair_passes_all_of_it(tmp_path: Path) -> None:
    backend = TwoSides(*Halves().halves)
    settings = Settings(API, TRANSPORT, budget=0, rounds=1, select=NO_SWEEP, out=tmp_path, adapter="halves")
    job = Run(engine(API, TRANSPORT, FEATURES), backend, backend.hello(), settings)

    assert job.execute() == 0
    results = read(tmp_path / "results.jsonl")
    assert results.header.devices == 2
    assert {p.verdict for p in results.programs} == {Verdict.PASS}
    both = [p for p in results.programs if not p.alone]
    assert len(both) > 150
    assert {p.fixture for p in both} <= programs.fixtures().keys()
    assert devices(results).startswith(f"{len(both)} programs ran on 2 devices, ")
    assert "nothing in it is at the other end of a connection" in devices(results)


def test_a_defect_shows_there_too_and_replays_from_its_file(tmp_path: Path) -> None:
    options = {"fault": "qp-rights-swapped"}
    backend = TwoSides(*Halves(**options).halves)
    select = ("regress/user-queue-pair-forbids-*",)
    settings = Settings(API, TRANSPORT, budget=0, rounds=1, select=select, out=tmp_path, adapter="halves")

    assert Run(engine(API, TRANSPORT, FEATURES), backend, backend.hello(), settings).execute() == 1
    results = read(tmp_path / "results.jsonl")
    failed = [p for p in results.programs if p.verdict is Verdict.FAIL]
    assert failed
    assert not any(p.alone for p in failed)
    (program,) = programs.load(tmp_path / failed[0].file)
    assert program.fixture == ""
    assert sum(step.call == "open_device" for step in program.steps) == 2
    assert judged(program, **options).verdict is Verdict.FAIL
    assert judged(program).verdict is Verdict.PASS


def test_limits_are_each_devices_own(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves().halves
    small = replace(halves[1].hello(), limits=halves[1].hello().limits | {"max_cqe": 7})
    monkeypatch.setattr(halves[1], "hello", lambda: small)
    backend = TwoSides(*halves)
    found = backend.hello()
    assert found.limits["max_cqe"] > 7
    assert found.others[0].limits["max_cqe"] == 7


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        ("", "pd0 = alloc_pd(hca=hca1)\ncq0 = create_cq(hca=hca1, cqe=4)"),
        ("qp/create-abroad", "pd0 = alloc_pd(hca=hca0)\ncq0 = create_cq(hca=hca1, cqe=4)"),
    ],
)
def test_a_queue_pair_of_two_devices_is_the_consumers_error(rule: str, steps: str) -> None:
    more = "qp0 = create_qp(pd=pd0, send_cq=cq0, recv_cq=cq0, max_send_wr=1, max_recv_wr=1)"
    done = judged(lines(f"hca1 = open_device()\n{steps}\n{more}", "device"))

    assert done.verdict is (Verdict.CONSUMER_ERROR if rule else Verdict.PASS)
    assert done.reason == (f"the consumer breaks its duty here: {rule}" if rule else "")


@pytest.mark.parametrize(
    ("device", "buffer", "rule"),
    [
        ("hca0", "", ""),
        ("hca1", ", hca=hca1", ""),
        ("hca1", "", "mr/reg-abroad"),
        ("hca0", ", hca=hca1", "mr/reg-abroad"),
    ],
)
def test_memory_of_another_host_is_the_consumers_error(device: str, buffer: str, rule: str) -> None:
    steps = f"""
        hca1 = open_device()
        pd0 = alloc_pd(hca={device})
        buf0 = alloc_buffer(length=4096{buffer})
        mr0 = reg_mr(pd=pd0, addr=buf0.addr + 100, length=64, access={{}})
        """
    done = judged(lines(steps, "device"))

    assert done.verdict is (Verdict.CONSUMER_ERROR if rule else Verdict.PASS)
    assert done.reason == (f"the consumer breaks its duty here: {rule}" if rule else "")


def test_a_program_of_two_devices_needs_two() -> None:
    device = Halves().halves[0]
    done = Judge(engine(API, TRANSPORT), device, device.hello(), programs.fixtures()).run(
        lines("hca1 = open_device()", "device"), 1
    )

    assert done.verdict is Verdict.INCONCLUSIVE
    assert done.reason == "the program opens another device, and the backend has 1"


# -- the backend -------------------------------------------------------------------------------------


def make(backend: TwoSides, verb: str, **args: Any) -> dict[str, int]:
    answer = backend.call(verb, args)
    assert isinstance(answer, Answer)
    assert answer.result == "0", (verb, answer)
    return answer.out


def test_what_mixes_sides_is_answered_and_reaches_neither() -> None:
    halves = Halves().halves
    backend = TwoSides(*halves)
    assert backend.reset(1) is None
    pd, cq = make(backend, "alloc_pd")["pd"], make(backend, "create_cq", cqe=4, hca=2)["cq"]
    asked = [len(half.asked) for half in halves]

    assert backend.call("create_qp", {"pd": pd, "send_cq": cq, "recv_cq": cq}) == Answer("EINVAL")
    assert backend.call("alloc_pd", {"hca": 3}) == Answer("EINVAL")
    assert [len(half.asked) for half in halves] == asked


def test_silence_is_asked_of_both_and_told_of_peers_that_are_gone() -> None:
    halves = Halves().halves
    backend = TwoSides(*halves)
    assert backend.reset(1) is None
    qps = []
    for hca in (1, 2):
        pd, cq = make(backend, "alloc_pd", hca=hca)["pd"], make(backend, "create_cq", cqe=4, hca=hca)["cq"]
        depths = {"max_send_wr": 4, "max_recv_wr": 4}
        qps.append(make(backend, "create_qp", pd=pd, send_cq=cq, recv_cq=cq, **depths)["qp"])
    for state in ("INIT", "RTR", "RTS"):
        for qp, peer in (qps, reversed(qps)):
            make(backend, "modify_qp", qp=qp, state=state, peer=peer, access=[])
    send = {"opcode": "SEND", "signaled": True, "fence": False, "sg_list": []}
    make(backend, "post_send", qp=qps[0], wr_id=1, **send)
    told: list[list[Any]] = []
    for change in ({}, {"qp": qps[1], "state": "ERR", "peer": qps[0], "access": []}):
        if change:
            make(backend, "modify_qp", **change)
        for half in halves:
            half.asked.clear()
        assert backend.call("settle", {}) == Answer("0")
        told.append([[args["silent"] for verb, args in half.asked if "silent" in args][-1] for half in halves])
        for half in halves:
            half.asked.clear()
        assert backend.call("settle", {}) == Answer("0")
        assert [half.asked for half in halves] == [[], []], "nothing was done since"

    assert told[0] == [[], []]
    assert [len(handles) for handles in told[1]] == [1, 0], "the first one's peer answers no more"


@pytest.mark.parametrize("side", [0, 1])
def test_a_trouble_says_on_which_side(side: int) -> None:
    halves = Halves().halves
    backend = TwoSides(*halves)
    backend.hello()
    assert backend.reset(1) is None
    halves[side].dead = True

    trouble = backend.call("create_cq", {"cqe": 4, "hca": side + 1})

    assert isinstance(trouble, Trouble)
    assert trouble.message == f"on the {('first', 'second')[side]} side (half{side}): it was killed"
    assert (trouble.kind, trouble.whose) == ("crash", "glue")
    assert isinstance(backend.call("create_cq", {"cqe": 4, "hca": 2 - side}), Answer)
    make(backend, "alloc_buffer", length=64, hca=2 - side)


def test_a_side_that_dies_in_silence_is_noticed() -> None:
    halves = Halves().halves
    backend = TwoSides(*halves)
    backend.hello()
    assert backend.reset(1) is None
    make(backend, "reg_mr", pd=make(backend, "alloc_pd")["pd"], addr=make(backend, "alloc_buffer", length=64)["addr"],
         length=64, access=[])  # fmt: skip
    halves[1].dead = True

    trouble = backend.call("settle", {})

    assert isinstance(trouble, Trouble)
    assert trouble.message.startswith("on the second side (half1)")
