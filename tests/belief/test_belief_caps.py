"""A limit of the search is said, with the limit, and is no verdict."""

from __future__ import annotations

import random
from dataclasses import replace

from programs import SETTLE, analysis, honest, model, program

from verbs_reference.belief import Belief, Inconclusive, Refused


def _first_problem(cap: int, steps: int) -> object:
    for i in range(20):
        rng = random.Random(f"caps/{i}")
        belief = Belief(model(), analysis(), cap=cap, steps=steps)
        for action in honest(program(rng, sends=3), rng, shared=True):
            found = belief.settle() if action is SETTLE else belief.observe(action)
            if found is not None:
                return found
    return None


def test_too_many_explanations() -> None:
    found = _first_problem(cap=1, steps=20_000)
    assert isinstance(found, Inconclusive)
    assert "more than 1 explanation" in found.reason


def test_too_many_states() -> None:
    found = _first_problem(cap=512, steps=3)
    assert isinstance(found, Inconclusive)
    assert "more than 3 states" in found.reason


def test_a_refusal_stands_where_saying_why_needs_too_many_states() -> None:
    refused = 0
    for steps in range(3, 40):
        rng = random.Random(f"refused/{steps}")
        belief = Belief(model(), analysis(), steps=steps)
        for action in honest(program(rng, sends=3), rng, shared=True):
            if action is not SETTLE and action.call == "poll_cq":
                found = belief.observe(replace(action, result="EDOM"))
                assert isinstance(found, Refused)
                assert found.suspects
                refused += 1
            problem = belief.settle() if action is SETTLE else belief.observe(action)
            if problem is not None:
                break
    assert refused > 40
