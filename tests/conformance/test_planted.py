"""Faults planted by somebody who has not seen the specification."""

from __future__ import annotations

import pytest
from planted import PLANTED

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, shrink
from verbs_conformance.sweep import Sweep

FIXTURES = ("inside", "continued", "remapped", "reconnected")
"""The sweep's fixtures that are tried here.

Four of the five faults were missed by the directed and regression programs as they stood when the faults were
planted; the sweep and these fixtures were added because of them.
"""


@pytest.fixture(scope="module")
def engine() -> Engine:
    return target.engine("linux-kernel", "roce")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_caught(name: str, engine: Engine) -> None:
    with PLANTED[name][1]():
        backend = SoftHca({})
        judge = Judge(engine, backend, backend.hello(), programs.fixtures())
        shipped = (p for p in programs.shipped("programs") if p.applies("linux-kernel", "roce") and not p.feature)
        swept = (p for p in Sweep(engine, judge.fixtures).programs() if p.fixture in FIXTURES)
        done = next((d for d in (judge.run(p, 1) for p in (*swept, *shipped)) if d.broken), None)

        assert done is not None, PLANTED[name][0]
        assert len(shrink(judge, done).program.steps) <= 10
