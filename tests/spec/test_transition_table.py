"""The table of transitions, cell by cell, against what three kernels answered (data under reports/published)."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from verbs_spec import load

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"
LIST = yaml.safe_load((PUBLISHED / "qp-table-differences.yaml").read_text(encoding="utf-8"))
KERNELS = sorted(p.name for p in PUBLISHED.glob("qp-table-[0-9]*.yaml"))
COLUMNS = ("required", "optional")

Move = tuple[str, str, str]
Cells = dict[Move, dict[str, frozenset[str]]]
Difference = tuple[Move, str, str, str]
"""A move, the column or `move` itself, the attribute, and who alone has it."""


def of_specification() -> Cells:
    spec = load()
    table = spec.tables["transition"]
    found: Cells = {}
    for row in table.rows:
        cells = {str(column): frozenset(map(str, words)) for column, words in row.cells.items()}
        keys = [row.keys.get(key) or spec.enums[enum].values for key, enum in table.keys.items()]
        for kind, now, following in product(*keys):
            found[str(kind), str(now), str(following)] = {c: cells.get(c, frozenset()) for c in COLUMNS}
    return found


def of_kernel(file: str) -> Cells:
    data: dict[str, Any] = yaml.safe_load((PUBLISHED / file).read_text(encoding="utf-8"))
    assert set(data["types"]) == LIST["types"].keys() | LIST["out_of_scope"].keys()
    return {
        (LIST["types"][row["type"]], row["from"], row["to"]): {c: frozenset(row[c]) for c in COLUMNS}
        for row in data["transitions"]
        if row["type"] in LIST["types"]
    }


def differences(ours: Cells, theirs: Cells) -> set[Difference]:
    found: set[Difference] = set()
    for move in ours.keys() | theirs.keys():
        if move not in ours or move not in theirs:
            found.add((move, "move", "", "specification" if move in ours else "kernel"))
            continue
        for column in COLUMNS:
            found |= {(move, column, each, "specification") for each in ours[move][column] - theirs[move][column]}
            found |= {(move, column, each, "kernel") for each in theirs[move][column] - ours[move][column]}
    return found


def covers(entry: dict[str, Any], file: str, difference: Difference) -> bool:
    _, column, attribute, only = difference
    return file in entry["kernels"] and entry["only"] == only and attribute in entry.get(column, ())


@pytest.mark.parametrize("file", KERNELS)
def test_every_difference_is_listed(file: str) -> None:
    found = differences(of_specification(), of_kernel(file))
    listed = [d for d in found if any(covers(entry, file, d) for entry in LIST["differences"])]

    assert sorted(found - set(listed)) == []


def test_every_entry_is_needed() -> None:
    ours = of_specification()
    found = {(file, d) for file in KERNELS for d in differences(ours, of_kernel(file))}

    for entry in LIST["differences"]:
        assert entry["tag"] in {"driver", "kernel", "source"}
        for file in entry["kernels"]:
            assert any(covers(entry, name, d) for name, d in found if name == file), entry


def test_a_changed_cell_is_found() -> None:
    kernel = of_kernel(KERNELS[0])
    move = ("RC", "INIT", "RTR")
    kernel[move] = {**kernel[move], "required": kernel[move]["required"] - {"AV"}}

    assert differences(of_specification(), kernel) == {(move, "required", "AV", "specification")}
