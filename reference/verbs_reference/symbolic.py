"""Values of the rule language as z3 terms.

A value whose outcome is known stays a Python value, so that what is constant costs nothing; otherwise

    number          z3 Int, at least 0
    truth value     z3 Bool
    enumerator,     ``Alt``: for each possible outcome the condition under which it is the one; the
    reference       conditions exclude each other and one holds.  A reference's outcomes are small numbers,
                    0 for null
    flags           ``FlagSet``: a condition for each enumerator
    record          tuple of values
    queue           ``Seq``: (present, value) for each cell; the present cells come first
    contents and    ``OPAQUE``: nothing is known of them
    places

All but numbers is propositional, which is what makes the proofs short: there is no term for "the field of
an unknown object", only a choice between the few objects of the scope.

Products, quotients and remainders of two unknowns, and powers of two, are uninterpreted functions unless
``exact`` is asked for: what is proved with them holds for any function, and what is refuted with them has to
be looked at again exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from operator import ge, gt, le, lt
from typing import Any

import z3

from verbs_reference.types import Type
from verbs_reference.vocabulary import Vocabulary

OPAQUE = object()
LARGEST_SHIFT = 63

_CONTEXT = z3.main_ctx()
_POWERS = [2**i for i in range(LARGEST_SHIFT + 1)]
_ABSTRACT = {
    name: z3.Function(f"any {name}", *([z3.IntSort()] * arity), z3.BoolSort() if name == "pow2" else z3.IntSort())
    for name, arity in (("*", 2), ("//", 2), ("%", 2), ("shl", 1), ("pow2", 1))
}


class Alt:
    """One of several outcomes, each under its condition."""

    __slots__ = ("bits", "cases")

    def __init__(self, cases: Mapping[Any, Any], bits: tuple[Any, ...] = ()) -> None:
        self.cases = {key: cond for key, cond in cases.items() if cond is not False}
        self.bits = bits

    def when(self, key: Any) -> Any:
        """The condition of an outcome."""
        return self.cases.get(key, False)


class FlagSet:
    """A condition for each enumerator."""

    __slots__ = ("members",)

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = {key: cond for key, cond in members.items() if cond is not False}

    def when(self, key: str) -> Any:
        """Whether an enumerator is in the set."""
        return self.members.get(key, False)


class Seq:
    """A queue's cells: (present, value)."""

    __slots__ = ("cells",)

    def __init__(self, cells: Iterable[tuple[Any, Any]]) -> None:
        self.cells = [cell for cell in cells if cell[0] is not False]


# -- truth values ------------------------------------------------------------------------------------


def conj(*parts: Any) -> Any:
    """All of them."""
    kept = [p for p in parts if p is not True]
    if not kept:
        return True
    if any(p is False for p in kept):
        return False
    return kept[0] if len(kept) == 1 else _truth(z3.Z3_mk_and, kept)


def disj(*parts: Any) -> Any:
    """Any of them."""
    kept = [p for p in parts if p is not False]
    if not kept:
        return False
    if any(p is True for p in kept):
        return True
    return kept[0] if len(kept) == 1 else _truth(z3.Z3_mk_or, kept)


def neg(part: Any) -> Any:
    """Not."""
    if isinstance(part, bool):
        return not part
    return z3.BoolRef(z3.Z3_mk_not(_CONTEXT.ref(), part.ast), _CONTEXT)


def _truth(make: Callable[..., Any], parts: list[Any]) -> Any:
    """Most of a proof's time is spent here; z3's own And and Or check each argument again."""
    asts = (z3.Ast * len(parts))(*(part.ast for part in parts))
    return z3.BoolRef(make(_CONTEXT.ref(), len(parts), asts), _CONTEXT)


# -- choice and equality over all values -------------------------------------------------------------


def ite(test: Any, then: Any, other: Any) -> Any:  # noqa: C901 - one case for each kind of value
    """``then`` where ``test`` holds, else ``other``."""
    if then is other or test is True:
        return then
    if test is False:
        return other
    match then:
        case Alt():
            keys = dict.fromkeys([*then.cases, *other.cases])
            return Alt({k: ite(test, then.when(k), other.when(k)) for k in keys})
        case FlagSet():
            keys = dict.fromkeys([*then.members, *other.members])
            return FlagSet({k: ite(test, then.when(k), other.when(k)) for k in keys})
        case tuple():
            return tuple(ite(test, a, b) for a, b in zip(then, other, strict=True))
        case Seq():
            return _ite_seq(test, then, other)
        case _ if then is OPAQUE or other is OPAQUE:
            return OPAQUE
        case bool() if isinstance(other, bool):
            return then if then == other else test if then else neg(test)
        case bool():
            return disj(test, other) if then else conj(neg(test), other)
        case _ if isinstance(other, bool):
            return disj(neg(test), then) if other else conj(test, then)
        case int() if isinstance(other, int) and then == other:
            return then
        case _:
            return z3.If(test, then, other)


