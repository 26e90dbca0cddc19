"""Waiver files: deviations of a backend that are known and accepted, each with the reason and the evidence.

Theory of operation
-------------------
A waiver is for one rule on one kind of backend.  It names the program that shows the deviation, or several if the
rule is broken in more than one way, and says with ``instead`` in the specification's language what the backend does in
place of what the rule says::

    waivers:
      - waiver: inv-any-domain
        rule: inv/foreign
        for: {device: "rxe*", kernel: ["6.1", "6.12"]}
        program: regress/foreign-invalidation
        instead:
          do: |
            ...
        reason: LOCAL_INV does not compare the protection domain.
        evidence: ["Linux drivers/infiniband/sw/rxe/rxe_mr.c, rxe_invalidate_mr"]

``instead`` replaces fields of the rule, as a profile's delta does.  What a waiver covers in a run is decided by
:mod:`verbs_conformance.waiving`; here is what can be known without a backend.  Every error has file, line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from verbs_adapters.contract import Hello
from verbs_conformance import program as programs
from verbs_conformance.errors import BadProgram, BadWaivers
from verbs_conformance.flips import Flip, apply
from verbs_conformance.program import Program
from verbs_reference.model import Model
from verbs_spec import nodes
from verbs_spec.checks import check_call
from verbs_spec.document import CallRule, Rule, Spec
from verbs_spec.errors import SpecError, Where, listed, near
from verbs_spec.nodes import Entry
from verbs_spec.profile_entries import REPLACEABLE
from verbs_spec.text import Map, Node, Seq, Text, read

CONDITIONS = ("backend", "version", "device", "firmware", "kernel", "api", "transport")
"""What a waiver may ask of a backend: what it says of itself, and the profiles under which it is judged."""

NUMBERED = ("version", "firmware", "kernel")
"""Conditions whose value stands for every number that goes on from it: 6.1 is 6.1.0-57, and not 6.12."""

OF_STEP, OF_CALL = ("do",), ("cause", "returns", "prefer", "outputs", "do")
"""The fields of a rule that ``instead`` may replace: what a rule brings about, and for a call when it is refused."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FAULT = "The fault is the waiver file's: correct it and run again."


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted deviation.  ``own`` has those of its programs that the file brings along; the others ship."""

    name: Text
    rule: Text
    conditions: Mapping[str, tuple[Text, ...]]
    programs: tuple[Text, ...]
    own: Mapping[str, Program]
    instead: Mapping[str, Any]
    reason: str
    evidence: tuple[str, ...]

    def applies(self, hello: Hello, api: str, transport: str) -> bool:
        """Whether this backend, under these profiles, is one that the waiver is for."""
        facts = {
            "backend": hello.name,
            "version": hello.version,
            "device": hello.device,
            "firmware": hello.firmware,
            "kernel": hello.kernel,
            "api": api,
            "transport": transport,
        }
        return all(any(_matches(k, v, facts[k]) for v in values) for k, values in self.conditions.items())

    def under(self, api: str, transport: str) -> bool:
        """Whether the conditions leave these profiles."""
        facts = {"api": api, "transport": transport}
        return all(any(_matches(k, v, facts[k]) for v in self.conditions.get(k, ("*",))) for k in facts)

    def runs(self, api: str, transport: str) -> list[Program]:
        """The programs that show the deviation under these profiles."""
        shipped = [p for p in programs.shipped("programs") if p.name in self.programs and p.name not in self.own]
        return [p for p in (*self.own.values(), *shipped) if p.applies(api, transport)]


def load(path: Path, spec: Spec) -> tuple[Waiver, ...]:
    """The waivers of a file; BadWaivers if it cannot be used with this specification."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise BadWaivers(f"the waiver file {path} cannot be read: {e}") from None
    try:
        entry = Entry(read(text, str(path)), "a waiver file", required="waivers")
        made = tuple(_waiver(each, spec, path.parent) for each in entry.elements("waivers"))
        _reject_the_same(made, entry.key("waivers").where)
    except SpecError as e:
        raise BadWaivers(f"{e}\n{_FAULT}") from None
    return made


