"""The second reading: expressions and statements by plain recursion over the nodes.

It exists to test ``compiled``, so it shares nothing with it but the trees: a state is a dictionary of
things, a thing a dictionary of fields, and every construct is one visible case below.  The language is
total, and each case says so where it stands: a field of null is its type's default, ``a - b`` stops at 0,
``x // 0`` is 0 and ``x % 0`` is ``x``, what is written through null is lost, the head of an empty queue
is the default and popping it does nothing, and a deleted thing can be read but no longer found.

Values are those of ``compiled``: int, bool, enumerators as text, flags as frozenset, queues and records as
tuple, references as numbers with 0 for null, contents as text with one character a byte, places as a tuple
of (first address, length).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.types import BYTES, Absent, Type
from verbs_reference.vocabulary import Vocabulary

Env = dict[str, Any]
Places = tuple[tuple[int, int], ...]

UNKNOWN_BYTE = "\u0100"
LONGEST_UPTO = 64
LARGEST_SHIFT = 63


@dataclass(slots=True)
class Thing:
    """An object of the state."""

    kind: str
    alive: bool
    fields: dict[str, Any]


@dataclass(slots=True)
class State:
    """All objects by number, and the option of every choice."""

    voc: Vocabulary
    things: dict[int, Thing] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    initial: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Initial values that are not the defaults of their types."""

    def live(self, kind: str) -> list[int]:
        """The live objects of a kind, oldest first."""
        return [number for number in sorted(self.things) if self._is_live(number, kind)]

    def _is_live(self, number: int, kind: str) -> bool:
        return self.things[number].alive and self.things[number].kind == kind

    def read(self, number: int, kind: str, name: str) -> Any:
        """A field's value."""
        if number == 0:
            return self.voc.default(self.voc.objects[kind][name].type)
        return self.things[number].fields[name]

    def write(self, number: int, name: str, value: Any) -> None:
        """Give a field a value."""
        if number != 0:
            self.things[number].fields[name] = value

    def make(self, kind: str, values: dict[str, Any]) -> int:
        """A new live object."""
        number = max(self.things, default=0) + 1
        fields: dict[str, Any] = {name: self.voc.default(info.type) for name, info in self.voc.objects[kind].items()}
        fields.update(self.initial.get(kind, {}))
        fields.update(values)
        for name, info in self.voc.objects[kind].items():
            if info.bounds is not None and not fields[name]:
                fields[name] = "\0" * fields[info.bounds[1]]
        self.things[number] = Thing(kind, True, fields)
        return number

    def memory_at(self, address: int) -> tuple[Thing, str, int] | None:
        """The live object whose memory holds this address, the name of its contents, the offset in it."""
        for thing in self.things.values():
            for name, info in self.voc.objects[thing.kind].items():
                if info.bounds is None or not thing.alive:
                    continue
                first, length = (thing.fields[bound] for bound in info.bounds)
                if first <= address < first + length:
                    return thing, name, address - first
        return None


def evaluate(state: State, expr: n.Expr, env: Env) -> Any:
    """The value of an expression."""
    return _Reader(state, env).value(expr)


def perform(state: State, body: tuple[n.Stmt, ...], env: Env) -> None:
    """Perform statements in order; local names are added to ``env``."""
    for stmt in body:
        _perform_one(state, stmt, env)


def _perform_one(state: State, stmt: n.Stmt, env: Env) -> None:  # noqa: C901 - one case for each construct
    def value(expr: n.Expr) -> Any:
        return evaluate(state, expr, env)

    match stmt:
        case n.Assign():
            state.write(value(stmt.obj), stmt.field, value(stmt.value))
        case n.Push() | n.Pop() | n.Clear():
            _change_queue(state, stmt, env)
        case n.Let():
            env[stmt.name] = value(stmt.value)
        case n.New():
            env[stmt.name] = state.make(stmt.kind, {name: value(expr) for name, expr in stmt.values})
        case n.Delete():
            number = value(stmt.obj)
            if number != 0:
                state.things[number].alive = False
        case n.Store():
            _store(state, value(stmt.places), value(stmt.data))
        case n.Havoc():
            for first, length in value(stmt.places):
                _store(state, ((first, length),), UNKNOWN_BYTE * length)
        case n.Branch():
            perform(state, stmt.then if value(stmt.test) else stmt.other, env)
        case _:
            raise TypeError(f"no such statement: {stmt}")


