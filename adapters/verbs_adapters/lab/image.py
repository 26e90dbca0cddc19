"""A guest's image, built once and kept: a kernel and a root file system that is unpacked into memory.

Theory of operation
-------------------
``$XDG_CACHE_HOME/verbspec/lab/SUITE`` holds apt's state, the unpacked kernel with its headers, the root file system as
a compressed cpio archive, and ``image.json``, written last, which says what all this was made of.  While it is there
and was made by this recipe, nothing is fetched or built.

What changes from run to run (the agents, our kernel module, the first program) is a small archive of its own: the
kernel unpacks two that follow each other into one file system.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host
from verbs_adapters.lab.kernels import APIS, MODULES, ROOT_PACKAGES, Kernel
from verbs_adapters.lab.kernels import agent as agent_of
from verbs_adapters.lab.modules import Workshop
from verbs_adapters.lab.own import OwnKernel
from verbs_adapters.lab.packages import Archive
from verbs_adapters.lab.sources import DRIVERS, LEFT_OUT, drivers
from verbs_adapters.lab.tree import Tree, unpack

RECIPE = 2
"""Counts the changes of how an image is made; an image made otherwise is made again."""

GUEST = Path(__file__).parent / "guest"
HOME = "verbspec"
"""The folder in the guest that holds what is ours."""

_LEFT_OUT = (
    *("./usr/share/doc", "./usr/share/locale", "./usr/share/man", "./usr/share/info", "./usr/share/zoneinfo"),
    *("./usr/share/perl*", "./usr/bin/perl*", "./usr/lib/*/perl*", "./usr/lib/*/libperl*", "./usr/lib/*/gconv"),
    *("./usr/share/bash-completion", "./lib/udev", "./usr/lib/udev", "./lib/systemd", "./usr/lib/systemd", "./boot"),
)
"""What guests need not have, as patterns of tar."""

_UNUSED = "/(asyncio|distutils|email|html|http|lib2to3|pydoc_data|test|unittest|venv|xml|xmlrpc)/"
"""Parts of Python's library that no agent imports, as a pattern of compileall."""


class Image(NamedTuple):
    """What a guest is started from."""

    kernel: Kernel
    folder: Path
    tree: Tree
    root: Path
    """The archive of the root file system."""
    packages: dict[str, str]

    @property
    def version(self) -> str:
        """The version of the kernel's packages, all of which have the same."""
        return next(iter(self.packages.values()))


def cache() -> Path:
    """Where images are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "verbspec" / "lab"


def existing(kernel: Kernel) -> Image | None:
    """The image of a kernel if it has been built by this recipe."""
    folder = cache() / kernel.suite
    try:
        stamp = json.loads((folder / "image.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if stamp.get("recipe") != RECIPE:
        return None
    return Image(kernel, folder, Tree(folder / "kernel"), folder / "root.cpio.zst", stamp["packages"])


def forget(kernel: Kernel) -> None:
    """Have the image of a kernel built anew the next time."""
    (cache() / kernel.suite / "image.json").unlink(missing_ok=True)


def ensure(kernel: Kernel, notice: host.Notice) -> Image:
    """The image of a kernel, built now if it has not been."""
    image = existing(kernel)
    if image is not None:
        return image
    host.require(("apt-get", "dpkg-deb", "tar", "depmod", "modprobe", "zstd", "cpio", "chroot"), "building a guest")
    folder = cache() / kernel.suite
    with host.alone(folder):
        image = existing(kernel)  # somebody else may have built it while we waited
        return image if image is not None else _build(kernel, folder, notice)


def _build(kernel: Kernel, folder: Path, notice: host.Notice) -> Image:
    for old in ("kernel", "debs", "root", "modules", "workshop"):
        shutil.rmtree(folder / old, ignore_errors=True)
    (folder / "image.json").unlink(missing_ok=True)
    archive = Archive(kernel.suite, folder / "apt")
    with host.Timed(notice, f"fetching the package index of {kernel.suite}"):
        archive.update()
    tree, packages = unpack(archive, folder, notice)
    root = folder / "root"
    with host.Timed(notice, f"unpacking {', '.join(ROOT_PACKAGES)} of {kernel.suite}"):
        archive.unpack(root, ROOT_PACKAGES, _LEFT_OUT)
    tree.copy_modules(MODULES, root / "usr/lib/modules", archive.log)
    with host.Timed(notice, "compiling Python's library"):
        _compile(root, archive.log)
    with host.Timed(notice, "packing the root file system"):
        pack(root, folder / "root.cpio.zst")
    shutil.rmtree(root)
    stamp = {"recipe": RECIPE, "suite": kernel.suite, "release": tree.release, "packages": packages}
    (folder / "image.json").write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    return Image(kernel, folder, tree, folder / "root.cpio.zst", packages)


def _compile(root: Path, log: Path) -> None:
    """Compile Python's library, which an emulated guest would do for seconds each time it starts.

    The root's own Python does it, and entering the root is all that needs rights: without them it is left undone.
    """
    if os.geteuid() != 0:
        return
    folders = [f"/{path.relative_to(root)}" for path in sorted((root / "usr/lib").glob("python3*"))]
    command = ["chroot", str(root), "python3", "-m", "compileall", "-q", "-x", _UNUSED, *folders]
    try:
        host.run(command, log, what="compiling Python's library")
    except AdapterError as error:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"not compiled: {error}\n")


class Wanted(NamedTuple):
    """What a run adds to an image."""

    api: str
    device: str
    agent: Path | None = None
    """The agent, if it is not the API's own."""
    driver: Path | None = None
    """The sources of the driver, if it is not the kernel's own."""


