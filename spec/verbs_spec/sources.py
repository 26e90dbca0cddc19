"""The documents that rules rest on, `sources.yaml`, and which of them a citation names.

A citation is a text in `sources`. It names the document with whose `cited` it begins; the longest beginning counts,
and among equals a document whose `saying` it holds. Capitals and the width of blanks make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from verbs_spec import nodes
from verbs_spec.document import Document, Quality, Spec
from verbs_spec.errors import SpecError, listed
from verbs_spec.markdown import lines, prose
from verbs_spec.nodes import Entry, text, texts
from verbs_spec.text import Node, Text

FILE = "sources.yaml"
QUALITIES: tuple[Quality, ...] = ("read", "quoted", "own", "recollection", "absence")
WEAK = ("recollection", "absence")
"""What is never enough for a must."""
_NEAR = 3  # documents that a message offers
_ALIKE = 0.5


@dataclass(frozen=True)
class Citation:
    """A text in `sources`, and what of the specification cites it."""

    text: Text
    by: str


def documents(root: Node) -> Mapping[str, Document]:
    """The documents of the file."""
    entry = Entry(root, f"the file {FILE}", required="documents")
    found: dict[str, Document] = {}
    earlier: dict[str, object] = {}
    for node in entry.elements("documents"):
        each = _document(node)
        if each.name in found:
            raise SpecError(
                f"the document {str(each.name)!r} is there already, at {found[each.name].where}", each.where
            )
        found[each.name] = each
        for beginning in each.cited:
            key = f"{_plain(beginning)} / {bool(each.saying)}"
            if key in earlier:
                raise SpecError(
                    f"documents {earlier[key]} and {each.name} are both cited as {str(beginning)!r}; one of them must "
                    "be cited otherwise",
                    beginning.where,
                )
            earlier[key] = each.name
    return found


def document(known: Mapping[str, Document], citation: str) -> Document | None:
    """The document that a citation names; None if none is cited so."""
    plain = _plain(citation)
    best: tuple[tuple[int, bool], Document] | None = None
    for each in known.values():
        if each.saying and not any(_plain(words) in plain for words in each.saying):
            continue
        length = max((len(_plain(c)) for c in each.cited if _begins(plain, _plain(c))), default=0)
        rank = (length, bool(each.saying))
        if length and (best is None or rank > best[0]):
            best = rank, each
    return best[1] if best else None


def citations(spec: Spec) -> Iterator[Citation]:
    """Every citation of a specification."""
    groups: list[tuple[str, Sequence[Text]]] = [(f"rule {r.id}", r.sources) for r in spec.rules.values()]
    groups += [(f"choice {c.name}", c.sources) for c in spec.choices.values()]
    groups += [(f"unspecified {u.id}", u.sources) for u in spec.unspecified]
    for profile in spec.profiles.values():
        groups += [(f"the delta of {d.rule} in profile {profile.name}", d.sources) for d in profile.deltas]
        groups += [(f"the redefinition of {d.define} in profile {profile.name}", d.sources) for d in profile.defines]
        groups += [(f"the result {w.name} of profile {profile.name}", w.sources) for w in profile.results.values()]
        groups += [(f"what profile {profile.name} lacks", absence.sources) for absence in profile.lacks]
    for by, sources in groups:
        yield from (Citation(each, by) for each in sources)


def cited(spec: Spec, sources: Iterable[str]) -> str:
    """Citations as a cell of a table, each with its quality unless its text was read."""
    worth = ((each, quality(spec, each)) for each in sources)
    return lines(prose(each) + ("" if found in (None, "read") else f" *({found})*") for each, found in worth)


def check_sources(spec: Spec) -> None:
    """An error for a citation that names no document, if the specification has a list of them."""
    for each in citations(spec) if spec.documents else ():
        if named(spec, each.text) is None:
            raise SpecError(
                f"{each.by} cites {str(each.text)!r}, which begins like no document of {FILE}"
                f"{_offer(spec.documents, each.text)} If it is another document, add it to {FILE}: document, cited "
                "(how such citations begin), title, quality, pinned (the version read)",
                each.text.where,
            )


def weak(spec: Spec) -> list[str]:
    """One line for each must that rests on nothing that was read or quoted."""
    found = []
    deltas = [d for p in spec.profiles.values() for d in p.deltas if d.field == "level"]
    for rule in spec.rules.values() if spec.documents else ():
        levels = {str(rule.level), *(str(d.value) for d in deltas if d.rule == rule.id)}
        qualities = {q for each in rule.sources if (q := quality(spec, each))}
        if "must" in levels and qualities and qualities <= set(WEAK):
            found.append(
                f"{rule.where}: rule {rule.id} is a must and rests on {listed(sorted(qualities))} alone; cite a text "
                "that was read or quoted, or make it a should, a choice or unspecified"
            )
    return found


def quality(spec: Spec, citation: str) -> Quality | None:
    """The quality of what a citation names; None without a list of documents."""
    found = named(spec, citation)
    return found.quality if found else None


def named(spec: Spec, citation: str) -> Document | None:
    """The document of a specification that a citation names; None if none is cited so."""
    if citation not in spec.cited:
        spec.cited[citation] = document(spec.documents, citation)
    return spec.cited[citation]


def _document(node: Node) -> Document:
    entry = Entry(node, "a document", required="document cited title quality", optional="saying pinned licence")
    return Document(
        name=entry.required("document", text),
        cited=entry.required("cited", texts),
        title=entry.required("title", text),
        quality=entry.required("quality", lambda each, what: nodes.word(each, what, QUALITIES)),
        saying=entry.optional("saying", texts) or (),
        pinned=entry.optional("pinned", text),
        licence=entry.optional("licence", text),
    )


def _begins(citation: str, beginning: str) -> bool:
    """Whether a citation begins so, and not in the middle of a word."""
    if not citation.startswith(beginning):
        return False
    rest = citation[len(beginning) :]
    return not (beginning[-1:].isalnum() and rest[:1].isalnum())


def _offer(known: Mapping[str, Document], citation: str) -> str:
    plain = _plain(citation)
    beginnings = [str(c) for d in known.values() for c in d.cited]
    likeness = {b: SequenceMatcher(None, _plain(b), plain[: len(b) + 2]).ratio() for b in dict.fromkeys(beginnings)}
    close = [b for b in sorted(likeness, key=likeness.__getitem__, reverse=True) if likeness[b] >= _ALIKE][:_NEAR]
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else "."


@cache
def _plain(words: str) -> str:
    return " ".join(words.lower().split())
