"""What a specification consists of.

Expressions, statements and types stay `Text`: verbs_reference parses and resolves them, and places its errors
with `Text.at`. Everything is immutable and knows the object (the file) it was written for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from verbs_spec.errors import Where
from verbs_spec.text import Text

Level = Literal["must", "should", "may"]
Status = Literal["draft", "reviewed", "disputed"]
ProfileKind = Literal["api", "transport", "feature"]
Quality = Literal["read", "quoted", "own", "recollection", "absence"]

LEVELS: tuple[Level, ...] = ("must", "should", "may")
STATUSES: tuple[Status, ...] = ("draft", "reviewed", "disputed")
PROFILE_KINDS: tuple[ProfileKind, ...] = ("api", "transport", "feature")


@dataclass(frozen=True)
class FieldDecl:
    """A field of an object or record."""

    name: Text
    type: Text
    init: Text | None = None
    doc: Text | None = None
    across: bool = False
    """Whether it refers to an object that may be of another device."""


@dataclass(frozen=True)
class Enum:
    """A named list of enumerators."""

    name: Text
    values: tuple[Text, ...]
    object: str


@dataclass(frozen=True)
class Kind:
    """A kind of record (a value, compared by content) or of object (a thing with identity)."""

    name: Text
    fields: Mapping[str, FieldDecl]
    object: str


@dataclass(frozen=True)
class Param:
    """A parameter of a define."""

    name: Text
    type: Text


@dataclass(frozen=True)
class Define:
    """A named expression, or named statements (a procedure)."""

    name: Text
    params: tuple[Param, ...]
    body: Text
    object: str
    result: Text | None = None  # the type, where the body alone does not tell it
    made: bool = False  # of a table, which says the same


@dataclass(frozen=True)
class Choice:
    """What the sources leave open. A stable choice is a constant of the backend."""

    name: Text
    options: tuple[Text, ...]
    stable: bool
    says: Text
    sources: tuple[Text, ...]
    object: str


@dataclass(frozen=True)
class Binder:
    """`q in qp`: a name for each object of a kind."""

    name: Text
    kind: Text


@dataclass(frozen=True)
class Take:
    """`w = q.sq`: a name for the head of a queue."""

    name: Text
    queue: Text


@dataclass(frozen=True)
class Delta:
    """A profile's replacement of one field of one rule. The value None takes the field away."""

    profile: Text
    rule: Text
    field: Text
    value: Text | tuple[Text, ...] | None
    says: Text
    sources: tuple[Text, ...]


@dataclass(frozen=True)
class Redefinition:
    """A profile's replacement of what a define stands for; its parameters stay."""

    profile: Text
    define: Text
    body: Text
    says: Text
    sources: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What every rule has. `deltas` are those that a selected profile has applied to it."""

    id: Text
    says: Text
    sources: tuple[Text, ...]
    object: str
    level: Level = "must"
    status: Status = "draft"
    profile: tuple[Text, ...] = ()
    deltas: tuple[Delta, ...] = ()

    @property
    def where(self) -> Where:
        return self.id.where


@dataclass(frozen=True, kw_only=True)
class CallRule(Rule):
    """A way in which a call succeeds (no `cause`) or fails."""

    call: Text
    when: Text | None = None
    cause: Text | None = None
    returns: tuple[Text, ...] = ()
    prefer: tuple[Text, ...] = ()
    outputs: Text | None = None
    do: Text | None = None
    undefined: Text | None = None
    choice: Text | None = None
    rows: Text | None = None  # the table and its keys, of a rule that stands for one a row, and of each of these


@dataclass(frozen=True, kw_only=True)
class StepRule(Rule):
    """One case of an internal step."""

    family: Text
    when: Text | None = None
    do: Text | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table: for which enumerators (all, where a key is absent), and what stands in the columns."""

    id: Text
    keys: Mapping[Text, tuple[Text, ...]]
    cells: Mapping[Text, tuple[Text, ...]]
    says: Text | None
    sources: tuple[Text, ...]
    level: Level | None
    status: Status | None
    profile: tuple[Text, ...]


@dataclass(frozen=True)
class Table:
    """What holds for combinations of enumerators, a row each; keys and columns with the enums of their words."""

    name: Text
    says: Text
    keys: Mapping[Text, Text]
    columns: Mapping[Text, Text]
    rows: tuple[Row, ...]
    object: str


@dataclass(frozen=True)
class Shape:
    """How generated programs make a call: for each parameter the expressions to choose from, the usual first.

    A name that begins with `_` is not passed; it gives the others something to refer to. A call with a `peril` is
    known to crash some device's kernel: only written programs make it.
    """

    name: Text
    profile: tuple[Text, ...]
    menus: Mapping[str, tuple[Text, ...]]
    peril: Text | None = None


@dataclass(frozen=True)
class Call:
    """A verb, with the shapes in which generated programs make it.

    `across` lists the parameters that name what is at the other end of a connection, which may be on another device;
    all else that a call names is of one. `gone` lists those that may name what is there no longer. `limited` gives the
    profiles of a parameter or output that not all have; what a selection leaves out stands in `absent`, with its type.
    """

    name: Text
    params: Mapping[str, Text]
    outputs: Mapping[str, Text]
    shapes: Mapping[str, Shape]
    profile: tuple[Text, ...]
    rules: tuple[CallRule, ...]
    object: str
    across: tuple[Text, ...] = ()
    gone: tuple[Text, ...] = ()
    limited: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    absent: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True)
