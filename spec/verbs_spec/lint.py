"""What a specification declares and nothing uses: found by words alone, so that it takes no time.

A state that nothing leads to, a choice that nobody takes, a define that nothing names: each is what is left of a rule
that was changed, or a rule that was forgotten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TypeGuard

from verbs_spec.document import CallRule, Shape, Spec
from verbs_spec.errors import listed
from verbs_spec.text import Text

_WORD = re.compile(r"\w+")
_COMPARED = re.compile(r"(?:==|!=)\s*\w+|\w+\s*(?:==|!=)|\bin\s*\([^()]*\)")
_CHOSEN = re.compile(r"choice\(\s*(\w+)\s*\)")
_CALLED = re.compile(r"\b(\w+)\s*\(")
_TOLD = re.compile(r"choice\(\s*(\w+)\s*\)\s*(?:==|!=)\s*(\w+)")


def unused(spec: Spec) -> list[str]:
    """One line for each thing that is declared and that nothing uses."""
    return [*_choices(spec), *_defines(spec)]


def _choices(spec: Spec) -> Iterator[str]:
    texts = list(_texts(spec))
    asked = {name for text in texts for name in _CHOSEN.findall(text)}
    told = {pair for text in texts for pair in _TOLD.findall(text)}
    for choice in spec.choices.values():
        open_ = [str(o) for o in choice.options if (str(choice.name), str(o)) not in told]
        if choice.name not in asked:
            where = choice.name.where
            yield f"{where}: choice {choice.name} is asked for by no rule, so nobody takes it; use it or drop it"
        elif len(open_) > 1:
            yield (
                f"{choice.name.where}: choice {choice.name} has the options {listed(open_)}, which no rule tells "
                "apart; name all but one of them where the choice is asked for"
            )


def unreached(spec: Spec) -> Iterator[str]:
    """One line for each state (an enumerator that an object's field may have) that rules ask for and nothing gives."""
    given = {word for text in _givers(spec) for word in _WORD.findall(text)}
    named = {word for text in _texts(spec) for word in _WORD.findall(text)}
    kinds = {str(f.type) for o in spec.objects.values() for f in o.fields.values()}
    options = {str(option) for choice in spec.choices.values() for option in choice.options}
    for enum in (e for e in spec.enums.values() if e.name in kinds):
        for value in enum.values[1:]:
            if value in named and value not in given | options:
                yield (
                    f"{value.where}: {value} of {enum.name} is asked for, and nothing gives it: no effect, output or "
                    "menu of a shape names it, so that it is never reached"
                )


def _defines(spec: Spec) -> Iterator[str]:
    redefined = {each.define for profile in spec.profiles.values() for each in profile.defines}
    users = Counter(name for text in _texts(spec) for name in set(_CALLED.findall(text)))
    for define in spec.defines.values():
        itself = define.name in _CALLED.findall(define.body)
        if define.name not in redefined and users[define.name] == itself:
            yield f"{define.name.where}: define {define.name} is used by nothing; use it or drop it"


def _texts(spec: Spec) -> Iterator[Text]:
    """Every expression and statement."""
    for define in spec.defines.values():
        yield define.body
    for rule in spec.rules.values():
        parts = [rule.when, rule.do]
        if isinstance(rule, CallRule):
            parts += [rule.cause, rule.outputs, rule.undefined]
        yield from (part for part in parts if part is not None)
    for family in spec.families.values():
        yield from family.let.values()
        if family.domain is not None:
            yield family.domain
        if family.take is not None:
            yield family.take.queue
    for each in spec.invariants:
        yield each.holds
    for ghost in spec.ghosts:
        yield ghost.do
    for shape in _shapes(spec):
        yield from (expression for menu in shape.menus.values() for expression in menu)
    yield from _replaced(spec)


def _givers(spec: Spec) -> Iterator[str]:
    """What gives a value: effects, outputs, menus, what a field is at first. To compare with a value does not give it,
    but in an output, where the answer is what it is compared with."""
    answers = [rule.outputs for rule in spec.rules.values() if isinstance(rule, CallRule) and rule.outputs is not None]
    answers += [d.value for p in spec.profiles.values() for d in p.deltas if d.field == "outputs" and _is_text(d.value)]
    yield from answers
    todo = {word for text in answers for word in _WORD.findall(text)} & spec.defines.keys()
    answering: set[str] = set()
    while todo:
        answering |= todo
        bodies = [spec.defines[name].body for name in todo]
        todo = {word for body in bodies for word in _WORD.findall(body)} & spec.defines.keys() - answering
    for name, define in spec.defines.items():
        yield define.body if name in answering else _COMPARED.sub("", define.body)
    for rule in spec.rules.values():
        if rule.do is not None:
            yield _COMPARED.sub("", rule.do)
    for shape in _shapes(spec):
        yield from (expression for menu in shape.menus.values() for expression in menu)
    for kind in spec.objects.values():
        yield from (field.init for field in kind.fields.values() if field.init is not None)
    for profile in spec.profiles.values():
        yield from (each.body for each in profile.defines if each.define in answering)
    for text in _replaced(spec):
        yield _COMPARED.sub("", text)


def _replaced(spec: Spec) -> Iterator[Text]:
    """What stands in profiles."""
    for profile in spec.profiles.values():
        yield from (delta.value for delta in profile.deltas if _is_text(delta.value))
        yield from (each.body for each in profile.defines)


def _is_text(value: object) -> TypeGuard[Text]:
    return isinstance(value, Text)


def _shapes(spec: Spec) -> Iterator[Shape]:
    for call in spec.calls.values():
        yield from call.shapes.values()
