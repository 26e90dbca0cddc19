"""A drawn program that cannot be judged further is given up, said so, and ends neither the run nor its verdict."""

from __future__ import annotations

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.machine import Stateful
from verbs_conformance.target import engine
from verbs_reports.verdicts import Verdict


def test_what_costs_too_much_is_given_up() -> None:
    backend = SoftHca({})
    judge = Judge(engine("linux-kernel", "roce"), backend, backend.hello(), programs.fixtures(), cap=3)
    stateful = Stateful(judge, 1, 3600.0)
    stateful.fixtures = [judge.fixtures["registered"]]  # which has one explanation

    assert stateful.draw_chunk(stateful.machine(), 1001) is None

    drawn = stateful.done
    given_up = [done for done in drawn if done.given_up]

    assert given_up
    assert {done.verdict for done in drawn} == {Verdict.PASS}
    for done in given_up:
        assert done.reason.startswith("given up before "), done.reason
        again = judge.run(done.program, done.seed)
        assert again.verdict is Verdict.PASS, "the program that is kept ends before the step that costs too much"
