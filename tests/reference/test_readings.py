"""Ten thousand random expressions and effects mean the same to the three readings.

Each round takes a random state.  The solver's terms are made over unknowns, once; the state is put in by
substitution, all terms of a state at once, and the conjunction of their agreements must simplify to true.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import trees
import worlds
import z3

from verbs_reference import naive
from verbs_reference import nodes as n
from verbs_reference.compiled import Compiler
from verbs_reference.showing import show
from verbs_reference.solver import Reading, State, perform
from verbs_reference.types import BYTES, NAT, SPANS, Type

ROUNDS = 8
STATES = 25
EXPRESSIONS = 30
EFFECTS = 10
OPAQUE = 10

COMPILER = Compiler(worlds.LAYOUT)
TYPES = [t for t in trees.NAMES.values() if t != trees.A] + [trees.A, trees.OPTION]


def tally(seen: Counter[str], node: n.Expr) -> None:
    """Count every construct of a tree."""
    for e in n.walk(node):
        op = getattr(e, "op", "")
        seen[f"{type(e).__name__} {op}".strip()] += 1
        if isinstance(e, n.Over):
            seen[f"Over in {e.domain if isinstance(e.domain, str) else e.domain.type.tag}"] += 1


def tally_statements(seen: Counter[str], body: tuple[n.Stmt, ...]) -> None:
    for stmt in body:
        seen[type(stmt).__name__] += 1
        if isinstance(stmt, n.Branch):
            tally_statements(seen, (*stmt.then, *stmt.other))
        for e in n.in_statement(stmt):
            tally(seen, e)


EVERYTHING = {
    *(
        "Const",
        "Var",
        "Field",
        "Part",
        "Not",
        "If",
        "Member",
        "Flags",
        "Sequence",
        "Record",
        "Lookup",
        "Choice",
    ),
    *(f"Logic {op}" for op in ("and", "or")),
    *(f"Arith {op}" for op in ("+", "-", "*", "//", "%")),
    *(f"Compare {op}" for op in ("==", "!=", "<", "<=", ">", ">=")),
    *(f"Over {op}" for op in ("any", "all", "count", "sum", "flat", "in a", "in b", "in queue", "in flags")),
    *(f"Builtin {op}" for op in ("len", "head", "last", "nth", "upto", "alive", "pow2", "shl")),
    *(f"Builtin {op}" for op in ("span", "walk", "slice", "load", "size", "added", "exchanged")),
    *("Assign", "Push", "Pop", "Clear", "Let", "New", "Delete", "Store", "Havoc", "Branch"),
}
BORDERS = {
    *("read through null", "read of a deleted object", "write through null", "lookup of nothing"),
    *("x // 0", "x % 0", "a - b below 0", "upto beyond its limit", "shl beyond its limit"),
    *("head of empty", "last of empty", "nth beyond the end", "pop of empty", "push on full"),
}


@pytest.fixture
def borders(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often the naive reading meets a border."""
    seen: Counter[str] = Counter()
    read, arithmetic, builtin = naive.State.read, naive.arithmetic, naive.function
    lookup, change = naive._Reader._lookup, naive._change_queue

    def counting_read(self: naive.State, number: int, kind: str, name: str) -> Any:
        seen["read through null"] += number == 0
        seen["read of a deleted object"] += number != 0 and not self.things[number].alive
        return read(self, number, kind, name)

    def counting_arithmetic(op: str, left: int, right: int) -> int:
        seen[f"x {op} 0"] += right == 0
        seen["a - b below 0"] += op == "-" and left < right
        return arithmetic(op, left, right)

    def counting_function(op: str, args: list[Any]) -> Any:
        seen[f"{op} beyond its limit"] += op in {"upto", "shl"} and args[0] > 64
        return builtin(op, args)

    def counting_lookup(self: Any, expr: n.Lookup) -> int:
        found = lookup(self, expr)
        seen["lookup of nothing"] += found == 0
        return found

    def counting_change(state: naive.State, stmt: Any, env: naive.Env) -> None:
        number = naive.evaluate(state, stmt.obj, env)
        seen["write through null"] += number == 0
        if number:
            old = state.things[number].fields[stmt.field]
            seen["pop of empty"] += isinstance(stmt, n.Pop) and not old
            seen["push on full"] += isinstance(stmt, n.Push) and len(old) >= worlds.CELLS
        change(state, stmt, env)

    def counting_element(self: Any, expr: n.Builtin) -> Any:
        if expr.op in {"head", "last", "nth"}:
            queue = self.value(expr.args[0])
            seen[f"{expr.op} of empty"] += not queue
            seen["nth beyond the end"] += expr.op == "nth" and self.value(expr.args[1]) >= len(queue)
        return element(self, expr)

    element = naive._Reader._builtin
    monkeypatch.setattr(naive.State, "read", counting_read)
    monkeypatch.setattr(naive, "arithmetic", counting_arithmetic)
    monkeypatch.setattr(naive, "function", counting_function)
    monkeypatch.setattr(naive._Reader, "_lookup", counting_lookup)
    monkeypatch.setattr(naive._Reader, "_builtin", counting_element)
    monkeypatch.setattr(naive, "_change_queue", counting_change)
    return seen


def bytewise(value: Any, kind: Type) -> Any:
    """Places byte by byte: two lists of places that name the same bytes are the same."""
    return [a + i for a, size in value for i in range(size)] if kind.tag == "spans" else value


