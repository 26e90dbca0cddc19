"""Rules that need not fire, and why: ``unwitnessed.yaml``.

An entry has the verdict that the rule gets when it did not fire, and the reason in words that are true of every
backend.  A rule that fires on some devices only is none of these: its program says on which (``device``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from verbs_reports.verdicts import Verdict
from verbs_spec.text import Map, Text, read

FILE = "unwitnessed.yaml"
UNPASSED = "unpassed.yaml"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule need not fire, and what it is then."""

    verdict: Verdict
    text: str


def reasons() -> Mapping[str, Reason]:
    """Every rule that need not fire."""
    node = read(resources.files("verbs_conformance").joinpath(FILE).read_text(encoding="utf-8"), FILE)
    assert isinstance(node, Map)
    found: dict[str, Reason] = {}
    for rule, entry in node.items():
        assert isinstance(entry, Map)
        values = {str(k): str(v) for k, v in entry.items() if isinstance(v, Text)}
        found[str(rule)] = Reason(Verdict(values["verdict"]), values["reason"])
    return found


def unpassed() -> Mapping[str, str]:
    """Regression programs that are known not to pass on the model, and why."""
    node = read(resources.files("verbs_conformance").joinpath(UNPASSED).read_text(encoding="utf-8"), UNPASSED)
    assert isinstance(node, Map)
    return {str(name): str(reason) for name, reason in node.items()}
