"""Backends with a defect: the specification itself as a backend, with a passage of it changed.

So a regression program of a feature that no other backend has is shown to find what it is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from verbs_conformance import program as programs
from verbs_conformance.build import limits
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_reference.model import Model
from verbs_spec.loader import loads
from verbs_spec.profiles import select

API, TRANSPORT = "linux-user", "ib"
FOLDERS = ("rules", "profiles")


class Defect(NamedTuple):
    """A passage of a file of the specification, the first after some words; what stands in its place on the device; and
    the program that finds it."""

    file: str
    after: str
    old: str
    new: str
    program: str


@cache
def texts() -> dict[str, str]:
    """The files of the specification."""
    root = resources.files("verbs_spec")
    return {
        f"{folder}/{each.name}": each.read_text(encoding="utf-8")
        for folder in FOLDERS
        for each in root.joinpath(folder).iterdir()
        if each.name.endswith(".yaml")
    }


@cache
def engine(features: tuple[str, ...], defect: Defect | None = None) -> Engine:
    """The machine that a specification is; with a defect, that of the device which has it."""
    files = texts()
    if defect is not None:
        before, mark, rest = files[defect.file].partition(defect.after)
        assert mark, f"{defect.file} has no {defect.after!r}"
        assert defect.old in rest, f"{defect.file} has no {defect.old!r} after {defect.after!r}"
        files = {**files, defect.file: before + mark + rest.replace(defect.old, defect.new, 1)}
    return Engine(Model(select(loads(files), API, TRANSPORT, features)))


def judged(name: str, features: tuple[str, ...], defect: Defect | None = None, seeds: int = 3) -> Iterator[Judgement]:
    """What the suite says of a shipped program on the device, under one schedule after the other."""
    healthy, fixtures = engine(features), programs.fixtures()
    backend = ReferenceBackend(engine(features, defect).model, limits(healthy, fixtures))
    program = next(p for p in programs.shipped("programs") if p.name == name)
    judge = Judge(healthy, backend, backend.hello(), fixtures)
    yield from (judge.run(program, seed) for seed in range(seeds))
