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
    last = after or before
    states = [before, after] if after else [before]
    places = read | {place[:2] for place in (_changed(before, after, model) if after else ())}
    lines: dict[str, str] = {}
    shown = {f"{kind}#{number}" for kind, number in _live(before, last, model) | _named(situation, model)}
    for kind, fields in situation.base.voc.objects.items():
        types = {"": BOOL, **{name: info.type for name, info in fields.items()}}
        for number in last.numbers(kind):
            texts = [
                f"{name or 'alive'}={' -> '.join(_values(states, model, (kind, name, number), found))}"
                for name, found in types.items()
                if (kind, name) in places and not found.is_opaque
            ]
            if texts:
                new = " (new)" if number > before.counts[kind] else ""
                lines[f"{kind}#{number}"] = f"{kind}#{number}{new}: {', '.join(texts)}"
    more = shown
    while more:
        more = {name for name in lines if name not in shown and any(name in lines.get(x, "") for x in more)}
        shown |= more
    yield from (line for name, line in lines.items() if name in shown)


def _live(before: State, last: State, model: Any) -> set[tuple[str, int]]:
    return {
        (kind, number)
        for state in (before, last)
        for kind in state.counts
        for number in state.numbers(kind)
        if decode(model, state.alive(kind, number))
    }


def _named(situation: Situation, model: Any) -> set[tuple[str, int]]:
    """The objects that names of the rule refer to."""
    return {
        (found.name, decode(model, situation.env[name]))
        for name, found in situation.types.items()
        if found.tag == "ref" and name in situation.env
    }


def _values(states: list[State], model: Any, place: tuple[str, str, int], kind: Type) -> list[str]:
    """What a field was and became; one value if it stayed, or if the object is new."""
    texts = [
        show(decode(model, state.get(*place)), kind, state.base.voc)
        for state in states
        if place[2] <= state.counts[place[0]]
    ]
    return list(dict.fromkeys(texts))


def _changed(before: State, after: State, model: Any) -> set[tuple[str, str, int]]:
    return {
        place
        for place, value in after.changed.items()
        if place[2] > before.counts[place[0]] or decode(model, value) != decode(model, before.get(*place))
    }
