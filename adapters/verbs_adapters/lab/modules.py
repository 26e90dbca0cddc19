"""Kernel modules of ours, built for a guest's kernel and kept until their source changes."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host
from verbs_adapters.lab.tree import Tree

KVERBS = Path(__file__).parents[1] / "kverbs" / "module"


def kverbs(tree: Tree, compiler: str, folder: Path, notice: host.Notice) -> Path:
    """The module `kverbs` for a kernel."""
    return build("kverbs", KVERBS, tree, compiler, folder, notice)


def build(name: str, source: Path, tree: Tree, compiler: str, folder: Path, notice: host.Notice) -> Path:
    """Build `name`.ko from a folder of sources; a warning of the compiler fails the build, for it is our code."""
    files = sorted(p for p in source.iterdir() if p.suffix in {".c", ".h"} or p.name in {"Kbuild", "Makefile"})
    digest = hashlib.sha256()
    for part in (tree.release.encode(), compiler.encode(), *(p.name.encode() + p.read_bytes() for p in files)):
        digest.update(part)
    made = folder / f"{name}-{digest.hexdigest()[:16]}" / f"{name}.ko"
    if made.exists():
        return made
    host.require(("make", "strip", compiler), "building the kernel module")
    work = folder / f"{name}.build"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for file in files:
        shutil.copy2(file, work)
    log = folder / f"{name}.log"
    log.unlink(missing_ok=True)
    command = ["make", "-C", str(tree.headers), f"M={work}", f"CC={compiler}", f"HOSTCC={compiler}", "modules"]
    with host.Timed(notice, f"building {name}.ko for {tree.release}"):
        host.run(command, log, what=f"building the kernel module {name}")
    warnings = [line for line in log.read_text(encoding="utf-8").splitlines() if "warning:" in line.lower()]
    if warnings:
        raise AdapterError(f"{name} does not build without warnings ({log}):\n  " + "\n  ".join(warnings[:10]))
    host.run(["strip", "-g", work / f"{name}.ko"], log, what="stripping the module")
    made.parent.mkdir(exist_ok=True)
    (work / f"{name}.ko").replace(made)
    shutil.rmtree(work)
    return made
