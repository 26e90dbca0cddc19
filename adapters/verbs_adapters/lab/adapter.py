"""The backend ``lab``: an agent in a guest, as any other remote backend."""

from __future__ import annotations

import atexit
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from verbs_adapters.contract import UsageError
from verbs_adapters.lab import boot, host, image
from verbs_adapters.lab.kernels import APIS, DEVICES, choose
from verbs_adapters.rdma_core.adapter import AGENT_SHARE
from verbs_adapters.remote.client import RemoteBackend

DEFAULTS = {
    "kernel": "6.1",
    "device": "rxe",
    "api": "linux-kernel",
    "agent": "",
    "driver": "",
    "deadline": "20",
    "boot_deadline": "240",
}
"""The options of the adapter.  `kernel` is a series of the table or the folder of a kernel that you built; `agent` is a
file that runs in the guest in place of the API's own agent, `driver` a folder of the device's driver (sources that fit
the kernel) that is built and judged in place of the kernel's own; times are in seconds, of one call and of a guest's
start."""

_MARGIN = 15.0
"""Seconds by which the client waits longer than the bridge, which knows more about what is wrong."""


def tell(line: str) -> None:
    """Say what is done, where it does not get into anybody's output."""
    print(f"lab: {line}", file=sys.stderr, flush=True)


def settings(options: Mapping[str, str]) -> dict[str, str]:
    """The options with defaults; an error for one that is unknown or unusable."""
    for key in options:
        if key not in DEFAULTS:
            raise UsageError.unknown("the adapter `lab`", "option", key, DEFAULTS)
    found = DEFAULTS | dict(options)
    boot.folder(found["kernel"])
    choose("device", found["device"], DEVICES)
    choose("API", found["api"], APIS)
    for key in ("deadline", "boot_deadline"):
        if not 0 < _number(found[key]) < math.inf:
            raise UsageError(f"`{key}={found[key]}` is not a time: give a positive number of seconds")
    return found


def _wanted(chosen: Mapping[str, str]) -> image.Wanted:
    agent, driver = (Path(chosen[key]).resolve() if chosen[key] else None for key in ("agent", "driver"))
    return image.Wanted(chosen["api"], chosen["device"], agent, driver)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def lab(options: Mapping[str, str], /) -> RemoteBackend:
    """Judge a kernel's software RDMA driver in a virtual machine that is built from the distribution's packages."""
    chosen = settings(options)
    run = Path(tempfile.mkdtemp(prefix="verbspec-lab-"))
    atexit.register(shutil.rmtree, run, ignore_errors=True)
    vmlinuz, initrd, accelerator = boot.prepare(chosen["kernel"], _wanted(chosen), run, tell)
    command = [sys.executable, "-P", "-m", "verbs_adapters.lab.bridge"]
    command += ["--kernel", str(vmlinuz), "--initrd", str(initrd)]
    command += ["--accelerator", accelerator, "--deadline", chosen["deadline"]]
    command += ["--boot-deadline", chosen["boot_deadline"], "--option", f"device={chosen['device']}"]
    command += ["--option", f"deadline={float(chosen['deadline']) * AGENT_SHARE:g}"]
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return RemoteBackend(
        command,
        deadline=float(chosen["deadline"]) + _MARGIN,
        start_deadline=float(chosen["boot_deadline"]) + _MARGIN,
        blame="glue",
        env=host.environment() | {"PYTHONPATH": path},
    )
