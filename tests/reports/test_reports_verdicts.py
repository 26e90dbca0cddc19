"""The order of verdicts and the exit codes."""

from __future__ import annotations

import pytest

from verbs_reports.verdicts import BROKEN, UNDECIDED, Verdict, exit_code, worst


def test_order_is_worst_first() -> None:
    assert [str(verdict) for verdict in Verdict] == [
        "error",
        "fail",
        "unexpected-pass",
        "flaky",
        "consumer-error",
        "inconclusive",
        "not-run",
        "deviation",
        "waived",
        "unsupported",
        "choice",
        "pass",
    ]


@pytest.mark.parametrize("bad", Verdict)
@pytest.mark.parametrize("good", Verdict)
def test_a_parent_is_as_bad_as_its_worst_child(bad: Verdict, good: Verdict) -> None:
    members = list(Verdict)
    expected = min(bad, good, key=members.index)
    assert worst([bad, good]) is expected
    assert worst([good, good, bad]) is expected


def test_worst_of_nothing_is_no_pass() -> None:
    assert worst([], default=Verdict.NOT_RUN) is Verdict.NOT_RUN
    with pytest.raises(ValueError, match="no verdicts"):
        worst([])


CODES = {
    Verdict.ERROR: 3,
    Verdict.FAIL: 1,
    Verdict.UNEXPECTED_PASS: 1,
    Verdict.FLAKY: 1,
    Verdict.CONSUMER_ERROR: 2,
    Verdict.INCONCLUSIVE: 2,
    Verdict.NOT_RUN: 2,
    Verdict.DEVIATION: 0,
    Verdict.WAIVED: 0,
    Verdict.UNSUPPORTED: 0,
    Verdict.CHOICE: 0,
    Verdict.PASS: 0,
}


@pytest.mark.parametrize("verdict", Verdict)
def test_exit_code_of_one_verdict(verdict: Verdict) -> None:
    assert exit_code([verdict]) == CODES[verdict]
    assert exit_code([verdict], strict=True) == (1 if verdict is Verdict.DEVIATION else CODES[verdict])


@pytest.mark.parametrize(
    ("verdicts", "strict", "code"),
    [
        ([], False, 5),
        ([], True, 5),
        ([Verdict.PASS, Verdict.FAIL, Verdict.ERROR], False, 3),
        ([Verdict.INCONCLUSIVE, Verdict.FLAKY], False, 1),
        ([Verdict.NOT_RUN, Verdict.DEVIATION], False, 2),
        # A certain failure outranks an unknown.
        ([Verdict.NOT_RUN, Verdict.DEVIATION], True, 1),
    ],
)
def test_exit_code_of_several(verdicts: list[Verdict], strict: bool, code: int) -> None:
    assert exit_code(verdicts, strict=strict) == code


def test_broken_and_undecided_are_the_codes_1_3_and_2() -> None:
    assert {verdict for verdict in Verdict if CODES[verdict] in {1, 3}} == BROKEN
    assert {verdict for verdict in Verdict if CODES[verdict] == 2} == UNDECIDED