def _change_queue(state: State, stmt: n.Push | n.Pop | n.Clear, env: Env) -> None:
    number = evaluate(state, stmt.obj, env)
    old = state.read(number, stmt.obj.type.name, stmt.field)
    if isinstance(stmt, n.Push):
        state.write(number, stmt.field, (*old, evaluate(state, stmt.value, env)))
    elif isinstance(stmt, n.Pop):
        state.write(number, stmt.field, old[1:])
    else:
        state.write(number, stmt.field, ())


def _load(state: State, places: Places) -> str:
    """The bytes at these places; 0 where no memory is."""
    made = []
    for first, length in places:
        for address in range(first, first + length):
            found = state.memory_at(address)
            made.append("\0" if found is None else found[0].fields[found[1]][found[2]])
    return "".join(made)


def _store(state: State, places: Places, data: str) -> None:
    """One byte of data to each place in order; what no memory holds is dropped."""
    addresses = (first + i for first, length in places for i in range(length))
    for address, byte in zip(addresses, data, strict=False):
        found = state.memory_at(address)
        if found is not None:
            thing, name, offset = found
            contents = thing.fields[name]
            thing.fields[name] = contents[:offset] + byte + contents[offset + 1 :]


class _Reader:
    """Evaluates on one state under one set of names."""

    def __init__(self, state: State, env: Env) -> None:
        self.state = state
        self.env = env

    def value(self, expr: n.Expr) -> Any:
        """The value of an expression."""
        match expr:
            case n.Const():
                return expr.value
            case n.Var():
                return self.env[expr.name]
            case n.Field():
                return self.state.read(self.value(expr.obj), expr.obj.type.name, expr.field)
            case n.Part():
                position = list(self.state.voc.records[expr.record.type.name]).index(expr.field)
                return self.value(expr.record)[position]
            case n.Choice():
                return self.state.options[expr.name]
            case n.Lookup():
                return self._lookup(expr)
            case n.Over():
                return self._over(expr)
            case n.Builtin():
                return self._builtin(expr)
            case _:
                return self._plain(expr)

    def _plain(self, expr: n.Expr) -> Any:
        """What depends on the values of its parts alone."""
        match expr:
            case n.Not():
                return not self.value(expr.arg)
            case n.Logic():
                parts = [self.value(a) for a in expr.args]
                return all(parts) if expr.op == "and" else any(parts)
            case n.If():
                return self.value(expr.then) if self.value(expr.test) else self.value(expr.other)
            case n.Member():
                return self.value(expr.item) in self.value(expr.group)
            case n.Flags():
                return frozenset(self.value(i) for i in expr.items)
            case n.Sequence():
                return tuple(self.value(i) for i in expr.items)
            case n.Record():
                return tuple(self.value(p) for p in expr.parts)
            case n.Arith():
                return arithmetic(expr.op, self.value(expr.left), self.value(expr.right))
            case n.Compare():
                return compare(expr.op, expr.left.type, self.value(expr.left), self.value(expr.right))
            case _:
                raise TypeError(f"no such expression: {expr}")

    def _lookup(self, expr: n.Lookup) -> int:
        wanted = self.value(expr.value)
        for number in self.state.live(expr.kind):
            if self.state.read(number, expr.kind, expr.field) == wanted:
                return number
        return 0

    def _over(self, expr: n.Over) -> Any:
        domain = self.state.live(expr.domain) if isinstance(expr.domain, str) else self.value(expr.domain)
        bodies = []
        for each in domain:
            inner = _Reader(self.state, {**self.env, expr.var: each})
            if expr.test is None or inner.value(expr.test):
                bodies.append(inner.value(expr.body))
        match expr.op:
            case "any":
                return True in bodies
            case "all":
                return False not in bodies
            case "count":
                return len(bodies)
            case "sum":
                return sum(bodies)
            case "flat":
                return tuple(place for places in bodies for place in places)
            case _:
                raise TypeError(f"no such quantifier: {expr.op}")

    def _builtin(self, expr: n.Builtin) -> Any:
        args = [self.value(a) for a in expr.args]
        match expr.op:
            case "head" | "last" | "nth":
                index = {"head": 0, "last": len(args[0]) - 1}.get(expr.op, args[-1])
                queue = args[0]
                return queue[index] if 0 <= index < len(queue) else self.state.voc.default(expr.type)
            case "alive":
                return args[0] != 0 and self.state.things[args[0]].alive
            case "load":
                return _load(self.state, args[0])
            case "given":
                return not isinstance(args[0], Absent)
            case _:
                return function(expr.op, args)


