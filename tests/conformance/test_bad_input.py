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
    (
        PROGRAM + "  settle()\n  poll_cq(cq=cq7)\n",
        ["program p, step poll_cq(cq=cq7)", "unknown name 'cq7'", "known here", "cq0"],
    ),
    (PROGRAM + "  poll_cq(cq=qp0)\n", ["this is a ref qp, but a ref cq is needed here"]),
    (PROGRAM + "  poll_cq(cq0)\n", ["p.yaml:4:3", "is not a step", "verb(name=value, ...)"]),
    (PROGRAM + "  poll_cq(cq=cq0\n", ["p.yaml:4", "is not a step"]),
    (PROGRAM + "  modify_qp(qp=qp0, state=DANCING)\n", ["unknown name 'DANCING'"]),
    (PROGRAM + "  write_buffer(buf=buf0, offset=0, data=xyz)\n", ["bytes are 'pattern'", "hexadecimal"]),
    (PROGRAM + f"  post_recv(qp=qp0, wr_id={1 << 64}, sg_list=[])\n", ["wr_id is 18446744073709551616", "64 bits"]),
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
    "steps",
    [
        "destroy_qp(qp=qp0)\n  post_send(qp=qp0, opcode=SEND, wr_id=1, sg_list=[], signaled=true)",
        "destroy_qp(qp=qp0)\n  destroy_qp(qp=qp0)",
        "destroy_qp(qp=qp0)\n  destroy_cq(cq=cq0)\n  drain(cq=cq0)",
    ],
)
def test_what_is_gone_is_not_used(steps: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"{PROGRAM}  {steps}\n", encoding="utf-8")

    ended = verbspec("replay", str(path))

    assert ended.code == 2, ended.text
    assert "the program uses what is gone: " in ended.text
    assert "not called" in ended.text


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["replay", "nowhere.yaml"], 4, ["nowhere.yaml cannot be read"]),
        (
            ["run", "softhca", "--select", "", "--out", "out"],
            5,
            ["--select : no rule and no program", "so nothing ran"],
        ),
        (["run", "softhca", "--budget", "1e999s"], 4, ["'1e999s' is no duration", "write 90s"]),
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
        (["run", "softhca", "-o", "pace=lazy", "-o", "pace=eager"], 4, ["-o pace=lazy", "-o pace=eager", "once"]),
        (["run", "softhca", "--waivers", "nowhere.yaml"], 4, ["nowhere.yaml cannot be read"]),
        (["replay", "nowhere.yaml", "--waivers", "gone.yaml"], 4, ["gone.yaml cannot be read"]),
        (["report", "diff", "one.jsonl"], 4, ["AFTER"]),
        (["report", "diff", "one.jsonl", "two.jsonl"], 4, ["one.jsonl: cannot be read"]),
        (["report", "pdf", "one.jsonl"], 4, ["pdf"]),
        (["lab", "run", "-o", "kernel=6.1", "--kernel", "7.2"], 4, ["-o kernel=7.2", "-o kernel=6.1"]),
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


WAIVER = """
waivers:
  - waiver: one
    rule: inv/foreign
    for: {backend: softhca}
    program: regress/foreign-invalidation
    reason: words
    evidence: [words]
"""

