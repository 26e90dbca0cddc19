"""The suite bites on a real driver: soft-RoCE with a planted defect fails, where the same source unchanged does not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import slices

from verbs_adapters.lab import image, sources
from verbs_adapters.lab.adapter import tell
from verbs_adapters.lab.kernels import KERNELS

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="four builds of a driver: tox -e lab-all")

SELECTED = ("--select", "reg/*", "--select", "inv/*", "--select", "regress/*regist*", "--select", "regress/*invalid*")

# Each defect: one line of rxe_mr.c, what it becomes, and the rules one of which a failing program must suspect.
DEFECTS = {
    "invalidation-leaves-valid": ("\tmr->state = RXE_MR_STATE_FREE;\n\tret = 0;", "\tret = 0;", {"inv/done"}),
    "foreign-key-registers": ("(mr->lkey & ~0xff) != (key & ~0xff)", "false", {"reg/foreign"}),
    "valid-registers-again": ("mr->state != RXE_MR_STATE_FREE", "false", {"reg/valid"}),
}


@pytest.fixture(scope="module")
def rxe() -> Path:
    """The driver's sources, of the version of the guest's kernel."""
    built = image.ensure(KERNELS["6.1"], tell)
    return sources.drivers(built.kernel, built.folder, built.version, tell) / "rxe"


@pytest.fixture(scope="module")
def judge(rxe: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], slices.Slice]:
    """Judges the driver with a text of rxe_mr.c replaced."""

    def judge_changed(old: str, new: str) -> slices.Slice:
        folder = tmp_path_factory.mktemp("driver")
        changed = folder / "rxe"
        shutil.copytree(rxe, changed)
        text = (changed / "rxe_mr.c").read_text(encoding="utf-8")
        assert text.count(old) == 1
        (changed / "rxe_mr.c").write_text(text.replace(old, new), encoding="utf-8")
        return slices.run(folder / "out", "-o", f"driver={changed}", *SELECTED)

    return judge_changed


@pytest.fixture(scope="module")
def unchanged(judge: Callable[[str, str], slices.Slice]) -> slices.Slice:
    """What the driver fails as it is."""
    return judge("rxe_mr_cleanup", "rxe_mr_cleanup")


def test_the_unchanged_source_differs_as_the_packaged_driver_does(unchanged: slices.Slice) -> None:
    explained = {program for programs in slices.known("rxe_6_1").values() for program in programs}

    assert unchanged.troubles == []
    assert unchanged.failing <= explained


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_reported_with_its_rule(
    defect: str, judge: Callable[[str, str], slices.Slice], unchanged: slices.Slice
) -> None:
    old, new, rules = DEFECTS[defect]

    found = judge(old, new)

    new_failures = [
        p.failure for p in found.results.programs if p.failure is not None and p.name not in unchanged.failing
    ]
    assert new_failures, "the defect is not noticed"
    assert any(rules & set(failure.suspects) for failure in new_failures)