def amended(spec: Spec, waivers: Iterable[Waiver]) -> Spec:
    """The specification of a backend that does what these waivers say in place of their rules."""
    for each in waivers:
        spec = apply(spec, Flip(str(each.rule), str(each.name), dict(each.instead)))
        rule = spec.rules[str(each.rule)]
        if isinstance(rule, CallRule):
            try:
                check_call(spec.calls[str(rule.call)], selected=True)
            except SpecError as e:
                raise SpecError(f"with what waiver {each.name} says instead, {e.message}", each.rule.where) from None
    return spec


def model(spec: Spec, waivers: Iterable[Waiver]) -> Model:
    """Their model; BadWaivers if what stands in a waiver is not of the language."""
    try:
        return Model(amended(spec, waivers))
    except SpecError as e:
        raise BadWaivers(f"{e}\n{_FAULT}") from None


def batches(waivers: Iterable[Waiver]) -> list[list[Waiver]]:
    """Those with ``instead``, in as few lists as can be in which no rule stands twice."""
    made: list[list[Waiver]] = []
    for each in waivers:
        if each.instead:
            place = next((b for b in made if all(w.rule != each.rule for w in b)), None)
            if place is None:
                made.append(place := [])
            place.append(each)
    return made


# -- reading -------------------------------------------------------------------------------------


def _waiver(node: Node, spec: Spec, folder: Path) -> Waiver:
    entry = Entry(node, "a waiver", required="waiver rule for program reason evidence", optional="instead")
    name = entry.required("waiver", _name)
    rule = entry.required("rule", lambda n, what: _rule(n, what, spec))
    what = f"waiver {name}"
    shown, own = _programs(entry.node_of("program"), f"'program' of {what}", folder)
    conditions = _conditions(entry.node_of("for"), f"'for' of {what}", spec)
    instead = _instead(entry.node_of("instead"), f"'instead' of {what}", spec.rules[rule]) if "instead" in entry else {}
    reason = " ".join(entry.required("reason", nodes.text).split())
    evidence = tuple(" ".join(e.split()) for e in entry.required("evidence", nodes.texts))
    made = Waiver(name, rule, conditions, shown, own, instead, reason, evidence)
    run = {p.name for a, t in profiles(spec) if made.under(a, t) for p in made.runs(a, t)}
    for program in shown:
        if program not in run:
            raise SpecError(f"{what} applies under no profile for which its program {program} is", program.where)
    return made


def profiles(spec: Spec) -> list[tuple[str, str]]:
    """Every API with every transport."""
    of = {kind: [str(p.name) for p in spec.profiles.values() if p.kind == kind] for kind in ("api", "transport")}
    return [(a, t) for a in of["api"] for t in of["transport"]]


def _name(node: Node, what: str) -> Text:
    found = nodes.text(node, what)
    if not _NAME.fullmatch(found):
        raise SpecError(f"{what} is {str(found)!r}; a name has lower-case letters, digits and dashes", found.where)
    return found


def _rule(node: Node, what: str, spec: Spec) -> Text:
    found = nodes.text(node, what)
    if any(c in found for c in "*?["):
        raise SpecError(
            f"{what} is {str(found)!r}, a pattern; a waiver is for one rule, so that no other defect hides behind it: "
            "write one waiver a rule",
            found.where,
        )
    if found not in spec.rules:
        same = [r for r in spec.rules if r.split("/")[0] == found.split("/", maxsplit=1)[0]]
        known = f"of that object: {listed(same)}" if same else "verbspec list rules prints them"
        raise SpecError(f"no rule is called {str(found)!r}{near(found, spec.rules) or ';'} {known}", found.where)
    rule = spec.rules[found]
    if isinstance(rule, CallRule) and rule.undefined is not None:
        raise SpecError(f"the rule {found} is a duty of the consumer, which no backend can fail", found.where)
    return found


