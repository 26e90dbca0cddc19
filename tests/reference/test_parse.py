"""What the parser refuses, with which words and at which place, and that defines keep names apart."""

from __future__ import annotations

import pytest

from verbs_reference import naive
from verbs_reference.compiled import Compiler
from verbs_reference.model import Model
from verbs_reference.naive import State, Thing
from verbs_reference.nodes import Expr, Var
from verbs_reference.parse import Parser
from verbs_reference.store import Layout
from verbs_reference.types import BOOL, NAT, Type, absent
from verbs_reference.vocabulary import build
from verbs_spec import SpecError, Text, Where, loads

RULES = """
object: box
summary: S.
enums: {color: [RED, GREEN], weight: [BIG]}
records: {point: {x: nat, e: color}}
objects:
  box:
    n: nat
    e: color
    f: flags color
    r: ref box
    q: queue nat
    qr: queue ref box
    p: point
    places: spans
    addr: nat
    length: nat
    data: "memory(addr, length)"
define:
  "has(q: queue nat, a: nat)": "any(x == a for x in q)"
  "twice(a: nat)": "once(a) + once(a)"
  "once(a: nat)": "a"
  "loop(a: nat)": "loop(a)"
  "bad(a: nat)": "a.n"
  "set(b: ref box, a: nat)": |
    v = a + 1
    b.n = v
"""
SPEC = loads({"rules/box.yaml": RULES, "profiles/p.yaml": "profile: p\nkind: api\nsummary: S."})
VOC = build(SPEC)
SCOPE: dict[str, Expr] = {
    "b": Var(Type("ref", "box"), "b"), "n": Var(NAT, "n"), "x": Var(NAT, "x"), "t": Var(BOOL, "t"),
}  # fmt: skip


def text(source: str) -> Text:
    return Text(source, Where("f.yaml", 10, 5), quoted=True, raw=f'"{source}"')


EXPRESSIONS = [
    ("n +", "is not an expression", None),
    ("a.n", "unknown name 'a'; known here: b, n, t, x; and the enumerators of color, weight", 1),
    ("n.f", "a nat has no fields", 1),
    ("null.f", "a null has no fields", 1),
    ("b.zz", "ref box has no field 'zz'; it has n, e, f, r, q, qr, p, places, addr, length, data", 1),
    ("b.p.zz", "point has no field 'zz'; it has x, e", 1),
    ("-n", "only 'not' may stand before a value", 1),
    ("n + t", "this is a bool, but a nat is needed here", 5),
    ("n ** 2", "arithmetic has + - * // %", 1),
    ("n / 2", "arithmetic has + - * // %", 1),
    ("1.5", "1.5 is not a literal of the language: numbers are naturals", 1),
    ("'s'", "'s' is not a literal of the language", 1),
    ("True", "True is not a literal of the language", 1),
    ("1 < n < 3", "comparisons are not chained", 1),
    ("n is 3", "comparisons are == != < <= > >= in", 1),
    ("b < b", "only numbers have an order, not a ref box", 1),
    ("RED == BIG", "a color cannot be compared with a weight", 1),
    ("n == t", "a nat cannot be compared with a bool", 1),
    ("b.data == b.data", "memory is compared through load(span(...))", 1),
    ("b.places == b.places", "places are compared by what they hold: load(...)", 1),
    ("not n", "this is a nat, but a bool is needed here", 5),
    ("t and n", "this is a nat, but a bool is needed here", 7),
    ("n if n else n", "this is a nat, but a bool is needed here", 6),
    ("n if t else b", "the two sides are a nat and a ref box", 1),
    ("{RED, BIG} == b.f", "{...} is a flags value: enumerators of one enum", 1),
    ("{} == b.f", "{} is the empty flags value and may stand only where flags are expected", 1),
    ("[1] == b.q", "[...] may stand only where a queue is expected", 1),
    ("b.q == [t]", "this is a bool, but a nat is needed here", 9),
    ("n in b.f", "a nat cannot be in a flags color", 1),
    ("n in (1, t)", "this is a bool, but a nat is needed here", 10),
    ("lambda: 1", "Lambda is not part of the language", 1),
    ("b.f()", "only functions of the language and defines are called", 1),
    ("frob(1)", "unknown function 'frob'; known: len,", 1),
    ("len(n)", "len takes a queue here, not a nat", 5),
    ("len(b.q, n)", "len takes 1 arguments, not 2", 1),
    ("len(q=b.q)", "len takes no named arguments", 1),
    ("head(n)", "head takes a queue, not a nat", 1),
    ("nth(b.q)", "nth takes a queue and a number", 1),
    ("nth(n, n)", "nth takes a queue, not a nat", 1),
    ("implies(t)", "implies takes two arguments", 1),
    ("choice(nope)", "choice takes the name of a choice", 1),
    ("lookup(box, 1)", "lookup takes object.field and a value", 1),
    ("lookup(bag.n, 1)", "lookup's first argument is a field of one of box", 1),
    ("lookup(box.n, t)", "this is a bool, but a nat is needed here", 15),
    ("any(t)", "any takes one 'body for x in domain'", 1),
    ("any(t for y in box for z in box)", "any takes one 'body for x in domain'", 1),
    ("any(t for y in box if t if t)", "at most one 'if'", 11),
    ("any(t for y in n)", "a nat cannot be walked", 16),
    ("any(n for y in box)", "this is a nat, but a bool is needed here", 5),
    ("point(z=1)", "point takes by name x, e, and nothing else", 1),
    ("given(b.n)", "given takes the name of a parameter or output that may be absent", 1),
    ("given(y)", "given takes the name of a parameter or output that may be absent", 1),
    ("point(x=1, e=BIG)", "this is a weight, but a color is needed here", 14),
    ("has(b.q)", "has takes 2 arguments (q, a)", 1),
    ("once(t)", "this is a bool, but a nat is needed here", 6),
    ("loop(1)", "loop leads back to itself; defines are not recursive", 1),
    ("bad(n)", "in bad: a nat has no fields", 1),
    ("set(b, n)", "set is a procedure: it stands as a statement", 1),
]  # fmt: skip


