"""One random state, three times: the compiled reading's store, the naive state, values for z3's unknowns.

There are two objects of kind a (numbers 1 and 2), two of kind b (3 and 4) and one of kind mem (5); the solver
counts each kind from 1.  Some are deleted.
"""

from __future__ import annotations

import random
from typing import Any

import trees
import z3

from verbs_reference import symbolic as s
from verbs_reference.naive import State, Thing
from verbs_reference.solver import Base
from verbs_reference.store import FIRST_FIELD, Layout, Store
from verbs_reference.types import Type

LAYOUT = Layout(trees.VOC, {("b", "key")}, {("a", "q")})
OBJECTS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "mem"}
SIZES = {"a": 2, "b": 2, "mem": 1}
CELLS = 2

BASE = Base(LAYOUT, SIZES, CELLS, exact=True)
ENV = {name: BASE.unknowns.make(name, kind) for name, kind in trees.NAMES.items()}


def local(number: int, made: dict[int, tuple[str, int]]) -> int:
    """The solver's number of an object."""
    if number in made:
        return made[number][1]
    return {1: 1, 2: 2, 3: 1, 4: 2, 5: 1}.get(number, 0)


def translate(value: Any, kind: Type, made: dict[int, tuple[str, int]]) -> Any:
    """A value with the solver's numbers in it."""
    match kind.tag:
        case "ref":
            return local(value, made)
        case "record":
            parts = trees.VOC.records[kind.name].values()
            return tuple(translate(v, t, made) for v, t in zip(value, parts, strict=True))
        case "queue":
            assert kind.elem is not None
            return tuple(translate(v, kind.elem, made) for v in value)
        case _:
            return value


def random_value(rng: random.Random, kind: Type) -> Any:
    """A value of a type; at most as many cells as the solver's queues have."""
    match kind.tag:
        case "nat":
            return rng.choice([0, 0, 1, 2, 3, 8, 64, 257])
        case "bool":
            return rng.random() < 0.5
        case "enum":
            return rng.choice(trees.VOC.enums[kind.name])
        case "flags":
            return frozenset(e for e in trees.VOC.enums[kind.name] if rng.random() < 0.5)
        case "ref":
            return rng.choice([0, *(number for number, k in OBJECTS.items() if k == kind.name)])
        case "record":
            return tuple(random_value(rng, t) for t in trees.VOC.records[kind.name].values())
        case "queue":
            assert kind.elem is not None
            return tuple(random_value(rng, kind.elem) for _ in range(rng.choice([0, 0, 1, CELLS, CELLS])))
        case "spans":
            return tuple((rng.choice([0, 4094, 4096, 8200]), rng.randrange(5)) for _ in range(rng.randrange(3)))
        case _:
            return "".join(rng.choice(["\0", "a", "b", "\u0100"]) for _ in range(rng.randrange(4)))


class World:
    """A random state and random values of the names."""

    def __init__(self, rng: random.Random) -> None:
        self.fields: dict[int, dict[str, Any]] = {
            number: {f: random_value(rng, t) for f, t in trees.FIELDS[kind].items()} for number, kind in OBJECTS.items()
        }
        for number, key in ((3, 7), (4, 8)):
            self.fields[number]["key"] = key
        self.fields[5] = {"addr": 4096, "length": 4098, "data": "mem" + "\0" * 4090 + "alike"}
        self.dead = {number for number in OBJECTS if rng.random() < (0.1 if number == 5 else 0.25)}
        self.names = {name: random_value(rng, t) for name, t in trees.OPAQUE_NAMES.items()}
        self.option = rng.choice(["LEFT", "RIGHT"])
        self._pairs: list[tuple[Any, Any]] | None = None

    def store(self) -> Store:
        """For the compiled reading."""
        store = Store(LAYOUT)
        store.options["side"] = self.option
        for number, kind in OBJECTS.items():
            store.new(kind, store.fresh(), self.fields[number])
        for number in self.dead:
            store.delete(OBJECTS[number], number)
        store.journal.clear()
        return store

    def state(self) -> State:
        """For the naive reading."""
        state = State(trees.VOC, {}, {"side": self.option})
        for number, kind in OBJECTS.items():
            state.things[number] = Thing(kind, number not in self.dead, dict(self.fields[number]))
        return state

    def pairs(self) -> list[tuple[Any, Any]]:
        """For each unknown of the solver's base its value here."""
        made: list[tuple[Any, Any]] = []
        for (kind, name, index), unknown in BASE.known.items():
            number = [n for n, k in OBJECTS.items() if k == kind][index - 1]
            found = trees.FIELDS[kind][name] if name else Type("bool")
            value = self.fields[number][name] if name else number not in self.dead
            made += bind(unknown, translate(value, found, {}), found)
        for name, unknown in ENV.items():
            made += bind(unknown, translate(self.names[name], trees.NAMES[name], {}), trees.NAMES[name])
        for unknown in BASE.choices.values():
            made += bind(unknown, self.option, trees.OPTION)
        return made


def bind(unknown: Any, value: Any, kind: Type) -> list[tuple[Any, Any]]:
    """The solver's unknowns in a value, each with what it must be."""
    match kind.tag:
        case "nat":
            return [(unknown, z3.IntVal(value))]
        case "bool":
            return [(unknown, z3.BoolVal(value))]
        case "enum" | "ref":
            code = list(unknown.cases).index(value)
            return [(bit, z3.BoolVal(bool(code >> i & 1))) for i, bit in enumerate(unknown.bits)]
        case "flags":
            return [(cond, z3.BoolVal(e in value)) for e, cond in unknown.members.items()]
        case "record":
            parts = trees.VOC.records[kind.name].values()
            return [p for u, v, t in zip(unknown, value, parts, strict=True) for p in bind(u, v, t)]
        case "queue":
            assert kind.elem is not None
            made = []
            for i, (present, each) in enumerate(unknown.cells):
                made.append((present, z3.BoolVal(i < len(value))))
                filler = value[i] if i < len(value) else trees.VOC.default(kind.elem)
                made += bind(each, filler, kind.elem)
            return made
        case _:
            return []


def agrees(term: Any, value: Any, kind: Type, made: dict[int, tuple[str, int]]) -> Any:
    """The condition that a term is this value."""
    return s.equal(term, s.constant(translate(value, kind, made), kind, trees.VOC))


def field_values(store: Store) -> dict[int, tuple[bool, dict[str, Any]]]:
    """What the compiled reading's state holds, by object."""
    kinds = {number: kind for kind, numbers in store.live.items() for number in numbers} | OBJECTS
    made = {}
    for number, cells in store.objects.items():
        if number > 0:
            kind = kinds.get(number) or ("b" if len(cells) == FIRST_FIELD + len(trees.FIELDS["b"]) else "a")
            names = trees.VOC.objects[kind]
            made[number] = (cells[1], dict(zip(names, cells[FIRST_FIELD:], strict=True)))
    return made
