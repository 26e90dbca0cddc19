"""The specification is what judges: flip any outcome in it, and a conforming device fails, the flipped rule suspected.

Every flip of both APIs is tried, each under one of the APIs that it belongs to, chosen by its name; all flips under
both APIs are tried by ``python benchmarks/flips.py``, which exits with 1 if one is not as it should be.  What cannot
be seen is listed with the reason in ``unflipped.yaml``, and the list is exact: an entry that is seen after all, or
that names no flip, fails.
"""

from __future__ import annotations

import ast
import textwrap
import zlib
from functools import cache
from typing import Any

import pytest

from verbs_conformance import flipping
from verbs_conformance.flipping import APIS, DEVICES, PLAIN, Bench, Result
from verbs_conformance.flips import Flip, apply
from verbs_conformance.judge import Judge
from verbs_conformance.playback import Playback
from verbs_conformance.session import Engine
from verbs_reference.model import Model
from verbs_spec.document import StepRule

PARTS = 8
"""The flips of an API are so many tests, which run side by side."""
MOST_SUSPECTS = 5


@cache
def _bench(api: str, device: str) -> Bench:
    return Bench(api, device)


@cache
def _names(api: str) -> frozenset[str]:
    return frozenset(flip.name for flip in _bench(api, PLAIN).flips)


def _is_tried_under(api: str, name: str) -> bool:
    homes = [a for a in APIS if name in _names(a)]
    return homes[zlib.crc32(name.encode()) % len(homes)] == api


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("api", APIS)
def test_a_flip_is_seen_and_its_rule_suspected(api: str, part: int) -> None:
    wrong = []
    for flip in _bench(api, PLAIN).flips:
        name = flip.name
        if zlib.crc32(name.encode()) // len(APIS) % PARTS == part and _is_tried_under(api, name):
            entry = flipping.listed(api).get(name)
            result = _bench(api, PLAIN).trial(flip)
            assert len(result.suspects) <= MOST_SUSPECTS
            wrong += _complaint(flipping.mistake(entry, result, PLAIN), result)
            if entry is not None and entry.device:
                result = _bench(api, entry.device).trial(flip)
                wrong += _complaint(flipping.mistake(None, result, entry.device), result)
    assert not wrong, "\n".join(wrong)


def _complaint(mistake: str, result: Result) -> list[str]:
    return [f"{mistake}: {result.flip.name}: {result.program}, suspects {result.suspects}"] if mistake else []


def test_the_list_names_flips_and_each_once() -> None:
    for entry in flipping.exceptions().flips:
        assert entry.reason
        assert not entry.device or (entry.kind == "untaken" and entry.device in DEVICES)
        for api in entry.api:
            unknown = set(entry.flips) - _names(api)
            assert not unknown, f"unflipped.yaml has, for {api}, flips that are not there: {sorted(unknown)}"
    pairs = [(api, name) for e in flipping.exceptions().flips for api in e.api for name in e.flips]
    assert len(pairs) == len(set(pairs)), sorted({p for p in pairs if pairs.count(p) > 1})


@pytest.mark.parametrize("api", APIS)
def test_each_branch_of_a_choice_is_taken_or_listed(api: str) -> None:
    listed = [b for b in flipping.exceptions().branches if api in b.api]
    branches = [(str(c.name), str(o)) for c in _bench(api, PLAIN).spec.choices.values() for o in c.options]
    assert sorted((b.choice, b.option) for b in listed) == sorted(branches)
    for branch in listed:
        if branch.device:
            assert not branch.reason
            assert _bench(api, branch.device).takes(branch.choice, branch.option, branch.program), branch
        else:
            assert branch.reason, branch


def test_each_field_of_an_outcome_is_flipped() -> None:
    for api in APIS:
        bench = _bench(api, PLAIN)
        changed: dict[str, set[str]] = {}
        for flip in bench.flips:
            changed.setdefault(flip.rule, set()).update(flip.changes)
        for rule in bench.spec.rules.values():
            fields = {"returns", "outputs", "undefined", "do"}
            has = {f for f in fields if getattr(rule, f, None)}
            body = ast.parse(textwrap.dedent(str(rule.do or "")).strip()).body
            if all("new(" in ast.unparse(s) for s in body) or (isinstance(rule, StepRule) and len(body) == 1):
                has.discard("do")  # what follows names the new object; a step must take, or move on
            assert has <= changed.get(str(rule.id), set()), rule.id


def test_a_flip_changes_its_rule_and_no_other() -> None:
    spec = _bench(APIS[0], PLAIN).spec
    for flip in _bench(APIS[0], PLAIN).flips:
        flipped = apply(spec, flip).rules
        assert {r for r, rule in spec.rules.items() if flipped[r] != rule} == flip.rules, flip.name


def test_what_is_taken_over_from_the_model_judges_as_what_is_made_anew() -> None:
    bench = _bench(APIS[0], PLAIN)
    judged = 0
    for flip in bench.flips[:: len(bench.flips) // 12]:
        flipped = apply(bench.spec, flip)
        new, like = Engine(Model(flipped)), Engine(Model(flipped, bench.engine.model), bench.engine)
        for record in bench.likely(flip.rules)[:4]:
            done = []
            for engine in (new, like):
                backend = Playback(bench.hello)
                backend.answers = record.answers
                done.append(Judge(engine, backend, bench.hello, bench.fixtures).run(record.program, 1))
            one, other = done
            assert (one.lines, one.suspects, one.fired) == (other.lines, other.suspects, other.fired), flip.name
            judged += 1
    assert judged


def test_a_flip_of_nothing_is_not_seen() -> None:
    bench = _bench(APIS[0], PLAIN)
    rule: Any = next(iter(bench.spec.rules.values()))
    assert not bench.trial(Flip(str(rule.id), "nothing", {"says": rule.says})).seen
