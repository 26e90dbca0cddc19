"""The agent's package becomes one plain file that needs nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from verbs_adapters.rdma_core import source
from verbs_conformance.adapter_cli import adapter

PACKAGE = Path(source.__file__).parent / "agent"


def test_the_file_is_for_old_pythons_and_imports_the_standard_library_only() -> None:
    tree = ast.parse(source.agent_source(), feature_version=(3, 8))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names
    named = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert max(named) < 60, "imports stand in front"


def test_each_module_of_the_package_is_in_it() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", *source.PARTS}
    for path in PACKAGE.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 400, path.name


def test_nothing_is_lost_and_nothing_is_there_twice() -> None:
    tree = ast.parse(source.agent_source())
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    expected = [
        node.name
        for part in source.PARTS
        for node in ast.parse((PACKAGE / f"{part}.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    ]
    assert names == expected
    assert len(set(names)) == len(names)


def test_the_command_writes_a_file_that_runs_alone(tmp_path: Path) -> None:
    written = CliRunner().invoke(adapter, ["agent", "rdma-core"])
    assert written.exit_code == 0
    assert written.stdout.encode() == source.agent_source()
    (tmp_path / "agent.py").write_text(written.stdout, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "agent.py", "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "--gid-index" in done.stdout


def test_the_other_agent_and_wrong_names() -> None:
    kernel = CliRunner().invoke(adapter, ["agent", "kverbs"])
    assert "/dev/kverbs" in kernel.stdout
    wrong = CliRunner().invoke(adapter, ["agent", "dragon"])
    assert wrong.exit_code == 2
    assert "'rdma-core', 'kverbs'" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"""One."""\nfrom verbs_adapters.rdma_core.agent.wire import Wire\n', "imports Wire of wire"),
        ('"""Two."""\nfrom verbs_adapters.rdma_core.agent.names import ATTR as attr\n', "imports ATTR of names"),
        ('"""Three."""\nSTATES = []\n', "both define STATES"),
        ('"""Four."""\nclass Sge: ...\n', "both define Sge"),
    ],
)
def test_parts_that_do_not_go_together_are_found(monkeypatch: pytest.MonkeyPatch, text: str, complaint: str) -> None:
    real = source._text
    monkeypatch.setattr(source, "_text", lambda name: text if name == "values" else real(name))
    with pytest.raises(AssertionError, match=complaint):
        source.parts()
