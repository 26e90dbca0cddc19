"""What reports say, whatever they look like."""

from __future__ import annotations

import msgspec
import pytest
from reports_samples import (
    CRASHED,
    FAILED_RUN,
    FAILING,
    HEADER,
    PASSED_RUN,
    PASSING,
    RULES,
    TRUNCATED_RUN,
    UNDECIDED,
    results_of,
)

from verbs_reports.results import Footer, Record
from verbs_reports.summary import blamed, replay_command, steps_of, summarize
from verbs_reports.verdicts import Verdict


def test_a_whole_run_has_one_line_a_rule_and_no_alarm() -> None:
    summary = summarize(results_of(FAILED_RUN))
    assert [line.rule for line in summary.rules] == [rule.rule for rule in RULES]
    assert not any(line.derived for line in summary.rules)
    assert summary.alarms == ()
    assert summary.notices == ("interrupted by Ctrl-C",)


def test_counts_are_worst_first_and_of_rules() -> None:
    summary = summarize(results_of(FAILED_RUN))
    assert list(summary.counts) == sorted(summary.counts, key=lambda verdict: -verdict.severity)
    assert sum(summary.counts.values()) == len(RULES)
    assert summary.headline.startswith("15 rules: 1 error, 2 fail, 1 unexpected-pass")
    assert summary.headline.endswith("; choices: 1 fail, 2 choice")
    assert summarize(results_of(PASSED_RUN)).headline == "5 rules: 5 pass"


def test_programs_that_show_something_come_worst_first() -> None:
    summary = summarize(results_of(FAILED_RUN))
    assert [program.name for program in summary.explained] == [
        "mr/dereg-with-bound-window.1",
        "stateful-qp-0042",
        "regression/B12-flush-order",
    ]
    assert summary.silent == (UNDECIDED,)


def test_a_truncated_run_derives_its_rules_from_its_programs() -> None:
    summary = summarize(results_of(TRUNCATED_RUN))
    assert summary.alarms[0].startswith("TRUNCATED: the run did not end; what follows is what it had obtained")
    lines = {line.rule: line for line in summary.rules}
    assert list(lines) == sorted(lines)
    assert all(line.derived for line in summary.rules)
    nearest = lines["mr/dereg-with-bound-window"]
    assert nearest.verdict is Verdict.FAIL
    assert nearest.object == "mr"
    assert FAILING.failure is not None
    assert nearest.reason == FAILING.failure.message
    # One cause, one failure: the farther suspect is not judged; nor does anything pass in a run cut short.
    assert lines["mw/bind"].verdict is Verdict.INCONCLUSIVE
    assert "suspected in 1 program" in lines["mw/bind"].reason
    assert (lines["pd/alloc"].verdict, lines["pd/alloc"].fired) == (Verdict.INCONCLUSIVE, 1)
    assert lines["cq/overflow"].reason == "had not certainly fired when the run stopped"


def test_a_truncated_run_keeps_the_rule_records_that_it_has() -> None:
    summary = summarize(results_of((*TRUNCATED_RUN, RULES[0])))
    lines = {line.rule: line for line in summary.rules}
    assert not lines["pd/alloc"].derived
    assert lines["pd/dealloc"].derived


def test_a_half_line_is_said() -> None:
    results = msgspec.structs.replace(results_of(TRUNCATED_RUN), half_line=True)
    assert "last line was half written" in summarize(results).alarms[0]


PASSED = PASSED_RUN[-1]
assert isinstance(PASSED, Footer)
UNCOUNTED = msgspec.structs.replace(PASSED, counts={})


@pytest.mark.parametrize(
    ("run", "notice"),
    [
        ((*FAILED_RUN[:-1], PASSED), "The footer says pass, the records say error"),
        (
            (*PASSED_RUN[:-1], msgspec.structs.replace(PASSED, counts={})),
            "The footer counts the rules otherwise",
        ),
        ((HEADER, msgspec.structs.replace(PASSED, counts={})), "Nothing was selected"),
        ((*PASSED_RUN[:-1], FAILING, PASSED), "1 program failed, although no rule did"),
    ],
)
def test_what_does_not_add_up_is_said(run: tuple[Record, ...], notice: str) -> None:
    assert any(text.startswith(notice) for text in summarize(results_of(run)).notices)


def test_a_program_speaks_about_its_target_if_suspected_else_its_nearest_suspect() -> None:
    assert blamed(FAILING) == "mr/dereg-with-bound-window"
    assert blamed(CRASHED) == "qp/modify-to-err"
    assert blamed(PASSING) == "pd/alloc"
    assert FAILING.failure is not None
    suspects = ("cq/poll", "mr/dereg-with-bound-window", "mw/bind")
    late = msgspec.structs.replace(FAILING, failure=msgspec.structs.replace(FAILING.failure, suspects=suspects))
    assert blamed(late) == "mr/dereg-with-bound-window"
    assert blamed(msgspec.structs.replace(late, target="qp/create")) == "cq/poll"
    assert blamed(msgspec.structs.replace(PASSING, target="")) == ""


def test_the_failing_step_is_marked_even_when_it_was_never_answered() -> None:
    steps = steps_of(FAILING)
    assert [step.number for step in steps if step.failing] == [8]
    assert [step.number for step in steps if step.after] == [9]
    assert len(CRASHED.steps) == 60
    last = steps_of(CRASHED)[-1]
    assert (last.number, last.text, last.failing) == (61, "modify_qp(qp0, ERR)", True)
    assert not any(step.failing or step.after for step in steps_of(PASSING))


def test_the_replay_command_can_be_pasted() -> None:
    assert replay_command(CRASHED) == "verbspec replay 'programs/stateful qp 0042.yaml'"
    assert replay_command(PASSING) == ""
