"""Races planted in softhca are caught in the threaded mode, and a healthy device with threads raises no alarm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from races import RACES, gap

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program

ROUNDS = 10
NAMES = (
    *("bytes-of-an-empty-message", "bytes-of-a-read", "invalidated-for-next-on-queue", "queue-holds-all"),
    *("queue-fills-again", "slot-keeps-rights", "silence-before-error", "receives-are-flushed"),
    *("waiting-sends-are-flushed", "failure-behind-success", "gone-region-is-invalidated", "posted-in-error-send"),
)
"""Programs with much under way at once, or that look at once at what a call has done."""


@pytest.fixture(scope="module")
def chosen() -> list[Program]:
    shipped = {p.name: p for p in programs.shipped("programs")}
    return [shipped[f"regress/{name}"] for name in NAMES]


@pytest.fixture
def judge() -> Iterator[Judge]:
    hca = SoftHca({"threads": "4"})
    gap.of(hca)
    yield Judge(target.engine("linux-kernel", "roce"), hca, hca.hello(), programs.fixtures())
    gap.close()
    hca.close()


def first_alarm(judge: Judge, chosen: list[Program]) -> Judgement | None:
    runs = (judge.run(program, seed) for seed in range(ROUNDS) for program in chosen)
    return next((done for done in runs if done.broken), None)


def test_no_alarm_without_a_race(judge: Judge, chosen: list[Program]) -> None:
    assert first_alarm(judge, chosen) is None


@pytest.mark.parametrize("name", RACES)
def test_race_is_caught(name: str, judge: Judge, chosen: list[Program]) -> None:
    says, plant = RACES[name]
    with plant():
        assert first_alarm(judge, chosen) is not None, says
        gap.close()
