"""A specification under one API and one transport.

A part with a `profile` list that names APIs, but not this one, is left out, and so for transports; a list of
both wants one of each. The deltas of the two profiles replace fields of the rules that remain, and their
redefinitions what a define stands for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from verbs_spec.checks import check_call, check_family
from verbs_spec.document import Delta, Profile, ProfileKind, Rule, Spec
from verbs_spec.errors import ProfileError, SpecError, listed, near
from verbs_spec.text import Text

RuleT = TypeVar("RuleT", bound=Rule)


def select(spec: Spec, api: str, transport: str) -> Spec:
    """What of a specification holds under these two profiles."""
    if spec.selected:
        raise ProfileError(f"{' and '.join(spec.selected)} are selected already; select from the whole specification")
    chosen = (_profile(spec, api, "api"), _profile(spec, transport, "transport"))
    deltas: dict[str, list[Delta]] = {}
    for delta in _joined(*chosen):
        deltas.setdefault(delta.rule, []).append(delta)

    def applies(profiles: Iterable[str]) -> bool:
        named = [spec.profiles[each] for each in profiles]
        return all(each in named for each in chosen if any(other.kind == each.kind for other in named))

    def rules(found: tuple[RuleT, ...]) -> tuple[RuleT, ...]:
        return tuple(_changed(rule, deltas.get(rule.id, [])) for rule in found if applies(rule.profile))

    bodies = _bodies(*chosen)
    defines = {
        name: replace(define, body=bodies[name]) if name in bodies else define for name, define in spec.defines.items()
    }
    calls = {
        name: replace(
            call,
            rules=rules(call.rules),
            shapes={key: shape for key, shape in call.shapes.items() if applies(shape.profile)},
        )
        for name, call in spec.calls.items()
        if applies(call.profile)
    }
    families = {
        name: replace(family, rules=rules(family.rules))
        for name, family in spec.families.items()
        if applies(family.profile)
    }
    for call in calls.values():
        check_call(call, selected=True)
    for family in families.values():
        check_family(family, selected=True)
    return replace(spec, defines=defines, calls=calls, families=families, selected=(api, transport))


def _profile(spec: Spec, name: str, kind: ProfileKind) -> Profile:
    known = [each.name for each in spec.profiles.values() if each.kind == kind]
    if name not in known:
        raise ProfileError(f"{name!r} is no {kind} profile; known are {listed(known)}{near(name, known)}")
    return spec.profiles[name]


def _joined(first: Profile, second: Profile) -> tuple[Delta, ...]:
    for delta in second.deltas:
        for other in first.deltas:
            if (delta.rule, delta.field) == (other.rule, other.field):
                raise SpecError(
                    f"profiles {first.name} and {second.name} both replace {str(delta.field)!r} of "
                    f"{delta.rule}, the other at {other.rule.where}; they cannot be selected together",
                    delta.rule.where,
                )
    return first.deltas + second.deltas


def _bodies(first: Profile, second: Profile) -> dict[str, Text]:
    """What the two profiles say that a define stands for."""
    others = {each.define: each for each in first.defines}
    for each in second.defines:
        if each.define in others:
            raise SpecError(
                f"profiles {first.name} and {second.name} both redefine {each.define}, the other at "
                f"{others[each.define].define.where}; they cannot be selected together",
                each.define.where,
            )
    return {each.define: each.body for each in (*first.defines, *second.defines)}


def _changed(rule: RuleT, deltas: list[Delta]) -> RuleT:
    for delta in deltas:
        empty = () if delta.field in ("returns", "prefer") else None
        value = str(delta.value) if delta.field == "level" else delta.value  # a word, as in a rule of its own
        new: dict[str, Any] = {
            delta.field: empty if delta.value is None else value,
            "deltas": (*rule.deltas, delta),
            "sources": tuple(dict.fromkeys((*rule.sources, *delta.sources))),
        }
        rule = replace(rule, **new)
    return rule
