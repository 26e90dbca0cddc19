"""A backend that hangs, dies, answers late or sends garbage ends in the right verdict and loses no record."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from cli import Ended, verbspec

from verbs_adapters.contract import Answer, Trouble, Value
from verbs_adapters.remote.client import RemoteBackend
from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.rerun import Again
from verbs_conformance.run import Run, Settings
from verbs_reports.results import read

SABOTEUR = Path(__file__).parents[1] / "backends" / "saboteur.py"


def run(kind: str, at: int, out: Path, *more: str) -> Ended:
    command = shlex.join([sys.executable, str(SABOTEUR), kind, str(at)])
    options = ("-o", f"command={command}", "-o", "deadline=0.3", "-o", "grace=0.3")
    return verbspec("run", "process", *options, "--budget", "0s", "--select", "mr/dereg", "--out", str(out), *more)


@pytest.mark.parametrize(
    ("kind", "code", "verdict", "words"),
    [
        ("dies", 1, "fail", ["exited with status 3", "backend"]),
        ("killed", 1, "fail", ["SIGKILL", "backend"]),
        ("hangs", 1, "fail", ["no answer", "backend"]),
        ("late", 1, "fail", ["late", "backend"]),
        ("raises", 1, "fail", ["index out of range in qp table"]),
        ("garbage", 3, "error", ["MEMORY DUMP", "glue"]),
    ],
)
def test_trouble_is_a_verdict(kind: str, code: int, verdict: str, words: list[str], tmp_path: Path) -> None:
    ended = run(kind, 25, tmp_path)

    assert ended.code == code, ended.text
    for word in words:
        assert word in ended.text
    found = read(tmp_path / "results.jsonl")
    assert not found.truncated
    assert {str(p.verdict) for p in found.programs if p.trouble} == {verdict}
    assert {str(p.verdict) for p in found.programs} <= {verdict, "pass"}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return target.engine("linux-kernel", "roce")


@pytest.mark.parametrize("at", range(1, 51))
def test_a_killed_backend_loses_no_earlier_record(at: int, engine: Engine, tmp_path: Path) -> None:
    command = [sys.executable, str(SABOTEUR), "killed", str(at)]
    settings = Settings(
        "linux-kernel",
        "roce",
        out=tmp_path,
        adapter="process",
        again=Again(frozenset({"reg/valid", "inv/foreign"})),
        rounds=1,
    )
    with closing(RemoteBackend(command)) as backend:
        code = Run(engine, backend, backend.hello(), settings).execute()

    records = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    verdicts = [r["verdict"] for r in records if r["record"] == "program"]
    assert code == 1
    assert records[0]["record"] == "header"
    assert records[-1]["record"] == "footer"
    assert len(verdicts) == 2
    assert "fail" in verdicts
    assert set(verdicts) <= {"fail", "pass"}


class Forgetful(SoftHca):
    """softhca, which leaves out one output."""

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        answer = super().call(verb, args)
        assert isinstance(answer, Answer)
        return Answer(answer.result, {name: v for name, v in answer.out.items() if name != "local_dma_lkey"})


def test_an_output_that_is_missing_is_not_taken_for_nothing(engine: Engine) -> None:
    (program,) = [p for p in programs.shipped("programs") if p.name == "pd/alloc" and p.applies("linux-kernel", "roce")]
    backend = Forgetful({"api": "linux-kernel"})
    found = Judge(engine, backend, backend.hello(), programs.fixtures()).run(program, 1)

    assert found.trouble is not None
    assert "the output `local_dma_lkey` is missing" in found.trouble.message
