"""Readers of a profile's file: its deltas and redefinitions, and what only one kind of profile has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from verbs_spec import nodes
from verbs_spec.document import (
    LEVELS,
    PROFILE_KINDS,
    Absence,
    Delta,
    Profile,
    ProfileKind,
    Redefinition,
    ResultWord,
)
from verbs_spec.errors import SpecError
from verbs_spec.nodes import Entry, expression, slug, text, texts
from verbs_spec.text import Node, Text

_PROFILE = "defines deltas capability status results like without features lacks"
_ONLY: dict[str, ProfileKind] = {
    **dict.fromkeys(("capability", "status"), "feature"),
    **dict.fromkeys(("results", "like", "without", "features"), "api"),
    "lacks": "transport",
}
_A = {"api": "an API", "transport": "a transport", "feature": "a feature"}


def _one_of(node: Node, what: str, allowed: Sequence[str]) -> Text:
    nodes.word(node, what, allowed)
    return text(node, what)


# How the value of a delta is read, for each field of a rule that a profile may replace.
REPLACEABLE: dict[str, Callable[[Node, str], Text | tuple[Text, ...]]] = {
    "level": lambda node, what: _one_of(node, what, LEVELS),
    "when": expression,
    "cause": expression,
    "returns": nodes.results,
    "prefer": nodes.results,
    "outputs": expression,
    "do": expression,
    "undefined": expression,
    "choice": nodes.name,
}


def profile(node: Node, stem: str) -> Profile:
    """A profile's file."""
    entry = Entry(node, f"profile {stem}", required="profile kind summary", optional=_PROFILE)
    name = entry.required("profile", text)
    if name != stem:
        raise SpecError(
            f"profile {str(name)!r} stands in the file {stem}.yaml; the two names must be equal", name.where
        )
    kind = entry.required("kind", lambda node, what: nodes.word(node, what, PROFILE_KINDS))
    for key, wanted in _ONLY.items():
        if key in entry and kind != wanted:
            raise SpecError(
                f"profile {stem} is of kind {kind}, and only {_A[wanted]} has {key!r}: leave it out", entry.where
            )
    return Profile(
        name,
        kind,
        entry.required("summary", text),
        tuple(_delta(each, name) for each in entry.elements("deltas")),
        tuple(_redefinition(each, name) for each in entry.elements("defines")),
        entry.optional("capability", nodes.names) or (),
        entry.optional("status", lambda node, what: _one_of(node, what, ("draft", "reviewed"))) == "draft",
        {str(word): _result(word, each, name) for word, each in entry.items("results")},
        entry.optional("like", text),
        entry.optional("without", texts) or (),
        tuple(text(each, f"an element of 'features' of profile {stem}") for each in entry.elements("features"))
        if "features" in entry
        else None,
        tuple(_absence(each, name) for each in entry.elements("lacks")),
    )


def _absence(node: Node, profile: Text) -> Absence:
    entry = Entry(node, f"an element of 'lacks' of profile {profile}", required="features says sources")
    return Absence(entry.required("features", texts), entry.required("says", text), entry.required("sources", texts))


def _result(word: Text, node: Node, profile: Text) -> ResultWord:
    what = f"the result {str(word)!r} of profile {profile}"
    if not nodes.RESULT.fullmatch(word):
        raise SpecError(
            f"{what} is no word of an API's own; one has capital letters and digits with an underscore between",
            word.where,
        )
    entry = Entry(node, what, required="says sources", optional="for")
    return ResultWord(
        word,
        entry.optional("for", nodes.errnos) or (),
        entry.required("says", text),
        entry.required("sources", texts),
    )


def _delta(node: Node, profile: Text) -> Delta:
    entry = Entry(node, f"a delta of profile {profile}", required="rule field value sources says")
    field = entry.required("field", lambda node, what: _one_of(node, what, tuple(REPLACEABLE)))
    value = entry.node_of("value")
    absent = isinstance(value, Text) and value == "null" and not value.quoted
    return Delta(
        profile,
        entry.required("rule", slug),
        field,
        None if absent else entry.required("value", REPLACEABLE[field]),
        entry.required("says", text),
        entry.required("sources", texts),
    )


def _redefinition(node: Node, profile: Text) -> Redefinition:
    entry = Entry(node, f"a redefinition of profile {profile}", required="define value sources says")
    return Redefinition(
        profile,
        entry.required("define", nodes.name),
        entry.required("value", expression),
        entry.required("says", text),
        entry.required("sources", texts),
    )
