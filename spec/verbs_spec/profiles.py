"""A specification under one API and one transport, with the features that a device has.

A part with a `profile` list that names APIs, but not this one, is left out, and so for transports; a list of
both wants one of each. A part that names features is left out unless all of them are there; a feature that the
transport lacks is never there. The deltas of the
chosen profiles replace fields of the rules that remain, and their redefinitions what a define stands for. Errnos
that a rule returns become the API's own words, if it has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, TypeVar

from verbs_spec.checks import check_call, check_family
from verbs_spec.document import (
    Absence,
    Call,
    CallRule,
    Delta,
    Lacking,
    Profile,
    ProfileKind,
    Redefinition,
    Rule,
    Shape,
    Spec,
    StepFamily,
)
from verbs_spec.errors import ProfileError, SpecError, listed, near
from verbs_spec.nodes import ERRNOS
from verbs_spec.text import Text

RuleT = TypeVar("RuleT", bound=Rule)


def select(spec: Spec, api: str, transport: str, features: Sequence[str] = ()) -> Spec:
    """What of a specification holds under these two profiles for a device with these features."""
    if spec.selected:
        raise ProfileError(f"{' and '.join(spec.selected)} are selected already; select from the whole specification")
    chief = _profile(spec, api, "api")
    both = (chief, _profile(spec, transport, "transport"))
    whole = _whole(spec, chief)
    known = [_profile(spec, each, "feature") for each in features]
    extra = tuple(each for each in known if _allows(whole, each.name) and not absence(both[1], each.name))
    chosen = (whole, both[1], *extra)
    deltas: dict[str, list[Delta]] = {}
    for delta in _joined(*chosen):
        deltas.setdefault(delta.rule, []).append(delta)

    @cache
    def applies(profiles: tuple[Text, ...]) -> bool:
        named = [spec.profiles[each] for each in profiles]
        return all(each in extra for each in named if each.kind == "feature") and _for(spec, both, [profiles])

    @cache
    def lacks(profiles: tuple[Text, ...]) -> set[str]:
        return {str(name) for name in profiles if spec.profiles[name].kind == "feature"} - {str(e.name) for e in extra}

    def rules(found: tuple[RuleT, ...]) -> tuple[RuleT, ...]:
        there = [rule for rule in found if rule.id not in whole.without and applies(rule.profile)]
        return tuple(_worded(_changed(rule, deltas.get(rule.id, [])), chief) for rule in there)

    def usual(shape: Shape) -> bool:
        return any(_for(spec, (each, both[1]), [shape.profile]) for each in line) and not lacks(shape.profile)

    line = _line(spec, chief)

    bodies = _bodies(*chosen)
    defines = {
        name: replace(define, body=bodies[name]) if name in bodies else define for name, define in spec.defines.items()
    }
    calls = {
        name: _without(
            replace(
                call,
                rules=rules(call.rules),
                shapes={key: shape for key, shape in call.shapes.items() if usual(shape)},
            ),
            {each for each, profiles in call.limited.items() if not applies(profiles)},
        )
        for name, call in spec.calls.items()
        if name not in whole.without and applies(call.profile)
    }
    families = {
        name: replace(family, rules=rules(family.rules))
        for name, family in spec.families.items()
        if name not in whole.without and applies(family.profile)
    }
    parts: tuple[Call | StepFamily, ...] = (*spec.calls.values(), *spec.families.values())
    lacking = {
        str(rule.id): Lacking(rule, tuple(sorted(missing)))
        for part in parts
        for rule in part.rules
        if (missing := lacks((*part.profile, *rule.profile)))
        and _for(spec, both, (part.profile, rule.profile))
        and all(_allows(whole, each) for each in missing)
        and not {part.name, rule.id} & set(whole.without)
    }
    for call in calls.values():
        check_call(call, selected=True)
    for family in families.values():
        check_family(family, selected=True)
    return replace(
        spec,
        defines=defines,
        calls=calls,
        families=families,
        invariants=tuple(each for each in spec.invariants if applies(each.profile)),
        selected=(api, transport),
        features=tuple(str(each.name) for each in extra),
        lacking=lacking,
        elsewhere=_named(spec.calls, spec.families) - _named(calls, families),
    )


def _named(calls: Mapping[str, Call], families: Mapping[str, StepFamily]) -> frozenset[str]:
    """The names of calls and of all rules."""
    parts: tuple[Call | StepFamily, ...] = (*calls.values(), *families.values())
    return frozenset((*map(str, calls), *(str(rule.id) for part in parts for rule in part.rules)))


def _without(call: Call, names: set[str]) -> Call:
    """A call without some parameters and outputs, and without menus for them; rules see their types' defaults then."""
    if not names:
        return call
    shapes = {
        key: replace(shape, menus={name: menu for name, menu in shape.menus.items() if name not in names})
        for key, shape in call.shapes.items()
    }
    return replace(
        call,
        params={name: kind for name, kind in call.params.items() if name not in names},
        outputs={name: kind for name, kind in call.outputs.items() if name not in names},
        absent={name: kind for name, kind in {**call.params, **call.outputs}.items() if name in names},
        shapes=shapes,
    )


