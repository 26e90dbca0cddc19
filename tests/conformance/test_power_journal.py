"""A measurement of the suite's power can be ended and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from verbs_conformance import power, power_journal
from verbs_conformance.power import GUIDED, UNDIRECTED, WRITTEN, Caught, Task
from verbs_conformance.power_journal import Journal, OtherSources

TOLD = Caught(7, 0.5, "regress/number-of-own-pair", ("cq/poll-send",))
ONE, OTHER = Task("peer-qp-num", GUIDED, 1, 10), Task("byte-len-zero", GUIDED, 1, 10)


def test_what_is_known_is_not_measured_again(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal.jsonl")
    first.note(ONE, TOLD)
    first.note(OTHER, None)
    first.spent(2.0)
    again = Journal(tmp_path / "journal.jsonl")
    again.spent(1.5)
    assert again.found == {ONE: TOLD, OTHER: None}
    assert again.seconds == 3.5


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = Journal(path)
    whole.note(ONE, TOLD)
    whole.note(OTHER, None)
    path.write_bytes(path.read_bytes()[:-9])
    assert Journal(path).found == {ONE: TOLD}


def test_results_of_other_sources_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path)
    monkeypatch.setattr(power_journal, "digest", lambda: "another")
    with pytest.raises(OtherSources, match="--journal"):
        Journal(path)


def test_seeds_that_are_not_whole_are_left_out() -> None:
    names = [ONE.fault, OTHER.fault]
    todo = power.tasks(names, 2, 10)
    found: dict[Task, Caught | None] = dict.fromkeys(todo, TOLD)
    for task in todo:
        if task.manner == GUIDED and task != todo[-1]:
            found[power.compared(task, TOLD)] = None
    assert not power.is_known(todo[-1], found)
    for row in power.rows(names, todo, found):
        assert row.guided == {1: TOLD}
        assert row.undirected == {1: None}
        assert row.written == TOLD


def test_undirected_programs_have_as_many_calls_as_decide() -> None:
    assert power.compared(ONE, TOLD) == Task(ONE.fault, UNDIRECTED, 1, TOLD.calls * power.TIMES)
    assert power.compared(ONE, None) == Task(ONE.fault, UNDIRECTED, 1, ONE.most)


def test_no_detection_is_begun_when_time_is_up() -> None:
    todo = [Task(ONE.fault, WRITTEN, 1, 1), Task(OTHER.fault, WRITTEN, 1, 1)]
    assert not list(power.measure(todo, 1, until=0.0))
    assert not list(power.measure(todo, 2, until=0.0))
