"""Pieces of Markdown: tables, and texts in their cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def section(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A heading with a table; nothing if the table has no rows."""
    found = list(rows)
    return [f"## {title}\n", table(heads, found)] if found else []


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    rows_ = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in rows_)


def lines(parts: Iterable[str]) -> str:
    """Lines of a cell."""
    return "<br>".join(parts)


def codes(texts: Iterable[str]) -> str:
    """Texts as code, with commas."""
    return ", ".join(map(code, texts))


def code(text: str | None) -> str:
    """A text as code in a cell; lines stay lines, and their indentation."""
    found = (text or "").rstrip().split("\n")
    return lines("&emsp;" * ((len(line) - len(line.lstrip())) // 2) + _span(line.strip()) for line in found)


def _span(line: str) -> str:
    if not line:
        return ""
    fence = "``" if "`" in line else "`"
    blank = " " if "`" in line else ""
    return f"{fence}{blank}{line.replace('|', chr(92) + '|')}{blank}{fence}"


def prose(text: str | None) -> str:
    """A text in words in a cell; it may use Markdown's emphasis and code."""
    parts = " ".join((text or "").split()).replace("|", "\\|").split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)
