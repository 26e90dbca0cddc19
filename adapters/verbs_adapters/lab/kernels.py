"""The guests that the lab knows: a kernel of a Debian suite, with the software device of your choice.

Theory of operation
-------------------
A guest is named by its kernel's series.  The suite is looked up by name in the package index of the mirror that this
machine uses, so that a newer build of the same series is taken without a change here.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import NamedTuple

from verbs_adapters.contract import UsageError
from verbs_adapters.rdma_core import source as rdma_core


class Kernel(NamedTuple):
    """A kernel series, the suite that brings it, and the compiler that built it."""

    name: str
    suite: str
    compiler: str
    toolchain: tuple[str, ...] = ()
    """Packages of a root in which modules are built, where the suite's build tools may not run on this host; none if
    they are built on the host."""


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("6.1", "bookworm", "gcc-12"),
        Kernel("6.12", "trixie", "gcc-14", ("gcc-14", "make", "libc6-dev", "libelf1t64", "pahole")),
        Kernel("7.2", "sid", "gcc-16", ("gcc-16", "make", "libc6-dev", "libelf1t64", "pahole")),
    )
}


def host_compilers(kernels: Iterable[Kernel]) -> list[str]:
    """The compilers that build modules for these kernels on this host; each is a package of its name."""
    return sorted({kernel.compiler for kernel in kernels if not kernel.toolchain})


DEVICES = {
    "rxe": "soft-RoCE, over a pair of virtual Ethernet devices; in the kernel's packages",
    "siw": "soft-iWARP, over the same; built from the kernel's source package",
}

APIS = {
    "linux-kernel": "kernel verbs, by a module of ours",
    "linux-user": "user verbs, by rdma-core",
}
"""Each API, and what offers it."""

ROOT_PACKAGES = (
    *("python3", "python3-pyverbs", "rdma-core", "ibverbs-providers", "iproute2", "kmod"),
    *("base-files", "coreutils", "dash", "grep", "hostname", "mount", "sed", "util-linux"),
)
"""What the guest's root file system is unpacked from: what judges, and what its first program calls."""

MODULES = (
    "crc32_generic",
    "libcrc32c",
    "crc32c_generic",
    "iw_cm",
    "ib_uverbs",
    "rdma_ucm",
    "rdma_rxe",
    "veth",
    "virtio_pci",
    "virtio_console",
)
"""Kernel modules that the guest loads, in this order; one that a kernel has built in is passed over."""


def choose(what: str, name: str, known: Iterable[str]) -> str:
    """`name` if it is known; an error that lists what is, otherwise."""
    if name not in known:
        raise UsageError.unknown("the lab", what, name, known)
    return name


def agent(api: str) -> bytes:
    """The agent of an API: one file of Python."""
    if api == "linux-user":
        return rdma_core.agent_source()
    return (resources.files("verbs_adapters.kverbs") / "agent.py").read_bytes()
