"""Shows what the solver found: the names of a rule, and the objects before and after it.

Only fields that the question read are shown, and of the objects only the live ones and those that a shown
value refers to.  Objects are written ``kind#number``; their numbers are those of the scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from verbs_reference.solver import State
from verbs_reference.symbolic import decode
from verbs_reference.theory import Situation
from verbs_reference.types import BOOL, Type
from verbs_reference.vocabulary import Vocabulary

Fields = Iterable[tuple[str, str]]


def known_lines(situation: Situation, model: Any, read: Fields) -> list[str]:
    """The names of the rule, the choices, and the state before."""
    return [*_names(situation, model), *_state(situation, situation.before, None, model, set(read))]


def changed_lines(situation: Situation, after: State, model: Any, read: Fields) -> list[str]:
    """The names of the rule, the choices, and the state before, with what it became."""
    return [*_names(situation, model), *_state(situation, situation.before, after, model, set(read))]


def show(value: Any, kind: Type, voc: Vocabulary) -> str:
    """A value as a person would write it."""
    match kind.tag:
        case "ref":
            return f"{kind.name}#{value}" if value else "null"
        case "bool":
            return str(value).lower()
        case "flags":
            return "{" + ", ".join(e for e in voc.enums[kind.name] if e in value) + "}"
        case "record":
            parts = voc.records[kind.name].items()
            fields = (f"{f}={show(v, t, voc)}" for v, (f, t) in zip(value, parts, strict=True))
            return f"{kind.name}({', '.join(fields)})"
        case "queue":
            assert kind.elem is not None
            return "[" + ", ".join(show(v, kind.elem, voc) for v in value) + "]"
        case _:
            return str(value)


def _names(situation: Situation, model: Any) -> Iterator[str]:
    voc = situation.base.voc
    for name, value in situation.env.items():
        kind = situation.types.get(name)
        if kind is not None and not kind.is_opaque:
            yield f"{name} = {show(decode(model, value), kind, voc)}"
    for name, value in situation.base.choices.items():
        yield f"choice({name}) = {decode(model, value)}"


def _state(
    situation: Situation, before: State, after: State | None, model: Any, read: set[tuple[str, str]]
) -> Iterator[str]:
    voc = situation.base.voc
    last = after or before
    changed = _changed(before, after, model) if after else set()
    for kind, fields in voc.objects.items():
        for number in last.numbers(kind):
            is_new = number > before.counts[kind]
            alive = decode(model, last.alive(kind, number)) or (
                not is_new and decode(model, before.alive(kind, number))
            )
            if not alive and not _referenced(situation, model, kind, number):
                continue
            shown = []
            for name in ("", *fields):
                is_shown = (kind, name) in read or (kind, name, number) in changed
                type_of_field = fields[name].type if name else BOOL
                if is_shown and not type_of_field.is_opaque:
                    shown.append(_field(before, after, model, (kind, name, number), type_of_field, voc))
            if shown:
                yield f"{kind}#{number}{' (new)' if is_new else ''}: " + ", ".join(shown)


def _field(
    before: State, after: State | None, model: Any, place: tuple[str, str, int], kind: Type, voc: Vocabulary
) -> str:
    number, name = place[2], place[1] or "alive"
    texts = [
        show(decode(model, state.get(*place)), kind, voc)
        for state in (before, after)
        if state is not None and number <= state.counts[place[0]]
    ]
    return f"{name}={' -> '.join(dict.fromkeys(texts))}"


def _changed(before: State, after: State, model: Any) -> set[tuple[str, str, int]]:
    return {
        place
        for place, value in after.changed.items()
        if place[2] > before.counts[place[0]] or decode(model, value) != decode(model, before.get(*place))
    }


def _referenced(situation: Situation, model: Any, kind: str, number: int) -> bool:
    """Whether a name of the rule refers to an object."""
    return any(
        found.tag == "ref" and found.name == kind and decode(model, situation.env[name]) == number
        for name, found in situation.types.items()
        if name in situation.env
    )
