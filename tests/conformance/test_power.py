"""How soon a fault is noticed: the detections, their spread over processes, and the page that is made of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from cli import verbspec

from verbs_conformance import power, power_page
from verbs_conformance.power import GUIDED, UNDIRECTED, WRITTEN, Caught, Row, Task

FAULT = "peer-qp-num"
UNSEEN_BY_FIXTURES = "hints-refused"


def test_written_programs_tell_a_fault_by_a_right_rule() -> None:
    row = Row(FAULT)
    task = Task(FAULT, WRITTEN, 1, 1)
    row.note(task, power.detect(task))
    assert row.is_right


@pytest.mark.parametrize("manner", [GUIDED, UNDIRECTED])
def test_drawn_programs_end_at_the_first_failure_or_with_the_calls(manner: str) -> None:
    told = power.detect(Task(FAULT, manner, 1, 1000))
    assert told is not None
    assert told.calls <= 1000
    assert power.detect(Task(UNSEEN_BY_FIXTURES, manner, 1, 1)) is None


def test_a_detection_is_the_same_in_another_process() -> None:
    todo = [Task(FAULT, GUIDED, 1, 1000), Task(FAULT, GUIDED, 2, 1000)]
    here = {task: caught.calls for task, caught in power.measure(todo, 1) if caught}
    there = {task: caught.calls for task, caught in power.measure(todo, 2) if caught}
    assert here == there
    assert here.keys() >= set(todo)


def test_the_page_is_made_of_what_was_written(tmp_path: Path) -> None:
    told = Caught(7, 0.5, "regress/number-of-own-pair", ("cq/poll-send", "rq/completed"))
    rows = [Row(FAULT, told, {1: told, 2: None, 3: told}, {1: None, 2: None, 3: told})]
    power_page.write(tmp_path / "power.yaml", power_page.data(rows, 100, 61.0))
    measured, read = power_page.read(tmp_path / "power.yaml")
    assert read == rows
    text = power_page.page(measured, read, {})
    assert "**cq/poll-send**, rq/completed | 7 (2/3) | 0.5 | > 35 (1/3) |  |" in text
    assert "caught 1, with a right rule among the suspects 1" in text
    assert "caught a fault within 100 calls in 2 of 3 detections (67%)" in text
    done = verbspec("faults", "--data", str(tmp_path / "power.yaml"), "--page", str(tmp_path / "power.md"))
    assert done.code == 0
    assert (tmp_path / "power.md").read_text(encoding="utf-8") == text


def test_what_undirected_programs_did_not_catch_counts_as_all_their_calls() -> None:
    told, late = Caught(20, 0.5, "a", ()), Caught(80, 0.5, "a", ())
    row = Row(FAULT, None, {1: told, 2: told, 3: None, 4: None}, {1: None, 2: late, 3: None, 4: told})
    assert power_page.fewer([row]) == [0.2, 0.25, math.inf]


def test_an_unknown_fault_is_answered_with_the_nearest() -> None:
    done = verbspec("faults", "--matrix", "--only", FAULT[:-1])
    assert done.code == 4
    assert FAULT in done.text
