"""A kernel that somebody built is booted and judged, with the exit codes that `git bisect run` wants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import slices

from verbs_adapters.lab import image
from verbs_adapters.lab.adapter import tell
from verbs_adapters.lab.kernels import KERNELS
from verbs_adapters.lab.own import OwnKernel
from verbs_reports.results import read

HEALTHY = "regress/invalid-again"
"""A program that soft-RoCE passes."""

DEFECT = "regress/foreign-invalidation"
"""One that it fails."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The packaged kernel, laid out as ``make modules_install`` and a copy of the image lay out one's own."""
    packaged = image.ensure(KERNELS["6.1"], tell).tree
    packaged.settle_headers()  # one's own lie where their makefiles say
    made = tmp_path / "mine"
    modules = made / "lib/modules" / packaged.release
    modules.parent.mkdir(parents=True)
    modules.symlink_to(packaged.folder / "lib/modules" / packaged.release)
    (made / "usr/src").mkdir(parents=True)
    (made / "usr/src" / packaged.headers.name).symlink_to(packaged.headers)
    (made / "bzImage").symlink_to(packaged.vmlinuz)
    return made


def lab_run(folder: Path, out: Path, select: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "verbs_conformance.cli", "lab", "run", "--kernel", str(folder)]
    command += ["--select", select, "--rounds", "1", "--budget", "0s", "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_kernel_of_ones_own_is_judged(folder: Path, tmp_path: Path) -> None:
    release = OwnKernel(folder, folder).release

    passed = lab_run(folder, tmp_path / "out", HEALTHY)

    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert f"building kverbs.ko for {release}" in passed.stderr
    results = read(tmp_path / "out" / "results.jsonl")
    assert results.header.device.kernel.endswith(release)
    assert [p.verdict for p in results.programs] == ["pass"]


@pytest.mark.skipif(not slices.EVERYTHING, reason="one more guest: tox -e lab-all")
def test_a_defect_of_a_kernel_of_ones_own_is_told(folder: Path, tmp_path: Path) -> None:
    failed = lab_run(folder, tmp_path / "out", DEFECT)

    assert failed.returncode == 1, failed.stdout + failed.stderr


def broken(whole: bytes, how: str) -> bytes:
    """An image that is not whole any more."""
    half = len(whole) // 2
    return whole[:half] if how == "truncated" else whole[:half] + bytes(64) + whole[half + 64 :]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("truncated", "the guest is gone"),
        pytest.param(
            *("corrupt", "the kernel's image does not unpack itself: XZ-compressed data is corrupt"),
            marks=pytest.mark.skipif(not slices.EVERYTHING, reason="one more guest: tox -e lab-all"),
        ),
    ],
)
def test_a_kernel_that_does_not_boot_cannot_be_tested(folder: Path, tmp_path: Path, how: str, said: str) -> None:
    whole = (folder / "bzImage").read_bytes()
    (folder / "bzImage").unlink()
    (folder / "bzImage").write_bytes(broken(whole, how))

    done = lab_run(folder, tmp_path / "out", HEALTHY)

    assert done.returncode == 125
    assert said in done.stderr
    assert not (tmp_path / "out").exists()
