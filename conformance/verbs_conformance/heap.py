"""What Python's garbage collector need not look at.

A run loads a specification, a model and programs of a few hundred thousand objects that all live until its end, and
makes and drops as many in each second.  The collector would look at what was loaded again and again: a tenth of the
time of a run."""

from __future__ import annotations

import gc

YOUNG, MIDDLE, OLD = 50_000, 20, 20
"""The collector's thresholds: so many new objects before it looks at them, and how often before it looks further."""


def keep() -> None:
    """What is there now stays until the process ends; for a process that does nothing else than to judge."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
