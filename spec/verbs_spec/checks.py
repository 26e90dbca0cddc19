"""What must fit together in a specification, within a rule and between entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from verbs_spec.document import Call, CallRule, Delta, Profile, Spec, StepFamily, StepRule
from verbs_spec.errors import SpecError, listed, near
from verbs_spec.nodes import ERRNOS, no_result
from verbs_spec.questions import check_questions
from verbs_spec.sources import check_sources
from verbs_spec.text import Text

_STEP_FIELDS = ("level", "when", "do")
_SHOWN = 12  # names that a message lists before it says how many there are


def check(spec: Spec) -> Spec:
    """The same specification, or an error."""
    _check_results(spec)
    for call in spec.calls.values():
        check_call(call)
    for family in spec.families.values():
        check_family(family)
        _known(family.each.kind, spec.objects, "object", f"'for' of family {family.name}")
    for each in spec.invariants:
        if each.each:
            _known(each.each.kind, spec.objects, "object", f"'for' of invariant {each.id}")
    for rule in spec.rules.values():
        if isinstance(rule, CallRule) and rule.choice:
            _known(rule.choice, spec.choices, "choice", f"'choice' of rule {rule.id}")
    for ghost in spec.ghosts:
        for rule_id in ghost.at:
            _known(rule_id, spec.rules, "rule", "'at' of a ghost")
    _check_profiles(spec)
    check_sources(spec)
    check_questions(spec)
    return spec


def check_call(call: Call, *, selected: bool = False) -> None:
    """Each rule by itself, and that the rules together say when the call succeeds."""
    for rule in call.rules:
        check_call_rule(rule)
    successes = [rule for rule in call.rules if rule.cause is None]
    if not successes:
        raise SpecError(f"call {call.name} has no rule without 'cause'; one must say how it succeeds", call.name.where)
    for shape in call.shapes.values():
        for name, menu in shape.menus.items():
            if not menu:
                raise SpecError(
                    f"shape {shape.name} of call {call.name} gives {name!r} an empty list; it must have a value",
                    shape.name.where,
                )
    _check_whens(successes, f"call {call.name} has several rules without 'cause'", selected)


def check_family(family: StepFamily, *, selected: bool = False) -> None:
    """That there are rules, and that they say when each applies."""
    if not family.rules:
        raise SpecError(f"family {family.name} has no rules; it must have at least one", family.name.where)
    _check_whens(family.rules, f"family {family.name} has several rules", selected)


def check_call_rule(rule: CallRule) -> None:
    """Which keys of a call's rule exclude or need each other."""

    def wrong(words: str) -> SpecError:
        return SpecError(f"rule {rule.id} has {words}", rule.where)

    if rule.undefined is not None and rule.returns:
        raise wrong("both 'undefined' and 'returns'; where the consumer broke its duty no result is judged: keep one")
    if rule.undefined is None and not rule.returns:
        raise wrong("neither 'returns' nor 'undefined'; it must have one of them")
    if rule.cause is not None and rule.when is not None:
        raise wrong("both 'cause' and 'when'; 'cause' makes it a failure, 'when' one of several successes: keep one")
    if rule.undefined is not None and rule.cause is None:
        raise wrong("'undefined' without 'cause'; the cause must say what the consumer did")
    if rule.choice is not None and rule.cause is None and rule.when is None:
        raise wrong("'choice' without 'cause' or 'when'; one of them must say which option it is for")
    for each in rule.prefer:
        if each not in rule.returns:
            raise SpecError(
                f"rule {rule.id} prefers {each}, which it does not return; it returns {listed(rule.returns)}",
                each.where,
            )


def _check_whens(rules: Sequence[CallRule | StepRule], what: str, selected: bool) -> None:
    """Several rules that may apply together each need a `when`."""
    common = [rule for rule in rules if selected or not rule.profile]
    for rule in common if len(common) > 1 else ():
        if rule.when is None:
            raise SpecError(f"{what}, and {rule.id} has no 'when'; each must say when it applies", rule.where)


def _check_results(spec: Spec) -> None:
    """What rules and deltas say that a call returns is 0, an errno, or a word of some API."""
    words = {word for profile in spec.profiles.values() for word in profile.results}
    named = [
        (each, f"{key!r} of rule {rule.id}")
        for rule in spec.rules.values()
        if isinstance(rule, CallRule)
        for key, values in (("returns", rule.returns), ("prefer", rule.prefer))
        for each in values
    ]
    named += [
        (each, f"'value' of a delta of profile {profile.name}")
        for profile in spec.profiles.values()
        for delta in profile.deltas
        if delta.field in ("returns", "prefer") and isinstance(delta.value, tuple)
        for each in delta.value
    ]
    for each, what in named:
        if each != "0" and each not in ERRNOS and each not in words:
            raise no_result(each, what, words)


