"""Running programs of the host: what is needed, where output goes, what to say if it is missing.

A build takes minutes and consists of other people's programs, so each one's output goes to a log file, and when one
fails the end of that log is the message.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from verbs_adapters.contract import AdapterError

PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "debootstrap": "debootstrap",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "depmod": "kmod",
    "modprobe": "kmod",
    "zstd": "zstd",
    "cpio": "cpio",
    "make": "make",
    "strip": "binutils",
    "chroot": "coreutils",
    "unshare": "util-linux",
    "tar": "tar",
    "xz": "xz-utils",
}
"""Programs that the lab calls, each with the package that brings it on Debian."""

IN_ROOTS = ("debootstrap", "unshare")
"""Those of them that build modules in a root of a suite, for kernels whose build tools may not run on this host."""

QUIET_NEEDS = ("debian-archive-keyring", "libelf1")
"""Packages without a program: what packages are verified with, and what the kernel's build tools are linked with."""

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Notice = Callable[[str], None]
"""Somebody who is told what is being done."""


def environment() -> dict[str, str]:
    """Our environment with the folders of system programs on PATH, and messages in English."""
    return os.environ | {"PATH": f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}", "LC_ALL": "C.UTF-8"}


def missing(programs: Iterable[str]) -> dict[str, str]:
    """Those programs that are not there, with their packages."""
    path = environment()["PATH"]
    known = PROGRAMS | {p: p for p in programs if p not in PROGRAMS}
    return {p: known[p] for p in programs if shutil.which(p, path=path) is None}


def packages(compilers: Iterable[str], *, roots: bool) -> list[str]:
    """All packages that the lab needs on Debian, with compilers for this host and with or without `IN_ROOTS`."""
    programs = [p for p in PROGRAMS if roots or p not in IN_ROOTS]
    return sorted({*(PROGRAMS[p] for p in programs), *compilers, *QUIET_NEEDS})


def require(programs: Iterable[str], why: str) -> None:
    """Raise if a program is not there, naming the packages to install."""
    absent = missing(programs)
    if absent:
        packages = " ".join(sorted(set(absent.values())))
        raise AdapterError(
            f"{why} needs {', '.join(sorted(absent))}, which this machine lacks. On Debian: apt-get install {packages}"
        )


def run(
    command: Sequence[str | Path],
    log: Path,
    *,
    what: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end; raise with the end of its output if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(words)}\n")
        file.flush()
        done = subprocess.run(  # noqa: S603 - programs of the host, arguments of our own
            words,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=dict(env or environment()),
            check=False,
        )
    if done.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        raise AdapterError(
            f"{what} failed: `{words[0]}` ended with {done.returncode}. The whole output is in {log}; it ends:\n  "
            + "\n  ".join(tail)
        )


def output(command: Sequence[str | Path], *, what: str, env: Mapping[str, str] | None = None) -> str:
    """What a program prints; raise with its complaint if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(  # noqa: S603 - as above
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(env or environment()), check=False
    )
    if done.returncode:
        raise AdapterError(f"{what} failed: `{' '.join(words)}` said: {done.stderr.strip()[-800:]}")
    return done.stdout


def need_root(why: str) -> None:
    """Raise unless we are root."""
    if os.geteuid() != 0:
        raise AdapterError(f"{why} needs root (it unpacks a system and enters it). Run it as root or with sudo.")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep others from building in a folder meanwhile; whoever waited looks whether it has been done."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Timed:
    """Tells what is done, and when it is done how long it took."""

    def __init__(self, notice: Notice, what: str) -> None:
        self._notice, self._what, self._began = notice, what, 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()
        self._notice(f"{self._what} ...")

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            self._notice(f"{self._what}: {time.monotonic() - self._began:.1f} s")
