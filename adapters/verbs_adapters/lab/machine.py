"""Starts a guest: the emulator's command, and which accelerator works here.

Theory of operation
-------------------
A ``/dev/kvm`` that exists need not work, and a guest on one that does not hangs in its firmware without a word.  So KVM
is tried: a kernel without a root file system panics within a second or two and the emulator ends.  The answer is kept
until this machine boots again.  Without KVM the guest is emulated; it has one processor either way, which makes what
happens between two calls repeatable.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from verbs_adapters.lab import host

QEMU = "qemu-system-x86_64"
MEMORY = "2048"  # MiB; the root file system unpacked takes 300
KVM_PATIENCE = 10.0

_KERNEL_SAYS = "earlyprintk=serial,ttyS0 console=ttyS0 loglevel=5"
_PATIENT = "rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=60 no_timer_check"
"""A host with other work to do can hold an emulated processor up for longer than a kernel's watchdogs stand by default
(20 seconds), or than it waits for the timer's first ticks when it starts, and that is no fault of the driver.  A driver
that hangs is told by the deadline of its call."""
_STRICT = "panic=-1 oops=panic"
_QUIET = f"{_KERNEL_SAYS} {_PATIENT} {_STRICT} mitigations=off nokaslr random.trust_cpu=on rdinit=/verbspec/init"


def command(vmlinuz: Path, initrd: Path, accelerator: str, options: dict[str, str], ports: dict[str, int]) -> list[str]:
    """The emulator's command: its standard output is the guest's console, each port one end of a socket pair."""
    words = [QEMU, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-smp", "1", "-m", MEMORY]
    words += _accelerated(accelerator)
    words += ["-kernel", str(vmlinuz), "-initrd", str(initrd)]
    words += ["-append", " ".join([_QUIET, *(f"verbspec.{key}={value}" for key, value in options.items())])]
    words += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
    if ports:
        words += ["-device", "virtio-serial-pci"]
    for name, descriptor in ports.items():
        words += ["-chardev", f"socket,id={name},fd={descriptor}"]
        words += ["-device", f"virtserialport,chardev={name},name={name}"]
    return words


def _accelerated(accelerator: str) -> list[str]:
    if accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]  # five levels of page tables cost a tenth


def accelerator(vmlinuz: Path, cache: Path) -> str:
    """``kvm`` if it works here, else ``tcg``."""
    host.require((QEMU,), "starting a guest")
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    stamp = cache / "accelerator"
    try:
        known_boot, known = stamp.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        known_boot, known = "", ""
    if known_boot == boot:
        return known
    found = "kvm" if _kvm_works(vmlinuz) else "tcg"
    stamp.write_text(f"{boot} {found}\n", encoding="ascii")
    return found


def _kvm_works(vmlinuz: Path) -> bool:
    words = [QEMU, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-m", "512", "-serial", "stdio"]
    words += [*_accelerated("kvm"), "-kernel", str(vmlinuz), "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(  # noqa: S603 - all words are ours
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=KVM_PATIENCE,
            env=host.environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return b"Kernel panic" in done.stdout
