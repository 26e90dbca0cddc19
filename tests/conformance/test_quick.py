"""A quick run of the healthy device decides every rule, whatever the API and the transport."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import verbspec

from verbs_reports.results import Results, read
from verbs_reports.verdicts import Verdict

OPEN = {Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.CONSUMER_ERROR, Verdict.ERROR, Verdict.FAIL}


def quick(api: str, transport: str, out: Path) -> Results:
    options = ("-o", f"api={api}", "-o", f"transport={transport}")
    ended = verbspec("run", "softhca", *options, "--quick", "--out", str(out))
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
    if api == "networkdirect":  # the shortest program of the one has a deregistration that is done at once
        assert verdicts["request/deregistration-done"].verdict == Verdict.PASS
        assert len(found.programs) > len({p.target for p in found.programs})
        assert "makes no use of what connection/lost-sends permits" in verdicts["sq/no-answer"].reason
        assert "only permits" in verdicts["request/cancel-failed"].reason
    if (api, transport) == ("linux-kernel", "ib"):
        assert "takes LAND of the choice route_header" in verdicts["ud/received"].reason
