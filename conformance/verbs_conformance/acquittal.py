"""Which of the suspected rules are named, and in what order.

Theory of operation
-------------------
The belief ranks every rule that had a part in a refusal, nearest cause first.  Near ones are often those that only
carry what others decided: a step that writes completions has a part in whatever a poll returns.  What programs have
shown before tells the two apart.  A rule that fired, or may have, in programs in which everything was explained has
been seen to work; one that never did, or seldom, has not.  So the nearest two are named, and then those of the others
that fired in the fewest programs that passed, nearest first among equals: the spectrum of passed programs, as it is
used to find faults in programs.  When nothing has passed yet the order is that of the distance alone.

What a run had seen to pass when a program failed is written into the program's file, so that a replay says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST = 5
"""So many suspects are named."""
NEAREST = 2
"""So many of them only because they are nearest."""
CONSIDERED = 30
"""So many are looked at, by distance."""


def named(ranked: Sequence[str], passed: Mapping[str, int]) -> tuple[str, ...]:
    """The suspects to name, of all that were ranked; ``passed`` counts the passed programs in which a rule fired."""
    others = sorted(ranked[NEAREST:CONSIDERED], key=lambda rule: passed.get(rule, 0))
    return (*ranked[:NEAREST], *others[: MOST - NEAREST])


def evidence(ranked: Sequence[str], passed: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The part of ``passed`` that decides between these suspects."""
    return tuple((rule, passed[rule]) for rule in sorted(ranked[NEAREST:CONSIDERED]) if passed.get(rule))