class StepFamily:
    """Internal steps that share a binder; their `when`s partition the domain.

    An `optional` family may run but need not: silence does not assert that it has.
    """

    name: Text
    each: Binder
    take: Take | None
    let: Mapping[str, Text]
    domain: Text | None
    optional: bool
    profile: tuple[Text, ...]
    rules: tuple[StepRule, ...]
    object: str


@dataclass(frozen=True)
class Ghost:
    """Statements that run after rules, for proofs only."""

    at: tuple[Text, ...]
    do: Text
    object: str


@dataclass(frozen=True)
class Invariant:
    """What always holds, for each object of the binder if there is one."""

    id: Text
    holds: Text
    says: Text
    each: Binder | None
    object: str
    profile: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Unspecified:
    """What no source decides, and why."""

    id: Text
    says: Text
    reason: Text
    sources: tuple[Text, ...]
    object: str


@dataclass(frozen=True)
class Document:
    """What rules rest on: how citations of it begin (and, if any, what they say), what it is worth, which version."""

    name: Text
    cited: tuple[Text, ...]
    title: Text
    quality: Quality
    saying: tuple[Text, ...] = ()
    pinned: Text | None = None
    licence: Text | None = None

    @property
    def where(self) -> Where:
        return self.name.where


@dataclass(frozen=True)
class Find:
    """Rules that answer a question, by what they have in common; a value is a word, or the slot of its key's name."""

    terms: Mapping[Text, Text]
    where: Where

    def __str__(self) -> str:
        return "the rules with " + ", ".join(f"{key} {value}" for key, value in self.terms.items())


@dataclass(frozen=True)
class Question:
    """What people ask, in several wordings with slots such as `{verb}`, and what of the specification answers it."""

    id: Text
    asks: tuple[Text, ...]
    answers: tuple[Text | Find, ...]
    object: str


@dataclass(frozen=True)
class ResultWord:
    """A word that an API has for what its calls return, and the errnos of the common rules that it stands for."""

    name: Text
    of: tuple[Text, ...]
    says: Text
    sources: tuple[Text, ...]


@dataclass(frozen=True)
class Absence:
    """Features that no device of a transport can have."""

    features: tuple[Text, ...]
    says: Text
    sources: tuple[Text, ...]


@dataclass(frozen=True)
class Profile:
    """An API, a transport, or a feature that a device may have: what differs from the common base."""

    name: Text
    kind: ProfileKind
    summary: Text
    deltas: tuple[Delta, ...]
    defines: tuple[Redefinition, ...] = ()
    capability: tuple[Text, ...] = ()  # of a feature: a device has it that declares one of these
    draft: bool = False  # of a feature: no device is judged by it unless that is asked for
    results: Mapping[str, ResultWord] = field(default_factory=dict)  # of an API: its own words
    like: Text | None = None  # of an API: the one whose deltas, redefinitions, shapes and absences it begins with
    without: tuple[Text, ...] = ()  # of an API: calls, families and rules that do not exist under it
    features: tuple[Text, ...] | None = None  # of an API: those that exist under it; None: all
    lacks: tuple[Absence, ...] = ()  # of a transport: features that do not exist there


@dataclass(frozen=True)
class Lacking:
    """A rule that a selection leaves out for want of features, and which."""

    rule: CallRule | StepRule
    features: tuple[str, ...]


@dataclass(frozen=True)
class Spec:
    """A whole specification, or what of it holds under the profiles in `selected` (api, transport) with `features`."""

    summaries: Mapping[str, Text]  # of each file, by its object
    enums: Mapping[str, Enum]
    records: Mapping[str, Kind]
    objects: Mapping[str, Kind]
    defines: Mapping[str, Define]
    choices: Mapping[str, Choice]
    calls: Mapping[str, Call]
    families: Mapping[str, StepFamily]
    ghosts: tuple[Ghost, ...]
    invariants: tuple[Invariant, ...]
    unspecified: tuple[Unspecified, ...]
    questions: tuple[Question, ...]
    profiles: Mapping[str, Profile]
    digest: str
    documents: Mapping[str, Document] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    selected: tuple[str, str] | None = None
    features: tuple[str, ...] = ()
    lacking: Mapping[str, Lacking] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    """The calls and rules that only other profiles, or devices with other features, have."""
    rules: Mapping[str, CallRule | StepRule] = field(init=False, compare=False, repr=False)
    cited: dict[str, Document | None] = field(init=False, compare=False, repr=False, default_factory=dict)
    """What citations name, as far as that was asked."""

    def __post_init__(self) -> None:
        rules: dict[str, CallRule | StepRule] = {}
        for call in self.calls.values():
            rules.update((rule.id, rule) for rule in call.rules)
        for family in self.families.values():
            rules.update((rule.id, rule) for rule in family.rules)
        object.__setattr__(self, "rules", rules)