def _ite_seq(test: Any, then: Seq, other: Seq) -> Seq:
    made = []
    for i in range(max(len(then.cells), len(other.cells))):
        here = then.cells[i] if i < len(then.cells) else (False, other.cells[i][1])
        there = other.cells[i] if i < len(other.cells) else (False, here[1])
        made.append((ite(test, here[0], there[0]), ite(test, here[1], there[1])))
    return Seq(made)


def equal(left: Any, right: Any) -> Any:
    """Whether two values of one type are equal."""
    match left:
        case Alt():
            return disj(*(conj(cond, right.when(key)) for key, cond in left.cases.items()))
        case FlagSet():
            keys = dict.fromkeys([*left.members, *right.members])
            return conj(*(equal(left.when(k), right.when(k)) for k in keys))
        case tuple():
            return conj(*(equal(a, b) for a, b in zip(left, right, strict=True)))
        case Seq():
            return _equal_seq(left, right)
        case bool():
            return right if left else neg(right)
        case _ if isinstance(right, bool):
            return left if right else neg(left)
        case int() if isinstance(right, int):
            return left == right
        case _ if left is OPAQUE:
            return z3.FreshBool("contents")
        case _:
            return left == right


def _equal_seq(left: Seq, right: Seq) -> Any:
    parts = []
    for i in range(max(len(left.cells), len(right.cells))):
        if i >= len(left.cells) or i >= len(right.cells):
            parts.append(neg((left if i < len(left.cells) else right).cells[i][0]))
            continue
        (here, a), (there, b) = left.cells[i], right.cells[i]
        parts.append(equal(here, there))
        parts.append(disj(neg(here), equal(a, b)))
    return conj(*parts)


# -- numbers -----------------------------------------------------------------------------------------


def order(op: str, left: Any, right: Any) -> Any:
    """``< <= > >=``."""
    return {"<": lt, "<=": le, ">": gt, ">=": ge}[op](left, right)


def arithmetic(op: str, left: Any, right: Any, exact: bool) -> Any:
    """Total arithmetic on naturals."""
    known = isinstance(left, int) and isinstance(right, int)
    match op:
        case "+":
            return left + right if known or not isinstance(right, int) or right else left
        case "-":
            return max(left - right, 0) if known else ite(left > right, left - right, 0)
        case "*":
            fits = isinstance(left, int) or isinstance(right, int)
            return left * right if fits or exact else _ABSTRACT["*"](left, right)
        case "//" | "%":
            return _divide(op, left, right, exact)
        case _:
            raise TypeError(f"no such operator: {op}")


def _divide(op: str, left: Any, right: Any, exact: bool) -> Any:
    whole = op == "//"
    if isinstance(right, int):
        if right == 0:
            return 0 if whole else left
        if isinstance(left, int):
            return left // right if whole else left % right
        return left / right if whole else left % right
    if not exact:
        return _ABSTRACT[op](left, right)
    left = z3.IntVal(left) if isinstance(left, int) else left
    return z3.If(right == 0, z3.IntVal(0) if whole else left, left / right if whole else left % right)


def shl(value: Any, exact: bool) -> Any:
    """2 to the power of the value, at most of 63."""
    if isinstance(value, int):
        return _POWERS[min(value, LARGEST_SHIFT)]
    if not exact:
        return _ABSTRACT["shl"](value)
    made: Any = _POWERS[-1]
    for i in range(LARGEST_SHIFT - 1, -1, -1):
        made = ite(value == i, _POWERS[i], made)
    return made


def pow2(value: Any, exact: bool) -> Any:
    """Whether the value is a power of two (exactly: one below 2**64)."""
    if isinstance(value, int):
        return value > 0 and value & (value - 1) == 0
    return disj(*(value == p for p in _POWERS)) if exact else _ABSTRACT["pow2"](value)


def greatest(term: Any, cap: int) -> int:
    """A number that a term cannot exceed, or the cap: sees through sums and choices of constants."""
    if isinstance(term, int):
        return min(term, cap)
    if z3.is_int_value(term):
        return min(int(term.as_long()), cap)
    if z3.is_app_of(term, z3.Z3_OP_ITE):
        return max(greatest(part, cap) for part in term.children()[1:])
    if z3.is_app_of(term, z3.Z3_OP_ADD):
        return min(sum(greatest(part, cap) for part in term.children()), cap)
    return cap


