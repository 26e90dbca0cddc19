"""Each known bug of the field, switched on in softhca, is caught by the program that pins it, and told apart."""

from __future__ import annotations

from functools import cache

import pytest

from verbs_conformance import faults, power
from verbs_conformance import program as programs
from verbs_conformance.judge import Judgement, shrink
from verbs_conformance.program import Program
from verbs_conformance.running import transcript
from verbs_reports.verdicts import Verdict

SEEDS = (1, 2, 3)
MOST_STEPS = 10
MOST_WITHOUT_FAULT = MOST_OF_FEATURE = 20
"""Programs about events take steps to get and acknowledge them, those about features to make their objects."""
MOST_SUSPECTS = 5
MOST_UNSEEN = 0.05


@cache
def _shipped() -> dict[str, Program]:
    return {p.name: p for p in programs.shipped("programs") if p.kind == "regression"}


def _most(program: Program) -> int:
    """How many steps a program that pins a fault may have."""
    return MOST_OF_FEATURE if program.feature else MOST_STEPS


def _own_lines(done: Judgement) -> int:
    return len(done.program.steps)


def test_each_fault_is_caught_or_has_a_reason() -> None:
    assert faults.pins().keys() | faults.unseen().keys() == faults.known().keys()
    assert not faults.pins().keys() & faults.unseen().keys()
    assert len(faults.unseen()) <= MOST_UNSEEN * len(faults.known())
    assert {faults.known()[name].oracle for name in faults.unseen()} == {"S"}


def test_programs_have_names_of_their_own() -> None:
    names = [p.name for p in programs.shipped("programs") if p.kind == "regression"]
    assert len(names) == len(set(names))


def test_programs_are_short_and_say_what_they_are_for() -> None:
    pinned = {pin.program for pin in faults.pins().values()}
    for name, program in _shipped().items():
        assert name.startswith(("regress/", "moves/", "device/"))
        assert program.says.endswith("."), name
        # those of no fault may make objects and connect queue pairs of their own
        asked = [s for s in program.steps if name in pinned or not (s.out or s.call == "modify_qp")]
        assert len(asked) <= (_most(program) if name in pinned else MOST_WITHOUT_FAULT), name


@pytest.mark.parametrize("fault", sorted(faults.pins()))
def test_fault_is_caught_and_told_apart(fault: str) -> None:
    pin = faults.pins()[fault]
    program = _shipped()[pin.program]
    judge = power.judge_of(fault)
    runs = [judge.run(program, seed) for seed in SEEDS]
    caught = [done for done in runs if done.verdict == Verdict.FAIL]
    assert caught if pin.schedule else len(caught) == len(SEEDS)

    short = shrink(judge, caught[0], tries=12)
    assert _own_lines(short) <= _most(program)
    for done in (caught[0], short):
        if pin.rules == {faults.CRASH}:
            assert done.trouble is not None
            assert (done.trouble.kind, done.trouble.whose) == ("crash", "backend")
        else:
            assert done.refused is not None
            assert len(done.suspects) <= MOST_SUSPECTS
            assert pin.rules & set(done.suspects), done.suspects

    again = [transcript(judge.engine, judge.run(short.program, short.seed), full=True) for _ in range(2)]
    assert again[0] == again[1] == transcript(judge.engine, short, full=True)


@pytest.mark.parametrize("fault", sorted(name for name in faults.pins() if faults.known()[name].needs.keys() - {"api"}))
def test_what_a_fault_needs_is_no_fault(fault: str) -> None:
    """A device that is set up as a fault needs, and has none, passes the program that catches the fault."""
    judge = power.judge_of(fault, healthy=True)
    program = _shipped()[faults.pins()[fault].program]
    assert {judge.run(program, seed).verdict for seed in SEEDS} == {Verdict.PASS}
