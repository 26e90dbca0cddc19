"""Readers of single nodes: each checks that a node is what the format wants there, or says what it is."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from verbs_spec.errors import SpecError, Where, listed, near
from verbs_spec.text import Map, Node, Seq, Text, type_of_node

T = TypeVar("T")


def _words(text: str) -> list[str]:
    return text.split()


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*")
BINDER = re.compile(r"\s*([A-Za-z_]\w*)\s+in\s+([A-Za-z_]\w*)\s*")
TAKE = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(\S.*)", re.DOTALL)
RESULT = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
ERRNOS = frozenset(errno.errorcode.values()) | {"EOPNOTSUPP", "ENOTSUP", "EDEADLK"}

# What the expression language and the types call their own; a declared name would hide them.
RESERVED = frozenset(
    _words(
        "nat bool flags ref queue bytes spans memory true false null and or not if elif else for in "
        "any all count len empty nonempty head last sum lookup alive choice implies pow2 shl "
        "span walk slice flat load size nth upto given added exchanged push pop clear new delete store havoc"
    )
)

_TRAPS = ",{}[]:#"
_QUOTE = "quote it, or write it as a block scalar"


class Entry:
    """A mapping with known keys."""

    def __init__(self, node: Node, what: str, *, required: str = "", optional: str = "") -> None:
        self.what = what
        self.node = mapping(node, what)
        self.where = self.node.where
        known = [*required.split(), *optional.split()]
        for key, value in self.node.items():
            if key not in known:
                raise SpecError(
                    f"unknown key {str(key)!r} in {what}; the keys are {listed(known)}"
                    f"{near(key, known)}{_torn(self.node, value)}",
                    key.where,
                )
        missing = [key for key in required.split() if key not in self.node]
        if missing:
            raise SpecError(f"{what} lacks {listed(missing)}; it must have {listed(required.split())}", self.where)

    def __contains__(self, key: str) -> bool:
        return key in self.node

    def key(self, key: str) -> Text:
        """The key as it stands in the file."""
        return self.node.key(key)

    def node_of(self, key: str) -> Node:
        """The node under a key that is there."""
        return self.node[self.node.key(key)]

    def optional(self, key: str, reader: Callable[[Node, str], T]) -> T | None:
        """What the reader makes of the key's node, None if the key is absent."""
        return reader(self.node_of(key), self._named(key)) if key in self.node else None

    def required(self, key: str, reader: Callable[[Node, str], T]) -> T:
        """What the reader makes of the key's node."""
        return reader(self.node_of(key), self._named(key))

    def items(self, key: str) -> Iterator[tuple[Text, Node]]:
        """The pairs of the mapping under a key; none if the key is absent."""
        if key in self.node:
            yield from mapping(self.node_of(key), self._named(key)).items()

    def elements(self, key: str) -> Iterator[Node]:
        """The elements of the list under a key; none if the key is absent."""
        if key in self.node:
            yield from sequence(self.node_of(key), self._named(key))

    def _named(self, key: str) -> str:
        return f"{key!r} of {self.what}"


def mapping(node: Node, what: str) -> Map:
    """A mapping."""
    if not isinstance(node, Map):
        raise SpecError(f"{what} is {_kind(node)}; it must be a mapping", node.where)
    return node


def sequence(node: Node, what: str) -> Seq:
    """A list."""
    if not isinstance(node, Seq):
        raise SpecError(f"{what} is {_kind(node)}; it must be a list", node.where)
    return node


def text(node: Node, what: str) -> Text:
    """Text that is not empty."""
    if not isinstance(node, Text):
        raise SpecError(f"{what} is {_kind(node)}; it must be text", node.where)
    if not node.strip():
        raise SpecError(f"{what} is empty; it must be text", node.where)
    return node


def expression(node: Node, what: str) -> Text:
    """An expression or statements: quoted, or so plain that YAML cannot have taken a part of it away."""
    if not isinstance(node, Text):
        raise SpecError(f"{what} is {_kind(node)}; it must be an expression: {_QUOTE}", node.where)
    if not node.strip():
        raise SpecError(f"{what} is empty; it must be an expression", node.where)
    traps = [] if node.quoted else [c for c in _TRAPS if c in node]
    if traps:
        raise SpecError(
            f"{what} is not quoted and contains {traps[0]!r}, where YAML may end it early: {_QUOTE}",
            node.where,
        )
    return node


