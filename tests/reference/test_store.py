"""The store's journal: undo, redo, changes and signatures, under random changes; and types."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import trees
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from verbs_reference.compiled import Compiler
from verbs_reference.contents import UNKNOWN, same_bytes, slice_places, walk_pages
from verbs_reference.model import Model
from verbs_reference.store import NeedChoice, Store, shared
from verbs_reference.types import BOOL, BYTES, NAT, NONE, NULL, Type, accepts
from verbs_spec import SpecError, loads

COMPILER = Compiler(worlds.LAYOUT)
SEEDS = st.integers(0, 2**32)


def everything(store: Store) -> Any:
    """All that can change, copied; the numbers of the look-up tables' states are not compared."""
    parts = (store.objects, store.live, store.table, store.active, store.pages, store.options, store.counter)
    return copy.deepcopy(parts)


def change(store: Store, seed: int, world: worlds.World) -> None:
    """Perform a few random statements."""
    grower = trees.Grower(random.Random(seed), opaque=True)
    body = grower.block(4, dict(trees.OPAQUE_NAMES))
    COMPILER.effect(body, trees.OPAQUE_NAMES)(store, *(world.names[name] for name in trees.OPAQUE_NAMES))


@settings(max_examples=150, deadline=None)
@given(SEEDS, SEEDS, SEEDS)
def test_undo_takes_everything_back(start: int, first: int, second: int) -> None:
    world = worlds.World(random.Random(start))
    store = world.store()
    before = everything(store)
    change(store, first, world)
    middle, mark = everything(store), len(store.journal)
    change(store, second, world)
    store.undo(mark)
    assert everything(store) == middle
    store.undo(0)
    assert everything(store) == before


@settings(max_examples=150, deadline=None)
@given(SEEDS, SEEDS)
def test_redo_does_it_again(start: int, seed: int) -> None:
    world = worlds.World(random.Random(start))
    store = world.store()
    change(store, seed, world)
    after, changes, signature = everything(store), store.changes(0), store.signature(0)
    store.undo(0)
    store.redo(changes)
    assert everything(store) == after
    assert store.signature(0) == signature
    store.undo(0)
    assert store.changes(0) == []
    assert store.signature(0) == frozenset()


@settings(max_examples=150, deadline=None)
@given(SEEDS, SEEDS, SEEDS)
def test_signatures_tell_branches_apart(start: int, first: int, second: int) -> None:
    world = worlds.World(random.Random(start))
    store = world.store()
    found = []
    for seed in (first, second):
        change(store, seed, world)
        found.append((worlds.field_values(store), store.signature(0)))
        store.undo(0)
    (one, sign), (other, counter_sign) = found
    made = max(*one, *other) > max(worlds.OBJECTS)
    if not made:  # a new object is told apart by its list, which is another in each branch
        assert (one == other) == (sign == counter_sign)
    elif sign == counter_sign:
        assert one == other


def test_a_choice_that_is_open_is_asked_for() -> None:
    store = Store(worlds.LAYOUT)
    with pytest.raises(NeedChoice) as caught:
        store.choose("side")
    assert caught.value.name == "side"
    store.options["side"] = "LEFT"
    assert store.choose("side") == "LEFT"
    store.once["side"] = "RIGHT"
    assert store.choose("side") == "RIGHT"


def memory(*pieces: tuple[int, int]) -> Store:
    store = Store(worlds.LAYOUT)
    for addr, length in pieces:
        store.new("mem", store.fresh(), {"addr": addr, "length": length})
    return store


def test_spans_are_cut_where_memory_begins_and_ends() -> None:
    store = memory((4096, 4096), (8192, 10), (20480, 4))
    store.store(((8190, 4), (20482, 9), (4090, 8)), "abcdefghijklm" + "nopqrstu")
    assert store.load(((8190, 4),)) == "abcd"
    assert store.load(((20480, 6),)) == "\0\0ef\0\0"
    assert store.load(((4094, 4),)) == "\0\0tu"
    store.havoc(((8191, 2),))
    assert store.load(((8190, 4),)) == "a\u0100\u0100d"
    store.delete("mem", 2)
    assert store.load(((8190, 4),)) == "a\u0100\0\0"


@pytest.mark.parametrize(
    ("pages", "numbers", "places"),
    [
        ((100, 300), (8, 0, 0, 16), ((100, 8), (300, 8))),
        ((100, 300), (8, 3, 4, 4), ((107, 1), (300, 3))),
        ((100, 300), (8, 0, 14, 9), ((306, 2),)),
        ((100,), (0, 0, 0, 4), ()),
        ((), (8, 0, 0, 4), ()),
        ((100,), (8, 0, 0, 0), ()),
    ],
)
def test_walk(pages: Any, numbers: Any, places: Any) -> None:
    assert walk_pages(pages, *numbers) == places


@pytest.mark.parametrize(
    ("places", "start", "length", "found"),
    [
        (((10, 4), (50, 4)), 0, 8, ((10, 4), (50, 4))),
        (((10, 4), (50, 4)), 3, 2, ((13, 1), (50, 1))),
        (((10, 4), (50, 4)), 4, 9, ((50, 4),)),
        (((10, 4),), 4, 1, ()),
        (((10, 4),), 1, 0, ()),
    ],
)
def test_slice(places: Any, start: int, length: int, found: Any) -> None:
    assert slice_places(places, start, length) == found


