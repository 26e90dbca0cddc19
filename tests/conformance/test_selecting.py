"""What a run takes on: rules and programs by name, and what failed in an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli import verbspec

from verbs_reports.results import Program, Results, Writer, read
from verbs_reports.verdicts import Verdict

FAULT = ("-o", "fault=reg-of-valid-accepted")


def run(out: Path, *args: str) -> tuple[int, str, Results]:
    ended = verbspec("run", *args, "--budget", "0s", "--out", str(out))
    return ended.code, ended.text, read(out / "results.jsonl")


def names(results: Results) -> set[str]:
    return {p.name for p in results.programs}


def test_programs_are_selected_by_their_own_names(tmp_path: Path) -> None:
    code, text, found = run(tmp_path, "softhca", "--select", "regress/register-valid")

    assert code == 0, text
    assert names(found) == {"regress/register-valid"}
    assert found.rules == ()
    assert found.footer is not None
    assert found.footer.exit_code == 0
    assert found.footer.verdict in {Verdict.PASS, Verdict.CHOICE}
    assert "3 programs" in text


def test_a_failing_program_names_its_rule_though_only_the_program_was_selected(tmp_path: Path) -> None:
    code, text, found = run(tmp_path, "softhca", *FAULT, "--select", "regress/register-valid")

    assert code == 1, text
    assert [r.verdict for r in found.rules] == [Verdict.FAIL]
    assert found.rules[0].rule in text


def test_sweep_programs_are_selected_by_their_names(tmp_path: Path) -> None:
    code, text, found = run(tmp_path, "softhca", "--select", "sweep/*/alloc_pd-0")

    assert code == 0, text
    assert names(found)
    assert all(n.startswith("sweep/") and n.endswith("/alloc_pd-0") for n in names(found))


def test_a_pattern_that_matches_nothing_is_named_with_what_may_have_been_meant(tmp_path: Path) -> None:
    code, text, _ = run(tmp_path, "softhca", "--select", "pd/aloc", "--select", "pd/dealloc")

    assert code == 0, text
    assert "--select pd/aloc: no rule and no program" in text
    assert "did you mean 'pd/alloc'" in text

    code, text, _ = run(tmp_path, "softhca", "--select", "nothing/*")

    assert code == 5
    assert "--select nothing/*: no rule and no program" in text
    assert "nothing was selected under these profiles, so nothing ran" in text
    assert "again:" not in text


def test_what_failed_runs_again_and_nothing_else_is_judged(tmp_path: Path) -> None:
    selected = ("--select", "reg/*", "--select", "sweep/remapped/post_reg_mr-*", "--select", "pd/*")
    code, text, first = run(tmp_path / "one", "softhca", *FAULT, *selected)
    failed = {p.name for p in first.programs if p.verdict == Verdict.FAIL}
    assert code == 1, text
    assert {n.split("/")[0] for n in failed} >= {"reg", "sweep"}, failed

    # the adapter, its options and the profiles are those of the results
    code, text, second = run(tmp_path / "two", "--rerun-failed", str(tmp_path / "one"))

    assert code == 1, text
    assert names(second) == failed
    assert {r.verdict for r in second.rules} == {Verdict.FAIL}

    code, text, third = run(tmp_path / "three", "softhca", "-o", "fault=", "--rerun-failed", str(tmp_path / "one"))

    assert code == 0, text
    assert names(third) == failed
    assert {r.verdict for r in third.rules} == {Verdict.PASS}


def stateful(**more: Any) -> Program:
    """A record as a stateful program leaves it: steps with answers, no file."""
    steps = (
        "post_send(opcode=REG_MR, qp=qp0, mr=mr0, wr_id=1, key=tag(mr0.first, 1), access={LOCAL_WRITE}, "
        "signaled=true, fence=false) -> 0",
        "settle() -> 0",
        "poll_cq(cq=cq0) -> 0, n=1, wr_id=1, status=SUCCESS",
    )
    made = Program(
        name="stateful-100005", kind="stateful", verdict=Verdict.FAIL, calls=9, steps=steps, fixture="registered"
    )
    return msgspec.structs.replace(made, **more)


@pytest.mark.parametrize(("fault", "code"), [("reg-of-valid-accepted", 1), ("", 0)])
def test_a_stateful_program_runs_again_from_its_record(fault: str, code: int, tmp_path: Path) -> None:
    _, _, found = run(tmp_path / "one", "softhca", "-o", "fault=reg-of-valid-accepted", "--select", "pd/alloc")
    with Writer(tmp_path / "drawn.jsonl", found.header) as writer:
        writer.write(stateful(seed=5))

    ended, text, again = run(
        tmp_path / "two", "softhca", "-o", f"fault={fault}", "--rerun-failed", str(tmp_path / "drawn.jsonl")
    )

    assert ended == code, text
    assert [(p.name, p.kind, p.seed) for p in again.programs] == [("stateful-100005", "stateful", 5)]


def test_results_without_a_failure_are_not_run_again(tmp_path: Path) -> None:
    run(tmp_path, "softhca", "--select", "pd/alloc")

    ended = verbspec("run", "--rerun-failed", str(tmp_path))

    assert ended.code == 4
    assert "holds no program that failed" in ended.text


def test_a_quick_run_has_one_program_a_rule_and_decides_as_much(tmp_path: Path) -> None:
    ended = verbspec("run", "softhca", "--quick", "--out", str(tmp_path))
    found = read(tmp_path / "results.jsonl")

    assert ended.code == 0, ended.text
    assert found.footer is not None
    assert len(found.programs) == len(names(found)) <= len(found.rules)
    assert not any(p.name.startswith("sweep/") or p.kind == "stateful" for p in found.programs)
    assert Verdict.NOT_RUN not in {r.verdict for r in found.rules}


def test_two_runs_are_compared(tmp_path: Path) -> None:
    for name, more in (("before", ()), ("after", FAULT)):
        run(tmp_path / name, "softhca", *more, "--select", "regress/register-valid")
    before, after = str(tmp_path / "before"), str(tmp_path / "after")

    worse = verbspec("report", "diff", before, after)
    better = verbspec("report", "diff", after, before, "--markdown")
    same = verbspec("report", "diff", after, after, "--out", str(tmp_path / "diff.md"))

    assert worse.code == 1, worse.text
    assert "program regress/register-valid" in worse.text
    assert "options: " in worse.text
    assert better.code == 0, better.text
    assert better.text.startswith("# NO REGRESSION")
    assert same.code == 0, same.text
    assert (tmp_path / "diff.md").read_text(encoding="utf-8").startswith("# NO REGRESSION")
