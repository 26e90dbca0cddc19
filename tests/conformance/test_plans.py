"""Drawn programs follow the steps of searched ones, wherever what these name is there."""

from __future__ import annotations

import math

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.chance import SIZE, Chance
from verbs_conformance.judge import Judge
from verbs_conformance.machine import Stateful
from verbs_conformance.plans import SILENCE, plans, renumbered
from verbs_conformance.step import Step
from verbs_conformance.target import engine
from verbs_reports.verdicts import Verdict


def _judge(api: str) -> Judge:
    backend = SoftHca({"api": api})
    return Judge(engine(api, "roce"), backend, backend.hello(), programs.fixtures())


def test_a_plan_ends_before_the_look_at_everything_and_needs_what_it_does_not_make() -> None:
    judge = _judge("linux-kernel")
    found = plans(judge.engine, judge.fixtures)
    assert {plan.target for plan in found} >= {"reg/done", "mr/alloc"}
    for plan in found:
        assert plan.target.startswith("regress/") or plan.steps[-1].call != SILENCE
        made = {name for step in plan.steps for name in step.out.values()}
        assert plan.names <= made | {name for name, _ in plan.needs}
    alloc = next(plan for plan in found if plan.target == "mr/alloc")
    assert ("pd0", "pd") in alloc.needs


@pytest.mark.parametrize("api", ["winverbs", "networkdirect"])
def test_a_plan_is_left_where_what_it_names_was_not_made(api: str) -> None:
    done = list(Stateful(_judge(api), 22, math.inf, most=500).run())
    assert {each.verdict for each in done} == {Verdict.PASS}
    assert sum(each.calls for each in done) >= 400


def test_numbers_of_a_plan_are_new_ones() -> None:
    step = renumbered(Step("post_send", {"qp": "qp0", "wr_id": "1"}), frozenset({"wr_id"}), 17)
    assert step.args == {"qp": "qp0", "wr_id": "17"}


def test_what_is_drawn_alike_after_something_else_is_stirred_to_other_numbers() -> None:
    one, same, other = Chance(1, 2), Chance(1, 2), Chance(1, 3)
    first = one.stir((0, 0))
    assert same.stir((0, 0)) == first
    assert other.stir((0, 0)) != first
    assert one.stir((0, 0)) != first
    assert len(first) == SIZE
    assert set(first) <= set(range(16))


def test_a_program_begins_with_a_plan_where_that_is_at_home_and_with_another_each_time() -> None:
    drawing = Stateful(_judge("linux-kernel"), 22, math.inf, most=1500)
    done = list(drawing.run())
    homes = {plan.target: plan.home for plan in drawing.plans}
    assert {each.program.fixture for each in done} <= set(homes.values())
    firsts = {tuple(str(step) for step in each.program.steps[:2]) for each in done}
    assert len(firsts) > len(done) * 0.9


def test_programs_that_crash_a_kernel_are_no_plans() -> None:
    judge = _judge("linux-kernel")
    perilous = {program.name for program in programs.shipped("programs") if program.peril}
    assert perilous
    assert perilous.isdisjoint(plan.target for plan in plans(judge.engine, judge.fixtures))


def test_a_drain_is_left_out_where_a_poll_would_break_a_duty() -> None:
    backend = SoftHca({"api": "linux-user"})
    judged = engine("linux-user", "roce", ("resize-cq",))
    judge = Judge(judged, backend, backend.hello(), programs.fixtures())
    [program] = [
        p for p in programs.shipped("programs") if p.name == "cq-resize/crowded" and p.under(judged.model.spec)
    ]
    before, own = programs.full_steps(program, judge.fixtures)
    backend.reset(1)
    session = judge.session()
    poll = next(step for step in own if step.call == "poll_cq")
    drain = Step("drain", poll.args)
    for step in (*before, *own[: own.index(poll)]):
        if step is own[0]:
            assert session.sensible(drain)
        session.run(step)
    assert not session.sensible(drain)
