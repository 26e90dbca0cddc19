"""No verb, object, field, state, status or rule is known to Python by its name.

A random bijection of all names, in the specification and at the adapter's edge alike, changes no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from renaming import Edge, Renaming

from verbs_adapters.contract import Backend
from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.build import limits
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec.loader import load
from verbs_spec.profiles import select

FAULTS = ("", "reg-of-valid-accepted", "queue-holds-one-less")
FEATURES = ("asynchronous-events", "completion-channels", "resize-cq")


def judge(engine: Engine, backend: Backend, fixtures: Mapping[str, Program]) -> Judge:
    return Judge(engine, backend, backend.hello(), fixtures)


def summary(done: Judgement, ids: Mapping[str, str]) -> tuple[object, ...]:
    suspects = tuple(ids.get(s, s) for s in done.suspects)
    fired = {ids.get(r, r): n for r, n in done.fired.items()}
    return done.verdict, suspects, fired, done.calls, done.belief


@pytest.mark.parametrize(("api", "seed"), [("linux-kernel", 1), ("linux-kernel-2008", 2), ("linux-user", 3)])
def test_names_mean_nothing(api: str, seed: int) -> None:
    spec = select(load(), api, "roce")
    renaming = Renaming(spec, seed)
    engine, renamed = Engine(Model(spec)), Engine(Model(renaming.spec(spec)))
    fixtures = {n: p for n, p in programs.fixtures().items() if p.under(spec)}
    new_fixtures = {n: renaming.program(p) for n, p in fixtures.items()}
    found = [p for p in programs.shipped("programs") if p.under(spec) and p.kind == "directed"]

    for fault in FAULTS:
        options = {"api": api, **({"fault": fault} if fault else {})}
        plain = judge(engine, SoftHca(options), fixtures)
        other = judge(renamed, Edge(SoftHca(options), renaming), new_fixtures)
        for program in found:
            expected = summary(plain.run(program, 1), renaming.ids)

            assert summary(other.run(renaming.program(program), 1), {}) == expected, program.name


def test_names_of_features_mean_nothing() -> None:
    spec = select(load(), "linux-user", "ib", FEATURES)
    renaming = Renaming(spec, 4)
    engine = Engine(Model(renaming.spec(spec)))
    device = limits(Engine(Model(spec)), programs.fixtures())
    backend = ReferenceBackend(engine.model, {renaming.word(name): value for name, value in device.items()})
    fixtures = {n: renaming.program(p) for n, p in programs.fixtures().items() if p.under(spec)}
    judging = judge(engine, backend, fixtures)
    for program in programs.shipped("programs"):
        if program.under(spec) and program.feature and program.kind == "regression":
            done = judging.run(renaming.program(program), 1)
            assert done.verdict == Verdict.PASS, (program.name, done.lines[-1], done.suspects)


def test_nearly_every_name_is_changed() -> None:
    renaming = Renaming(load(), 1)

    assert renaming.kept <= {"bytes", "flags", "size"}
    assert all(new != old for old, new in renaming.names.items() if old not in renaming.kept)
