"""Answers to questions: what of the specification a question names, found anew each time.

Theory of operation
-------------------
A question of the specification has wordings, and names what answers it.  What a person asks is compared with all
wordings by the words that they have in common; a slot such as ``{verb}`` takes the first word that is one.  Names of
answers are rules, choices and the like; a find picks rules by what they have.  Of a transition those rules are picked
that make it, and those causes that the two states alone do not rule out, under any selection of profiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verbs_conformance.transitions import open_causes, transitions
from verbs_reference.model import Model
from verbs_spec.document import CallRule, Find, Question, Spec, StepRule
from verbs_spec.profiles import features, select
from verbs_spec.questions import SLOT, vocabulary, words

LIKE = 0.5
"""So much of the words must be common to what is asked and a wording for the one to be the other."""
FORMULAS = ("cause", "when", "outputs", "do", "undefined")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was recognised: how near its words are, and what stands in its slots."""

    question: Question
    wording: str
    near: float
    slots: Mapping[str, str]


def recognise(spec: Spec, asked: str) -> list[Asked]:
    """The questions that have words of these, the nearest first."""
    found = []
    for each in spec.questions:
        alike = [_compare(spec, each, str(ask), asked) for ask in each.asks]
        best = max(alike, key=lambda one: one.near)
        if best.near > 0:
            found.append(best)
    return sorted(found, key=lambda one: -one.near)


def answers(spec: Spec, asked: Asked) -> list[str]:
    """The names of what answers a question, each once, in the question's order."""
    found: dict[str, None] = {}
    for answer in asked.question.answers:
        if isinstance(answer, Find):
            filled = {str(k): asked.slots[str(k)] if SLOT.fullmatch(v) else str(v) for k, v in answer.terms.items()}
            found.update(dict.fromkeys(_found(spec, filled)))
        else:
            found[str(answer)] = None
    return list(found)


def through(spec: Spec, topic: str) -> set[str]:
    """The word, and the defines that it is in, directly or through others."""
    found: set[str] = set()
    todo = {topic}
    while todo:
        found |= todo
        todo = {str(d.name) for d in spec.defines.values() if found & formula_words(str(d.body))} - found
    return found


def mentioning(spec: Spec, *topics: str) -> Iterator[CallRule | StepRule]:
    """The rules whose formulas hold one of these words."""
    for rule in spec.rules.values():
        texts = [getattr(rule, f, None) for f in FORMULAS]
        if any(not formula_words(str(t)).isdisjoint(topics) for t in texts if t is not None):
            yield rule


def formula_words(text: str) -> set[str]:
    """The identifiers and numbers in a formula."""
    return set(re.findall(r"\w+", text))


def _compare(spec: Spec, question: Question, wording: str, asked: str) -> Asked:
    given = list(words(asked))
    slots: dict[str, str] = {}
    common, missing = 0, 0
    for word in words(wording):
        slot = SLOT.fullmatch(word)
        if slot:
            known = vocabulary(spec, slot[1])
            match = next((each for each in given if each in known), None)
        else:
            match = next((each for each in given if _stem(each) == _stem(word)), None)
        if match is None and slot:
            return Asked(question, wording, 0, {})
        if match is None:
            missing += 1
            continue
        given.remove(match)
        common += 1
        if slot:
            slots[slot[1]] = match
    return Asked(question, wording, common / (common + missing + len(given)), slots)


def _stem(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") else lower


def _found(spec: Spec, terms: Mapping[str, str]) -> list[str]:
    rules = list(spec.rules.values())
    if "verb" in terms:
        rules = [r for r in rules if isinstance(r, CallRule) and r.call == terms["verb"]]
    if "returns" in terms:
        rules = [r for r in rules if isinstance(r, CallRule) and _returns(spec, r, terms["returns"])]
    if "object" in terms:
        rules = [r for r in rules if r.id.startswith(terms["object"] + "/")]
    if "mentions" in terms:
        holding = {str(r.id) for r in mentioning(spec, *through(spec, terms["mentions"]))}
        rules = [r for r in rules if r.id in holding]
    if "from" in terms:
        rules = _at(spec, rules, terms["from"], terms["to"])
    return [str(r.id) for r in rules]


def _returns(spec: Spec, rule: CallRule, result: str) -> bool:
    """Whether a rule allows a result, as it stands or under a profile."""
    changed = [d for p in spec.profiles.values() for d in p.deltas if d.rule == rule.id and d.field == "returns"]
    return result in rule.returns or any(result in d.value for d in changed if isinstance(d.value, tuple))


def _at(spec: Spec, rules: list[CallRule | StepRule], old: str, new: str) -> list[CallRule | StepRule]:
    """Those of the rules that may decide a transition, under some selection of profiles."""
    found: set[str] = set()
    for model in _models(spec):
        found |= {t.rule for t in transitions(model, old, new)}
        found |= set(open_causes(model, old, new))
    return [r for r in rules if str(r.id) in found]


def _models(spec: Spec) -> list[Model]:
    """Models that hold every profile: each API with the first transport, the first API with each transport."""
    if spec.digest not in _made:
        kinds = {kind: [str(p.name) for p in spec.profiles.values() if p.kind == kind] for kind in ("api", "transport")}
        apis, transports = kinds.values()
        pairs = [(api, transports[0]) for api in apis] + [(apis[0], transport) for transport in transports[1:]]
        _made.clear()
        _made[spec.digest] = [Model(select(spec, *pair, features(spec))) for pair in pairs]
    return _made[spec.digest]


_made: dict[str, list[Model]] = {}
"""The models of the last specification that was asked, by its digest."""
