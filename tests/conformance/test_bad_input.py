"""Bad input: one clear message that says whose fault it is, and the documented exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import verbspec

PROGRAM = "program: p\nfixture: pair\nsteps: |\n"

PROGRAMS = [
    (
        "program: p\nsteps: |\n  frobnicate(qp=qp0)\n",
        ["unknown verb 'frobnicate'", "known under this profile", "post_send"],
    ),
    (PROGRAM + "  poll_cq(queue=cq0)\n", ["poll_cq has no parameter 'queue'", "it has cq"]),
    (PROGRAM + "  poll_cq(cq=cq7)\n", ["unknown name 'cq7'", "known here", "cq0"]),
    (PROGRAM + "  poll_cq(cq=qp0)\n", ["this is a ref qp, but a ref cq is needed here"]),
    (PROGRAM + "  poll_cq(cq0)\n", ["p.yaml:4:3", "is not a step", "verb(name=value, ...)"]),
    (PROGRAM + "  poll_cq(cq=cq0\n", ["p.yaml:4", "is not a step"]),
    (PROGRAM + "  modify_qp(qp=qp0, state=DANCING)\n", ["unknown name 'DANCING'"]),
    (PROGRAM + "  write_buffer(buf=buf0, offset=0, data=xyz)\n", ["bytes are 'pattern'", "hexadecimal"]),
    ("program: p\nfixture: trio\nsteps: |\n  settle()\n", ["fixture 'trio'", "known", "pair"]),
    ("program: p\nfixture: pair\n", ["a program must have 'steps'"]),
    ("program: p\nstep: |\n  settle()\n", ["p.yaml:2:1", "unknown key 'step'", "steps"]),
    ("program: p\nsteps: [settle]\n", ["steps is a block of lines"]),
    ("program: p\nprogram: q\nsteps: |\n  settle()\n", ["p.yaml:2:1", "program"]),
    ("program: [\n", ["p.yaml:2"]),
    ("program: p\nseed: soon\nsteps: |\n  settle()\n", ["seed is 'soon'", "number"]),
]


@pytest.mark.parametrize(("text", "words"), PROGRAMS)
def test_program(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")

    ended = verbspec("replay", str(path))

    assert ended.code == 4, ended.text
    for word in words:
        assert word in ended.text


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["replay", "nowhere.yaml"], 4, ["nowhere.yaml cannot be read"]),
        (["run", "sofhca"], 4, ["no adapter 'sofhca'", "did you mean 'softhca'", "process"]),
        (["run", "softhca", "-o", "pase=lazy"], 4, ["no option 'pase'", "did you mean 'pace'", "max_cqe"]),
        (["run", "softhca", "-o", "pace=slow"], 4, ["no value 'slow'", "Known: random, lazy, eager"]),
        (["run", "softhca", "-o", "max_cqe=many"], 4, ["max_cqe='many'", "natural number"]),
        (
            ["run", "softhca", "-o", "fault=inv-ignore-pd"],
            4,
            ["no fault 'inv-ignore-pd'", "did you mean 'inv-ignores-pd'", "reg-of-valid-accepted"],
        ),
        (
            ["run", "isolated", "-o", "adapter=softhca", "-o", "fault=inv-ignore-pd"],
            4,
            ["did you mean 'inv-ignores-pd'", "Nothing was started"],
        ),
        (["run", "softhca", "-o", "pace"], 4, ["KEY=VALUE"]),
        (["run", "softhca", "--profile", "linux-kernal"], 4, ["did you mean 'linux-kernel'", "Known", "roce"]),
        (["run", "--profile", "ib", "--profile", "roce"], 4, ["--profile ib", "--profile roce", "both transport"]),
        (["prove", "--profile", "linux-kernel", "--profile", "linux-kernel-2008"], 4, ["both api profiles"]),
        (["run", "softhca", "--profile", "iwarp", "-o", "transport=roce", "--budget", "0s"], 4, ["iwarp"]),
        (["run", "softhca", "--budget", "soon"], 4, ["soon", "90s"]),
        (["run", "softhca", "--select", "nothing/*", "--budget", "0s"], 5, []),
        (["run", "process"], 4, ["command"]),
        (["explain", "EFROB"], 4, ["EFROB"]),
        (["explain", "EBUSSY"], 4, ["EBUSY"]),
        (["list", "planets"], 4, ["rules"]),
        (["frob"], 4, ["frob"]),
    ],
)
def test_command(args: list[str], code: int, words: list[str], tmp_path: Path) -> None:
    more = ["--out", str(tmp_path)] if args[0] == "run" else []

    ended = verbspec(*args, *more)

    assert ended.code == code, ended.text
    for word in words:
        assert word in ended.text


def test_results_that_are_cut_are_reported_as_far_as_they_go(tmp_path: Path) -> None:
    verbspec("run", "softhca", "--select", "pd/*", "--budget", "0s", "--out", str(tmp_path))
    results = tmp_path / "results.jsonl"
    whole = results.read_bytes()
    results.write_bytes(whole[: len(whole) // 2])

    ended = verbspec("report", "markdown", str(results))

    assert ended.code == 0
    assert "TRUNCATED" in ended.text


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", ["empty"]), (b"not json\n", ["results.jsonl:1"]), (b'{"record":"planet"}\n', ["planet", "header"])],
)
def test_results_that_are_none(content: bytes, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)

    ended = verbspec("report", "html", str(path))

    assert ended.code == 4, ended.text
    for word in words:
        assert word in ended.text
