"""A kernel unpacked from its packages: the image, its modules, and the headers to build others.

Theory of operation
-------------------
Image and headers are taken from one index and in one version, or modules built with the one would not load into the
other.  Packages are unpacked, not installed: nothing of the host changes, and no maintainer script runs.  The headers'
makefiles name their own place, which :mod:`~verbs_adapters.lab.modules` takes care of.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host
from verbs_adapters.lab.packages import Archive

_PACKAGES = re.compile(r"linux-(?:image|base|binary|modules|headers|kbuild)-[0-9]")


class Tree:
    """An unpacked kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def release(self) -> str:
        """What ``uname -r`` says in the guest."""
        folders = sorted(p.parent.name for p in self._modules().glob("*/modules.builtin"))
        if len(folders) != 1:
            raise AdapterError(f"{self._modules()} holds modules of {len(folders)} kernels where one is expected")
        return folders[0]

    @property
    def vmlinuz(self) -> Path:
        """The kernel's image."""
        places = [self.folder / "boot", self._modules() / self.release]
        found = [p for place in places if place.is_dir() for p in sorted(place.glob("vmlinuz*"))]
        if not found:
            raise AdapterError(f"there is no vmlinuz in {' or in '.join(map(str, places))}")
        return found[0]

    @property
    def headers(self) -> Path:
        """The folder that modules are built against."""
        return self.folder / "usr/src" / f"linux-headers-{self.release}"

    def settle_headers(self) -> None:
        """Make the headers' makefiles name the place where they were unpacked."""
        for makefile in (self.folder / "usr/src").glob("linux-headers-*/Makefile"):
            text = makefile.read_text(encoding="utf-8")
            if text.startswith("include /usr/src/"):
                moved = text.replace("include /usr/src/", f"include {self.folder}/usr/src/", 1)
                makefile.write_text(moved, encoding="utf-8")

    def _modules(self) -> Path:
        usual = self.folder / "lib/modules"
        return usual if usual.is_dir() else self.folder / "usr/lib/modules"

    def module_files(self, names: tuple[str, ...], log: Path) -> list[Path]:
        """The files of these modules and of all that they depend on; one that is built in has none."""
        found: dict[Path, None] = {}
        base = self._modules().parents[1] if self._modules().parent.name == "lib" else self.folder
        for name in names:
            words = ["modprobe", "-d", str(base), "-S", self.release, "--show-depends", "--ignore-install", name]
            try:
                text = host.output(words, what=f"looking for the module {name}")
            except AdapterError as error:
                with log.open("a", encoding="utf-8") as file:
                    file.write(f"{error}\n")
                continue
            for line in text.splitlines():
                kind, _, path = line.partition(" ")
                if kind == "insmod":
                    found[Path(path.split()[0])] = None
        return list(found)

    def copy_modules(self, names: tuple[str, ...], modules: Path, log: Path) -> None:
        """Put modules and the indexes of modprobe into a folder of modules, as ``/lib/modules`` is one."""
        source = self._modules() / self.release
        target = modules / self.release
        target.mkdir(parents=True, exist_ok=True)
        files = self.module_files(names, log)
        built_in = (source / "modules.builtin").read_text(encoding="utf-8")
        if "rdma_rxe.ko" not in built_in and not any("rdma_rxe" in f.name for f in files):
            raise AdapterError(f"the kernel {self.release} has no module rdma_rxe, so there is no device to judge")
        for file in files:
            place = target / file.resolve().relative_to(source.resolve())
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place)
        for index in source.glob("modules.*"):
            shutil.copy2(index, target / index.name)


def unpack(archive: Archive, folder: Path, notice: host.Notice) -> tuple[Tree, dict[str, str]]:
    """Download the suite's kernel with its headers and unpack them; also the packages' versions."""
    packages = archive.closure(("linux-image-amd64", "linux-headers-amd64"), _PACKAGES)
    packages = {name: version for name, version in packages.items() if _PACKAGES.match(name)}
    versions = set(packages.values())
    if len(versions) != 1:
        raise AdapterError(
            f"the kernel's packages in {archive.suite} do not fit together: {packages}. The mirror is in the middle "
            "of an update; try again later."
        )
    with host.Timed(notice, f"downloading {', '.join(sorted(packages))} {versions.pop()}"):
        archive.download(packages, folder / "debs")
    tree = folder / "kernel"
    for package in sorted((folder / "debs").glob("*.deb")):
        host.run(["dpkg-deb", "-x", package, tree], archive.log, what=f"unpacking {package.name}")
    shutil.rmtree(folder / "debs")
    made = Tree(tree)
    base = tree if (tree / "lib/modules").is_dir() else tree / "usr"
    host.run(["depmod", "-b", base, made.release], archive.log, what="indexing the kernel's modules")
    return made, packages
