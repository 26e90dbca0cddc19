"""What was found in the sources, `facts/*.yaml`, and which rules say it.

A fact is one line in our own words, with a mark: how it is known. It names the rules (or invariants, choices, open
questions) that state it, or the reason why none does; both where a part is stated. `awaits` names a feature or an API
that is to state it and is not written yet: once it is there, the fact must name rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePath
from typing import Literal

from verbs_spec import nodes
from verbs_spec.document import Spec
from verbs_spec.errors import SpecError, Where, near
from verbs_spec.nodes import Entry, text, texts
from verbs_spec.text import Node, Text, read

FOLDER = "facts"
Mark = Literal["V", "R", "C", "H", "S"]
MARKS: Mapping[Mark, str] = {
    "V": "the text was read",
    "C": "inferred from facts that were read",
    "R": "recollection",
    "H": "a defect that a device had; a text fixes what is right",
    "S": "a defect that a device had; robustness, or a choice",
}


@dataclass(frozen=True)
class Fact:
    """A fact: its id, how it is known, what it says, which rules say it or why none does."""

    id: Text
    mark: Mark
    says: Text
    rules: tuple[Text, ...]
    reason: Text | None
    awaits: tuple[Text, ...]
    group: str
    """The file."""


@dataclass(frozen=True)
class Facts:
    """All facts, by id, and what the files that they stand in are about."""

    facts: Mapping[str, Fact]
    groups: Mapping[str, Text]

    def of(self, rule: str) -> list[Fact]:
        """The facts that a rule states."""
        return [f for f in self.facts.values() if rule in f.rules]


NONE = Facts({}, {})


def load(folder: Path | None = None) -> Facts:
    """The facts of a folder of a specification, or of this package."""
    root = (resources.files("verbs_spec") if folder is None else folder).joinpath(FOLDER)
    if not root.is_dir():
        return NONE
    files = {each.name: each.read_text(encoding="utf-8") for each in root.iterdir() if each.name.endswith(".yaml")}
    return loads({f"{FOLDER}/{each}": files[each] for each in files})


def loads(files: Mapping[str, str]) -> Facts:
    """The facts of files given by name and content."""
    facts: dict[str, Fact] = {}
    groups: dict[str, Text] = {}
    places: dict[str, Where] = {}
    for file in sorted(files):
        stem = PurePath(file).stem
        entry = Entry(read(files[file], file), f"the file {stem}.yaml", required="summary facts")
        groups[stem] = entry.required("summary", text)
        for node in entry.elements("facts"):
            fact = _fact(node, stem)
            nodes.unique(fact.id, places, "the fact")
            facts[fact.id] = fact
    return Facts(facts, groups)


def wrong(spec: Spec, known: Facts) -> list[str]:
    """One line for each fact that names what is not there."""
    stated = statements(spec)
    found = []
    for fact in known.facts.values():
        found += [
            f"{each.where}: fact {fact.id} names {str(each)!r}, which is no rule, invariant, choice or open question"
            f"{near(each, stated)}"
            for each in fact.rules
            if each not in stated
        ]
    return found


def overdue(spec: Spec, known: Facts) -> list[str]:
    """One line for each fact that awaits a feature or an API that is there."""
    return [
        f"{each.where}: fact {fact.id} awaits {each}, which is there; name the rules that state it, or a reason"
        for fact in known.facts.values()
        for each in fact.awaits
        if each in spec.profiles
    ]


def statements(spec: Spec) -> list[str]:
    """What can state a fact."""
    ids: Iterable[str] = (*spec.rules, *(i.id for i in spec.invariants), *(u.id for u in spec.unspecified))
    return [str(each) for each in (*ids, *spec.choices)]


def _fact(node: Node, group: str) -> Fact:
    entry = Entry(node, "a fact", required="id mark says", optional="rules reason awaits")
    fact = Fact(
        entry.required("id", _named),
        entry.required("mark", lambda each, what: nodes.word(each, what, tuple(MARKS))),
        entry.required("says", text),
        entry.optional("rules", texts) or (),
        entry.optional("reason", text),
        entry.optional("awaits", texts) or (),
        group,
    )
    if not (fact.rules or fact.reason or fact.awaits):
        raise SpecError(
            f"fact {fact.id} has neither 'rules' nor 'reason' nor 'awaits'; it must name what states it, or say why "
            "nothing does",
            fact.id.where,
        )
    return fact


def _named(node: Node, what: str) -> Text:
    """A fact's id: letters, digits and dashes."""
    found = text(node, what)
    if not found.replace("-", "").replace(".", "").isalnum():
        raise SpecError(f"{what} is {str(found)!r}; it has letters, digits, dashes and points", found.where)
    return found
