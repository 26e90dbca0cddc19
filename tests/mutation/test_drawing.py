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
    if n == 7 and "adds-more" in _faults:
        return 8
    return n + 1


class Device:
    """It works."""

    pace = "lazy"

    def __init__(self, faults: set[str]) -> None:
        self.faults = faults
        self.idle = "never-works" in faults

    def call(self, n: int) -> int:
        backwards = "counts-backwards" in self.faults
        if self.faults:
            n = self._spoil(n)
        return 3 if self.idle else -n if backwards else self._worked(n)

    def _spoil(self, n: int) -> int:
        return n * 9

    def _worked(self, n: int) -> int:
        return n * 5
'''


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("n + 1", "n - 1", ""),
        ("n < 0", "n <= 0", ""),
        ('"adds-less" in', '"adds-less" not in', ""),
        ("n == 7", "n != 7", "fault"),
        ("n == 7 and", "n == 7 or", ""),
        ("n * 9", "n * 10", "fault"),
        ("n * 5", "n * 6", ""),
        ("return 3 if", "return 4 if", "fault"),
        ("else -n", "else +n", "fault"),
        ("if self.faults", "if not self.faults", ""),
        ('"adds-less"', '"ADDS-LESS"', "fault"),
        ("return n\n", "return None\n", "fault"),
        ('"no work is less than none"', "None", "message"),
        ("Callable[[int], int]", "None", "annotation"),
        ("n: int, _faults", "n: None, _faults", "annotation"),
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


def test_a_changed_line_changes_the_draw_by_its_own_mutants(tmp_path: Path) -> None:
    groups = {"one": ("first",)}
    path = tmp_path / "first.py"
    drawn = []
    for text in (SOURCE, SOURCE.replace("    if n < 0", "    n = abs(n)\n    if n < 0")):
        path.write_text(text, encoding="utf-8")
        drawn.append([(m.function, m.old, m.new) for m in draw(100, 1, groups, tmp_path).mutants])

    before, after = drawn
    assert len(before) > 2
    assert [each for each in after if "abs" not in each[1]] == before
