"""Blame: the one rule that a failed program counts against.

One cause is one failure, so a program that failed counts against one rule, here for all: the run's verdicts and
every report.  The suspects (at most five, the nearest first) come from the refused answer, what led to it, and what
other programs have shown to work; what the program was made for has no part in finding them.

Decision: the program's target counts if it is among the suspects, else the nearest suspect.  The nearest is most often
the rule by which the consumer looks, a poll or a read of memory, which every defect of the device reaches in the end: a
table in which a dozen defects all fail ``cq/poll-error`` tells a reader nothing.  A directed program fires its target
in its last steps and differs from one that passes in that alone, so a suspected target is the better guess.  The
price: a defect of the looking itself is spread over the targets of all programs that look.  Each of them still lists
the looking rule first among its suspects, and regression and drawn programs, which have no target, count against it.
"""

from __future__ import annotations

from collections.abc import Sequence


def counts_against(target: str, suspects: Sequence[str]) -> str:
    """Give the rule that a failed program counts against; ``""`` if nothing is suspected."""
    if target in suspects:
        return target
    return suspects[0] if suspects else ""
