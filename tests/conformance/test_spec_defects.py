"""Defects planted in a copy of the specification: the check finds each, and says what and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from verbs_conformance import checking
from verbs_conformance import program as programs
from verbs_conformance.checking import Subject
from verbs_conformance.kept import Kept
from verbs_conformance.unwitnessed import reasons
from verbs_spec import SpecError, facts, loader, loads, slugs, tables

HERE = Path(__file__).parent
TABLES = HERE.parents[1] / "spec" / "tables"
DEFECTS: list[dict[str, Any]] = yaml.safe_load((HERE / "spec_defects.yaml").read_text(encoding="utf-8"))["defects"]
SHIPPED = [p for p in programs.shipped("programs") if not p.feature]
SOME = "pd/"
"""Programs of these rules are run: one is enough to see that they are."""
ONLY = ("linux-user", "roce")
PLACE = re.compile(r":\d+(?::\d+)?\b")


def texts() -> dict[str, str]:
    root = Path(str(resources.files("verbs_spec")))
    return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in sorted(root.rglob("*.yaml"))}


WHOLE = texts()


def planted(defect: Mapping[str, Any]) -> dict[str, str]:
    files = dict(WHOLE)
    for change in (defect, defect.get("also", {})):
        if "file" in change:
            name = change["file"]
            assert files[name].count(change["old"]) == 1, f"{change['old']!r} should stand once in {name}"
            files[name] = files[name].replace(change["old"], change["new"]) + change.get("more", "")
    return files


def subject(files: Mapping[str, str], defect: Mapping[str, Any], kept: Kept) -> Subject:
    shipped = [p for p in SHIPPED if p.target.startswith(SOME) or defect["part"] == "programs"]
    if "program" in defect:
        shipped += programs.parse(defect["program"], "planted.yaml")
    spec = loads({n: t for n, t in files.items() if not n.startswith(("facts/", "slugs"))})
    spared = {str(r) for r in spec.rules if not r.startswith(SOME)} if defect["part"] == "runs" else set()
    return Subject(
        spec,
        facts.loads({n: t for n, t in files.items() if n.startswith("facts/")}),
        slugs.loads(files["slugs.yaml"]),
        tuple(shipped),
        programs.fixtures(),
        (*reasons(), *spared, *([defect["reason"]] if "reason" in defect else [])),
        kept=kept,
        only=ONLY,
    )


def found(defect: Mapping[str, Any], kept: Kept) -> list[str]:
    """What the part of the check says, without lines and columns."""
    part = defect["part"]
    try:
        whole = subject(planted(defect), defect, kept)
        if part == "tables":
            said = [line.removeprefix(f"{TABLES}/") for line in tables.drift(whole.spec, TABLES)]
        elif part == "proofs":
            said = list(checking.proofs(whole, [defect["prove"]]))
        else:
            said = list(getattr(checking, part)(whole)) if part != "load" else []
    except SpecError as e:
        said = [str(e)]
    return [PLACE.sub("", line) for line in said]


@pytest.fixture(scope="module", autouse=True)
def parsed_once() -> Iterator[None]:
    """A file that is the same in many copies is parsed once."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (loader, facts, slugs):
            patch.setattr(module, "read", cache(module.read))
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("checks"))


@pytest.mark.parametrize("defect", DEFECTS, ids=[d["defect"] for d in DEFECTS])
def test_found(defect: Mapping[str, Any], kept: Kept) -> None:
    said = found(defect, kept)
    if "finds" in defect:
        assert defect["finds"] in said
    else:
        assert any(line.startswith(defect["finds_begin"]) for line in said), said


@pytest.mark.parametrize("part", ["load", "texts", "programs", "tables"])
def test_nothing_is_found_where_nothing_is_planted(part: str, kept: Kept) -> None:
    assert found({"part": part}, kept) == []


def test_as_many_as_asked_for() -> None:
    assert len({d["defect"] for d in DEFECTS}) == len(DEFECTS) >= 20
