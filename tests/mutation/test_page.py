"""The page of the mutants: made from the data, which stand by what is known to be equivalent and by a sample."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import yaml
from mutation.conditions import Condition, healthy
from mutation.drawing import GROUPS
from mutation.judging import CRASHED, KILLED, NOT_EXECUTED, SURVIVED, Bench
from mutation.mutant import ROOT, SOURCES, Mutant, mutant
from mutation.outcome import Place, equivalents
from mutation.page import page, wilson

DATA, PAGE = ROOT / "docs" / "mutants.yaml", ROOT / "docs" / "mutants.md"
CONDITION = Condition("linux-user", "roce")


@cache
def measured() -> Mapping[str, Any]:
    found = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_page_is_made_from_the_data() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(measured()), "python benchmarks/mutate.py --page makes both"


def test_nine_in_ten_of_what_is_not_equivalent_are_killed() -> None:
    found = [m for m in measured()["mutants"] if "equivalent" not in m]
    killed = [m for m in found if m["verdict"] in {KILLED, CRASHED}]

    assert len(measured()["mutants"]) == measured()["count"] >= 400
    assert len(killed) >= 0.9 * len(found)


def test_what_is_told_as_equivalent_is_listed_so() -> None:
    known = equivalents()
    left = [m for m in measured()["mutants"] if m["verdict"] in {SURVIVED, NOT_EXECUTED}]
    said = {Place(m["mutant"].partition(":")[0], m["in"], m["old"], m["new"]): m.get("equivalent", "") for m in left}

    assert said == {place: known.get(place, "") for place in said}


def test_a_sample_is_killed_as_it_was() -> None:
    sample = dict(one_of_each_group())
    assert len(sample) >= len(GROUPS) / 2, "softhca has changed: judge its mutants again (python benchmarks/mutate.py)"
    (known,) = healthy([CONDITION], lambda _line: None, frozenset(sample.values()))

    found = {m.group: outcome.verdict for m, outcome in Bench(known, [CONDITION]).judge_all(list(sample), 1)}

    assert set(found.values()) <= {KILLED, CRASHED}, found


def one_of_each_group() -> Iterator[tuple[Mutant, str]]:
    """Killed mutants of lines that are still there, each with the written program that killed it."""
    told: set[str] = set()
    for m in measured()["mutants"]:
        module = m["mutant"].partition(":")[0]
        text = (SOURCES / f"{module}.py").read_text(encoding="utf-8")
        by = re.fullmatch(rf"(\S+) \({CONDITION}, seed 1\)", m.get("by", ""))
        lines = [line.strip() for line in text.splitlines()]
        if by and m["verdict"] in {KILLED, CRASHED} and m["group"] not in told and lines.count(m["old"]) == 1:
            told.add(m["group"])
            line = text.splitlines()[lines.index(m["old"])]
            changed = text.replace(f"{line}\n", line.replace(m["old"], m["new"]) + "\n")
            yield mutant(m["group"], module, text, changed), by[1]


def test_the_interval_is_wilsons() -> None:
    """Against the table of Newcombe (1998), Two-sided confidence intervals for the single proportion, method 3."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
