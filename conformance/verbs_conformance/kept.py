"""What was checked before and has not changed since.

A check is kept under a digest of all that it depends on: what the rules mean (not what they say, nor where they stand),
the programs that are run, and the code that runs them.  Only a check that found nothing wrong is kept, so that what is
wrong is always found anew.  ``$XDG_CACHE_HOME/verbspec/checks`` holds one small file a check; losing it costs time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

_WORDS = frozenset(
    (
        *(
            "says",
            "sources",
            "doc",
            "summary",
            "summaries",
            "status",
            "reason",
            "unspecified",
            "questions",
            "documents",
        ),
        *("object", "digest", "profiles", "selected", "lacking", "elsewhere", "deltas"),
    )
)
"""Fields of a specification that change no meaning, or repeat what stands elsewhere."""
CODE: Mapping[str, tuple[str, ...]] = {
    "verbs_spec": (),
    "verbs_reference": (),
    "verbs_adapters.contract": (),
    "verbs_conformance": (
        *("acquittal", "allowed", "build", "cells", "checking", "device", "directed", "engine", "errors", "imagined"),
        *("judge", "kept", "playback", "prefix", "program", "reference_backend", "session", "shapes", "step"),
        "transitions",
    ),
}
"""Packages whose code checks, and which of their modules; all if none is named."""


class Kept:
    """The folder of checks; without one nothing is kept and nothing found."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    @classmethod
    def usual(cls) -> Kept:
        """The user's own."""
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return cls(Path(base) / "verbspec" / "checks")

    def get(self, key: str) -> Any:
        """What a check gave; None if it has to be made."""
        if self.folder is None:
            return None
        try:
            return json.loads((self.folder / key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep what a check gave; where nothing can be written it is made again."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = self.folder / f"{key}.{os.getpid()}"
            draft.write_text(json.dumps(value), encoding="utf-8")
            draft.replace(self.folder / key)
        except OSError:
            pass


def key(kind: str, *parts: str) -> str:
    """The name of a check that depends on these texts and on the code."""
    total = hashlib.sha256()
    for part in (kind, code(), *parts):
        data = part.encode()
        total.update(len(data).to_bytes(8, "big") + data)
    return f"{kind}-{total.hexdigest()[:32]}"


class Meaning:
    """Digests of specifications that share most of their parts: each part is read once."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[object, str]] = {}

    def of(self, value: object) -> str:
        """The digest of a specification, or of a part of one."""
        known = self._read.get(id(value))
        if known is None:
            total = hashlib.sha256("\0".join(self._words(value)).encode())
            known = self._read[id(value)] = (
                value,
                total.hexdigest(),
            )  # the value is held, so that its id stays its own
        return known[1]

    def _words(self, value: object) -> Iterator[str]:
        assert is_dataclass(value)
        for name in (f.name for f in fields(value) if f.init and f.name not in _WORDS):
            yield f"{name}="
            yield from self._inner(getattr(value, name))

    def _inner(self, value: object) -> Iterator[str]:
        if value is None or isinstance(value, str | bool | int):
            yield str(value)
        elif is_dataclass(value):
            yield self.of(value)
        elif isinstance(value, Mapping):
            for name, each in value.items():
                yield f"{name}:"
                yield from self._inner(each)
        elif isinstance(value, Iterable):
            yield "["
            for each in value:
                yield from self._inner(each)
            yield "]"
        else:
            raise TypeError(f"{type(value).__name__} in a specification: say how its meaning is read")


@cache
def code() -> str:
    """A digest of the code that checks."""
    total = hashlib.sha256()
    for package, modules in CODE.items():
        for path in sorted(Path(str(resources.files(package))).glob("*.py")):
            if not modules or path.stem in modules:
                total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
