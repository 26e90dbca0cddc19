"""The committed measurement of the suite's power: what it says of each fault holds, and the page is made of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import median

import pytest

from verbs_conformance import faults, power, power_figures, power_page
from verbs_conformance.power import GUIDED, WRITTEN, Row, Task

DOCS = Path(__file__).parents[2] / "docs"
SAMPLE = 3
MOST_SUSPECTS = 5


@cache
def _measured() -> tuple[power_page.Fields, list[Row]]:
    return power_page.read(DOCS / "power.yaml")


def _soonest(manner: str) -> list[str]:
    """The faults that these programs caught soonest."""
    rows = _measured()[1]
    calls = {r.fault: (r.written if manner == WRITTEN else r.guided.get(1)) for r in rows}
    found = {fault: caught.calls for fault, caught in calls.items() if caught is not None}
    return sorted(found, key=lambda fault: found[fault])[:SAMPLE]


def test_the_page_is_made_of_the_data() -> None:
    text = power_page.page(*_measured(), power_page.beside(DOCS))
    assert text == (DOCS / "power.md").read_text(encoding="utf-8"), (
        "make it anew with 'verbspec faults --data docs/power.yaml --page docs/power.md'"
    )


def test_each_fault_was_measured_and_nothing_else() -> None:
    assert [row.fault for row in _measured()[1]] == list(faults.known())


def test_written_programs_catch_each_fault_that_a_text_forbids_with_a_right_rule() -> None:
    for row in power_page.hard(_measured()[1]):
        assert row.is_right, row.fault
        assert row.written is not None
        assert len(row.written.suspects) <= MOST_SUSPECTS


def test_guided_programs_need_a_fifth_of_the_calls() -> None:
    ratios = power_page.fewer(power_page.hard(_measured()[1]))
    assert len(ratios) >= 80
    assert median(ratios) <= 1 / power.TIMES


@pytest.mark.parametrize("fault", _soonest(WRITTEN))
def test_written_programs_still_catch_it(fault: str) -> None:
    row = Row(fault, power.detect(Task(fault, WRITTEN, 1, 1)))
    assert row.is_right
    assert row.written is not None
    known = next(r for r in _measured()[1] if r.fault == fault).written
    assert known is not None
    assert row.written.calls <= 10 * known.calls


@pytest.mark.parametrize("fault", _soonest(GUIDED))
def test_guided_programs_still_catch_it(fault: str) -> None:
    assert power.detect(Task(fault, GUIDED, 1, _measured()[0]["most_calls"])) is not None


def test_what_is_asked_for_is_told_of_each_benchmark() -> None:
    machine = {"date": "2026-11-30", "processors": 2, "machine": "x", "model": "y", "python": "3"}
    alarms = {"threads": 4, "programs": 10, "calls": 100, "ways": 2, "unobserved": 0.4, "alarms": 1}
    others: dict[str, power_page.Fields] = {
        "mutants": {**machine, "mutants": [{"verdict": "killed"}, {"verdict": "crashed"}, {"verdict": "survived"}]},
        "alarms": {"threaded": {**machine, **alarms}},
        "speed": {
            "suite": {**machine, "directed": 5000, "stateful": 60, "bare": 100, "share": 0.6},
            "objects": {**machine, "few": 10, "many": 10_000, "p99": 1.7},
        },
    }
    assert [enough for _, _, enough in power_figures.asked(others)] == [False, False, True, True, True, False]
    text = power_page.page(*_measured(), others)
    for words in ("notices 2 of 3", "4 threads; 40% of the calls", "5,000 checked calls per second", "1.70 times"):
        assert words in text
