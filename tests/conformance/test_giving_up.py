"""A drawn program that cannot be judged further is given up, said so, and ends neither the run nor its verdict."""

from __future__ import annotations

from collections.abc import Mapping

from verbs_adapters.contract import Answer, Trouble, Value
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


class Once(SoftHca):
    """A device that tells a wrong state of a queue pair once in its life."""

    asked = 0

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        answer = super().call(verb, args)
        if verb != "query_qp" or isinstance(answer, Trouble) or answer.result != "0":
            return answer
        self.asked += 1
        return Answer("0", {**answer.out, "state": "SQD"}) if self.asked == 5 else answer


def test_what_happens_once_is_told_and_no_fault_of_the_suite() -> None:
    backend = Once({})
    judge = Judge(engine("linux-kernel", "roce"), backend, backend.hello(), programs.fixtures())

    last = list(Stateful(judge, 1, 3600.0, most=5000).run())[-1]

    assert last.verdict is Verdict.FAIL
    assert last.failed_step is not None
    assert last.failed_step.call == "query_qp"
    assert backend.asked >= 5
