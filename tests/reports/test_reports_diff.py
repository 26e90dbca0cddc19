"""Two runs side by side: what is worse, what is better, what is only otherwise."""

from __future__ import annotations

import msgspec
import pytest
from reports_samples import FAILING, HEADER

from verbs_reports.diff import Change, diff, render
from verbs_reports.results import Choice, Footer, Program, Results, Rule
from verbs_reports.verdicts import Verdict


def rule(verdict: Verdict, name: str = "mr/dereg", reason: str = "") -> Rule:
    return Rule(
        rule=name, object="mr", level="must", sources=(), verdict=verdict, fired=1, programs=1, reason=reason, says="x"
    )


def program(verdict: Verdict, name: str = "p", seed: int = 1) -> Program:
    return Program(name=name, kind="directed", verdict=verdict, calls=1, fixture="f", seed=seed)


def failing(seen: str) -> Program:
    assert FAILING.failure is not None
    return msgspec.structs.replace(FAILING, failure=msgspec.structs.replace(FAILING.failure, seen=seen))


def results(*records: Rule | Program | Choice, kernel: str = "6.1", whole: bool = True) -> Results:
    footer = Footer(verdict=Verdict.PASS, exit_code=0, counts={}, calls=1, seconds=1, programs=1)
    return Results(
        header=msgspec.structs.replace(HEADER, device=msgspec.structs.replace(HEADER.device, kernel=kernel)),
        rules=tuple(r for r in records if isinstance(r, Rule)),
        programs=tuple(r for r in records if isinstance(r, Program)),
        choices=tuple(r for r in records if isinstance(r, Choice)),
        footer=footer if whole else None,
    )


def only(before: Results, after: Results) -> Change:
    (change,) = diff(before, after).changes
    return change


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        (Verdict.PASS, Verdict.FAIL, "worse"),
        (Verdict.PASS, Verdict.NOT_RUN, "worse"),
        (Verdict.NOT_RUN, Verdict.FAIL, "worse"),
        (Verdict.FAIL, Verdict.ERROR, "worse"),
        (Verdict.WAIVED, Verdict.UNEXPECTED_PASS, "worse"),
        (Verdict.WAIVED, Verdict.FAIL, "worse"),
        (Verdict.FAIL, Verdict.PASS, "better"),
        (Verdict.NOT_RUN, Verdict.PASS, "better"),
        (Verdict.PASS, Verdict.WAIVED, "changed"),
        (Verdict.PASS, Verdict.CHOICE, "changed"),
        (Verdict.DEVIATION, Verdict.PASS, "changed"),
    ],
)
def test_worse_is_a_worse_exit_code(before: Verdict, after: Verdict, way: str) -> None:
    change = only(results(rule(before)), results(rule(after)))

    assert change.way == way
    assert change.regression is (way == "worse")
    assert (change.before, change.after) == (before, after)


def test_the_same_run_twice_has_no_difference() -> None:
    run = results(rule(Verdict.PASS), rule(Verdict.FAIL, "mr/reg"), FAILING, program(Verdict.PASS))

    found = diff(run, run)

    assert found.changes == ()
    assert found.facts == ()
    assert (found.regressions, found.same) == (0, 4)


def test_a_program_is_the_worst_of_its_runs() -> None:
    twice = results(program(Verdict.PASS), program(Verdict.FAIL, seed=2), program(Verdict.PASS, seed=3))

    change = only(results(program(Verdict.PASS), program(Verdict.PASS, seed=2)), twice)

    assert (change.way, change.after) == ("worse", "fail")


def test_another_answer_at_the_failing_step_is_told_and_is_no_regression() -> None:
    before, after = failing("0, status=LOC_QP_OP_ERR, qp_num=17"), failing("0, status=WR_FLUSH_ERR, qp_num=18")

    change = only(results(before), results(after))

    assert (change.way, change.regression) == ("otherwise", False)
    assert "WR_FLUSH_ERR" in change.detail


def test_numbers_that_a_device_chooses_are_no_difference() -> None:
    before, after = failing("0, status=WR_FLUSH_ERR, qp_num=17"), failing("0, status=WR_FLUSH_ERR, qp_num=18")

    assert diff(results(before), results(after)).changes == ()


def test_what_is_new_counts_only_if_it_is_broken() -> None:
    whole, more = results(), results(program(Verdict.PASS), program(Verdict.FAIL, "q"), rule(Verdict.PASS))

    found = diff(whole, more)
    back = diff(more, whole)

    assert [(c.way, c.name, c.regression) for c in found.changes] == [("new", "mr/dereg", False), ("new", "q", True)]
    assert [(c.way, c.name, c.regression) for c in back.changes] == [("gone", "mr/dereg", False), ("gone", "q", False)]
    assert found.same == 0


def test_another_choice_and_other_facts_are_told() -> None:
    def choice(taken: str) -> Choice:
        return Choice(choice="stale_inv", options=("A", "B"), taken=(taken,), stable=True, verdict=Verdict.CHOICE)

    found = diff(results(choice("A")), results(choice("B"), kernel="6.12"))

    assert [(c.kind, c.before, c.after, c.regression) for c in found.changes] == [("choice", "A", "B", False)]
    assert found.facts == ("kernel: 6.1 before, 6.12 after",)


def test_a_run_that_did_not_end_is_told() -> None:
    found = diff(results(rule(Verdict.PASS)), results(rule(Verdict.PASS), whole=False))

    assert any("TRUNCATED" in fact and "after" in fact for fact in found.facts)


def test_markdown_says_the_outcome_first_and_escapes_what_a_device_said() -> None:
    after = results(rule(Verdict.FAIL, reason="<b>|@you"))

    text = render(diff(results(rule(Verdict.PASS)), after))

    assert text.startswith("# REGRESSION\n")
    assert "**1 regression, 0 other changes, 0 as before.**" in text
    assert "<b>" not in text
    assert "@you" not in text
    assert render(diff(after, after)).startswith("# NO REGRESSION\n")
