"""A program is judged by itself: what may still have come in the one before it has no say."""

from __future__ import annotations

from verbs_adapters import registry
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.target import engine, load, offered
from verbs_reports.verdicts import Verdict

ONE_AFTER_THE_OTHER = ("regress/destroyed-pair-leaves-no-use", "regress/refused-destroy-keeps-queue")
"""In the first receives are under way that the second, which has fewer objects, has not."""


def test_what_was_under_way_in_one_program_is_forgotten_in_the_next() -> None:
    device = registry.create("softhca", {"api": "linux-user"})
    judge = Judge(
        engine("linux-user", "roce", offered(load(), device.hello())), device, device.hello(), programs.fixtures()
    )
    shipped = {p.name: p for p in programs.shipped("programs")}

    assert [judge.run(shipped[name], 1).verdict for name in ONE_AFTER_THE_OTHER] == [Verdict.PASS, Verdict.PASS]
