"""What is printed, and what a file of a failure repeats."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli import verbspec

from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_reports.results import read

FAULT = ("-o", "fault=reg-of-valid-accepted")


def failing(out: Path) -> str:
    ended = verbspec("run", "softhca", *FAULT, "--select", "reg/valid", "--seed", "7", "--out", str(out))
    assert ended.code == 1, ended.text
    return ended.text


def test_a_failure_repeats_from_its_file_alone(tmp_path: Path) -> None:
    text = failing(tmp_path)
    file = tmp_path / "failures" / "reg_valid.yaml"
    assert f"\n  replay: verbspec replay {file}\n" in text
    told = text[text.index("fail: reg/valid") : text.index("  replay: ")]

    ended = verbspec("replay", str(file))

    assert ended.code == 1
    assert ended.text == told
    assert "seed 7" in told


def test_what_is_given_is_stronger_than_the_file(tmp_path: Path) -> None:
    failing(tmp_path)
    file = str(tmp_path / "failures" / "reg_valid.yaml")

    healthy = verbspec("replay", file, "-o", "fault=")
    assert healthy.code == 0
    assert healthy.text.startswith("pass: reg/valid (after the fixture registered, seed 7)\n")
    assert "seed 9" in verbspec("replay", file, "--seed", "9").text
    assert verbspec("replay", file, "-o", "pace=lazy").code == 1
    # another adapter: the file's options are not its own
    other = verbspec("replay", file, "isolated", "-o", "adapter=softhca")
    assert other.code == 0, other.text
    assert "cannot be judged with the feature" in verbspec("replay", file, "--profile", "linux-kernel-2008").text


def test_piped_tables_are_whole(tmp_path: Path) -> None:
    text = failing(tmp_path)
    table = text[text.index("rule ") : text.index("\n\nfail:")].splitlines()

    assert table[0].split() == ["rule", "verdict", "fired", "reason"]
    assert len(table) == 2
    assert table[1].endswith("failing programs count against it, first reg/valid")
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("what", "head", "row"),
    [
        ("faults", "fault from told by what the device does", r"reg-of-valid-accepted +\S+ +[HS] +\S.*\S"),
        (
            "rules",
            "rule level status says",
            r"reg/valid +must +\w+ +A registration of a VALID region .*stays as it is\.",
        ),
        ("programs", "program kind fixture says", r"reg/valid +directed +registered +\S.*"),
        ("adapters", "adapter what it is", r"softhca +\S.*"),
        ("profiles", "profile kind summary", r"roce +transport +\S.*"),
    ],
)
def test_lists_have_a_head_and_one_line_each(what: str, head: str, row: str) -> None:
    lines = verbspec("list", what).text.splitlines()

    assert " ".join(lines[0].split()) == head
    assert any(re.fullmatch(row, line) for line in lines[1:]), lines


def test_a_terminal_gets_a_table_that_fits() -> None:
    primary, replica = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "70", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "verbs_conformance.start", "list", "faults"]
    with subprocess.Popen(command, stdout=replica, env=env) as process:
        os.close(replica)
        shown = b""
        try:
            while part := os.read(primary, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
    os.close(primary)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())

    assert process.returncode == 0
    assert max(len(line) for line in plain.splitlines()) <= 70
    assert plain.split()[0] == "fault"


def test_programs_that_decide_nothing_are_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = target.engine("linux-kernel", "roce").model.spec.rules
    shipped = programs.shipped
    careless = next(p for p in shipped("programs") if p.target in rules and getattr(rules[p.target], "undefined", None))
    ours = replace(careless, name="careless/one", kind="regression", target="")
    monkeypatch.setattr(programs, "shipped", lambda folder: [ours] if folder == "programs" else shipped(folder))

    ended = verbspec("run", "softhca", "--select", "careless/*", "--out", str(tmp_path))

    assert ended.code == 2
    file = tmp_path / "failures" / "careless_one.yaml"
    reason = f"the consumer breaks its duty here: {careless.target}"
    told = [f"consumer-error: careless/one (after the fixture {careless.fixture}, seed 1)", f"  {reason}"]
    assert "\n".join([*told, f"  replay: verbspec replay {file}\n"]) in ended.text
    again = verbspec("replay", str(file))
    assert again.code == 2
    assert again.text.splitlines()[0] == told[0]
    assert again.text.splitlines()[-1] == told[1]


def test_a_folder_is_as_good_as_the_results_in_it(tmp_path: Path) -> None:
    failing(tmp_path)
    old = tmp_path / "other.jsonl"
    old.write_text("not a results file\n", encoding="utf-8")
    os.utime(old, (1, 1))

    assert (
        verbspec("report", "html", str(tmp_path)).text
        == verbspec("report", "html", str(tmp_path / "results.jsonl")).text
    )

    (tmp_path / "empty").mkdir()
    ended = verbspec("report", "html", str(tmp_path / "empty"))
    assert ended.code == 4
    assert "holds no results file (*.jsonl)" in ended.text


def test_ctrl_c_while_loading_says_that_nothing_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(target, "engine", interrupted)

    ended = verbspec("run", "softhca", "--out", str(tmp_path / "out"))

    assert ended.code == 2
    assert ended.text.strip() == "interrupted before anything was judged; nothing was written"
    assert not (tmp_path / "out").exists()


def test_ctrl_c_while_python_imports_us_says_so_too() -> None:
    script = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'verbs_conformance.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from verbs_conformance.start import main\n"
        "main()\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    ended = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert ended.stderr == "interrupted before anything was judged; nothing was written\n"


def test_ctrl_c_in_a_run_leaves_what_was_judged(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "verbs_conformance.start", "run", "softhca", "--out", str(tmp_path)]
    results = tmp_path / "results.jsonl"
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not results.exists() or results.read_bytes().count(b"\n") < 3:
            assert process.poll() is None, "the run ended before it could be interrupted"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    found = read(results)
    assert process.returncode == 2, err
    assert found.footer is not None
    assert found.footer.note == "interrupted by Ctrl-C"
    assert found.footer.exit_code == 2
    assert "interrupted by Ctrl-C: the report holds what was judged until then" in err
    assert "report: " in out