def check_expression(world: worlds.World, tree: n.Expr, opaque: bool) -> Any:
    """Compare two readings; returns the condition that the third agrees."""
    names = trees.OPAQUE_NAMES
    run = COMPILER.expression(tree, names)
    compiled = run(world.store(), *(world.names[name] for name in names))
    plain = naive.evaluate(world.state(), tree, dict(world.names))
    assert bytewise(compiled, tree.type) == bytewise(plain, tree.type), show(tree)
    if opaque:
        return True
    return worlds.agrees(Reading(State(worlds.BASE)).value(tree, worlds.ENV), plain, tree.type, {})


def check_effect(world: worlds.World, body: tuple[n.Stmt, ...], opaque: bool) -> Iterator[Any]:
    """The same for statements, field by field of the state behind them."""
    names = trees.OPAQUE_NAMES
    store, state = world.store(), world.state()
    before = worlds.field_values(store)
    COMPILER.effect(body, names)(store, *(world.names[name] for name in names))
    naive.perform(state, body, dict(world.names))
    after = worlds.field_values(store)
    assert after == {number: (t.alive, t.fields) for number, t in state.things.items()}, body
    assert {k: list(v) for k, v in store.live.items()} == {k: state.live(k) for k in store.live}
    busy = {i for i in state.live("a") if state.things[i].fields["q"]}
    assert set(store.active["a", "q"]) == busy, body
    if not opaque:
        yield from symbolic_agreements(body, before, after)
    store.undo(0)
    assert worlds.field_values(store) == before


def symbolic_agreements(
    body: tuple[n.Stmt, ...],
    before: dict[int, tuple[bool, dict[str, Any]]],
    after: dict[int, tuple[bool, dict[str, Any]]],
) -> Iterator[Any]:
    symbolic = State(worlds.BASE)
    perform(symbolic, body, dict(worlds.ENV))
    made: dict[int, tuple[str, int]] = {}
    counts = dict(worlds.SIZES)
    for number, kind in zip(
        sorted(set(after) - set(before)), (s.kind for s in body if isinstance(s, n.New)), strict=True
    ):
        counts[kind] += 1
        made[number] = (kind, counts[kind])
    assert symbolic.counts == counts
    for number, (alive, fields) in after.items():
        kind, index = made[number] if number in made else (worlds.OBJECTS[number], worlds.local(number, {}))
        for name, value in {"": alive, **fields}.items():
            found = trees.FIELDS[kind][name] if name else Type("bool")
            old = before.get(number)
            if (kind, name, index) in symbolic.changed:
                yield worlds.agrees(symbolic.changed[kind, name, index], value, found, made)
            elif not found.is_opaque:
                assert old is not None
                assert value == (old[1][name] if name else old[0]), body


def settle(world: worlds.World, conditions: list[tuple[Any, Any]]) -> None:
    """All conditions must be true in this world."""
    pairs = world.pairs()
    terms = [c for c, _ in conditions if c is not True]
    assert not any(c is False for c, _ in conditions), [tree for c, tree in conditions if c is False][:1]
    if z3.is_true(z3.simplify(z3.substitute(z3.And(*terms), *pairs))):
        return
    wrong = [t for c, t in conditions if c is not True and not z3.is_true(z3.simplify(z3.substitute(c, *pairs)))]
    raise AssertionError(f"the solver disagrees on {wrong[:1]} in {world.fields}, {world.names}, dead {world.dead}")


@pytest.mark.parametrize("number", range(ROUNDS))
def test_three_readings_agree(number: int, borders: Counter[str]) -> None:
    rng = random.Random(number)
    seen: Counter[str] = Counter()
    cases = 0
    for _ in range(STATES):
        world = worlds.World(rng)
        conditions: list[tuple[Any, Any]] = []
        for i in range(EXPRESSIONS + EFFECTS + OPAQUE):
            opaque = i >= EXPRESSIONS + EFFECTS
            grower = trees.Grower(rng, opaque)
            names = dict(trees.OPAQUE_NAMES if opaque else trees.NAMES)
            if i < EXPRESSIONS or (opaque and i % 2):
                extra = [SPANS, BYTES, NAT, Type("bool")] if opaque else TYPES
                tree = grower.expr(rng.choice(extra), rng.choice([2, 3, 3, 4]), names)
                tally(seen, tree)
                conditions.append((check_expression(world, tree, opaque), tree))
            else:
                body = grower.block(rng.randrange(1, 5), names)
                tally_statements(seen, body)
                conditions += [(c, body) for c in check_effect(world, body, opaque)]
            cases += 1
        settle(world, conditions)
    assert cases * ROUNDS == 10_000
    assert {what for what in EVERYTHING if seen[what] < 5} == set()
    assert {what for what in BORDERS if borders[what] < 3} == set()


def test_the_list_of_constructs_is_complete() -> None:
    kinds = {each.__name__ for each in [*n.Expr.__subclasses__(), *n.Stmt.__subclasses__()]}
    assert kinds == {what.split()[0] for what in EVERYTHING}


def test_an_object_that_only_one_branch_makes() -> None:
    new = n.New("made", "b", (("key", n.Const(NAT, 9)),))
    body = (n.Branch(n.Var(Type("bool"), "vb"), (new,), ()),)
    symbolic = State(worlds.BASE)
    perform(symbolic, body, dict(worlds.ENV))
    found = Reading(symbolic).value(n.Lookup(trees.B, "b", "key", n.Const(NAT, 9)), worlds.ENV)
    for chance in (True, False):
        world = worlds.World(random.Random(1))
        world.names["vb"] = chance
        pairs = world.pairs()
        term = z3.simplify(z3.substitute(z3.And(found.when(3)), *pairs))
        assert z3.is_true(term) == chance
