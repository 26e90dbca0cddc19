"""What is wrong with a specification, and where.

A message says what was found, why it cannot be, and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, order=True)
class Where:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class SpecError(Exception):
    """The specification breaks its own format."""

    def __init__(self, message: str, where: Where) -> None:
        super().__init__(message, where)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class ProfileError(ValueError):
    """A profile was asked for that the specification does not have."""


def listed(words: Iterable[str]) -> str:
    """The words for a message, in their order: `a, b, c`, or `(none)`."""
    return ", ".join(words) or "(none)"


def near(word: str, words: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known word is close to the one found, else nothing."""
    close = get_close_matches(word, list(dict.fromkeys(words)), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, map(str, close)))}?" if close else ""
