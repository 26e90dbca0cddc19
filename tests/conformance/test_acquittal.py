"""Which suspects are named: the nearest, and those that have been seen to work least; a replay names the same."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from cli import verbspec

from verbs_conformance import acquittal
from verbs_conformance import program as programs

RANKED = ("poll", "complete", "done", "send", "post", "refuse", "make")


def test_without_evidence_the_nearest_are_named() -> None:
    assert acquittal.named(RANKED, {}) == RANKED[:5]
    assert acquittal.named(("poll",), {"poll": 9}) == ("poll",)
    assert acquittal.named((), {"poll": 9}) == ()


def test_what_has_seldom_been_seen_to_work_is_named_before_what_has_often() -> None:
    passed = {"poll": 900, "complete": 800, "done": 300, "send": 800, "post": 700, "make": 2}

    assert acquittal.named(RANKED, passed) == ("poll", "complete", "refuse", "make", "done")


def test_the_nearest_are_named_whatever_passed() -> None:
    for counts in itertools.product((0, 5), repeat=len(RANKED)):
        found = acquittal.named(RANKED, dict(zip(RANKED, counts, strict=True)))
        assert found[:2] == RANKED[:2]
        assert len(found) == len(set(found)) == 5


def test_the_evidence_decides_as_all_that_passed_does() -> None:
    for counts in itertools.product((0, 1, 2), repeat=len(RANKED)):
        passed = {**dict(zip(RANKED, counts, strict=True)), "elsewhere": 7}
        evidence = dict(acquittal.evidence(RANKED, passed))
        assert "elsewhere" not in evidence
        assert acquittal.named(RANKED, evidence) == acquittal.named(RANKED, passed)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results of a run in which a lot passes before something fails, and what it printed."""
    out = tmp_path_factory.mktemp("run")
    patterns = ("write/done", "send/done", "reg/valid", "regress/opcode-of-registration")
    selected = [word for pattern in patterns for word in ("--select", pattern)]
    ended = verbspec("run", "softhca", "-o", "fault=reg-of-valid-accepted", "--out", str(out), *selected)
    assert ended.code == 1, ended.text
    return out, ended.text


def test_a_replay_names_the_suspects_of_the_run(failed: tuple[Path, str]) -> None:
    out, text = failed
    files = sorted((out / "failures").glob("*.yaml"))
    assert files
    for file in files:
        assert programs.load(file)[0].passed, file.read_text()
        lines = verbspec("replay", str(file)).text.splitlines()
        said = [line for line in lines if line.startswith("  suspects: ")]
        assert len(said) == 1
        assert said[0] in text.splitlines()
        without = file.with_suffix(".other")
        kept = programs.load(file)[0]
        without.write_text("".join(x for x in kept.to_yaml().splitlines(keepends=True) if not _is_evidence(x, kept)))
        assert said[0] not in verbspec("replay", str(without)).text.splitlines(), "the evidence changes nothing here"


def _is_evidence(line: str, kept: programs.Program) -> bool:
    return line == "passed:\n" or any(line == f"  {rule}: {count}\n" for rule, count in kept.passed)


def test_the_violated_rule_is_named(failed: tuple[Path, str]) -> None:
    said = [line for line in failed[1].splitlines() if line.startswith("  suspects: ")]
    assert said
    assert all("reg/valid" in line for line in said)


@pytest.mark.parametrize("passed", ["passed: many", "passed:\n  reg/valid: often", "passed: [reg/valid]"])
def test_evidence_that_is_none_is_refused(passed: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(f"program: bad\n{passed}\nsteps: |\n  settle()\n")

    ended = verbspec("replay", str(file))

    assert ended.code == 4
    assert "bad.yaml:" in ended.text
    assert "passed" in ended.text
