"""The same command twice: the second time nothing is fetched or built, and the verdicts are the same."""

from __future__ import annotations

from pathlib import Path

import slices

SELECTED = ("--select", "reg/*", "--select", "inv/*", "--select", "regress/foreign-invalidation")
"""What soft-RoCE passes, and one program that it fails."""


def test_the_same_again_builds_nothing_and_says_the_same(tmp_path: Path) -> None:
    first = slices.run(tmp_path, *SELECTED)
    again = slices.run(tmp_path, *SELECTED)

    assert first.failing == {"regress/foreign-invalidation"}
    assert again.verdicts == first.verdicts
    assert again.code == first.code == 1
    assert not [line for line in again.output.splitlines() if line.startswith("lab: ")], "something was made"