def arithmetic(op: str, left: int, right: int) -> int:
    """Total arithmetic on naturals."""
    match op:
        case "+":
            return left + right
        case "-":
            return max(left - right, 0)
        case "*":
            return left * right
        case "//":
            return 0 if right == 0 else left // right
        case "%":
            return left if right == 0 else left % right
        case _:
            raise TypeError(f"no such operator: {op}")


def compare(op: str, kind: Type, left: Any, right: Any) -> bool:
    """Comparison; contents are equal if they can be, for an unknown byte may be any."""
    if kind.tag == "bytes":
        same = len(left) == len(right) and all(
            a == b or UNKNOWN_BYTE in (a, b) for a, b in zip(left, right, strict=True)
        )
        return same == (op == "==")
    if op in {"==", "!="}:
        return bool(left == right) == (op == "==")
    less, equal = left < right, left == right
    return bool({"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[op])


def function(op: str, args: list[Any]) -> Any:
    """The functions that depend on their arguments alone."""
    match op:
        case "len" | "size":
            return len(args[0])
        case "added":
            return _added(*args)
        case "exchanged":
            return _exchanged(*args)
        case "upto":
            return tuple(range(min(args[0], LONGEST_UPTO)))
        case "pow2":
            return any(args[0] == 2**i for i in range(args[0].bit_length()))
        case "shl":
            return 2 ** min(args[0], LARGEST_SHIFT)
        case "span":
            return ((args[0], args[1]),)
        case "slice":
            places, start, length = args
            each = (first + i for first, size in places for i in range(size))
            return tuple((address, 1) for address in islice(each, start, start + length))
        case "walk":
            return _walk(*args)
        case _:
            raise TypeError(f"no such function: {op}")


def _walk(pages: tuple[int, ...], page_size: int, first: int, start: int, length: int) -> Places:
    """Byte by byte; a region ends with its last page."""
    made = []
    for position in range(first + start, first + start + length):
        if page_size == 0 or position // page_size >= len(pages):
            break
        made.append((pages[position // page_size] + position % page_size, 1))
    return tuple(made)


def _text(number: int, length: int) -> str:
    """The low bytes of a number, the lowest first."""
    return "".join(chr(number // 256**i % 256) for i in range(length))


def _added(data: str, number: int) -> str:
    """The sums with the least and the greatest that unknown bytes can be.

    Where they differ, or it was unknown before, a byte is unknown."""
    sums = []
    for filler in (0, 255):
        value = sum((filler if c == UNKNOWN_BYTE else ord(c)) * 256**i for i, c in enumerate(data))
        sums.append(_text(value + number, len(data)))
    least, most = sums
    return "".join(
        UNKNOWN_BYTE if old == UNKNOWN_BYTE or low != high else low
        for old, low, high in zip(data, least, most, strict=True)
    )


def _exchanged(data: str, expected: int, number: int) -> str:
    """One number for another; unknown throughout if what stands there may or may not be the expected one."""
    if not compare("==", BYTES, data, _text(expected, len(data))):
        return data
    return UNKNOWN_BYTE * len(data) if UNKNOWN_BYTE in data else _text(number, len(data))
