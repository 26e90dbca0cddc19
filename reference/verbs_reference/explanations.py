"""One way in which the rules explain an observation, and the state to which it leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verbs_reference.history import Event
from verbs_reference.model import CallCase
from verbs_reference.store import Entry
from verbs_reference.walk import Debts, Step

if TYPE_CHECKING:
    from verbs_reference.belief import Action


class Capped(Exception):
    """The search met more states than it is allowed to."""


@dataclass(slots=True)
class Found:
    """A state after the call: changes from the base, what fired, results that only a rule's outer set
    allows."""

    changes: list[Entry]
    signature: Any
    fired: dict[str, int]
    maybe: frozenset[str]
    trail: Any
    debts: Debts
    path: list[Step]
    deviates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One way in which the rules explain a call: which of them, and with which options."""

    ruling: tuple[CallCase, ...]
    deviates: bool
    once: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...]


def note(trial: Trial, action: Action, fired: dict[str, int], trail: Any) -> Any:
    """Count what fired of a call's rules, and add them to the trail."""
    for case in trial.ruling:
        if len(trial.ruling) == 1:
            fired[case.id] = fired.get(case.id, 0) + 1
        trail = (trail, Event(case.id, None, 0, action, (*trial.once, *trial.fixed)))
    return trail
