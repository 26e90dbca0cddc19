"""docs/writing-an-adapter.md is walked: its commands are run, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "writing-an-adapter.md"


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the page, each with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif line.startswith("    ") and found:
            found[-1][1].append(line[4:])
        elif found and line:
            found.append(("", []))  # prose ends what a command shows
    return [(command, shown) for command, shown in found if command]


def shows(output: str, shown: list[str]) -> None:
    """The lines come in this order; `...` stands for other lines, or for the rest of one."""
    lines = iter(re.sub(r" +", " ", line).strip() for line in output.splitlines())
    for line in shown:
        wanted = re.sub(r" +", " ", line).strip()
        if wanted == "...":
            continue
        pattern = re.compile(re.escape(wanted).replace(r"\.\.\.", ".*") + r"\s*")
        assert any(pattern.fullmatch(other) for other in lines), f"{line!r} is not in\n{output}"


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder with a `verbspec` to be put on PATH that is the one under test."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, command in (("verbspec", "-m verbs_conformance.cli"), ("python3", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    return tools


def test_the_page_is_true(tmp_path: Path, shell: Path) -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environ = os.environ | {"PATH": f"{shell}:{os.environ['PATH']}", "PYTHONPATH": path, "COLUMNS": "200"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    walked = steps()
    assert len(walked) == 4
    for command, shown in walked[:3]:
        done = run(command)
        assert done.returncode == 0, done.stdout + done.stderr
        shows(done.stdout, shown)

    agent = tmp_path / "mydevice" / "agent.py"
    text = agent.read_text(encoding="utf-8")
    removed, added = re.findall(r"^[-+](        if .*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert text.count(removed) == 1
    agent.write_text(text.replace(removed, added), encoding="utf-8")
    command, shown = walked[3]
    done = run(command)
    assert done.returncode == 1
    shows(done.stdout, shown)


def test_new_writes_over_nothing(tmp_path: Path, shell: Path) -> None:
    (tmp_path / "judge").write_text("mine", encoding="ascii")
    done = subprocess.run(
        [shell / "verbspec", "adapter", "new", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "has judge already, and nothing is written over" in done.stderr
    assert (tmp_path / "judge").read_text(encoding="ascii") == "mine"
    assert not (tmp_path / "agent.py").exists()
