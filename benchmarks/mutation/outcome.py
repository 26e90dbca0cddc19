"""What came of each mutant: a line for each, written as soon as it is known, so that a run can be gone on with."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from mutation.judging import Outcome
from mutation.mutant import SOURCES, Drawn, Mutant


class OtherSources(Exception):
    """The file is of a run of another device."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A mutant without its source, and what came of it."""

    name: str
    group: str
    function: str
    old: str
    new: str
    verdict: str
    by: str = ""
    suspects: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    programs: int = 0
    calls: int = 0
    unfired: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Where the mutant is."""
        return self.name.partition(":")[0]


class Head(msgspec.Struct, frozen=True):
    """What a run was of."""

    device: str


def digest(folder: Path = SOURCES) -> str:
    """What tells one device's sources from another's."""
    texts = [p.name.encode() + b"\0" + p.read_bytes() for p in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def record(mutant: Mutant, outcome: Outcome) -> Record:
    """The record of a mutant."""
    return Record(mutant.name, mutant.group, mutant.function, mutant.old, mutant.new, **asdict(outcome))


class Journal:
    """The file of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, Record] = {}
        head = Head(digest())
        if path.exists():
            first, *lines = path.read_bytes().splitlines()
            if msgspec.json.decode(first, type=Head) != head:
                raise OtherSources(
                    f"{path} holds results of other sources of the device, which say nothing of these: remove it, or "
                    "give another folder with --out"
                )
            self.found = {r.name: r for r in _records(lines)}
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.encode(head) + b"\n")

    def note(self, new: Record) -> None:
        """Keep a record; a later one of the same mutant counts."""
        self.found[new.name] = new
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(new) + b"\n")

    def of(self, mutants: Sequence[Mutant]) -> list[Record]:
        """The records of those mutants that were judged."""
        return [self.found[m.name] for m in mutants if m.name in self.found]


def _records(lines: Sequence[bytes]) -> Iterator[Record]:
    """The records of a file; the last line may be cut off, where the run was ended."""
    for place, line in enumerate(lines):
        try:
            yield msgspec.json.decode(line, type=Record)
        except msgspec.DecodeError:
            if place < len(lines) - 1:
                raise


def kept(folder: Path, name: str, make: Callable[[], Drawn]) -> Drawn:
    """What was drawn from these sources, from a file of the run's folder if it was drawn before: it takes a minute."""
    file = folder / f"{name}-{digest()}.pickle"
    if file.exists():
        found = pickle.loads(file.read_bytes())  # noqa: S301 - our own file, in the folder of our own run
        assert isinstance(found, Drawn)
        return found
    drawn = make()
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps(drawn))
    return drawn


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant by its text."""

    module: str
    function: str
    old: str
    new: str


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mutants that do what the original does, as far as a consumer may rely on it, and why."""

    reason: str
    mutants: tuple[Place, ...]


Known = Mapping[Place, str]
EQUIVALENT = Path(__file__).with_name("equivalent.yaml")


def equivalents(path: Path = EQUIVALENT) -> Known:
    """The reasons of the mutants that are known to be equivalent."""
    listed = msgspec.yaml.decode(path.read_bytes(), type=list[Equivalent])
    return {place: each.reason for each in listed for place in each.mutants}


def why(known: Known, r: Record) -> str:
    """Why a mutant is equivalent; empty if it is not known to be."""
    return known.get(Place(r.module, r.function, r.old, r.new), "")
