"""What one guest is booted from: a packaged kernel or somebody's own, with all that a run adds to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from verbs_adapters.contract import UsageError
from verbs_adapters.lab import host, image, machine, own
from verbs_adapters.lab.kernels import KERNELS


class Boot(NamedTuple):
    """The parts of the emulator's command that differ from run to run."""

    vmlinuz: Path
    initrd: Path
    accelerator: str


def folder(kernel: str) -> Path | None:
    """The folder that a `kernel` option means, None if it is a series of the table; an error if it is neither."""
    if kernel in KERNELS:
        return None
    path = Path(kernel).expanduser()
    if path.is_dir():
        return path.resolve()
    if os.sep in kernel:
        raise UsageError(f"there is no folder {kernel}, so there is no kernel in it")
    unknown = UsageError.unknown("the lab", "kernel", kernel, KERNELS)
    raise UsageError(f"{unknown} Or give the folder of a kernel that you built.")


def prepare(kernel: str, wanted: image.Wanted, run: Path, notice: host.Notice) -> Boot:
    """Build what is not there yet and pack what this run adds, in the folder `run`."""
    given = folder(kernel)
    base = image.ensure(own.ROOT if given is not None else KERNELS[kernel], notice)
    tree = base.tree
    if given is not None:
        tree = own.take(given, run, notice)
    accelerator = machine.accelerator(base.tree.vmlinuz, image.cache())
    return Boot(tree.vmlinuz, image.for_run(base, tree, wanted, run, notice), accelerator)
