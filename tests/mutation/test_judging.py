"""Mutants that are known to be noticed, and one that cannot be, judged as drawn ones are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from mutation.conditions import Condition, Healthy, healthy
from mutation.judging import CRASHED, KILLED, NOT_EXECUTED, SURVIVED, TIMED_OUT, Bench, Outcome
from mutation.mutant import SOURCES, Mutant, mutant
from mutation.outcome import Journal, OtherSources, digest, equivalents, record

CONDITION = Condition("linux-kernel", "roce")
FILES = sorted(SOURCES.glob("*.py"))
PROGRAMS = frozenset({"regress/last-byte-read", "regress/destroy-spares-neighbour"})


@cache
def known() -> Healthy:
    (found,) = healthy([CONDITION], lambda _line: None, PROGRAMS)
    return found


def planted(module: str, old: str, new: str) -> Mutant:
    text = (SOURCES / f"{module}.py").read_text(encoding="utf-8")
    assert text.count(old) == 1
    return mutant("planted", module, text, text.replace(old, new))


def judged(*mutants: Mutant) -> list[Outcome]:
    bench = Bench(known(), [CONDITION], seconds=1.0, hang=3.0)
    return [outcome for _, outcome in sorted(bench.judge_all(mutants, 1), key=lambda each: mutants.index(each[0]))]


FIND = planted("keys", "return self._regions.get(key >> 8)", "return self._regions.get(key >> 9)")
SAME = planted("keys", "index = self._next\n", "index = self._next + 0\n")


@pytest.mark.parametrize(
    ("planting", "verdict"),
    [
        (FIND, KILLED),
        (planted("keys", "return self._regions.get(key >> 8)", "return self._regions.get(None >> 8)"), CRASHED),
        (planted("engine", "            self._members.remove(qp)\n", "            continue\n"), TIMED_OUT),
        (SAME, SURVIVED),
        (planted("srq", '{"max_wr": srq.size,', '{"max_wr": None,'), NOT_EXECUTED),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_planted_mutant_has_its_verdict(planting: Mutant, verdict: str) -> None:
    before = digest()

    (found,) = judged(planting)

    assert found.verdict == verdict, found
    assert digest() == before


def test_a_journal_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run" / "mutants.jsonl"
    journal = Journal(path)
    journal.note(record(FIND, Outcome(SURVIVED)))
    journal.note(record(FIND, Outcome(KILLED, by="a program")))
    with path.open("ab") as file:
        file.write(b'{"name": "cut')

    again = Journal(path)

    assert [(r.module, r.verdict, r.by) for r in again.of([SAME, FIND])] == [("keys", KILLED, "a program")]


def test_a_journal_of_other_sources_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mutants.jsonl"
    path.write_text('{"device": "another"}\n', encoding="utf-8")

    with pytest.raises(OtherSources, match="holds results of other sources"):
        Journal(path)


def test_every_equivalent_mutant_is_of_a_line_that_is_there() -> None:
    """Its reason is of that line, and goes when the line does."""
    texts = {path.stem: [line.strip() for line in path.read_text(encoding="utf-8").splitlines()] for path in FILES}

    for each in equivalents():
        assert set(each.old.splitlines()) <= set(texts[each.module]), each
