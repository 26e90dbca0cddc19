"""Text: what must not pass from a backend's mouth into a report unseen.

A device name, a console line or an errno text may hold anything.  Escaping for HTML, XML or Markdown is
the renderers' work; here the characters go that no format can show, or that make it show a lie.
"""

from __future__ import annotations

import re

# C0 and C1 controls (XML 1.0 holds no C0 but tab, LF and CR), surrogates, non-characters, and the marks
# that reverse or hide text, with which a name could show other than it is.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


def clean(text: str) -> str:
    r"""Give the text with every unshowable character as its escape, ``\x1b`` or ``\u202e``.

    Line ends become ``\n``; tabs and line ends stay.  Never raises.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSHOWABLE.sub(_escaped, lines)


def one_line(text: str) -> str:
    """Give the cleaned text on one line, with single spaces."""
    return " ".join(clean(text).split())


def plural(number: int, noun: str) -> str:
    """Give ``1 rule`` or ``2 rules``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
