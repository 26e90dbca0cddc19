"""Programs that say what their device does: they fire their rules there, and do no harm on any other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from verbs_adapters.contract import Backend
from verbs_adapters.softhca import SoftHca
from verbs_adapters.softhca.options import OPTIONS
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.build import limits
from verbs_conformance.device import ANY, Device, Said, read
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.homes import APIS, TRANSPORTS
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_conformance.run import Run, Settings
from verbs_conformance.unwitnessed import reasons
from verbs_reports.records import Rule
from verbs_reports.verdicts import Verdict
from verbs_spec.profiles import features

SAID = [p for p in programs.shipped("programs") if p.device]
FINE = (Verdict.PASS, Verdict.CHOICE, Verdict.DEVIATION)


@cache
def engine(api: str, transport: str = "roce", having: tuple[str, ...] = ()) -> Engine:
    return target.engine(api, transport, having)


def model_of(having: Engine, device: Device) -> ReferenceBackend:
    return ReferenceBackend(having.model, limits(having, programs.fixtures()), device=device)


def of(program: Program) -> Engine:
    return engine(
        program.api[0],
        (*program.transport, "roce")[0],
        tuple(f for f in features(target.load()) if f in program.feature),
    )


def ruled(having: Engine, backend: Backend, rule: str, out: Path) -> Rule:
    """What a run makes of one rule."""
    api, transport = having.model.spec.selected or ("", "")
    settings = Settings(api, transport, select=(rule,), out=out, quick=True, adapter="reference", command="run")
    run = Run(having, backend, backend.hello(), settings)
    run.execute()
    (record,) = (r for r in run.rule_records() if r.rule == rule)
    return record


@pytest.mark.parametrize(
    ("rule", "verdict", "words"),
    [
        (
            "pd/alloc-memory",
            Verdict.CHOICE,
            "The rule only permits, and this run has not seen the device make use of it.",
        ),
        ("mr/alloc-unsupported", Verdict.UNSUPPORTED, "Only a device that lacks MEM_MGT_EXTENSIONS fires it"),
    ],
)
def test_a_device_of_the_kind_fires_the_rule_and_another_is_told_why_not(
    rule: str, verdict: Verdict, words: str, tmp_path: Path
) -> None:
    (program, *_) = (p for p in SAID if p.target == rule and "linux-kernel" in p.api)
    own = of(program)
    assert ruled(own, model_of(own, read(own.model, program.device)), rule, tmp_path / "a").verdict == Verdict.PASS

    other = ruled(own, model_of(own, ANY), rule, tmp_path / "b")
    assert (other.verdict, other.fired) == (verdict, 0)
    assert words in other.reason


@pytest.mark.parametrize("program", SAID, ids=[f"{p.name} {p.api[0]}" for p in SAID])
def test_a_program_does_no_harm_on_another_device(program: Program) -> None:
    """What the device has not made, or has, the program then does not use."""
    own = of(program)
    backends: list[Backend] = [model_of(own, ANY), *softhca(own)]
    for backend in backends:
        done = Judge(own, backend, backend.hello(), programs.fixtures()).run(program, 1)
        assert done.verdict in FINE, (done.verdict, done.reason, done.lines)


@pytest.mark.parametrize("api", ["linux-kernel", "linux-user", "winverbs", "networkdirect"])
@pytest.mark.parametrize("transport", ["roce", "ib", "iwarp"])
def test_each_program_is_one_that_its_profiles_can_run(api: str, transport: str) -> None:
    """No verb that only another transport has, and no device that makes use of another profile's rule."""
    own = engine(api, transport, features(target.load()))
    for folder in ("fixtures", "programs", "continuations"):
        for program in programs.shipped(folder):
            if program.under(own.model.spec):
                read(own.model, program.device)
                assert program.calls <= own.model.calls.keys(), program.name


def test_a_word_that_no_profile_has_is_a_mistake() -> None:
    own = engine("linux-kernel")
    wrong = programs.parse("program: p\ndevice: {pd/aloc-memory: true}\nsteps: |\n  settle()\n", "p.yaml")[0]
    assert wrong.under(own.model.spec)
    with pytest.raises(BadProgram, match="did you mean 'pd/alloc-memory'"):
        read(own.model, wrong.device)


def softhca(own: Engine) -> Iterator[SoftHca]:
    """The built-in device, if it has the features that an engine is for."""
    api, transport = own.model.spec.selected or ("", "")
    if api not in OPTIONS["api"].known or transport not in OPTIONS["transport"].known:
        return
    backend = SoftHca({"api": api, "transport": transport})
    if set(own.model.spec.features) <= set(target.offered(target.load(), backend.hello())):
        yield backend


WRONG: list[tuple[Said, str]] = [
    (
        (("stale_invv", "ACCEPT"),),
        "nothing that a device answers when it is opened; did you mean 'stale_inv'",
    ),
    (
        (("stale_inv", "ACEPT"),),
        "the choice stale_inv has no such option; it has REFUSE, ACCEPT; did you mean 'ACCEPT'?",
    ),
    ((("pd/alloc-memory", "never"),), "a device that makes use of it is pd/alloc-memory: true, one that does not"),
    (
        (("pd/alloc", "true"),),
        "device names the rule pd/alloc, which asks for what it says and permits nothing; rules that permit are ",
    ),
    ((("mem_mgt_extensions", "0"),), "a device answers true or false there when it is opened"),
    ((("max_qp_wr", "many"),), "a device answers a number there when it is opened"),
]


@pytest.mark.parametrize(("said", "message"), WRONG)
def test_what_is_not_left_open_is_refused(said: Said, message: str) -> None:
    with pytest.raises(BadProgram) as wrong:
        read(engine("linux-kernel").model, said)
    assert message in str(wrong.value)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("api", APIS)
def test_what_a_program_says_of_its_device_is_known_wherever_it_runs(api: str, transport: str) -> None:
    having = engine(api, transport, tuple(features(target.load())))
    mine = [p for p in SAID if p.under(having.model.spec)]

    assert all(read(having.model, p.device) for p in mine)


def test_a_model_that_has_run_out_of_numbers_that_are_mentioned_makes_up_others() -> None:
    """The seventh queue pair of a program once got a number that was absent."""
    having = engine("linux-kernel", "roce", ("qp-attributes",))
    (moves,) = (p for p in programs.shipped("programs") if p.name == "moves/reset")
    backend = model_of(having, ANY)

    done = Judge(having, backend, backend.hello(), programs.fixtures()).run(moves, 0)

    assert not done.broken, done.refused or done.reason


def test_known_names_are_listed() -> None:
    with pytest.raises(BadProgram) as wrong:
        read(engine("linux-kernel").model, (("nothing", "true"),))
    for name in ("long_list", "stale_inv", "pd/alloc-memory", "mem_mgt_extensions"):
        assert name in str(wrong.value)


def test_at_most_one_rule_in_twenty_has_no_program() -> None:
    rules = target.load().rules
    lacking = [r for r in rules if r in reasons()]
    assert len(lacking) <= len(rules) / 20, lacking
    assert set(lacking) == set(reasons())
