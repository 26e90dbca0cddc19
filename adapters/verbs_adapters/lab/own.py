"""A kernel that somebody built: its image, its modules, and what other modules are built against.

Theory of operation
-------------------
Two kinds of folder are taken, and neither is changed:

* a *build tree* after ``make`` (``arch/x86/boot/bzImage``, ``Module.symvers``): its own makefile installs the modules
  into the run's folder, without debugging information; our module is built against the tree;
* an *installed* kernel: an image (``bzImage`` or ``vmlinuz*``, in the folder or in its ``boot/``) and
  ``lib/modules/RELEASE`` as ``make modules_install INSTALL_MOD_PATH=...`` makes it, whose link ``build`` leads to the
  tree that it was built in; or ``usr/src/linux-headers-RELEASE`` beside it.

The root file system is that of a packaged guest; the kernel's modules are laid over those that are in it.  What the
guest cannot start without is looked up in the kernel's configuration, because a guest that lacks it dies without a
word.
"""

from __future__ import annotations

import re
from pathlib import Path

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host
from verbs_adapters.lab.kernels import KERNELS, Kernel
from verbs_adapters.lab.tree import Tree

ROOT = KERNELS["6.1"]
"""The packaged guest whose root file system such a kernel runs in."""

NEEDED = (
    *("64BIT", "MODULES", "BLK_DEV_INITRD", "RD_ZSTD", "DEVTMPFS", "PROC_FS", "SYSFS", "TMPFS", "UNIX98_PTYS"),
    *("MAGIC_SYSRQ", "BINFMT_ELF", "BINFMT_SCRIPT", "SERIAL_8250_CONSOLE", "PCI", "VIRTIO_PCI", "VIRTIO_CONSOLE"),
    *("INET", "VETH", "INFINIBAND", "INFINIBAND_USER_ACCESS", "RDMA_RXE"),
)
"""Settings of the kernel's configuration that the guest cannot do without, built in or as modules."""

_BUILD_TREE_IMAGE = "arch/x86/boot/bzImage"


class OwnKernel(Tree):
    """A kernel that somebody built, with its modules in a folder that :class:`Tree` can read."""

    def __init__(self, given: Path, modules: Path) -> None:
        """Use the kernel in `given`, whose modules are in `modules`/lib/modules."""
        super().__init__(modules)
        self.given = given

    @property
    def vmlinuz(self) -> Path:
        """The kernel's image."""
        if (self.given / _BUILD_TREE_IMAGE).is_file():
            return self.given / _BUILD_TREE_IMAGE
        places = (self.given, self.given / "boot", self.given / "lib/modules" / self.release)
        found = [p for place in places for name in ("bzImage*", "vmlinuz*") for p in sorted(place.glob(name))]
        exact = [p for p in found if p.name.endswith(self.release)]
        if len(exact) == 1 or len(found) == 1:
            return (exact or found)[0]
        raise AdapterError(
            f"{self.given} should hold the image of one kernel, as bzImage or vmlinuz* in it or in its boot/; "
            f"it holds {', '.join(str(p.relative_to(self.given)) for p in found) or 'none'}"
        )

    @property
    def headers(self) -> Path:
        """The folder that modules are built against."""
        places = [
            self.given,
            self.given / "lib/modules" / self.release / "build",
            self.given / "usr/src" / f"linux-headers-{self.release}",
        ]
        for place in places:
            if (place / "Makefile").is_file() and (place / "include/config/auto.conf").is_file():
                return place.resolve()
        raise AdapterError(
            f"there is nothing in {self.given} to build a module against. Leave the link "
            f"lib/modules/{self.release}/build to the tree that the kernel was built in, and the tree itself"
        )

    def settle_headers(self) -> None:
        """They are somebody's, and where they were built."""

    @property
    def settings(self) -> dict[str, str]:
        """The kernel's configuration, without ``CONFIG_``."""
        text = (self.headers / "include/config/auto.conf").read_text(encoding="utf-8")
        return dict(re.findall(r'^CONFIG_(\w+)="?(.*?)"?$', text, re.MULTILINE))

    def check(self) -> None:
        """Raise if the guest cannot start with this kernel, whatever it does otherwise."""
        absent = [name for name in NEEDED if name not in self.settings]
        if absent:
            raise AdapterError(
                f"the kernel {self.release} was configured without {', '.join('CONFIG_' + a for a in absent)}, which "
                "the lab's guest needs. Set them (built in or as modules) and build it again"
            )

    @property
    def kernel(self) -> Kernel:
        """The kernel as the rest of the lab knows kernels, with the compiler that it was built with."""
        compiler = self.settings.get("CC_VERSION_TEXT", "gcc").split()[0]
        return Kernel(self.release, ROOT.suite, "clang" if "CC_IS_CLANG" in self.settings else compiler)


def take(given: Path, run: Path, notice: host.Notice) -> OwnKernel:
    """The kernel in a folder, checked; what has to be made of it is made in the run's folder."""
    modules = given
    if (given / _BUILD_TREE_IMAGE).is_file() and (given / "Makefile").is_file():
        host.require(("make", "depmod"), "installing a kernel's modules")
        modules = run / "own"
        words = ["make", "-C", str(given), "modules_install", f"INSTALL_MOD_PATH={modules}", "INSTALL_MOD_STRIP=1"]
        with host.Timed(notice, f"installing the modules of {given}"):
            host.run(words, run / "modules_install.log", what=f"installing the modules of {given}")
    elif not any((given / place).is_dir() for place in ("lib/modules", "usr/lib/modules")):
        raise AdapterError(
            f"{given} holds no kernel: neither a build tree with {_BUILD_TREE_IMAGE} (has `make` ended?), nor an "
            "image with lib/modules/RELEASE beside it (make modules_install INSTALL_MOD_PATH=...)"
        )
    kernel = OwnKernel(given, modules)
    kernel.check()
    return kernel