def for_run(image: Image, tree: Tree, wanted: Wanted, target: Path, notice: host.Notice) -> Path:
    """The image with what this run adds: what starts the guest, the agent of the API, and the modules that it needs.

    `tree` is the kernel: the image's own, or somebody's, whose modules are added and built for this run alone.
    """
    if wanted.agent and not wanted.agent.is_file():
        raise AdapterError(f"there is no agent {wanted.agent}; without `agent` it is {APIS[wanted.api]}")
    home = target / "overlay" / HOME
    shutil.rmtree(target / "overlay", ignore_errors=True)
    home.mkdir(parents=True)
    for file in (GUEST / "init", GUEST / "warden.py"):
        shutil.copy2(file, home)
    (home / "init").chmod(0o755)
    (home / "main.py").write_bytes(wanted.agent.read_bytes() if wanted.agent else agent_of(wanted.api))
    if wanted.api == "linux-kernel":  # other programs use it as a library
        library = home / "verbs_adapters" / "kverbs"
        library.mkdir(parents=True)
        (library / "agent.py").write_bytes(agent_of(wanted.api))
    (home / "modules").write_text("\n".join(MODULES) + "\n", encoding="utf-8")
    workshop = Workshop(image.kernel, image.folder, tree, notice)
    if isinstance(tree, OwnKernel):
        tree.copy_modules(MODULES, home / "modules.own", target / "modules.log")
        workshop = Workshop(tree.kernel, target / "workshop", tree, notice)
    if wanted.api == "linux-kernel":
        shutil.copy2(workshop.kverbs(), home / "kverbs.ko")
    driver = wanted.driver
    if driver is None and wanted.device in LEFT_OUT:
        driver = drivers(image.kernel, image.folder, image.version, notice) / wanted.device
    if driver is not None:
        if not driver.is_dir():
            raise AdapterError(f"`driver={driver}` is no folder; give one with the driver's sources and Makefile")
        module, settings = DRIVERS[wanted.device]
        shutil.copy2(workshop.build(module, driver, settings, strict=False), home / "driver.ko")
        (home / "driver").write_text(f"{module}\n", encoding="utf-8")
    initrd = pack(target / "overlay", target / "initrd", compressed=False)
    with initrd.open("ab") as whole, image.root.open("rb") as rest:
        shutil.copyfileobj(rest, whole, 1 << 20)
    return initrd


def pack(root: Path, archive: Path, *, compressed: bool = True) -> Path:
    """Pack a folder as a cpio archive, as the kernel unpacks it; it takes a plain one in front of a compressed one."""
    packer = "| zstd -3 -T0 -q" if compressed else ""
    command = f"set -o pipefail; find . -print0 | cpio --quiet --null -o -R 0:0 -H newc {packer} > '{archive}.part'"
    done = subprocess.run(  # noqa: S603 - all words are ours
        ["/bin/bash", "-c", command], cwd=root, capture_output=True, text=True, env=host.environment(), check=False
    )
    if done.returncode:
        raise AdapterError(f"packing {root} failed: {done.stderr.strip()}")
    Path(f"{archive}.part").replace(archive)
    return archive