def _check_like(profile: Profile, spec: Spec) -> None:
    if profile.like is None:
        return
    apis = [each.name for each in spec.profiles.values() if each.kind == "api" and each is not profile]
    _known(profile.like, apis, "API profile", f"'like' of profile {profile.name}")
    seen = [profile.name]
    while (other := spec.profiles[seen[-1]].like) is not None:
        if other in seen:
            raise SpecError(f"profile {profile.name} is like itself, by way of {seen[-1]}", profile.like.where)
        seen.append(other)


def _check_absences(profile: Profile, spec: Spec) -> None:
    for each in profile.without:
        _known(each, (*spec.calls, *spec.families, *spec.rules), "call, family or rule", f"'without' of {profile.name}")
    known = [other.name for other in spec.profiles.values() if other.kind == "feature"]
    for each in profile.features or ():
        _known(each, known, "feature", f"'features' of {profile.name}")
    for each in (name for absence in profile.lacks for name in absence.features):
        _known(each, known, "feature", f"'lacks' of {profile.name}")


def _check_deltas(profile: Profile, spec: Spec) -> None:
    earlier: dict[tuple[str, str], Delta] = {}
    for delta in profile.deltas:
        _known(delta.rule, spec.rules, "rule", f"a delta of profile {profile.name}")
        if isinstance(spec.rules[delta.rule], StepRule) and delta.field not in _STEP_FIELDS:
            raise SpecError(
                f"a delta of profile {profile.name} replaces {str(delta.field)!r} of {delta.rule}, "
                f"a rule of a step; such a rule has {listed(_STEP_FIELDS)}",
                delta.field.where,
            )
        if delta.value is None and delta.field == "level":
            raise SpecError(
                f"a delta of profile {profile.name} takes 'level' away; every rule has one", delta.field.where
            )
        first = earlier.setdefault((delta.rule, delta.field), delta)
        if first is not delta:
            raise SpecError(
                f"profile {profile.name} replaces {str(delta.field)!r} of {delta.rule} twice, "
                f"first at {first.rule.where}",
                delta.rule.where,
            )


def _check_redefinitions(profile: Profile, spec: Spec) -> None:
    earlier: dict[str, Text] = {}
    for each in profile.defines:
        _known(each.define, spec.defines, "define", f"a redefinition of profile {profile.name}")
        first = earlier.setdefault(each.define, each.define)
        if first is not each.define:
            raise SpecError(
                f"profile {profile.name} redefines {each.define} twice, first at {first.where}", each.define.where
            )


def _check_profiles(spec: Spec) -> None:
    named = [(f"'profile' of rule {rule.id}", rule.profile) for rule in spec.rules.values()]
    named += [(f"'profile' of call {call.name}", call.profile) for call in spec.calls.values()]
    named += [
        (f"'profile' of shape {shape.name} of call {call.name}", shape.profile)
        for call in spec.calls.values()
        for shape in call.shapes.values()
    ]
    named += [(f"'profile' of family {family.name}", family.profile) for family in spec.families.values()]
    named += [(f"'profile' of invariant {each.id}", each.profile) for each in spec.invariants]
    named += [
        (f"'profile' of {name!r} of call {call.name}", profiles)
        for call in spec.calls.values()
        for name, profiles in call.limited.items()
    ]
    for what, profiles in named:
        for each in profiles:
            _known(each, spec.profiles, "profile", what)
    for profile in spec.profiles.values():
        _check_like(profile, spec)
        _check_absences(profile, spec)
        _check_deltas(profile, spec)
        _check_redefinitions(profile, spec)


def _known(found: Text, known: Iterable[str], kind: str, what: str) -> None:
    words = list(known)
    if found in words:
        return
    close = near(found, words)
    if len(words) > _SHOWN:
        same = [each for each in words if each.split("/")[0] == found.split("/", maxsplit=1)[0]][:_SHOWN]
        words = [*(same or words[:_SHOWN]), f"... ({len(words)} in all)"]
    raise SpecError(
        f"{what} names the {kind} {str(found)!r}, which nothing declares; known are {listed(words)}{close}",
        found.where,
    )
