"""The specification is what judges: flip any outcome in it, and a conforming device fails, the flipped rule suspected.

Every flip is tried once, under the first profiles where its rule stands with that text (``homes``).  The device is
softhca; with features, and where softhca has no such API, it is the model without the flip, which asks whether the
programs can see the rule.  What cannot be seen is listed with the reason in ``unflipped.yaml``, and the list is exact:
an entry that is seen after all, or that names no flip, fails.
"""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from typing import Any

import pytest

from verbs_conformance import flipping
from verbs_conformance.engine import Engine
from verbs_conformance.flipping import DEVICES, FEW, MOST, Result, bench_of, shown_by
from verbs_conformance.flips import Flip, apply, flips
from verbs_conformance.homes import Home, asked, homes, tried
from verbs_conformance.judge import Judge
from verbs_conformance.playback import Playback
from verbs_reference.model import Model
from verbs_spec.document import CallRule, StepRule

PARTS = 32
"""The flips are so many tests, which run side by side; neighbours have a home in common."""
MOST_SUSPECTS = 5
MOST_OPEN = 0.01
"""A twentieth was the aim; what is open is listed."""
CHOOSING = (Home("linux-kernel"), Home("linux-kernel-2008"))
"""Where options of choices are shown to be taken, or listed."""


def _every() -> list[tuple[Home, Flip]]:
    return [(home, flip) for home, found in tried().items() for flip in found]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_flip_is_seen_and_its_rule_suspected(part: int) -> None:
    every = _every()
    wrong = []
    for home, flip in every[len(every) * part // PARTS : len(every) * (part + 1) // PARTS]:
        entry = flipping.listed().get(flip.name)
        results = [(entry, bench_of(home).trial(flip, MOST if entry is None else FEW))]
        other = shown_by(home, entry)
        if other is not None:
            results.append((None, other.trial(flip)))
        for known, result in results:
            wrong += _complaint(home, flipping.mistake(known, result), result)
            assert len(result.suspects) <= MOST_SUSPECTS
    assert not wrong, "\n".join(wrong)


def _complaint(home: Home, mistake: str, result: Result) -> list[str]:
    if not mistake:
        return []
    return [f"{mistake}: [{home}] {result.flip.name}: {result.program}, suspects {result.suspects}"]


def test_the_list_names_flips_and_each_once() -> None:
    names = {flip.name for _, flip in _every()}
    entries = flipping.exceptions().flips
    for entry in entries:
        assert entry.reason
        assert not entry.device or (entry.kind == "untaken" and entry.device in DEVICES)
        assert not entry.under or entry.kind == "same"
        unknown = set(entry.flips) - names
        assert not unknown, f"unflipped.yaml has flips that are not there: {sorted(unknown)}"
    twice = [name for name, times in Counter(n for e in entries for n in e.flips).items() if times > 1]
    assert not twice, f"unflipped.yaml has flips twice: {twice}"


def test_few_flips_are_open() -> None:
    """Work to be done: what ought to show, and no program shows it yet."""
    still = [name for name, entry in flipping.listed().items() if entry.kind == "open"]
    assert len(still) <= MOST_OPEN * len(_every())


@pytest.mark.parametrize("home", CHOOSING, ids=str)
def test_each_branch_of_a_choice_is_taken_or_listed(home: Home) -> None:
    listed = [b for b in flipping.exceptions().branches if home.api in b.api]
    branches = [(name, str(o)) for name in asked(home.spec) for o in home.spec.choices[name].options]
    assert sorted((b.choice, b.option) for b in listed) == sorted(branches)
    for branch in listed:
        if branch.device:
            assert not branch.reason
            assert bench_of(home, branch.device).takes(branch.choice, branch.option, branch.program), branch
        else:
            assert branch.reason, branch


def _body(rule: CallRule | StepRule) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(str(rule.do or "")).strip()).body


@pytest.mark.parametrize("home", homes(), ids=str)
def test_each_field_of_an_outcome_is_flipped(home: Home) -> None:
    changed: dict[str, set[str]] = {}
    for flip in flips(home.spec):
        for name in flip.rules:
            changed.setdefault(name, set()).update(flip.changes)
    empty = {str(d.name) for d in home.spec.defines.values() if str(d.body).strip() == "pass"}
    for rule in home.spec.rules.values():
        fields = {"returns", "outputs", "undefined", "do"}
        has = {f for f in fields if getattr(rule, f, None)}
        flippable = [x for x in map(ast.unparse, _body(rule)) if "new(" not in x and x.split("(")[0] not in empty]
        if not flippable or (isinstance(rule, StepRule) and len(_body(rule)) == 1):
            has.discard("do")  # what follows names the new object; a step must take, or move on
        assert has <= changed.get(str(rule.id), set()), rule.id


def test_every_rule_has_a_home() -> None:
    flipped = {rule for _, flip in _every() for rule in flip.rules}
    there = {str(name): rule for home in homes() for name, rule in home.spec.rules.items()}
    bare = {name for name, rule in there.items() if isinstance(rule, StepRule) and len(_body(rule)) == 1}
    assert flipped <= there.keys()
    assert there.keys() - flipped <= bare  # what is all a step does it cannot do without


def test_a_flip_changes_its_rules_and_no_other() -> None:
    spec = homes()[0].spec
    for flip in flips(spec):
        flipped = apply(spec, flip).rules
        assert {r for r, rule in spec.rules.items() if flipped[r] != rule} == flip.rules, flip.name


def test_what_is_taken_over_from_the_model_judges_as_what_is_made_anew() -> None:
    bench = bench_of(homes()[0])
    every = tried()[homes()[0]]
    judged = 0
    for flip in every[:: len(every) // 12]:
        flipped = apply(bench.spec, flip)
        new, like = Engine(Model(flipped)), Engine(Model(flipped, bench.engine.model), bench.engine)
        for record in bench.likely(flip.rules)[:4]:
            done = []
            for engine in (new, like):
                backend = Playback(record.hello)
                backend.answers = record.answers
                done.append(Judge(engine, backend, record.hello, bench.fixtures).run(record.program, 1))
            one, other = done
            assert (one.lines, one.suspects, one.fired) == (other.lines, other.suspects, other.fired), flip.name
            judged += 1
    assert judged


def test_a_flip_of_nothing_is_not_seen() -> None:
    bench = bench_of(homes()[0])
    rule: Any = next(iter(bench.spec.rules.values()))
    assert not bench.trial(Flip(str(rule.id), "nothing", {"says": rule.says})).seen
