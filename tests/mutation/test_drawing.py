"""Which mutants are drawn, and which are passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation.drawing import draw
from mutation.plain import reason

SOURCE = '''"""A device."""

from collections.abc import Callable

Step = Callable[[int], int]


def work(n: int, _faults: set[str]) -> int:
    """Work."""
    if n < 0:
        raise ValueError("no work is less than none")
    if "adds-less" in _faults:
        return n
    return n + 1
'''


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("n + 1", "n - 1", ""),
        ("n < 0", "n <= 0", ""),
        ('"adds-less" in', '"adds-less" not in', ""),
        ('"adds-less"', '"ADDS-LESS"', "fault"),
        ("return n\n", "return None\n", "fault"),
        ('"no work is less than none"', "None", "message"),
        ("Callable[[int], int]", "None", "annotation"),
        ("n: int", "n: None", "annotation"),
        ("n + 1", "(n + 1)", "text"),
    ],
)
def test_what_cannot_change_a_healthy_device_is_passed_over(old: str, new: str, why: str) -> None:
    assert SOURCE.count(old) == 1

    assert reason(SOURCE, SOURCE.replace(old, new)) == why


def test_a_draw_is_even_and_its_seed_decides_it(tmp_path: Path) -> None:
    groups = {"one": ("first",), "other": ("second", "third")}
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.py").write_text(SOURCE.replace("1", f"{len(name)}"), encoding="utf-8")
    names = [m.name for m in draw(9, 1, groups, tmp_path).mutants]

    assert [m.group for m in draw(9, 1, groups, tmp_path).mutants] == ["one"] * 5 + ["other"] * 4
    assert names == [m.name for m in draw(9, 1, groups, tmp_path).mutants]
    assert names != [m.name for m in draw(9, 2, groups, tmp_path).mutants]
    for each in draw(9, 1, groups, tmp_path).mutants:
        assert reason((tmp_path / f"{each.module}.py").read_text(encoding="utf-8"), each.source) == ""
