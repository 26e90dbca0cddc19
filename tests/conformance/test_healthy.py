"""No shipped program fails on a device without faults, whichever of the legal ways it goes."""

from __future__ import annotations

from functools import cache

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import flipping
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.target import engine
from verbs_reports.verdicts import Verdict

APIS = ("linux-kernel", "linux-kernel-2008", "linux-user", "winverbs", "networkdirect")
FINE = frozenset({Verdict.PASS, Verdict.DEVIATION})

DEVICES: dict[str, dict[str, str]] = {
    **flipping.DEVICES,
    "two keys": {"local_rkey": "zero"},
    "stream": {"transport": "iwarp"},
    "early stream": {"transport": "iwarp", "failed_wr": "early", "max_sge_rd": "1", "sink_qp_right": "ignore"},
    "patient stream": {"transport": "iwarp", "failed_wr": "flush", "no_receive": "wait"},
}
"""Devices that differ in all that a device may choose; each option's other value is in one of them."""


@cache
def _programs() -> tuple[Program, ...]:
    return tuple(p for p in programs.shipped("programs") if p.kind == "regression")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("device", sorted(DEVICES))
def test_no_program_fails(device: str, api: str) -> None:
    backend = SoftHca({**DEVICES[device], "api": api})
    transport = DEVICES[device].get("transport", "roce")
    model = engine(api, transport)
    judge = Judge(model, backend, backend.hello(), programs.fixtures())
    seeds = (1, 2) if device == "plain" else (3,)
    for program in _programs():
        if program.under(model.model.spec):
            for seed in seeds:
                done = judge.run(program, seed)
                assert done.verdict in FINE, (
                    program.name,
                    seed,
                    done.lines[done.fixture_lines :],
                    done.refused,
                    done.reason,
                )
