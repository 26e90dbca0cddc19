"""One step of a program, as text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from verbs_conformance.errors import BadProgram


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program: a call with arguments as text and names for what it returns.

    ``call`` is a verb, or ``settle``, or ``drain`` (poll a queue until it is empty).  ``out`` gives names to the
    objects that the call makes, by position (``#0``).
    """

    call: str
    args: dict[str, str]
    out: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        left = ", ".join(self.out.values())
        right = f"{self.call}({', '.join(f'{k}={v}' for k, v in self.args.items())})"
        return f"{left} = {right}" if left else right


def words(step: Step) -> set[str]:
    """The identifiers in a step's arguments."""
    return {word for text in step.args.values() for word in re.findall(r"[A-Za-z_]\w*", text)}


@cache
def pattern(text: str) -> str:
    """Bytes of a program: ``pattern`` with a number makes 4096 bytes that differ at every place."""
    if text.startswith("pattern"):
        seed = int(text[7:] or "0")
        return "".join(chr((i * 7 + (i >> 8) * 13 + seed * 31 + 1) & 255) for i in range(4096))
    try:
        return bytes.fromhex(text).decode("latin-1")
    except ValueError:
        raise BadProgram(f"bytes are 'pattern', 'patternN' or hexadecimal text, not {text!r}") from None
