"""Verdicts: their order, worst first, and the exit code of a run.

A parent is as bad as its worst child: a run as its worst rule, a rule as its worst program.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What was found out about a rule, a program, a choice or a run.  Members stand worst first.

    Compare with :attr:`severity` or :func:`worst`; ``<`` compares the words, as for any text.
    """

    ERROR = "error"
    """The suite or the glue broke; nothing is said about the backend."""
    FAIL = "fail"
    """The backend did what no ``must`` allows."""
    UNEXPECTED_PASS = "unexpected-pass"  # noqa: S105 (a verdict, not a password)
    """A waiver says that this fails, and it does not."""
    FLAKY = "flaky"
    """The same program with the same seed failed once and passed once."""
    CONSUMER_ERROR = "consumer-error"
    """The program broke a duty of the consumer, so that no answer is wrong."""
    INCONCLUSIVE = "inconclusive"
    """It ran, and what was seen does not decide."""
    NOT_RUN = "not-run"
    """Selected, but it never fired."""
    DEVIATION = "deviation"
    """A ``must`` allows it, the ``should`` does not."""
    WAIVED = "waived"
    """It fails, and a waiver says why that is accepted."""
    UNSUPPORTED = "unsupported"
    """Optional, and the backend does not declare it."""
    CHOICE = "choice"
    """The sources leave it open; what the backend does is recorded."""
    PASS = "pass"  # noqa: S105 (a verdict, not a password)
    """It fired in every surviving explanation, and held."""

    @property
    def severity(self) -> int:
        """How bad it is: 0 for ``pass``, larger is worse."""
        return _SEVERITY[self]


_SEVERITY = {verdict: rank for rank, verdict in enumerate(reversed(Verdict))}

BROKEN = frozenset({Verdict.ERROR, Verdict.FAIL, Verdict.UNEXPECTED_PASS, Verdict.FLAKY})
"""Verdicts that make a run red."""

UNDECIDED = frozenset({Verdict.CONSUMER_ERROR, Verdict.INCONCLUSIVE, Verdict.NOT_RUN})
"""Verdicts that say that we do not know."""

NOTHING_SELECTED = 5
"""The exit code when there was nothing to judge."""


def worst(verdicts: Iterable[Verdict], default: Verdict | None = None) -> Verdict:
    """Give the worst of some verdicts.

    With no verdicts it gives ``default``, or raises :class:`ValueError` when there is none: an empty
    parent has no verdict, and ``pass`` would be a guess.
    """
    found = max(verdicts, key=lambda verdict: verdict.severity, default=default)
    if found is None:
        raise ValueError("the worst of no verdicts is not defined; pass default= if an empty parent has one")
    return found


def exit_code(verdicts: Iterable[Verdict], *, strict: bool = False) -> int:
    """Give the exit code for the verdicts of everything that was selected.

    3 if any is ``error``; 1 if any makes the run red (with ``strict`` also a ``deviation``); 2 if any
    is undecided; 0 otherwise; 5 when there are none.  Never raises.

    A certain failure outranks an unknown: with ``strict`` a deviation beside a rule that did not fire
    gives 1, not 2.
    """
    found = set(verdicts)
    if not found:
        return NOTHING_SELECTED
    if Verdict.ERROR in found:
        return 3
    if found & BROKEN or (strict and Verdict.DEVIATION in found):
        return 1
    return 2 if found & UNDECIDED else 0
