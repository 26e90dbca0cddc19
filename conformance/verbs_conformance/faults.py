"""What the built-in device's faults are caught by: ``faults.yaml``.

A fault that can be seen is pinned by a regression program, and names the rules of which one is to be suspected: the
rule that it violates, or, where a refused call must leave no trace, the rule that met the trace.  ``crash`` stands for
a device that no longer answers.  ``schedule`` says how often a fault shows that not every schedule brings out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from verbs_spec.text import Map, Node, Seq, read

if TYPE_CHECKING:
    from verbs_adapters.softhca.faults import Fault

FILE = "faults.yaml"
CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Pin:
    """The program that shows a fault, and the rules of which one is to be suspected."""

    program: str
    rules: frozenset[str]
    schedule: str = ""


def known() -> Mapping[str, Fault]:
    """The faults of the built-in device by name."""
    from verbs_adapters.softhca.faults import FAULTS  # noqa: PLC0415 - only what is asked of faults needs the device

    return FAULTS


def not_expressed() -> Mapping[str, str]:
    """Entries of the corpus for which the built-in device has no fault, each with the reason."""
    from verbs_adapters.softhca.faults import NOT_EXPRESSED  # noqa: PLC0415 - as above

    return NOT_EXPRESSED


@cache
def pins() -> Mapping[str, Pin]:
    """What pins each fault that can be seen."""
    found: dict[str, Pin] = {}
    for name, entry in _part("caught").items():
        assert isinstance(entry, Map)
        values = {str(k): v for k, v in entry.items()}
        rules = values["rules"]
        assert isinstance(rules, Seq)
        found[name] = Pin(str(values["program"]), frozenset(map(str, rules)), str(values.get("schedule", "")))
    return found


@cache
def unseen() -> Mapping[str, str]:
    """Faults that no program can show, each with the reason."""
    return {name: str(reason) for name, reason in _part("unseen").items()}


def _part(name: str) -> Mapping[str, Node]:
    node = read(resources.files("verbs_conformance").joinpath(FILE).read_text(encoding="utf-8"), FILE)
    assert isinstance(node, Map)
    part = {str(k): v for k, v in node.items()}[name]
    assert isinstance(part, Map)
    return {str(k): v for k, v in part.items()}