RULES = """
object: box
summary: S.
objects:
  box: {key: nat, n: {type: nat, init: "INIT"}, q: queue nat}
calls:
  make:
    outputs: {box: ref box, key: nat}
    rules: [{id: box/make, sources: [s], says: S., returns: ["0"], do: "box = new(box, key=key)"}]
  find:
    params: {key: nat}
    outputs: {n: nat}
    rules:
      - id: box/find
        sources: [s]
        says: S.
        returns: ["0"]
        outputs: "n == lookup(box.key, key).n"
        do: "DO"
steps:
  box/drop:
    for: b in box
    take: h = b.q
    rules: [{id: box/dropped, sources: [s], says: S., when: "true", do: "pop(b.q)"}]
"""


def model(init: str, do: str) -> Model:
    return Model(loads({"rules/box.yaml": RULES.replace("INIT", init).replace("DO", do), "profiles/p.yaml": PROFILE}))


PROFILE = "profile: p\nkind: api\nsummary: S."


def test_initial_values_are_those_of_objects_and_not_of_null() -> None:
    machine = model("7", "delete(lookup(box.key, key))")
    store = machine.store()
    store.new("box", store.fresh(), {"key": 3})
    find = machine.calls["find"].successes[0].outputs
    assert find is not None
    assert find(store, 3, 7)
    assert find(store, 4, 0)
    assert not find(store, 4, 7)


def test_an_initial_value_is_a_literal() -> None:
    with pytest.raises(SpecError, match=r"box.yaml:5:.*an initial value is a literal"):
        model("1 + 1", "delete(lookup(box.key, key))")


def test_a_key_stays_as_it_was_made() -> None:
    with pytest.raises(SpecError, match=r"box/find changes box.key, by which objects are looked up"):
        model("7", "lookup(box.key, key).key = 1")


def test_a_queue_that_a_family_takes_is_busy_however_it_was_filled() -> None:
    store = model("7", "delete(lookup(box.key, key))").store()
    busy = store.active["box", "q"]
    slot = store.layout.slot["box"]["q"]
    number = store.new("box", store.fresh(), {"key": 1, "q": (1,)})
    assert list(busy) == [number]
    store.queue(number, slot, (), ("box", "q"))
    assert not busy
    store.delete("box", number)
    store.push(number, slot, 1, ("box", "q"))
    assert not busy


def test_types() -> None:
    ref = Type("ref", "mr")
    named = {
        "nat": NAT,
        "ref mr": ref,
        "flags access": Type("flags", "access"),
        "queue ref mr": Type("queue", "", ref),
        "state": Type("enum", "state"),
    }
    assert {str(t): t for t in named.values()} == named
    assert accepts(ref, NULL)
    assert accepts(ref, ref)
    assert not accepts(ref, Type("ref", "qp"))
    assert not accepts(NAT, NULL)
    assert not accepts(BOOL, NAT)
    assert accepts(Type("memory"), BYTES)
    assert not accepts(BYTES, Type("memory"))
    assert [t.is_opaque for t in (BYTES, Type("spans"), Type("memory"), NAT, NONE)] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (NAT, 0), (BOOL, False), (trees.COLOR, "RED"), (trees.COLORS, frozenset()), (trees.A, 0), (NULL, 0),
        (trees.NATS, ()), (Type("spans"), ()), (BYTES, ""), (trees.POINT, (0, "RED", 0)),
    ],
)  # fmt: skip
def test_defaults(kind: Type, value: object) -> None:
    assert trees.VOC.default(kind) == value


@settings(max_examples=60, deadline=None)
@given(SEEDS, SEEDS, st.lists(SEEDS, min_size=1, max_size=3))
def test_branches_are_the_same_over_what_they_share(start: int, before: int, seeds: list[int]) -> None:
    world = worlds.World(random.Random(start))
    store = world.store()
    branches, states = [], []
    for seed in seeds:
        change(store, before, world)
        change(store, seed, world)
        branches.append(store.changes(0))
        states.append(everything(store))
        store.undo(0)
    common, rest = shared(branches)
    store.redo(common)
    mark = len(store.journal)
    for changes, state in zip(rest, states, strict=True):
        store.redo(changes)
        assert everything(store) == state
        store.undo(mark)
    assert len(branches) > 1 or not rest[0]


def test_branches_that_make_an_object_alike_share_it() -> None:
    world = worlds.World(random.Random(1))
    store = world.store()
    kind = store.layout.kinds[0]
    branches = []
    for _ in range(2):
        store.new(kind, 77, {})
        branches.append(store.changes(0))
        store.undo(0)
    common, rest = shared(branches)
    assert rest == [[], []]
    store.redo(common)
    assert store.objects[77][1]
    assert 77 in store.live[kind]


BYTES_OR_UNKNOWN = st.text(st.sampled_from("ab" + UNKNOWN), max_size=8)


@settings(max_examples=300, deadline=None)
@given(BYTES_OR_UNKNOWN, BYTES_OR_UNKNOWN)
def test_contents_are_the_same_if_each_byte_can_be(left: str, right: str) -> None:
    each = all(a == b or UNKNOWN in {a, b} for a, b in zip(left, right, strict=False))
    assert same_bytes(left, right) == (len(left) == len(right) and each)
