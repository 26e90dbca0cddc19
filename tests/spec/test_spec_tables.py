"""The Markdown tables."""

import re
import sys
from pathlib import Path

import pytest

from verbs_spec import load, loads, select, tables
from verbs_spec.document import Spec
from verbs_spec.tables import drift, render, write

SAMPLE = Path(__file__).parent / "sample"


@pytest.fixture(scope="module")
def sample() -> Spec:
    return load(SAMPLE)


def rows(page: str) -> list[list[str]]:
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.split("\n") if line.startswith("|")]


def test_every_table_is_rectangular(sample: Spec) -> None:
    for page in render(sample).values():
        for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
            assert len({len(row) for row in rows(table)}) == 1, table


def test_nothing_is_left_out(sample: Spec) -> None:
    text = "".join(render(sample).values())
    for rule in sample.rules.values():
        assert f"`{rule.id}`" in text
        assert rule.says in text
        for source in rule.sources:
            assert source in text
    for name, says in [(each.id, each.says) for each in sample.invariants] + [
        (each.id, each.says) for each in sample.unspecified
    ]:
        assert f"`{name}`" in text
        assert says in text
    for declared in (*sample.enums, *sample.records, *sample.objects, *sample.defines, *sample.choices):
        assert f"`{declared}`" in text


def test_a_row_of_a_call(sample: Spec) -> None:
    row = next(row for row in rows(render(sample)["mr.md"]) if "`mr/dereg-bound`<br>" in row[0])
    assert [cell.strip() for cell in row] == [
        "`mr/dereg-bound`<br>must",
        "cause: `mr.windows > 0 and choice(bound) == refuse`<br>choice: `bound`",
        "`EBUSY`, `EINVAL`<br>prefers `EBUSY`",
        "",
        "A region with windows bound to it is refused.",
        "man ibv_dereg_mr(3)",
    ]


def test_shapes_and_families(sample: Spec) -> None:
    pages = render(sample)
    assert "| `twice`<br>only `linux-user` | mr: `_other`, `null`<br>_other: `each mr` |" in pages["mr.md"]
    assert "For each `q in qp`, within `q.dead`, may run but need not, only under `iwarp`." in pages["qp.md"]


def test_cells_are_escaped() -> None:
    head = 'object: mr\nsummary: "a | b < c, `d < e`"\n'
    page = render(loads({"rules/mr.yaml": f'{head}define: {{"f()": "a | `b`\\n  c"}}'}))["mr.md"]
    assert "a \\| b &lt; c, `d < e`\n" in page
    assert "| `f()` | `` a \\| `b` ``<br>&emsp;`c` |" in page


def test_a_selected_specification_can_be_rendered(sample: Spec) -> None:
    page = render(select(sample, "linux-kernel", "ib"))["mr.md"]
    assert "| `EINVAL` |" in page
    assert "iwarp`, `linux-kernel" not in page


def test_no_drift_after_writing(sample: Spec, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    assert len(drift(sample, folder)) == 3
    folder.mkdir()
    (folder / "old.md").write_text("x")
    write(sample, folder)
    assert drift(sample, folder) == []
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "mr.md", "qp.md"]


def test_drift_names_file_and_line(sample: Spec, tmp_path: Path) -> None:
    write(sample, tmp_path)
    page = (tmp_path / "mr.md").read_text()
    (tmp_path / "mr.md").write_text(page.replace("# mr\n", "# MR\n", 1))
    (tmp_path / "qp.md").unlink()
    (tmp_path / "old.md").write_text("")
    with (tmp_path / "README.md").open("a") as file:
        file.write("more\n")
    assert drift(sample, tmp_path) == [
        f"{tmp_path}/README.md:{len(render(sample)['README.md'].splitlines()) + 1}: differs from the rules",
        f"{tmp_path}/mr.md:3: differs from the rules",
        f"{tmp_path}/qp.md: is missing",
        f"{tmp_path}/old.md: belongs to no object",
    ]


def test_command(
    sample: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "load", lambda: sample)
    monkeypatch.setattr(sys, "argv", ["tables", "--check", str(tmp_path)])
    assert tables.main() == 1
    assert f"{tmp_path}/mr.md: is missing" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["tables", str(tmp_path)])
    assert tables.main() == 0
    monkeypatch.setattr(sys, "argv", ["tables", "--check", str(tmp_path)])
    assert tables.main() == 0
