"""YAML as text that knows where it stands.

Nothing is given a type here: `no` is the text "no", `0x10` the text "0x10". A rule must be readable where it
stands, so what lets one part of a YAML file change another (anchors, aliases, merge keys, tags, several
documents) is an error, and so is a key that stands twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from verbs_spec.errors import SpecError, Where

type_of_node = {"Text": "text", "Map": "a mapping", "Seq": "a list"}

# What stands for one character, by the style of the scalar.
_CHARACTER = re.compile(r".", re.DOTALL)
_SINGLE_QUOTED = re.compile(r"''|.", re.DOTALL)
_DOUBLE_QUOTED = re.compile(r"\\(?:x..|u.{4}|U.{8}|.)|.", re.DOTALL)
_BLANK_ESCAPES = frozenset("ntrvf_NLP \t\n\r")  # behind a backslash


class Text(str):
    """A scalar of a YAML file: a `str` that knows its place.

    `quoted`: it stands in quotes or is a block scalar, so that YAML cannot have taken a part of it away.
    """

    where: Where
    quoted: bool
    raw: str | None  # as it stands in the file, from its first character on

    def __new__(cls, value: str, where: Where, *, quoted: bool = False, raw: str | None = None) -> Text:
        text = super().__new__(cls, value)
        text.where = where
        text.quoted = quoted
        text.raw = raw
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str, Where], dict[str, object]]:
        return (str(self), self.where), {"quoted": self.quoted, "raw": self.raw}

    def at(self, line: int, column: int) -> Where:
        """The place in the file of the character at `line` and `column` of this text, both counted from 0.

        YAML's folding, indentation and escapes change nothing but blanks (an escape is one character), so the
        n-th visible character of the text is the n-th of the file. A blank is placed behind the visible
        character before it.
        """
        if self.raw is None:
            return self.where
        lines = self.split("\n")
        target = min(sum(len(each) + 1 for each in lines[:line]) + column, len(self))
        anchor = len(self[: target + 1].rstrip()) - 1
        visible = sum(not c.isspace() for c in self[: max(anchor, 0)])
        start, end = _visible_at(self.raw, visible)
        if anchor >= 0 and target > anchor:
            gap = self[anchor + 1 : target]
            start = end if "\n" in gap else end + target - anchor - 1
        return self._place(start)

    def part(self, start: int, end: int) -> Text:
        """The text between two of its offsets, without surrounding blanks, with its own place."""
        found = self[start:end]
        start += len(found) - len(found.lstrip())
        line = self.count("\n", 0, start)
        column = start - (self.rfind("\n", 0, start) + 1)
        return Text(found.strip(), self.at(line, column), quoted=self.quoted)

    def _place(self, index: int) -> Where:
        raw = self.raw or ""
        line = raw.count("\n", 0, index)
        if line == 0:
            return Where(self.where.file, self.where.line, self.where.column + index)
        return Where(self.where.file, self.where.line + line, index - raw.rfind("\n", 0, index))


class Map(dict[Text, "Node"]):
    """A mapping of a YAML file and the place where it begins."""

    def __init__(self, where: Where, *, flow: bool = False) -> None:
        super().__init__()
        self.where = where
        self.flow = flow

    def key(self, name: str) -> Text:
        """The key as it stands in the file."""
        return next(key for key in self if key == name)


class Seq(list["Node"]):
    """A list of a YAML file and the place where it begins."""

    def __init__(self, where: Where) -> None:
        super().__init__()
        self.where = where


Node = Text | Map | Seq


def read(text: str, file: str) -> Node:
    """Read one YAML document; `file` is the name that errors give."""
    try:
        return _Reader(text, file, getattr(yaml, "CLoader", yaml.Loader)).document()
    except yaml.YAMLError as error:
        raise _syntax_error(text, file, error) from None


def _visible_at(raw: str, nth: int) -> tuple[int, int]:
    """Where the nth visible character (from 0) of a scalar begins and ends in the raw text of the scalar."""
    begin, pattern = 0, _CHARACTER
    if raw[:1] in "|>":
        begin = raw.find("\n") + 1
    elif raw[:1] == '"':
        begin, pattern = 1, _DOUBLE_QUOTED
    elif raw[:1] == "'":
        begin, pattern = 1, _SINGLE_QUOTED
    for token in pattern.finditer(raw, begin):
        if not _blank(token.group()):
            if nth == 0:
                return token.span()
            nth -= 1
    return begin, begin


def _blank(token: str) -> bool:
    if token[:1] != "\\" or len(token) == 1:
        return token.isspace()
    if token[1] in "xuU":
        return chr(int(token[2:], 16)).isspace()
    return token[1] in _BLANK_ESCAPES


class _Reader:
    """Builds nodes from the parser's events: the composer drops anchors and tags before we could see them."""

    def __init__(self, text: str, file: str, loader: type[yaml.Loader]) -> None:
        self.text = text
        self.file = file
        self.events: Iterator[Event] = iter(yaml.parse(text, Loader=loader))

    def document(self) -> Node:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise SpecError("a second document begins; a file holds one", self._where(event))
                root = self._node(next(self.events))
        if root is None:
            raise SpecError("the file is empty", Where(self.file, 1, 1))
        return root

    def _node(self, event: Event) -> Node:
        assert isinstance(event, AliasEvent | ScalarEvent | CollectionStartEvent)
        where = self._where(event)
        rule = "a rule must be readable where it stands"
        if isinstance(event, AliasEvent):
            raise SpecError(f"an alias (*{event.anchor}); {rule}: write it out", where)
        if event.anchor:
            raise SpecError(f"an anchor (&{event.anchor}); {rule}: leave it out", where)
        if event.tag:
            raise SpecError(f"a tag ({event.tag}); every scalar is text: leave it out", where)
        if isinstance(event, MappingStartEvent):
            return self._map(Map(where, flow=bool(event.flow_style)))
        if isinstance(event, CollectionStartEvent):
            items = Seq(where)
            while not isinstance(event := next(self.events), SequenceEndEvent):
                items.append(self._node(event))
            return items
        assert event.start_mark
        assert event.end_mark
        raw = self.text[event.start_mark.index : event.end_mark.index]
        return Text(event.value, where, quoted=bool(event.style), raw=raw)

    def _map(self, items: Map) -> Map:
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self._node(event)
            if not isinstance(key, Text):
                kind = type_of_node[type(key).__name__]
                raise SpecError(f"{kind} as a key; a key is text (an expression must be quoted)", key.where)
            if key == "<<":
                raise SpecError("a merge key (<<); a rule must be readable where it stands: write it out", key.where)
            if key in items:
                first = items.key(key).where
                raise SpecError(f"the key {str(key)!r} stands twice in one mapping, first at {first}", key.where)
            items[key] = self._node(next(self.events))
        return items

    def _where(self, event: Event) -> Where:
        assert event.start_mark
        return Where(self.file, event.start_mark.line + 1, event.start_mark.column + 1)


def _syntax_error(text: str, file: str, error: yaml.YAMLError) -> SpecError:
    try:  # libyaml's words are fewer than those of the parser in Python
        _Reader(text, file, yaml.Loader).document()
    except yaml.YAMLError as better:
        error = better
    except SpecError:
        pass
    hint = "an expression must be quoted or be a block scalar"
    if isinstance(error, yaml.reader.ReaderError):
        index = error.position if isinstance(error.position, int) else 0
        where = Where(file, text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))
        return SpecError(f"not YAML: the character U+{ord(text[index]):04X} is not allowed", where)
    mark = getattr(error, "problem_mark", None)
    where = Where(file, mark.line + 1, mark.column + 1) if mark else Where(file, 1, 1)
    words = " ".join(w for w in (getattr(error, "context", None), getattr(error, "problem", None)) if w)
    return SpecError(f"not YAML: {words or error} ({hint})", where)
