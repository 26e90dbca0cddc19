"""Drivers as source, from the distribution's package of the kernel's source.

Theory of operation
-------------------
Two things need a driver's source: a driver that the distribution leaves out of its kernel (siw), and one that is to be
changed before it is judged (rxe with a planted defect, or your own patch).  The package must have the image's version
to the letter; of its archive only the software drivers are unpacked.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host
from verbs_adapters.lab.kernels import Kernel
from verbs_adapters.lab.packages import Archive

FOLDER = "drivers/infiniband/sw"
DRIVERS = {"rxe": ("rdma_rxe", ("CONFIG_RDMA_RXE=m",)), "siw": ("siw", ("CONFIG_RDMA_SIW=m",))}
"""The software drivers: each one's kernel module, and what the kernel's make must be told to build it."""
LEFT_OUT = ("siw",)
"""The drivers that the distribution's kernels do not have."""


def drivers(kernel: Kernel, folder: Path, version: str, notice: host.Notice) -> Path:
    """The folder that holds the software drivers' sources, fetched the first time."""
    target = folder / "source" / FOLDER
    if target.is_dir():
        return target
    host.require(("apt-get", "dpkg-deb", "tar", "xz"), "unpacking the kernel's source")
    with host.alone(folder):
        if not target.is_dir():  # somebody else may have fetched it while we waited
            _fetch(kernel, folder, version, notice)
    return target


def _fetch(kernel: Kernel, folder: Path, version: str, notice: host.Notice) -> None:
    archive = Archive(kernel.suite, folder / "apt")
    package = f"linux-source-{kernel.name}"
    debs = folder / "source.debs"
    shutil.rmtree(debs, ignore_errors=True)
    with host.Timed(notice, f"downloading {package} {version}"):
        archive.download({package: version}, debs)
    deb = next(iter(debs.glob("*.deb")))
    part = folder / "source.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    inner = f"./usr/src/{package}.tar.xz"
    command = (
        f"set -o pipefail; dpkg-deb --fsys-tarfile '{deb}' | tar -xO '{inner}' | xz -dc"
        f" | tar -x --strip-components=1 -C '{part}' --wildcards '*/{FOLDER}/*'"
    )
    with host.Timed(notice, f"unpacking {FOLDER}"):
        done = subprocess.run(  # noqa: S603 - all words are ours
            ["/bin/bash", "-c", command], capture_output=True, text=True, env=host.environment(), check=False
        )
    if done.returncode or not (part / FOLDER).is_dir():
        raise AdapterError(f"{deb.name} cannot be unpacked: {done.stderr.strip()[-500:]}")
    shutil.rmtree(folder / "source", ignore_errors=True)
    part.rename(folder / "source")
    shutil.rmtree(debs)
