"""What may still come is told of a state from what was found for another one only if that is true there."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cache

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge
from verbs_conformance.machine import Stateful
from verbs_conformance.target import engine, load, offered
from verbs_reference.footprint import Footprint
from verbs_reference.moves import Pending
from verbs_reference.pending import Analysis
from verbs_reference.store import Store

APIS = ("linux-user", "networkdirect")
CALLS = 1500


@cache
def judge(api: str) -> Judge:
    backend = SoftHca({"api": api, "transport": "roce"})
    hello = backend.hello()
    return Judge(engine(api, "roce", offered(load(), hello)), backend, hello, programs.fixtures())


def told(pending: Pending) -> list[object]:
    """All that the search reads of what may come."""
    names = [f.name for f in fields(Footprint) if f.name != "cases"]
    return [
        (move, [getattr(own, name) for name in names], [case.index for case in own.cases], pending.before[move])
        for move, own in pending.prints.items()
    ]


@pytest.mark.parametrize("api", APIS)
def test_what_is_remembered_is_what_an_analysis_of_the_state_finds(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each state of some drawn programs: the remembered moves, and those that an analysis without memory finds."""
    seen: Counter[bool] = Counter()
    remembered = Analysis.pending
    known = judge(api).engine.analysis
    forgetful = Analysis(judge(api).engine.model)

    def pending(self: Analysis, store: Store) -> Pending:
        found = remembered(self, store)
        if self is known:
            forgetful._known.clear()
            forgetful._rows.clear()
            fresh = remembered(forgetful, store)
            assert told(found) == told(fresh), store.active
            seen[bool(found.prints)] += 1
        return found

    monkeypatch.setattr(Analysis, "pending", pending)
    for _ in Stateful(judge(api), 5, 600.0, most=CALLS).run():
        pass

    assert seen[True] > 50
