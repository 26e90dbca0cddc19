"""A quick run of the healthy device decides every rule, whatever the API and the transport."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import verbspec

from verbs_reports.results import Results, read
from verbs_reports.verdicts import Verdict

OPEN = {Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.CONSUMER_ERROR, Verdict.ERROR, Verdict.FAIL}


def quick(api: str, transport: str, out: Path, *more: str) -> Results:
    options = ("-o", f"api={api}", "-o", f"transport={transport}")
    ended = verbspec("run", "softhca", *options, "--quick", "--out", str(out), *more)
    found = read(out / "results.jsonl")
    assert ended.code == 0, [f"{r.rule}: {r.reason}" for r in found.rules if r.verdict in OPEN] or ended.text
    return found


@pytest.mark.parametrize("transport", ["roce", "ib", "iwarp"])
@pytest.mark.parametrize("api", ["linux-kernel", "linux-user", "winverbs", "networkdirect"])
def test_a_quick_run_leaves_nothing_open(api: str, transport: str, tmp_path: Path) -> None:
    found = quick(api, transport, tmp_path)

    assert not {r.rule for r in found.rules if r.verdict in OPEN}
    assert not {p.name for p in found.programs if p.verdict in OPEN}
    verdicts = {r.rule: r for r in found.rules}
    if api == "networkdirect":
        assert "makes no use of what connection/lost-sends permits" in verdicts["sq/no-answer"].reason
        assert "only permits" in verdicts["request/cancel-failed"].reason
    if (api, transport) == ("linux-kernel", "ib"):
        assert "takes LAND of the choice route_header" in verdicts["ud/received"].reason


def test_another_program_is_run_where_the_shortest_did_not_fire_its_rule(tmp_path: Path) -> None:
    """Whether a deregistration is done at once or is pending is drawn; only one that was pending fires the rule."""
    rule, programs = "request/deregistration-done", []
    for seed in range(1, 9):
        found = quick("networkdirect", "roce", tmp_path / str(seed), "--select", rule, "--seed", str(seed))
        assert [r.verdict for r in found.rules if r.rule == rule] == [Verdict.PASS]
        programs.append(len(found.programs))
    assert min(programs) < max(programs)
