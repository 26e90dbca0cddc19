"""Records: the lines of a results file.

The shape is :data:`Record` here and ``schema/results.schema.json`` for everybody else.  The schema says
what each field means; a test holds the two together, field by field.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any, Final, Literal

import msgspec

from verbs_reports.verdicts import Verdict

FORMAT: Final = 1
"""The format that this module describes."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Ordinal = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value inside a record."""


class Adapter(Part, frozen=True, kw_only=True):
    """The adapter and its ``-o KEY=VALUE`` options."""

    name: Name
    options: dict[str, str] = {}


class Device(Part, frozen=True, kw_only=True):
    """What was judged, in the backend's own words."""

    name: Name
    version: str
    device: str
    firmware: str = ""
    kernel: str = ""


class Failure(Part, frozen=True, kw_only=True):
    """The step at which a program left what the rules allow."""

    step: Ordinal
    action: str
    seen: str
    allowed: tuple[str, ...]
    suspects: tuple[str, ...]
    message: str


class Trouble(Part, frozen=True, kw_only=True):
    """Why a step was not answered at all.

    ``kind`` and ``whose`` are those of the adapter contract; a newer contract may know more of them, so
    they are text here.
    """

    kind: Name
    whose: Name
    message: str
    evidence: str = ""


class Line(Part, frozen=True, kw_only=True, tag_field="record"):
    """A line of a results file."""


class Header(Line, frozen=True, kw_only=True, tag="header"):
    """What ran, against what, and how to repeat it.  The first line."""

    format: Literal[1] = FORMAT
    suite: str
    spec: str
    started: str
    command: str
    adapter: Adapter
    device: Device
    api: str
    transport: str
    seed: int
    features: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    limits: dict[str, int] = {}
    devices: Ordinal = 1


class Program(Line, frozen=True, kw_only=True, tag="program"):
    """One program that was run, whole when it is worth reading (``steps`` may be empty)."""

    name: Name
    kind: Literal["directed", "stateful", "regression", "replay"]
    target: str = ""
    verdict: Verdict
    calls: Count
    steps: tuple[str, ...] = ()
    fixture: str
    fired: dict[str, Count] = {}
    possible: dict[str, Count] = {}
    unobserved: Count = 0
    belief: Count = 0
    failure: Failure | None = None
    trouble: Trouble | None = None
    reason: str = ""
    seed: Count = 0
    file: str = ""
    waivers: dict[str, Name] = {}
    alone: str = ""


class Rule(Line, frozen=True, kw_only=True, tag="rule"):
    """The verdict on one rule, with all that a report needs to say of it."""

    rule: Name
    object: Name
    level: Literal["must", "should", "may"]
    status: str = ""
    says: str
    sources: tuple[str, ...]
    verdict: Verdict
    fired: Count
    programs: Count
    reason: str = ""


class Choice(Line, frozen=True, kw_only=True, tag="choice"):
    """What a backend does where the sources leave it open."""

    choice: Name
    options: tuple[str, ...]
    taken: tuple[str, ...]
    stable: bool
    verdict: Verdict


class Waiver(Line, frozen=True, kw_only=True, tag="waiver"):
    """A deviation that is accepted, and whether it still shows."""

    waiver: Name
    rule: Name
    program: Name
    verdict: Verdict
    covered: Count
    instead: dict[str, str] = {}
    reason: Name
    evidence: tuple[str, ...]
    note: str = ""


class Footer(Line, frozen=True, kw_only=True, tag="footer"):
    """How the run ended.  The last line; without it the file is truncated."""

    verdict: Verdict
    exit_code: Count
    counts: dict[Verdict, Count]
    calls: Count
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    programs: Count
    largest_belief: Count = 0
    unobserved_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    note: str = ""


Record = Header | Program | Rule | Choice | Waiver | Footer
KINDS: Final = {
    "choice": Choice,
    "footer": Footer,
    "header": Header,
    "program": Program,
    "rule": Rule,
    "waiver": Waiver,
}
"""The records by the word that stands in their field ``record``."""


def schema() -> dict[str, Any]:
    """Give the JSON Schema (draft 2020-12) of one record, as it ships."""
    text = files("verbs_reports").joinpath("schema/results.schema.json").read_bytes()
    value: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    return value
