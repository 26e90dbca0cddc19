"""Packages of a Debian suite, found and verified by apt, with a state of its own.

Theory of operation
-------------------
The lab names suites, never hosts.  The mirror is the one from which this machine takes its own Debian packages
(``apt-get indextargets``), or ``VERBSPEC_LAB_MIRROR``.  A folder of the cache holds a sources list for the wanted
suite and all of apt's state, so that the machine's own package lists are neither used nor changed; proxies and the
like are still those of the machine's configuration.  The index is verified with the archive's keyring and a package
by the index.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import host

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ROLLING = ("sid", "unstable")
"""Suites that have no security archive of their own, and whose index may have expired on an archived mirror."""


class Archive:
    """One suite's packages, as seen from this machine."""

    def __init__(self, suite: str, folder: Path) -> None:
        """Use `folder` for apt's state; nothing is fetched yet."""
        if not KEYRING.exists():
            raise AdapterError(
                f"packages are verified with {KEYRING}, which this machine lacks. On Debian: "
                "apt-get install debian-archive-keyring"
            )
        self.suite = suite
        self.folder = folder
        self.log = folder / "apt.log"
        self.mirror, self.security = mirrors()

    def update(self) -> None:
        """Fetch the suite's index."""
        for part in ("state/lists/partial", "cache/archives/partial", "preferences.d"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        lines = [f"deb [signed-by={KEYRING}] {self.mirror} {self.suite} main"]
        if self.security and self.suite not in ROLLING:
            lines.append(f"deb [signed-by={KEYRING}] {self.security} {self.suite}-security main")
        (self.folder / "sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        # An index that cannot be fetched is else only a warning, and what is missing shows later and elsewhere.
        command = [*self._apt("apt-get"), "-o", "APT::Update::Error-Mode=any", "update"]
        host.run(command, self.log, what=f"fetching the package index of {self.suite} from {self.mirror}")

    def fields(self, package: str) -> dict[str, str]:
        """The fields of the newest version of a package."""
        text = host.output(
            [*self._apt("apt-cache"), "show", "--no-all-versions", package],
            what=f"looking up {package} in {self.suite}",
        )
        lines = re.sub(r"\n[ \t]+", " ", text).splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines) if key}

    def closure(self, packages: tuple[str, ...], wanted: re.Pattern[str]) -> dict[str, str]:
        """Versions of these packages and of what they depend on, as far as the names match."""
        found: dict[str, str] = {}
        waiting = list(packages)
        while waiting:
            package = waiting.pop()
            if package in found:
                continue
            fields = self.fields(package)
            found[package] = fields["Version"]
            names = (re.split(r"[ (|:]", part.strip())[0] for part in fields.get("Depends", "").split(","))
            waiting += [name for name in names if wanted.match(name)]
        return found

    def download(self, packages: dict[str, str], folder: Path) -> None:
        """Put the package files of these versions into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"{name}={version}" for name, version in packages.items()]
        command = [*self._apt("apt-get"), "-o", "APT::Sandbox::User=root", "download", *names]
        host.run(command, self.log, what=f"downloading {len(names)} packages of {self.suite}", cwd=folder)

    def unpack(self, root: Path, packages: tuple[str, ...], left_out: tuple[str, ...]) -> None:
        """Unpack these packages and all that they depend on into a folder; `left_out` are paths as tar sees them.

        Nothing is installed: no program of the packages runs, so nothing is mounted and no rights are needed.
        """
        debs = self.folder / "debs"
        shutil.rmtree(debs, ignore_errors=True)
        (debs / "partial").mkdir(parents=True)
        command = [*self._apt("apt-get"), "-o", "APT::Sandbox::User=root", "-o", f"Dir::Cache::archives={debs}"]
        command += ["--yes", "--no-install-recommends", "--download-only", "install", *packages]
        host.run(command, self.log, what=f"downloading {', '.join(packages)} of {self.suite}")
        root.mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):  # what no package of bookworm has in it
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        excluded = " ".join(f"--exclude='{path}'" for path in left_out)
        for deb in sorted(debs.glob("*.deb")):
            pipe = f"set -o pipefail; dpkg-deb --fsys-tarfile '{deb}' | tar -x --keep-directory-symlink {excluded}"
            host.run(["/bin/bash", "-c", pipe], self.log, what=f"unpacking {deb.name}", cwd=root)
        shutil.rmtree(debs)

    def install(self, root: Path, packages: tuple[str, ...], log: Path) -> None:
        """Make a root file system of the suite that holds these packages, to run programs of it."""
        log.unlink(missing_ok=True)
        kept = self.folder / "debs"
        kept.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", f"--keyring={KEYRING}"]
        command += ["--force-check-gpg", f"--cache-dir={kept.resolve()}", self.suite, str(root), self.mirror]
        host.run(command, log, what=f"installing {self.suite}")

    def _apt(self, program: str) -> list[str]:
        options = {
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::Etc::preferences": "-",
            "Dir::Etc::preferencesparts": self.folder / "preferences.d",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "Acquire::Languages": "none",
        }
        if self.suite in ROLLING:
            options["Acquire::Check-Valid-Until"] = "false"
        return [program, *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]


def mirrors() -> tuple[str, str]:
    """The mirrors of Debian's main archive and of its security archive ("" if there is none) of this machine."""
    given = os.environ.get("VERBSPEC_LAB_MIRROR", "")
    found = {"": given}
    text = host.output(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
        what="asking apt which mirrors this machine uses",
    )
    known = re.compile(r"(?:stable|testing|sid|unstable|bullseye|bookworm|trixie|forky|duke)(-security)?")
    for line in text.splitlines():
        uri, release, component = line.split()[:3]
        suite = known.fullmatch(release)
        if suite and component == "main":
            kind = suite.group(1) or ""
            found[kind] = found.get(kind) or uri.rstrip("/")
    if not found[""]:
        raise AdapterError(
            "the sources of this machine's apt name no Debian mirror, so there is nothing to build a guest from. "
            "Set VERBSPEC_LAB_MIRROR to the address of one."
        )
    return found[""], found.get("-security", "")
