"""Rules that need not fire, and why: ``unwitnessed.yaml``.

An entry has the verdict that the rule gets when it did not fire, and the reason in words that are true of every
backend to which the entry applies.  With ``capability`` it applies only to a backend that declares it; for any other
the rule can fire, and is ``not-run`` if it did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    capability: str = ""

    def applies(self, capabilities: Iterable[str]) -> bool:
        """Whether it is a reason for a backend with these capabilities."""
        return not self.capability or self.capability.upper() in {c.upper() for c in capabilities}


def reasons() -> Mapping[str, Reason]:
    """Every rule that need not fire."""
    node = read(resources.files("verbs_conformance").joinpath(FILE).read_text(encoding="utf-8"), FILE)
    assert isinstance(node, Map)
    found: dict[str, Reason] = {}
    for rule, entry in node.items():
        assert isinstance(entry, Map)
        values = {str(k): str(v) for k, v in entry.items() if isinstance(v, Text)}
        found[str(rule)] = Reason(Verdict(values["verdict"]), values["reason"], values.get("capability", ""))
    return found


def unpassed() -> Mapping[str, str]:
    """Regression programs that are known not to pass on the model, and why."""
    node = read(resources.files("verbs_conformance").joinpath(UNPASSED).read_text(encoding="utf-8"), UNPASSED)
    assert isinstance(node, Map)
    return {str(name): str(reason) for name, reason in node.items()}