WAIVERS = [
    ("waivers: []\n", ["w.yaml:1:1", "empty list"]),
    ("waiver: []\n", ["w.yaml:1:1", "unknown key 'waiver'", "did you mean 'waivers'"]),
    ("waivers: {}\n", ["w.yaml:1:10", "must be a list"]),
    ("waivers:\n  - one\n", ["w.yaml:2:5", "a waiver is the text 'one'", "must be a mapping"]),
    (WAIVER.replace("rule: inv", "rul: inv"), ["w.yaml:4:5", "unknown key 'rul'", "did you mean 'rule'", "evidence"]),
    (WAIVER.replace("    reason: words\n", ""), ["w.yaml:3:5", "a waiver lacks reason"]),
    (WAIVER.replace("waiver: one", "waiver: One"), ["w.yaml:3:13", "'One'", "lower-case"]),
    (WAIVER.replace("inv/foreign", "inv/*"), ["w.yaml:4:11", "a pattern", "one rule", "one waiver a rule"]),
    (
        WAIVER.replace("inv/foreign", "inv/foregn"),
        ["w.yaml:4:11", "'inv/foregn'", "did you mean 'inv/foreign'", "inv/again"],
    ),
    (WAIVER.replace("inv/foreign", "[inv/foreign]"), ["w.yaml:4:11", "a list", "must be text"]),
    (WAIVER.replace("inv/foreign", "mr/map-owned"), ["w.yaml:4:11", "duty of the consumer"]),
    (WAIVER.replace("{backend: softhca}", "{}"), ["w.yaml:5:10", "every backend would be excused", "kernel"]),
    (
        WAIVER.replace("backend: soft", "driver: soft"),
        ["w.yaml:5:11", "unknown key 'driver'", "backend, version, device"],
    ),
    (WAIVER.replace("softhca", "{a: b}"), ["w.yaml:5:20", "must be text"]),
    (WAIVER.replace("backend: softhca", "api: linux-kernal"), ["w.yaml:5:16", "did you mean 'linux-kernel'"]),
    (WAIVER.replace("foreign-inv", "foregn-inv"), ["w.yaml:6:14", "did you mean 'regress/foreign-invalidation'"]),
    (WAIVER.replace("regress/foreign-invalidation", "p.yaml"), ["w.yaml:6:14", "p.yaml cannot be read"]),
    (
        WAIVER.replace("regress/foreign-invalidation", "{program: regress/register-valid, steps: 'settle()'}"),
        ["w.yaml:6:24", "like one that ships"],
    ),
    (WAIVER.replace("regress/foreign-invalidation", "{program: p, step: x}"), ["w.yaml:6:27", "unknown key 'step'"]),
    (
        WAIVER.replace("backend: softhca", "api: linux-user"),
        ["w.yaml:6:14", "waiver one applies under no profile", "regress/foreign-invalidation"],
    ),
    (WAIVER.replace("regress/foreign-invalidation", "[]"), ["w.yaml:6:14", "empty list"]),
    (WAIVER.replace("regress/foreign-invalidation", "[p.yaml]"), ["w.yaml:6:15", "p.yaml cannot be read"]),
    (
        WAIVER.replace("regress/foreign-invalidation", "[reg/foreign, reg/foreign]"),
        ["w.yaml:6:28", "'reg/foreign' is there already"],
    ),
    (WAIVER.replace("[words]", "words"), ["w.yaml:8:15", "must be a list"]),
    (WAIVER + "    instead: {}\n", ["w.yaml:9:14", "may replace do"]),
    (WAIVER + "    instead: {returns: [EINVAL]}\n", ["w.yaml:9:15", "unknown key 'returns'", "the keys are do"]),
    (WAIVER + "    instead: {do: finish(w, SUCCESS)}\n", ["w.yaml:9:", "SUCCESS", "quote it"]),
    (WAIVER + "    instead: {do: 'finish(w, SUCESS)'}\n", ["w.yaml:9:30", "SUCESS"]),
    (WAIVER + "    instead: {do: 'w.state = VALID'}\n", ["w.yaml:9:", "state", "waiver file's"]),
    (WAIVER + WAIVER.replace("\nwaivers:\n", ""), ["w.yaml:9:13", "'one' is there already", "w.yaml:3:13"]),
    (
        WAIVER + WAIVER.replace("\nwaivers:\n", "").replace("waiver: one", "waiver: two"),
        ["w.yaml:9:13", "waiver two is for", "that one is for", "leave one out"],
    ),
]


@pytest.mark.parametrize(("text", "words"), WAIVERS)
def test_waiver_file(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")

    ended = verbspec("waivers", "check", str(path))

    assert ended.code == 4, ended.text
    assert "The fault is the waiver file's" in ended.text
    for word in words:
        assert word in ended.text


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    ended = verbspec("run", "softhca", "--select", "pd/*", "--out", str(tmp_path / "file" / "out"))

    assert ended.code == 4, ended.text
    assert "file/out: Not a directory" in ended.text
    assert "the fault is not the backend's" in ended.text
