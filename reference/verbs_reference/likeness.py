"""Which states are alike as far as what the device may still do is concerned.

What the analysis of a state (``pending``) finds follows from what the rules of internal steps look at: the fields
that their expressions read, which objects live, the look-up tables and the options of choices.  Two states that
agree in these have the same moves with the same footprints, however they came about.  Explanations of one
observation often differ in other things alone, and many calls change nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.accesses import effects
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import Family, StepCase
from verbs_reference.statics import Statics, places_of
from verbs_reference.store import Store
from verbs_reference.types import Type

Key = tuple[Any, ...]
Found = dict[str, set[int]]
Numbers = Callable[[Any], Iterator[int]]


@dataclass(frozen=True, slots=True)
class _Link:
    """A value of a row that refers to objects of a kind that is known only so."""

    position: int
    kind: str
    numbers: Numbers


class _Kind:
    """What of a kind's objects counts."""

    def __init__(self, statics: Statics, kind: str, fields: list[str], hidden: set[str]) -> None:
        model = statics.model
        slots = model.layout.slot[kind]
        self.name = kind
        self.row = itemgetter(0, 0, *(slots[name] for name in fields))
        types = [model.voc.objects[kind][name].type for name in fields]
        records = model.voc.records
        self.links = [
            _Link(i + 2, referred, numbers)
            for i, kind_of in enumerate(types)
            for referred, numbers in _links(kind_of, records)
            if referred in hidden
        ]


@dataclass(frozen=True, slots=True)
class _Looks:
    """What the expressions of a case look at: fields, memory, and all objects of some kinds."""

    fields: frozenset[tuple[str, str]]
    loads: bool
    over: frozenset[str]


class Likeness:
    """Makes keys of states: equal ones are of states that are alike.

    Kinds that no call hands out, and over which no rule goes, are known through references alone: only those objects
    count that another one refers to."""

    def __init__(self, statics: Statics, like: Likeness | None = None) -> None:
        model = statics.model
        self._looks: dict[int, _Looks] = {
            id(case): like._looks[id(case)]
            if like is not None and statics.knows(case)
            else _looks(statics, family, case)
            for family in model.families
            for case in family.cases
        }
        """What each case of a step looks at, by the case's identity."""
        self._kinds: dict[str, _Kind]
        self._standing: list[_Kind]
        self._hidden: list[_Kind]
        fields = frozenset[tuple[str, str]](model.layout.triggers).union(
            *(looks.fields for looks in self._looks.values())
        )
        if any(looks.loads for looks in self._looks.values()):
            fields |= {(kind, name) for kind, (name, *_) in model.layout.memory.items()}
        over = frozenset[str]().union(*(looks.over for looks in self._looks.values()))
        self._asked = fields, over
        if like is not None and like._asked == self._asked:
            self._kinds, self._standing, self._hidden = like._kinds, like._standing, like._hidden
            return
        by_kind = {kind: sorted(name for k, name in fields if k == kind) for kind in model.layout.kinds}
        made = {t.name for call in model.calls.values() for t in call.outputs.values() if t.tag == "ref"} | over
        hidden = set(by_kind) - made
        for kind in sorted(
            hidden
        ):  # what is known only through another such kind is not followed, but looked at always
            hidden -= {link.kind for link in _Kind(statics, kind, by_kind[kind], hidden).links}
        kinds = {k: _Kind(statics, k, names, hidden) for k, names in by_kind.items()}
        self._kinds = kinds
        self._standing = [kinds[k] for k, names in by_kind.items() if names and k not in hidden]
        self._hidden = [kinds[k] for k, names in by_kind.items() if names and k in hidden]

    def key(self, store: Store) -> Key:
        """The key of the store's state; states of different programs are never alike."""
        objects = store.objects
        found: Found = {kind.name: set() for kind in self._hidden}
        made: list[Any] = [store.shape[0], frozenset(store.options.items())]
        for kind in self._standing:
            rows = [kind.row(objects[number]) for number in store.live[kind.name]]
            made += rows
            self._follow(kind, rows, found)
        for number, name in store.ended.items():
            kind = self._kinds[name]
            row = kind.row(objects[number])
            made.append((name, row))
            self._follow(kind, [row], found)
        for kind in self._hidden:
            made += [kind.row(objects[number]) for number in sorted(found[kind.name]) if number in objects]
        return tuple(made)

    def _follow(self, kind: _Kind, rows: list[Any], found: Found) -> None:
        for link in kind.links:
            into = found.get(link.kind)
            if into is not None:
                for row in rows:
                    value = row[link.position]
                    if value:
                        into.update(link.numbers(value))


def _links(kind: Type, records: Any) -> Iterator[tuple[str, Numbers]]:
    """The kinds to which values of a type refer, each with a function that finds the objects' numbers."""
    match kind.tag:
        case "ref":
            yield kind.name, lambda value: iter((value,))
        case "record":
            for i, part in enumerate(records[kind.name].values()):
                for referred, inner in _links(part, records):
                    yield referred, partial(_of_part, i, inner)
        case "queue":
            assert kind.elem is not None
            for referred, inner in _links(kind.elem, records):
                yield referred, partial(_of_each, inner)
        case _:
            pass


def _of_part(position: int, numbers: Numbers, value: Any) -> Iterator[int]:
    return numbers(value[position])


def _of_each(numbers: Numbers, values: Any) -> Iterator[int]:
    return (number for value in values for number in numbers(value))


def _looks(statics: Statics, family: Family, case: StepCase) -> _Looks:
    every = [e for tree in _evaluated(statics, family, case) for e in n.walk(tree)]
    return _Looks(
        frozenset((e.obj.type.name, e.field) for e in every if isinstance(e, n.Field)),
        any(isinstance(e, n.Builtin) and e.op == "load" for e in every),
        frozenset(e.domain for e in every if isinstance(e, n.Over) and isinstance(e.domain, str)),
    )


def _evaluated(statics: Statics, family: Family, case: StepCase) -> Iterator[n.Expr]:
    """The expressions of a case that the analysis evaluates: conditions, what designates objects and memory, and
    values that are known beforehand."""
    if family.domain_tree is not None:
        yield inline(family, family.domain_tree)
    yield inline(family, case.when_tree)
    body = [inline_statement(family, stmt) for stmt in case.body]
    for access in effects(body):
        yield places_of(access) if access.part == "M" else access.obj
        yield from (over.domain for over in access.bound if isinstance(over.domain, n.Expr))
    for stmt in n.flat(tuple(body)):
        match stmt:
            case n.Assign() if statics.is_steady(stmt.value):
                yield stmt.value
            case n.Push():
                yield from (e.args[0] for e in [stmt.value] if isinstance(e, n.Builtin) and e.op == "head")
            case _:
                pass
