"""Each fault shows; without faults the same steps give what a correct device gives."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from softhca_case import Case
from softhca_rig import Rig
from softhca_scenarios import CASES

import verbs_adapters.softhca
from verbs_adapters.contract import Answer
from verbs_adapters.softhca.faults import FAULTS, NOT_EXPRESSED
from verbs_adapters.softhca.scripts import SCRIPTS

SEEDS = range(12)
MOST_LINES = 3
HISTORY = """
01 02 04 05 07 08 10 11 13 14 16 17 19 20 22 23 25 26 28 29 31 32 34 35 37 38 40 41 43 44 46 47 49 50 52 53
55 56 58 59 61 62 64 65 67 68 70 71 73 74 76 77 79 80 82 83 85 86 88 89 91 92 94 95 97 98 100 101 103 104
106 107 109 110 112 113 115 116 118 119 121 122 124 125 127 128 130 131 133 134 136 137 139 140 142 143 145
146 148 149 151 152 154 155 157 158 160 161 163 164 166 167 169 170 172 173 175 176 178 179 181 182 184 185
187 188 190
"""
"""Numbers of the corpus of bugs that devices and drivers had."""
SLIPS = """
MR-1 MR-3 MR-5 MR-7 FR-1 FR-3 FR-5 FR-7 MW-1 MW-3 MW-5 MW-7 RC-1 RC-3 RC-5 QP-1 QP-3 QP-5 WR-1 WR-3 WR-5
WC-1 WC-3 WC-5 FL-1 FL-3 FL-5 OR-1 OR-3 OR-5 CQ-1 CQ-3 CQ-5 NT-1 NT-3 NT-5 SR-1 SR-3 SR-5 AE-1 AE-3 RS-1
RS-3 RS-5
"""
"""Numbers of the plausible slips beside them."""
FOLDER = Path(verbs_adapters.softhca.__file__).parent


def outcome(case: Case, seed: int, fault: str = "") -> object:
    rig = Rig(seed, **case.rig, fault=fault)
    found = case.scenario(rig)
    # a crash is an outcome too: the scenario hands over what the call returned
    return None if isinstance(found, Answer) else found


def test_every_fault_has_a_case() -> None:
    assert set(CASES) == set(FAULTS)


@pytest.mark.parametrize("name", sorted(CASES))
def test_healthy_device(name: str) -> None:
    case = CASES[name]
    for seed in SEEDS:
        assert outcome(case, seed) == case.right, seed


@pytest.mark.parametrize("name", sorted(CASES))
def test_fault_shows(name: str) -> None:
    case = CASES[name]
    found = [outcome(case, seed, name) for seed in SEEDS]
    assert any(each != case.right for each in found)


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_entry_and_needs(name: str) -> None:
    fault = FAULTS[name]
    assert fault.name == name
    for entry in fault.entries:
        assert re.fullmatch(r"B\d+|M-[A-Z]+-\d+|G\d+|D-R\d+", entry) or entry.removeprefix("W-") in SCRIPTS, entry
    assert fault.needs.items() <= CASES[name].rig.items()


def switched() -> Iterator[tuple[str, int]]:
    """Each place that asks for a fault, and how many lines that changes: those of the statement, or those it guards."""
    for path in sorted(FOLDER.glob("*.py")):
        if path.name != "faults.py":
            yield from _asked(ast.parse(path.read_text(encoding="utf-8")))


def _asked(node: ast.AST) -> Iterator[tuple[str, int]]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt):
            blocks = [each for name in ("body", "orelse", "finalbody") for each in getattr(part, name, ())]
            handlers = getattr(part, "handlers", [])
            own = [each for each in ast.iter_child_nodes(part) if each not in blocks and each not in handlers]
            for name, test in (found for each in own for found in _names(each)):
                yield name, _lines(part.body) if isinstance(part, ast.If) and _guards(part.test, test) else 1
        yield from _asked(part)


def _names(node: ast.AST) -> Iterator[tuple[str, ast.Compare]]:
    """The faults that an expression asks for, and where: ``"name" in faults``."""
    for part in ast.walk(node):
        if isinstance(part, ast.Compare) and re.search("faults?$", ast.unparse(part.comparators[0])):
            yield ast.literal_eval(part.left), part


def _guards(test: ast.expr, asked: ast.Compare) -> bool:
    """Whether what follows is done only with the fault, or only without it; otherwise the test is what it changes."""
    if test is asked:
        return True
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
    return asked in parts and isinstance(asked.ops[0], ast.In)


def _lines(statements: Sequence[ast.stmt]) -> int:
    """Statements, each of which stands for a line, with those inside."""
    return sum(isinstance(part, ast.stmt) for each in statements for part in ast.walk(each))


def test_a_fault_changes_few_lines() -> None:
    """No name that is asked for is unknown, and no fault changes more lines than three."""
    changed = Counter[str]()
    for name, lines in switched():
        changed[name] += lines
    assert set(changed) == set(FAULTS)
    assert {name: lines for name, lines in changed.items() if lines > MOST_LINES} == {}


def test_every_entry_has_a_fault_or_a_reason() -> None:
    entries = {f"B{number}" for number in HISTORY.split()} | {f"M-{slip}" for slip in SLIPS.split()}
    expressed = {entry for fault in FAULTS.values() for entry in fault.entries}
    assert expressed & set(NOT_EXPRESSED) == set()
    assert entries - expressed == set(NOT_EXPRESSED)


def test_faults_add_up() -> None:
    case = CASES["nop-completion"]
    found = outcome(case, 0, "nop-completion,receives-not-flushed")
    assert found == ([], [(0, "WR_FLUSH_ERR")])
