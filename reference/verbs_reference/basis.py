"""What an analysis of a state rests on, so that it serves for every other state that agrees in that.

What may still come (``pending``) follows from few objects: those that steps work on, and what these refer to.  While
it is found, a :class:`Watch` stands for the store and notes what is looked at; of each object the fields count that
the rules of internal steps read at all.  In a state in which all of that is the same, the same moves may come with the
same footprints, however the state came about, and whatever else was made, changed or destroyed: most calls change
nothing of it, and explanations of one observation, or programs that begin alike, often agree in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.accesses import effects
from verbs_reference.contents import Places
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import Family, StepCase
from verbs_reference.statics import Statics, places_of
from verbs_reference.store import ALIVE, NeedChoice, Store

Row = Callable[[list[Any]], Any]
"""Takes of an object what counts."""
Seen = tuple[int, int, Row, Any]
"""Of an object: its number, its length, what counts of it, and what that was."""
Table = tuple[str, str]


class Rows:
    """What counts of the objects of each kind: whether one lives, and the fields that steps look at."""

    def __init__(self, statics: Statics, like: Rows | None = None) -> None:
        model = statics.model
        self._looks: dict[int, frozenset[tuple[str, str]]] = {
            id(case): like._looks[id(case)]
            if like is not None and statics.knows(case)
            else _fields(statics, family, case)
            for family in model.families
            for case in family.cases
        }
        """The fields that each case of a step looks at, by the case's identity."""
        fields = frozenset[tuple[str, str]](model.layout.triggers).union(*self._looks.values())
        by_kind = {kind: sorted(name for k, name in fields if k == kind) for kind in model.layout.kinds}
        slot = model.layout.slot
        self.of: dict[str, Row] = {
            kind: itemgetter(ALIVE, *(slot[kind][name] for name in names)) for kind, names in by_kind.items()
        }
        self.unchanging: dict[str, Row] = {
            kind: itemgetter(0, *(slot[kind][name] for name in names if (kind, name) not in statics.changing))
            for kind, names in by_kind.items()
        }
        """Of these fields, those that stay as they were made."""


def _fields(statics: Statics, family: Family, case: StepCase) -> frozenset[tuple[str, str]]:
    every = [e for tree in _evaluated(statics, family, case) for e in n.walk(tree)]
    return frozenset((e.obj.type.name, e.field) for e in every if isinstance(e, n.Field))


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
    known: dict[str, n.Expr] = {}
    for stmt in n.flat(tuple(body)):
        match stmt:
            case n.Let():
                known[stmt.name] = n.substitute(stmt.value, known)
            case n.Assign() if statics.is_steady(stmt.value):
                yield n.substitute(stmt.value, known)
            case n.Push() if (stmt.obj.type.name, stmt.field) in statics.model.layout.triggers:
                yield n.substitute(stmt.value, known)
            case _:
                pass


class _Noted(dict[Any, Any]):
    """What was taken of a mapping: what is asked for again costs no more than in any dictionary."""

    def __init__(self, source: dict[Any, Any]) -> None:
        super().__init__()
        self.source = source

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self.source[key]
        return value


class _Table:
    """A look-up table that notes what was looked up, and what was found."""

    def __init__(self, source: dict[Any, int]) -> None:
        self.source = source
        self.found: dict[Any, int] = {}

    def get(self, value: Any, missing: int) -> int:
        found = self.found[value] = self.source.get(value, missing)
        return found


class _Tables(dict[Table, Any]):
    """The look-up tables; one that is asked for is noted."""

    def __init__(self, source: dict[Table, dict[Any, int]]) -> None:
        super().__init__()
        self.source = source

    def __missing__(self, key: Table) -> _Table:
        table = self[key] = _Table(self.source[key])
        return table


class Watch(Store):
    """A store's state, to look at only; what is looked at is noted."""

    __slots__ = ("chosen", "loaded", "state", "tables")

    def __init__(self, store: Store) -> None:
        self.state = store
        self.layout = store.layout
        self.active = store.active
        self.objects = _Noted(store.objects)
        self.live = _Noted(store.live)
        self.tables = _Tables(store.table)
        self.table = self.tables
        self.chosen: dict[str, str | None] = {}
        self.loaded: dict[Places, str] = {}

    def choose(self, name: str) -> str:
        option = self.chosen[name] = self.state.options.get(name)
        if option is None:
            raise NeedChoice(name)
        return option

    def load(self, places: Places) -> str:
        data = self.loaded[places] = self.state.load(places)
        return data

    def alone(self, rows: Rows, work: Callable[[], Any]) -> tuple[Any, list[Seen]]:
        """Do a piece of work; its result, and what stays as it was made of the objects that it looked at."""
        mine, self.objects = self.objects, _Noted(self.state.objects)
        try:
            return work(), self._seen(rows.unchanging)
        finally:
            self.objects = mine

    def note(self, seen: Iterable[Seen]) -> None:
        """These objects were looked at."""
        for number, *_ in seen:
            self.objects[number]

    def _seen(self, rows: dict[str, Row]) -> list[Seen]:
        state, noted = self.state, self.objects
        kinds = {number: kind for kind, live in state.live.items() for number in live if number in noted}
        kinds.update((number, kind) for number, kind in state.ended.items() if number in noted)
        made = []
        for number, kind in kinds.items():
            obj = state.objects[number]
            made.append((number, len(obj), rows[kind], rows[kind](obj)))
        return made

    def basis(self, rows: Rows) -> Basis:
        """What was looked at so far."""
        return Basis(
            self._seen(rows.of),
            [(kind, tuple(live)) for kind, live in self.live.items()],
            [(key, v, found) for key, table in self.tables.items() for v, found in table.found.items()],
            list(self.chosen.items()),
            list(self.loaded.items()),
        )


def same(store: Store, objects: Iterable[Seen]) -> bool:
    """Whether the same is to be seen of these objects in a state."""
    for number, width, row, seen in objects:
        obj = store.objects.get(number)
        if obj is None or len(obj) != width or row(obj) != seen:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Basis:
    """What was looked at, and what was seen: objects, sets of live objects, look-ups, options and memory."""

    objects: list[Seen]
    live: list[tuple[str, tuple[int, ...]]]
    found: list[tuple[Table, Any, int]]
    chosen: list[tuple[str, str | None]]
    loaded: list[tuple[Places, str]]

    def holds(self, store: Store) -> bool:
        """Whether the same is to be seen in a state."""
        return (
            same(store, self.objects)
            and all(store.table[key].get(value, 0) == number for key, value, number in self.found)
            and all(tuple(store.live[kind]) == numbers for kind, numbers in self.live)
            and all(store.options.get(name) == option for name, option in self.chosen)
            and all(store.load(places) == data for places, data in self.loaded)
        )