def _conditions(node: Node, what: str, spec: Spec) -> dict[str, tuple[Text, ...]]:
    entry = Entry(node, what, optional=" ".join(CONDITIONS))
    if not entry.node:
        raise SpecError(
            f"{what} is empty: every backend would be excused; the keys are {listed(CONDITIONS)}", node.where
        )
    found = {}
    for key in CONDITIONS:
        if key in entry:
            value = entry.node_of(key)
            read_one = (nodes.text(value, f"{key!r} of {what}"),) if not isinstance(value, Seq) else ()
            found[key] = read_one or nodes.texts(value, f"{key!r} of {what}")
    known = [str(p.name) for p in spec.profiles.values()]
    for key in ("api", "transport"):
        for value in found.get(key, ()):
            if not any(fnmatchcase(p.name, value) and p.kind == key for p in spec.profiles.values()):
                raise SpecError(
                    f"{key!r} of {what} is {str(value)!r}, which no {key} profile is called{near(value, known)}; "
                    f"known: {listed(p.name for p in spec.profiles.values() if p.kind == key)}",
                    value.where,
                )
    return found


def _matches(key: str, wanted: str, fact: str) -> bool:
    if key in NUMBERED and fact.startswith(wanted) and wanted:
        return not fact[len(wanted) : len(wanted) + 1].isdigit()
    return fnmatchcase(fact, wanted)


def _programs(node: Node, what: str, folder: Path) -> tuple[tuple[Text, ...], dict[str, Program]]:
    """The programs' names, and those that are the file's own."""
    if isinstance(node, Seq) and not node:
        raise SpecError(
            f"{what} is an empty list; without a program nobody knows whether the deviation is there", node.where
        )
    names: dict[str, Where] = {}
    found = [_program(each, what, folder) for each in (node if isinstance(node, Seq) else [node])]
    for name, _ in found:
        nodes.unique(name, names, "the program")
    return tuple(name for name, _ in found), {str(name): own for name, own in found if own is not None}


def _program(node: Node, what: str, folder: Path) -> tuple[Text, Program | None]:
    """The program's name, and the program if it is the file's own: in place, or in another file."""
    known = [p.name for p in programs.shipped("programs")]
    if isinstance(node, Map):
        own = replace(programs.of_node(node), kind="replay")
        place = nodes.text(node[node.key("program")], what)
    else:
        place = nodes.text(node, what)
        if not place.endswith((".yaml", ".yml")):
            if place not in known:
                raise SpecError(
                    f"{what} is {str(place)!r}: no program that ships is called so{near(place, known)} "
                    "('verbspec list programs' prints them; the name of a program file ends with .yaml)",
                    place.where,
                )
            return place, None
        own = _of_file(folder / place, place, what)
    if own.name in known:
        raise SpecError(f"{what} is called {own.name!r}, like one that ships; give it another name", place.where)
    return Text(own.name, place.where, quoted=True), own


def _of_file(path: Path, place: Text, what: str) -> Program:
    try:
        found = programs.load(path)
    except BadProgram as e:
        raise SpecError(f"{what}: {e}", place.where) from None
    if len(found) != 1:
        raise SpecError(f"{what} is a file of {len(found)} programs; a waiver has one", place.where)
    return replace(found[0], kind="replay")


def _instead(node: Node, what: str, rule: Rule) -> dict[str, Any]:
    fields: Sequence[str] = OF_STEP
    if isinstance(rule, CallRule):
        fields = OF_CALL if rule.cause is not None else OF_CALL[1:]
    entry = Entry(node, what, optional=" ".join(fields))
    if not entry.node:
        raise SpecError(f"{what} is empty; of {rule.id} it may replace {listed(fields)}", node.where)
    return {key: entry.required(key, REPLACEABLE[key]) for key in fields if key in entry}


def _reject_the_same(waivers: Sequence[Waiver], where: Where) -> None:
    """No waiver, a name twice, or a rule twice for the same backends and program: one of the two is of no use."""
    if not waivers:
        raise SpecError("'waivers' is an empty list; without a waiver no file is needed", where)
    names: dict[str, Where] = {}
    for each in waivers:
        nodes.unique(each.name, names, "the waiver")
    seen: dict[tuple[Any, ...], Waiver] = {}
    for each in waivers:
        key = (
            str(each.rule),
            tuple(sorted(map(str, each.programs))),
            tuple(sorted((k, tuple(sorted(v))) for k, v in each.conditions.items())),
        )
        first = seen.setdefault(key, each)
        if first is not each:
            raise SpecError(
                f"waiver {each.name} is for the rule, the programs and the backends that {first.name} is for, "
                f"at {first.name.where}; leave one out",
                each.name.where,
            )