def texts(node: Node, what: str) -> tuple[Text, ...]:
    """A list, not empty, of texts that differ."""
    found = tuple(text(item, f"an element of {what}") for item in sequence(node, what))
    if not found:
        raise SpecError(f"{what} is an empty list; it must name at least one", node.where)
    for index, item in enumerate(found):
        if item in found[:index]:
            raise SpecError(f"{what} names {str(item)!r} twice", item.where)
    return found


def name(node: Node, what: str) -> Text:
    """An identifier."""
    found = text(node, what)
    if not NAME.fullmatch(found):
        raise SpecError(
            f"{what} is {str(found)!r}; a name has letters, digits and underscores (an expression must be quoted)",
            found.where,
        )
    return found


def declared(node: Node, what: str) -> Text:
    """An identifier that the language does not use itself."""
    found = name(node, what)
    if found in RESERVED:
        raise SpecError(f"{what} is {str(found)!r}, a word of the expression language; choose another", found.where)
    return found


def names(node: Node, what: str) -> tuple[Text, ...]:
    """A list, not empty, of identifiers that differ."""
    return tuple(name(item, f"an element of {what}") for item in texts(node, what))


def slug(node: Node, what: str) -> Text:
    """An id `object/case`."""
    found = text(node, what)
    if not ID.fullmatch(found):
        raise SpecError(
            f"{what} is {str(found)!r}; an id is object/case, in lower-case letters, digits and dashes",
            found.where,
        )
    return found


def slugs(node: Node, what: str) -> tuple[Text, ...]:
    """A list, not empty, of ids that differ."""
    return tuple(slug(item, f"an element of {what}") for item in texts(node, what))


def word(node: Node, what: str, allowed: Sequence[T]) -> T:
    """One of the allowed words."""
    found = text(node, what)
    for each in allowed:
        if found == each:
            return each
    words = [str(each) for each in allowed]
    raise SpecError(f"{what} is {str(found)!r}; it may be {listed(words)}{near(found, words)}", found.where)


def boolean(node: Node, what: str) -> bool:
    """`true` or `false`."""
    return word(node, what, ("true", "false")) == "true"


def results(node: Node, what: str) -> tuple[Text, ...]:
    """A list of what a call may return: "0", names of errnos, or words that an API profile declares."""
    found = texts(node, what)
    for each in found:
        if each != "0" and each not in ERRNOS and not RESULT.fullmatch(each):
            raise no_result(each, what, ())
    return found


def no_result(found: Text, what: str, words: Iterable[str]) -> SpecError:
    """The error for what no call returns; `words` are those of the API profiles."""
    own = sorted(words)
    allowed = "0, the name of an errno or a result of an API profile" if own else "0 or the name of an errno"
    hint = near(found, own) or near(found, sorted(ERRNOS))
    return SpecError(f"{what} names {str(found)!r}; a call returns {allowed}{hint}", found.where)


def errnos(node: Node, what: str) -> tuple[Text, ...]:
    """A list of "0" and names of errnos."""
    found = texts(node, what)
    for each in found:
        if each != "0" and each not in ERRNOS:
            raise no_result(each, what, ())
    return found


def matched(node: Node, what: str, pattern: re.Pattern[str], form: str) -> tuple[Text, Text]:
    """The two parts of a text of a fixed form, such as `q in qp`."""
    found = text(node, what)
    match = pattern.fullmatch(found)
    if not match:
        raise SpecError(f"{what} is {str(found)!r}; its form is: {form}", found.where)
    return found.part(*match.span(1)), found.part(*match.span(2))


def unique(found: Text, earlier: dict[str, Where], what: str) -> None:
    """Note a name and where it stands; an error if it stands somewhere already."""
    if found in earlier:
        raise SpecError(f"{what} {str(found)!r} is there already, at {earlier[found]}", found.where)
    earlier[found] = found.where


def _kind(node: Node) -> str:
    if isinstance(node, Text):
        return f"the text {str(node)!r}" if node else "empty"
    return type_of_node[type(node).__name__]


def _torn(node: Map, value: Node) -> str:
    """A hint for a key that is the rest of an expression which YAML's flow style has cut at a comma."""
    if node.flow and isinstance(value, Text) and not value.quoted and not value:
        return f" (if it is the rest of an expression cut at a comma: {_QUOTE})"
    return ""
