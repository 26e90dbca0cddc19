"""Kernel modules, built for a guest's kernel and kept until their source changes.

Theory of operation
-------------------
A module fits only the kernel whose headers it was built with, and is best built with the compiler of that kernel.  The
build tools that come with the headers are programs of the suite.  Where they run on this host, the module is built on
it; where they may not, inside a root of the suite that holds its compiler and the headers, made the first time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host
from verbs_adapters.lab.kernels import Kernel
from verbs_adapters.lab.packages import Archive
from verbs_adapters.lab.tree import Tree

KVERBS = Path(__file__).parents[1] / "kverbs" / "module"

_SOURCES = {".c", ".h"}
_MAKEFILES = {"Kbuild", "Makefile"}


class Workshop:
    """Where modules for one kernel are built."""

    def __init__(self, kernel: Kernel, folder: Path, tree: Tree, notice: host.Notice) -> None:
        """Use the image's folder; nothing is made yet."""
        self.kernel = kernel
        self.folder = folder
        self.tree = tree
        self.notice = notice
        self.kept = folder / "modules"

    def kverbs(self) -> Path:
        """The module `kverbs`; a warning of the compiler fails the build, for it is our code."""
        return self.build("kverbs", KVERBS, (), strict=True)

    def build(self, name: str, source: Path, settings: tuple[str, ...], *, strict: bool) -> Path:
        """Build `name`.ko from a folder of sources, with further settings of the kernel's make."""
        files = sorted(p for p in source.iterdir() if p.suffix in _SOURCES or p.name in _MAKEFILES)
        digest = hashlib.sha256()
        for word in (self.tree.release, self.kernel.compiler, *settings):
            digest.update(word.encode() + b"\0")
        for file in files:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        made = self.kept / f"{name}-{digest.hexdigest()[:16]}" / f"{name}.ko"
        if made.exists():
            return made
        with host.alone(self.folder):
            if not made.exists():  # somebody else may have built it while we waited
                self._build(name, files, settings, made, strict=strict)
        return made

    def _build(self, name: str, files: list[Path], settings: tuple[str, ...], made: Path, *, strict: bool) -> None:
        work = self._bench(name)
        for file in files:
            shutil.copy2(file, work)
        log = self.kept / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        with host.Timed(self.notice, f"building {name}.ko for {self.tree.release}"):
            host.run(self._make(work, settings), log, what=f"building the kernel module {name}")
        warnings = [line for line in log.read_text(encoding="utf-8").splitlines() if "warning:" in line.lower()]
        if warnings and strict:
            raise AdapterError(f"{name} does not build without warnings ({log}):\n  " + "\n  ".join(warnings[:10]))
        host.run(["strip", "-g", work / f"{name}.ko"], log, what="stripping the module")
        made.parent.mkdir(exist_ok=True)
        part = made.with_suffix(".part")
        shutil.copy2(work / f"{name}.ko", part)
        part.replace(made)  # whoever finds it finds it whole
        shutil.rmtree(work)

    # -- on the host, or in a root of its own --------------------------------------------------------

    @property
    def _root(self) -> Path:
        return self.folder / "workshop"

    def _bench(self, name: str) -> Path:
        """An empty folder to build in."""
        host.require(("make", "strip"), "building a kernel module")
        if self.kernel.toolchain:
            if not (self._root / "ready").exists():
                self._make_root()
            work = self._root / "b" / name
        else:
            host.require((self.kernel.compiler,), "building a kernel module")
            self.tree.settle_headers()
            work = self.kept / f"{name}.build"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        return work

    def _make(self, work: Path, settings: tuple[str, ...]) -> list[str]:
        compiler = self.kernel.compiler
        chosen = ["LLVM=1"] if compiler == "clang" else [f"CC={compiler}", f"HOSTCC={compiler}"]
        words = [f"-j{os.cpu_count() or 1}", *chosen, *settings, "modules"]
        if not self.kernel.toolchain:
            return ["make", "-C", str(self.tree.headers), f"M={work}", *words]
        inside = Path("/") / work.relative_to(self._root)
        headers = Path("/usr/src") / self.tree.headers.name
        # The build reads /proc; a mount name space of its own leaves nothing mounted behind.
        enter = f'mount -t proc proc "{self._root}/proc" && exec chroot "{self._root}" "$@"'
        return ["unshare", "--mount", "sh", "-ec", enter, "sh", "make", "-C", str(headers), f"M={inside}", *words]

    def _make_root(self) -> None:
        host.require(("debootstrap", "unshare", "chroot"), f"building modules for {self.kernel.name}")
        host.need_root("building modules in a root of their own")
        shutil.rmtree(self._root, ignore_errors=True)
        archive = Archive(self.kernel.suite, self.folder / "apt")
        with host.Timed(self.notice, f"installing {', '.join(self.kernel.toolchain)} of {self.kernel.suite}"):
            archive.install(self._root, self.kernel.toolchain, self.folder / "workshop.log")
        for part in ("usr/src", "usr/lib"):
            for source in (self.tree.folder / part).glob("linux-*"):
                target = self._root / part / source.name
                if source.is_symlink():
                    target.symlink_to(source.readlink())
                else:
                    shutil.copytree(source, target, symlinks=True)
        (self._root / "ready").touch()
