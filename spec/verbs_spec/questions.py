"""Questions: how their entries are read, and that what they name is there.

A question has several wordings and the names of what answers it, so that an answer is always the rules' own text.
Where the rules are to be picked by what they have in common, a `find` stands in place of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from verbs_spec.document import CallRule, Find, Question, Spec
from verbs_spec.errors import SpecError, listed, near
from verbs_spec.nodes import Entry, slug, text, texts
from verbs_spec.text import Map, Node, Text

SLOT = re.compile(r"\{(\w+)\}")
KEYS = ("verb", "returns", "mentions", "object", "from", "to")
_WORDS = (
    "a about an and any are at be by can do does for from get had has have how i if in into is it its may must my of "
    "on one or s should some t than that the their then there they this to was what when where which while who will "
    "with would you your"
)
_COMMON = frozenset(_WORDS.split())


def question(node: Node, file: str) -> Question:
    """An element of `questions`."""
    found = node.get(Text("id", node.where)) if isinstance(node, Map) else None
    what = f"question {found}" if isinstance(found, Text) and found else "a question without id"
    entry = Entry(node, what, required="id asks answers")
    asks = entry.required("asks", texts)
    answers = tuple(_answer(each, what) for each in entry.elements("answers"))
    if not answers:
        raise SpecError(f"{what} has no answers; name a rule, a choice or a find that answers it", entry.where)
    made = Question(entry.required("id", slug), asks, answers, file)
    for ask in asks:
        if not words(ask):
            raise SpecError(f"{str(ask)!r} of {what} has no word but common ones; say what it is about", ask.where)
        _check_slots(made, ask)
    return made


def words(ask: str) -> tuple[str, ...]:
    """The words of a question that tell it from others, as they stand there; slots as `{verb}`."""
    return tuple(each for each in re.findall(r"\{\w+\}|\w+", ask) if each.lower() not in _COMMON)


def check_questions(spec: Spec) -> None:
    """That every question's answers are there, and that no two ask the same."""
    known = topics(spec)
    earlier: dict[frozenset[str], Text] = {}
    for each in spec.questions:
        for ask in each.asks:
            other = earlier.setdefault(frozenset(word.lower() for word in words(ask)), ask)
            if other is not ask:
                raise SpecError(
                    f"question {each.id} asks {str(ask)!r}, which is asked already, at {other.where}", ask.where
                )
        for answer in each.answers:
            if isinstance(answer, Find):
                for key, value in answer.terms.items():
                    _known(value, vocabulary(spec, key), f"{str(key)!r} of a find of question {each.id}")
            else:
                _known(answer, known, f"an answer of question {each.id}")


def topics(spec: Spec) -> set[str]:
    """What an answer may name: each has words of its own."""
    groups: tuple[Iterable[str], ...] = (
        *(spec.rules, spec.families, spec.choices, spec.defines, spec.tables),
        [each.id for each in spec.invariants],
        [each.id for each in spec.unspecified],
    )
    return {str(name) for group in groups for name in group}


def vocabulary(spec: Spec, key: str) -> set[str]:
    """The words that a key of a find, and so the slot of its name, may hold."""
    enumerators = {str(value) for enum in spec.enums.values() for value in enum.values}
    match key:
        case "verb":
            return set(map(str, spec.calls))
        case "returns":
            return {str(r) for rule in spec.rules.values() if isinstance(rule, CallRule) for r in rule.returns}
        case "object":
            return {str(rule).partition("/")[0] for rule in spec.rules}
        case "mentions":
            groups: tuple[Iterable[str], ...] = (spec.defines, spec.choices, spec.objects, spec.records)
            fields = {str(f) for kind in (spec.objects, spec.records) for each in kind.values() for f in each.fields}
            return enumerators | fields | {str(name) for group in groups for name in group}
        case _:
            return enumerators


def _answer(node: Node, what: str) -> Text | Find:
    if not isinstance(node, Map):
        return text(node, f"an answer of {what}")
    entry = Entry(node, f"a find of {what}", optional=" ".join(KEYS))
    terms = {key: text(value, f"{str(key)!r} of a find of {what}") for key, value in node.items()}
    if not terms:
        raise SpecError(f"a find of {what} is empty; it must have one of {listed(KEYS)}", entry.where)
    if ("from" in terms) != ("to" in terms):
        raise SpecError(f"a find of {what} has one of 'from' and 'to'; a transition has both", entry.where)
    return Find(terms, entry.where)


def _check_slots(made: Question, ask: Text) -> None:
    used: dict[str, Text] = {}
    for find in (each for each in made.answers if isinstance(each, Find)):
        for key, value in find.terms.items():
            slot = SLOT.fullmatch(value)
            if slot and slot[1] != key:
                raise SpecError(
                    f"{str(key)!r} of a find of question {made.id} is {str(value)!r}; its slot is '{{{key}}}'",
                    value.where,
                )
            if slot:
                used[slot[1]] = value
    found = SLOT.findall(ask)
    for name in found:
        if name not in used:
            raise SpecError(
                f"{str(ask)!r} of question {made.id} has the slot '{{{name}}}', which no find uses; "
                f"the slots are {listed(f'{{{each}}}' for each in used)}",
                ask.where,
            )
    for name, value in used.items():
        if name not in found:
            raise SpecError(
                f"a find of question {made.id} uses the slot '{{{name}}}', which {str(ask)!r} does not have",
                value.where,
            )


def _known(found: Text, known: set[str], what: str) -> None:
    if found not in known and not SLOT.fullmatch(found):
        raise SpecError(f"{what} is {str(found)!r}, which nothing declares{near(found, sorted(known))}", found.where)
