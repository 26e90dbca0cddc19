"""Scalars know their place, whatever their style."""

import copy
import pickle

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from verbs_spec import Text, Where
from verbs_spec.text import Map, read

LETTERS = "ab(.=é€\t\n '\"\\|#:,"


@given(st.text(LETTERS, max_size=60), st.sampled_from(["'", '"', "|", ">", None]))
@example("a  b\n\n  c (d)\ne", "|")
@example('it\'s \\ "x"', '"')
@example("a\tb\\n c", '"')
@example("''", "|")
def test_each_visible_character_is_found(text: str, style: str | None) -> None:
    source = yaml.dump({"k": text}, default_style=style, width=20, allow_unicode=True)
    lines = source.split("\n")
    root = read(source, "f.yaml")
    assert isinstance(root, Map)
    scalar = root[root.key("k")]
    assert isinstance(scalar, Text)
    assert scalar == text
    for index, character in enumerate(text):
        if character.isspace():
            continue
        line, column = text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1
        where = scalar.at(line, column)
        found = lines[where.line - 1][where.column - 1 :].lstrip("\\")
        assert found.startswith(character) or character == "\\", (source, index, where)


def place(source: str, line: int, column: int) -> tuple[int, int]:
    root = read(source, "f.yaml")
    assert isinstance(root, Map)
    scalar = next(iter(root.values()))
    assert isinstance(scalar, Text)
    where = scalar.at(line, column)
    return where.line, where.column


def test_blanks_and_ends() -> None:
    assert place('k: "a b"\n', 0, 1) == (1, 6)  # the blank
    assert place('k: "a b"\n', 0, 3) == (1, 8)  # behind the last character
    assert place('k: "a b"\n', 7, 3) == (1, 8)  # far behind
    assert place("k: |\n  if a:\n      b = 1\n", 1, 4) == (3, 7)
    assert place("k: |\n  a\n  b\n", 2, 0) == (3, 4)  # the end, behind a line's end
    assert place("k: |2-  # a comment\n    x\n", 0, 2) == (2, 5)
    assert place("k: ''\n", 0, 0) == (1, 5)
    assert place('k: "\\x41 b"\n', 0, 2) == (1, 10)
    assert place('k: "a\\\n  b"\n', 0, 1) == (2, 3)


def test_crlf() -> None:
    assert place("k: |\r\n  a\r\n  b\r\n", 1, 0) == (3, 3)


def test_text_without_source_knows_where_it_begins() -> None:
    where = Where("f.yaml", 3, 4)
    assert Text("a == b", where).at(0, 5) == where


def test_copies_keep_the_place() -> None:
    root = read("k: |\n  a b\n", "f.yaml")
    assert isinstance(root, Map)
    scalar = root[root.key("k")]
    for other in (copy.deepcopy(scalar), pickle.loads(pickle.dumps(scalar))):
        assert isinstance(other, Text)
        assert other.at(0, 2) == Where("f.yaml", 2, 5)
        assert other.quoted


def test_quoted() -> None:
    root = read("a: x\nb: 'x'\nc: \"x\"\nd: |\n  x\ne: >\n  x\n", "f.yaml")
    assert isinstance(root, Map)
    assert [value.quoted for value in root.values() if isinstance(value, Text)] == [False, *[True] * 4]


def test_no_scalar_gets_a_type() -> None:
    root = read("a: no\nb: 0x10\nc: null\nd: 2001-01-01\ne:\n", "f.yaml")
    assert isinstance(root, Map)
    assert list(root.values()) == ["no", "0x10", "null", "2001-01-01", ""]