@pytest.mark.parametrize(("source", "words", "column"), EXPRESSIONS, ids=[e[0] for e in EXPRESSIONS])
def test_refused_expressions(source: str, words: str, column: int | None) -> None:
    with pytest.raises(SpecError) as caught:
        Parser(VOC).expression(text(source), SCOPE)
    assert words in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.line == 10
    if column is not None:
        assert caught.value.where.column == 5 + column, caught.value.where


STATEMENTS = [
    ("n = 1", "'n' has a value already; a local name is given once"),
    ("b = new(box)", "'b' has a value already; a local name is given once"),
    ("y = new(bag)", "new's first argument is one of box"),
    ("y = new(box, zz=1)", "box has no field 'zz'"),
    ("b.n = t", "this is a bool, but a nat is needed here"),
    ("n.x = 1", "a nat has no fields"),
    ("b.p.x = 1", "the target must be a field of an object"),
    ("b.n *= 2", "only += and -= change a field in place"),
    ("b.e += 1", "the target must be a nat field of an object"),
    ("push(b.n, 1)", "the target must be a queue field of an object"),
    ("push(b.q, t)", "this is a bool, but a nat is needed here"),
    ("pop(b.q, 1)", "pop is not an action; known: push(queue, value)"),
    ("delete(n)", "delete is not an action"),
    ("frob(b)", "frob is not an action"),
    ("while t:\n  b.n = 1", "While is not a statement of the language"),
    ("if n:\n  b.n = 1", "this is a nat, but a bool is needed here"),
    ("set(b)", "set takes 2 arguments (b, a)"),
    ("store(b.q, b.data)", "this is a queue nat, but a spans is needed here"),
]


@pytest.mark.parametrize(("source", "words"), STATEMENTS, ids=[s[0] for s in STATEMENTS])
def test_refused_statements(source: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Parser(VOC).statements(text(source), SCOPE)
    assert words in str(caught.value)
    assert caught.value.where is not None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("b", "undefined is {a, b}"),
        ("{n}", "undefined names objects, not a nat"),
        ("{y for y in n}", "a nat cannot be walked"),
    ],
)
def test_refused_objects(source: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Parser(VOC).objects(text(source), SCOPE)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "name", ["nope", "ref", "ref nope", "flags nope", "queue queue nat", "queue bytes", "memory(a)"]
)
def test_unknown_types(name: str) -> None:
    with pytest.raises(SpecError, match="is not a type"):
        VOC.resolve(Text(name, Where("rules.yaml", 1, 1)))


def value(source: str, **names: object) -> object:
    """By the compiled and by the naive reading."""
    tree = Parser(VOC).expression(text(source), SCOPE)
    layout = Layout(VOC, set(), set())
    state = State(VOC)
    state.things[1] = Thing("box", True, _fields(names.pop("q", ())))
    env = {"b": 1, "n": 0, "x": 0, "t": False, **names}
    found = naive.evaluate(state, tree, dict(env))
    store = Model(SPEC).store()
    store.new("box", store.fresh(), {"q": state.things[1].fields["q"]})
    assert Compiler(layout).expression(tree, SCOPE)(store, *(env[name] for name in SCOPE)) == found
    return found


def _fields(queue: object) -> dict[str, object]:
    return {**{f: VOC.default(info.type) for f, info in VOC.objects["box"].items()}, "q": queue}


def test_what_is_absent_has_the_value_of_a_default_and_is_not_given() -> None:
    assert value("given(n) and n == 0", n=0) is True
    assert value("n == 0 and not t and not given(n) and not given(t)", n=absent(0), t=absent(False)) is True


def test_a_record_may_leave_fields_out() -> None:
    assert value("point(e=GREEN)") == (0, "GREEN")


def test_an_argument_keeps_its_name() -> None:
    """The define's own x must not catch the argument's."""
    assert value("has(b.q, x)", q=(1, 2), x=2) is True
    assert value("has(b.q, x)", q=(1, 2), x=3) is False
    assert value("all(has(b.q, x + 1) for x in b.q)", q=(1, 2)) is False
    assert value("count(x for x in b.q if any(x == 2 for x in b.q))", q=(1, 2)) == 2


def test_a_local_name_of_a_procedure_is_its_own() -> None:
    body = Parser(VOC).statements(text("v = 5\nset(b, v)\nb.addr = v"), SCOPE)
    state = State(VOC)
    state.things[1] = Thing("box", True, _fields(()))
    naive.perform(state, body, {"b": 1})
    assert (state.things[1].fields["n"], state.things[1].fields["addr"]) == (6, 5)
    store = Model(SPEC).store()
    store.new("box", store.fresh(), {})
    Compiler(store.layout).effect(body, ["b"])(store, 1)
    slots = store.layout.slot["box"]
    assert (store.objects[1][slots["n"]], store.objects[1][slots["addr"]]) == (6, 5)
