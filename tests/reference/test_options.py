"""What a backend cannot reach because of the options that it takes."""

from __future__ import annotations

from functools import cache

import pytest

from verbs_reference.model import Model
from verbs_reference.options import barring
from verbs_spec.loader import load
from verbs_spec.profiles import select


@cache
def model() -> Model:
    return Model(select(load(), "linux-kernel", "roce"))


@pytest.mark.parametrize(
    ("rule", "choice", "bars", "leaves"),
    [
        ("mr/alloc-zero", "zero_pages", "ACCEPT", "REFUSE"),
        ("reg/rights", "weak_rights", "ACCEPT", "REFUSE"),
    ],
)
def test_a_rule_of_the_other_option_is_out_of_reach(rule: str, choice: str, bars: str, leaves: str) -> None:
    assert barring(model(), rule, {choice: {bars}}) == choice
    assert barring(model(), rule, {choice: {leaves}}) == ""
    assert barring(model(), rule, {choice: {bars, leaves}}) == ""
    assert barring(model(), rule, {}) == ""


def test_most_rules_are_in_reach_whatever_is_taken() -> None:
    for choice, (options, _) in model().voc.choices.items():
        for option in options:
            barred = {str(r) for r in model().spec.rules if barring(model(), str(r), {choice: {option}})}
            assert len(barred) <= 3, (choice, option, barred)
            assert not barred & {"reg/done", "inv/done", "write/done", "qp/modify", "mr/alloc"}


def test_no_option_is_the_reason_that_a_rule_is_out_of_reach_with_each() -> None:
    windows = Model(select(load(), "linux-user", "roce", ("atomics", "memory-windows", "memory-windows-2")))

    assert barring(windows, "mw/alloc-no-type-2", {"unaligned_atomic": {"AT_POST"}}) == ""