# -- constants and unknowns --------------------------------------------------------------------------


def constant(value: Any, kind: Type, voc: Vocabulary) -> Any:
    """A value of the other readings as a value of this one."""
    match kind.tag:
        case "enum" | "ref" | "null":
            return Alt({value: True})
        case "flags":
            return FlagSet(dict.fromkeys(value, True))
        case "record":
            parts = voc.records[kind.name].values()
            return tuple(constant(v, t, voc) for v, t in zip(value, parts, strict=True))
        case "queue":
            assert kind.elem is not None
            return Seq((True, constant(v, kind.elem, voc)) for v in value)
        case "nat" | "bool":
            return value
        case _:
            return OPAQUE


class Unknowns:
    """Makes unknown values; ``facts`` is what their types say of them."""

    def __init__(self, voc: Vocabulary, sizes: Mapping[str, int], cells: int) -> None:
        self.voc = voc
        self.sizes = sizes
        self.cells = cells
        self.facts: list[Any] = []

    def make(self, name: str, kind: Type) -> Any:
        """An unknown value of a type."""
        match kind.tag:
            case "nat":
                made = z3.Int(name)
                self.facts.append(made >= 0)
                return made
            case "bool":
                return z3.Bool(name)
            case "enum":
                return self.one_of(name, self.voc.enums[kind.name])
            case "ref":
                return self.one_of(name, range(self.sizes[kind.name] + 1))
            case "flags":
                return FlagSet({e: z3.Bool(f"{name}/{e}") for e in self.voc.enums[kind.name]})
            case "record":
                return tuple(self.make(f"{name}.{f}", t) for f, t in self.voc.records[kind.name].items())
            case "queue":
                return self._queue(name, kind)
            case _:
                return OPAQUE

    def one_of(self, name: str, keys: Iterable[Any]) -> Alt:
        """An unknown outcome, told by as few truth values as will do."""
        options = list(keys)
        bits = tuple(z3.Bool(f"{name}/{i}") for i in range((len(options) - 1).bit_length()))
        cases = {
            key: conj(*(bit if code >> i & 1 else neg(bit) for i, bit in enumerate(bits)))
            for code, key in enumerate(options)
        }
        if len(options) < 1 << len(bits):
            self.facts.append(disj(*cases.values()))
        return Alt(cases, bits)

    def _queue(self, name: str, kind: Type) -> Seq:
        assert kind.elem is not None
        cells = [(z3.Bool(f"{name}[{i}]"), self.make(f"{name}[{i}]", kind.elem)) for i in range(self.cells)]
        self.facts += [z3.Implies(b[0], a[0]) for a, b in pairwise(cells)]
        return Seq(cells)


def decode(model: Any, value: Any) -> Any:
    """What a value is in a model of z3, as a value of the other readings."""
    match value:
        case Alt():
            return next((key for key, cond in value.cases.items() if decode(model, cond)), 0)
        case FlagSet():
            return frozenset(key for key, cond in value.members.items() if decode(model, cond))
        case tuple():
            return tuple(decode(model, part) for part in value)
        case Seq():
            return tuple(decode(model, each) for present, each in value.cells if decode(model, present))
        case bool() | int():
            return value
        case _ if value is OPAQUE:
            return "?"
        case _:
            found = model.eval(value, model_completion=True)
            return found.as_long() if z3.is_int_value(found) else z3.is_true(found)


def check(facts: Iterable[Any], assumed: Mapping[str, Any], seconds: float) -> tuple[str, Any, frozenset[str]]:
    """Whether facts and assumptions can hold together.

    ``sat`` with a model; ``unsat`` with the names of the assumptions that were used; or ``unknown``.
    """
    solver = z3.Solver()
    solver.set("timeout", max(int(seconds * 1000), 1))
    for fact in facts:
        if fact is False:
            return "unsat", None, frozenset()
        if fact is not True:
            solver.add(fact)
    marks = {z3.Bool(f"assume {name}"): name for name in assumed}
    for mark, formula in zip(marks, assumed.values(), strict=True):
        solver.add(z3.Implies(mark, formula))
    answer = str(solver.check(*marks))
    used = frozenset(marks[mark] for mark in solver.unsat_core()) if answer == "unsat" else frozenset()
    return answer, solver.model() if answer == "sat" else None, used


def uses_abstraction(formulas: Iterable[Any]) -> bool:
    """Whether an uninterpreted function stands in the formulas."""
    seen: set[int] = set()
    todo = [f for f in formulas if not isinstance(f, bool)]
    while todo:
        term = todo.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED and term.num_args():
            return True
        todo.extend(term.children())
    return False
