"""Why a rule did not fire is said in words that are true of the backend."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance.run import Run, Settings
from verbs_conformance.target import engine, load
from verbs_conformance.unwitnessed import reasons
from verbs_reports.verdicts import Verdict


def verdict(rule: str, capabilities: tuple[str, ...]) -> tuple[Verdict, str]:
    backend = SoftHca({})
    hello = msgspec.structs.replace(backend.hello(), capabilities=capabilities)
    settings = Settings("linux-kernel", "roce", select=(rule,), out=Path("unused"))
    (record,) = Run(engine("linux-kernel", "roce"), backend, hello, settings).rule_records()
    return record.verdict, record.reason


def test_a_rule_for_devices_that_lack_something_is_unsupported_where_it_is_declared_only() -> None:
    found, reason = verdict("mr/alloc-unsupported", ("MEM_MGT_EXTENSIONS",))
    assert found == Verdict.UNSUPPORTED
    assert reason.startswith("Only a device that lacks MEM_MGT_EXTENSIONS fires it")

    assert verdict("mr/alloc-unsupported", ())[0] == Verdict.NOT_RUN


@pytest.mark.parametrize(("select", "found"), [("qp/create*", "unsupported"), ("qp/create-abroad", "")])
def test_a_rule_about_a_feature_is_unsupported_where_the_backend_does_not_declare_it(select: str, found: str) -> None:
    """Alone it is not selected at all, lest a run of nothing be green."""
    backend = SoftHca({})
    settings = Settings("linux-kernel", "roce", select=(select,), out=Path("unused"))
    records = Run(engine("linux-kernel", "roce"), backend, backend.hello(), settings).rule_records()

    abroad = {r.rule: (r.verdict, r.reason) for r in records if r.rule == "qp/create-abroad"}
    assert abroad == ({"qp/create-abroad": (found, "The backend does not declare TWO_DEVICES.")} if found else {})


@pytest.mark.parametrize("rule", sorted(reasons()))
def test_reasons_say_nothing_of_a_backend_that_is_not_checked(rule: str) -> None:
    reason = reasons()[rule]

    assert "backend" not in reason.text
    assert reason.verdict == Verdict.CHOICE
    if "permits" in reason.text:
        assert load().rules[rule].level == "may"