def _for(spec: Spec, both: Iterable[Profile], parts: Iterable[Iterable[str]]) -> bool:
    """Whether lists of profiles leave an API and a transport."""
    lists = [[spec.profiles[each] for each in profiles] for profiles in parts]
    return all(each in named for named in lists for each in both if any(other.kind == each.kind for other in named))


def features(spec: Spec) -> tuple[str, ...]:
    """The features that a device may have, by name."""
    return tuple(str(each.name) for each in spec.profiles.values() if each.kind == "feature")


def capabilities(spec: Spec, feature: str) -> tuple[str, ...]:
    """The words of which a device with the feature declares one: `TWO_DEVICES` for `two-devices`, if it names none."""
    return tuple(map(str, spec.profiles[feature].capability)) or (feature.upper().replace("-", "_"),)


def _profile(spec: Spec, name: str, kind: ProfileKind) -> Profile:
    known = [each.name for each in spec.profiles.values() if each.kind == kind]
    if name not in known:
        raise ProfileError(f"{name!r} is no {kind} profile; known are {listed(known)}{near(name, known)}")
    return spec.profiles[name]


def _line(spec: Spec, api: Profile) -> list[Profile]:
    """An API, the one that it is like, and so on."""
    found = [api]
    while (other := found[-1].like) is not None:
        found.append(spec.profiles[other])
    return found


def absence(transport: Profile, feature: str) -> Absence | None:
    """Why no device of a transport has a feature; None if one may have it."""
    return next((each for each in transport.lacks if feature in each.features), None)


def _allows(api: Profile, feature: str) -> bool:
    """Whether a feature exists under an API."""
    return api.features is None or feature in api.features


def _whole(spec: Spec, api: Profile) -> Profile:
    """An API with what it takes over from the one that it is like; its own rows take the place of that one's."""
    if api.like is None:
        return api
    other = _whole(spec, spec.profiles[api.like])
    deltas = {(str(each.rule), str(each.field)): each for each in (*other.deltas, *api.deltas)}
    defines = {str(each.define): each for each in (*other.defines, *api.defines)}
    return replace(
        api,
        deltas=tuple(deltas.values()),
        defines=tuple(defines.values()),
        without=(*other.without, *api.without),
        features=other.features if api.features is None else api.features,
    )


def _worded(rule: RuleT, api: Profile) -> RuleT:
    """A rule with the API's own words for the errnos that it returns; an errno without a word stays."""
    if not isinstance(rule, CallRule) or not api.results:
        return rule

    def words(found: Iterable[Text]) -> tuple[Text, ...]:
        own = {each: [w.name for w in api.results.values() if each in w.of] or [each] for each in found}
        return tuple(dict.fromkeys(word for each in found for word in own[each]))

    for each in rule.returns:
        if each != "0" and each not in ERRNOS and each not in api.results:
            raise SpecError(
                f"rule {rule.id} returns {each}, which is no result of {api.name}{near(each, list(api.results))}",
                each.where,
            )
    return replace(rule, returns=words(rule.returns), prefer=words(rule.prefer))


def _joined(*chosen: Profile) -> tuple[Delta, ...]:
    for first, second in combinations(chosen, 2):
        for delta in second.deltas:
            for other in first.deltas:
                if (delta.rule, delta.field) == (other.rule, other.field):
                    raise SpecError(
                        f"profiles {first.name} and {second.name} both replace {str(delta.field)!r} of "
                        f"{delta.rule}, the other at {other.rule.where}; they cannot be selected together",
                        delta.rule.where,
                    )
    return tuple(delta for each in chosen for delta in each.deltas)


def _bodies(*chosen: Profile) -> dict[str, Text]:
    """What the profiles say that a define stands for."""
    found: dict[str, Redefinition] = {}
    for each in (redefinition for profile in chosen for redefinition in profile.defines):
        other = found.setdefault(each.define, each)
        if other is not each:
            raise SpecError(
                f"profiles {other.profile} and {each.profile} both redefine {each.define}, the other at "
                f"{other.define.where}; they cannot be selected together",
                each.define.where,
            )
    return {name: each.body for name, each in found.items()}


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
