"""Each fault shows; without faults the same steps give what a correct device gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from softhca_case import Case
from softhca_rig import Rig
from softhca_scenarios import CASES

import verbs_adapters.softhca
from verbs_adapters.contract import Answer
from verbs_adapters.softhca.faults import FAULTS, NOT_EXPRESSED

SEEDS = range(12)


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
    assert re.fullmatch(r"B\d+|M-[A-Z]+-\d+|G\d+|D-R\d+", fault.entry)
    assert fault.needs.items() <= CASES[name].rig.items()


def test_faults_are_switched_at_one_place() -> None:
    """Each name stands in the sources (few have two lines to change) and no unknown name does."""
    folder = Path(verbs_adapters.softhca.__file__).parent
    sources = "".join(path.read_text() for path in folder.glob("*.py") if path.name != "faults.py")
    used = re.findall(r'"([a-z0-9-]+)" (?:not )?in (?:self\.)?(?:_?faults|settings\.fault)', sources)
    assert set(used) == set(FAULTS)
    assert max(used.count(name) for name in FAULTS) <= 3


def test_what_is_not_expressed_has_no_switch() -> None:
    assert not set(NOT_EXPRESSED) & {fault.entry for fault in FAULTS.values()}


def test_faults_add_up() -> None:
    case = CASES["nop-completion"]
    found = outcome(case, 0, "nop-completion,receives-not-flushed")
    assert found == ([], [(0, "WR_FLUSH_ERR")])
