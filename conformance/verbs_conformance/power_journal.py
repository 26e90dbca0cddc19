"""What has been measured of the suite's power, a line for each detection, written as soon as it is known.

A measurement that was ended goes on where it was, if nothing that it is about has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import msgspec

from verbs_conformance.power import Caught, Task

PACKAGES = ("verbs_spec", "verbs_reference", "verbs_conformance", "verbs_adapters")
KINDS = (".py", ".yaml")


class Head(msgspec.Struct, frozen=True):
    """What was measured."""

    sources: str


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a detection; or, without one, how many seconds were spent since the last such line."""

    task: Task | None = None
    caught: Caught | None = None
    seconds: float = 0.0


class OtherSources(Exception):
    """The file is of other sources."""


def digest() -> str:
    """What tells one state of specification, suite and device from another."""
    made = hashlib.sha256()
    for package in PACKAGES:
        root = Path(str(resources.files(package)))
        for path in sorted(p for p in root.rglob("*") if p.suffix in KINDS):
            made.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return made.hexdigest()[:16]


class Journal:
    """The file of a measurement; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.found: dict[Task, Caught | None] = {}
        self.seconds = 0.0
        """How long was measured, by all who went on."""
        head = Head(digest())
        if path is None:
            return
        if path.exists():
            first, *lines = path.read_bytes().splitlines()
            if msgspec.json.decode(first, type=Head) != head:
                raise OtherSources(
                    f"{path} was measured with other sources, which say nothing of these: remove it, or name another "
                    "file with --journal"
                )
            for line in _lines(lines):
                self._take(line)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.encode(head) + b"\n")

    def note(self, task: Task, caught: Caught | None) -> None:
        """Keep what came of a detection."""
        self._add(Line(task, caught))

    def spent(self, seconds: float) -> None:
        """Keep how long was measured."""
        self._add(Line(seconds=round(seconds, 1)))

    def _add(self, line: Line) -> None:
        self._take(line)
        if self.path is not None:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")

    def _take(self, line: Line) -> None:
        self.seconds += line.seconds
        if line.task is not None:
            self.found[line.task] = line.caught


def _lines(lines: Sequence[bytes]) -> Iterator[Line]:
    """The lines of a file; the last one may be cut off, where the measurement was ended."""
    for place, line in enumerate(lines):
        try:
            yield msgspec.json.decode(line, type=Line)
        except msgspec.DecodeError:
            if place < len(lines) - 1:
                raise
