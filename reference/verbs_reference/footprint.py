"""Which places of the state a rule may read and write: the static half of the belief's search.

``accesses`` says which fields an expression or an effect touches; here that becomes places of a state.  Two accesses
conflict if one of them writes and both touch the same place; H and T do not conflict, E conflicts with T only while
the queue is empty, and V conflicts with all parts.  Fields that are never written after their object was made are left
out by the callers: nothing can conflict there.

Places of a state are numbers, so that one test of two sets finds a conflict.  A field is the *cell*
``number * 64 + slot``, and has three *atoms*, ``4 * cell`` and up: its front, its back, and its back as
far as only emptiness is concerned.  ``atoms`` makes of a list of accesses a function that returns their
atoms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.accesses import Access
from verbs_reference.compiled import GLOBALS, Compiler
from verbs_reference.showing import show
from verbs_reference.store import Layout, Store
from verbs_spec.errors import SpecError, Where

Place = tuple[int, int, str]
Env = dict[str, frozenset[Any]]


class Resolver:
    """Finds the objects that an expression may designate, given what its names may stand for."""

    def __init__(self, layout: Layout, changing: set[tuple[str, str]]) -> None:
        self.layout = layout
        self.changing = changing

    def values(self, store: Store, expr: n.Expr, env: Env) -> frozenset[Any]:
        """All values that the expression may have; refs as numbers.  Over-approximates."""
        match expr:
            case n.Const():
                return frozenset((expr.value,))
            case n.Var():
                return env[expr.name]
            case n.Field():
                slot = self.layout.slot[expr.obj.type.name][expr.field]
                null = self.layout.null[expr.obj.type.name]
                objects = store.objects
                return frozenset(objects[o or null][slot] for o in self.values(store, expr.obj, env))
            case n.Part():
                names = list(self.layout.voc.records[expr.record.type.name])
                position = names.index(expr.field)
                return frozenset(r[position] for r in self.values(store, expr.record, env))
            case n.Lookup():
                table = store.table[(expr.kind, expr.field)]
                return frozenset(table.get(v, 0) for v in self.values(store, expr.value, env))
            case n.If():
                return self.values(store, expr.then, env) | self.values(store, expr.other, env)
            case n.Arith():
                left, right = (self.values(store, e, env) for e in (expr.left, expr.right))
                return frozenset(_arith(expr.op, a, b) for a in left for b in right)
            case n.Builtin(op="head" | "last" | "nth"):
                queues = self.values(store, expr.args[0], env)
                return frozenset(e for q in queues for e in q)
            case _:
                raise TypeError(f"{type(expr).__name__} cannot designate an object here")

    def places(self, store: Store, access: Access, env: Env) -> Iterator[Place]:
        """The places of one access."""
        if access.part == "M":
            yield (0, 0, "M")
            return
        inner = env
        for over in access.bound:
            inner = {**inner, over.var: self._domain(store, over, inner)}
        slot = 1 if access.part == "A" else self.layout.slot[access.obj.type.name][access.field]
        for number in self.values(store, access.obj, inner):
            if number > 0:
                yield (number, slot, access.part)

    def _domain(self, store: Store, over: n.Over, env: Env) -> frozenset[Any]:
        if isinstance(over.domain, str):
            return frozenset(store.live[over.domain])
        return frozenset(e for group in self.values(store, over.domain, env) for e in group)


def _arith(op: str, left: int, right: int) -> int:
    match op:
        case "+":
            return left + right
        case "-":
            return max(left - right, 0)
        case "*":
            return left * right
        case "//":
            return left // right if right else 0
        case _:
            return left % right if right else left


# -- numbers of places ---------------------------------------------------------------------------

CELLS = 64
"""More slots than any object has."""
READ = {"V": (0, 1), "H": (0,), "T": (1,), "E": (0, 2), "A": (0,)}
WRITE = {"V": (0, 1, 2), "H": (0,), "T": (1, 2), "A": (0,)}
SOME, ANY = -2, -3
"""Memory: every access reads SOME; every write writes ANY, and one whose places are not known yet SOME as
well; a read whose places are not known reads ANY.  Blocks of 64 bytes are the numbers below -3."""


@dataclass(slots=True)
class Footprint:
    """What may be touched in any future: atoms read and written, and those that being enabled depends on."""

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    needs: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    cases: list[Any] = field(default_factory=list)

    def seal(self, agreed: set[int]) -> None:
        """Compute what writes of others meet; of the agreed atoms all writers write the same, in any
        order."""
        self.touched = self.reads | (self.writes - agreed)


def cells(found: Iterable[int]) -> frozenset[int]:
    """The fields to which atoms belong."""
    return frozenset(a >> 2 for a in found if a >= 0)


def blocks(places: Iterable[tuple[int, int]]) -> set[int]:
    """The atoms of stretches of memory."""
    return {-4 - block for start, size in places if size for block in range(start >> 6, (start + size - 1 >> 6) + 1)}


class Undesignated(Exception):
    """An expression for which the atoms that it designates cannot be found."""


@contextmanager
def placed(where: Where) -> Iterator[None]:
    """Look at a rule or a family that stands there; what cannot be found is an error of its text."""
    try:
        yield
    except Undesignated as e:
        raise SpecError(str(e), where) from None


class Designators:
    """Makes functions that find the atoms which accesses designate.

    ``coming`` tells for a queue, by object number and slot, what internal steps may still push to it.
    """

    def __init__(
        self,
        compiler: Compiler,
        stepped: set[tuple[str, str]],
        changing: set[tuple[str, str]],
        filled: set[tuple[str, str]],
    ) -> None:
        self.compiler = compiler
        self.layout = compiler.layout
        self.filled = filled
        self.stepped = stepped
        self.changing = changing
        self.coming: dict[tuple[int, int], tuple[Any, ...]] = {}

    def atoms(self, accesses: Iterable[Access], names: list[str]) -> Callable[..., set[int]] | None:
        """A function ``f(S, *names)``: the atoms of the accesses to fields; None if there are none."""
        groups: dict[tuple[n.Expr, tuple[n.Over, ...]], set[int]] = {}
        for a in accesses:
            if a.part == "M" or not _known(a, names):
                continue
            slot = 1 if a.part == "A" else self.layout.slot[a.obj.type.name][a.field]
            offsets = (WRITE if a.writes else READ)[a.part]
            groups.setdefault((a.obj, a.bound), set()).update(4 * slot + o for o in offsets)
        if not groups:
            return None
        lines = ["r = {*()}"]
        for (obj, bound), shifts in groups.items():
            lines += self._lines(obj, bound, sorted(shifts))
        return self._function(names, [*lines, "return r"])

    def moving(self, accesses: Iterable[Access], names: list[str]) -> Callable[..., tuple[Any, ...]] | None:
        """A function that returns what decides which objects are designated."""
        found: dict[str, None] = {}
        for a in accesses:
            if a.part == "M":
                continue
            trees = [a.obj, *(o.domain for o in a.bound if isinstance(o.domain, n.Expr))]
            for e in (e for t in trees for e in n.walk(t)):
                changes = isinstance(e, n.Field) and (e.obj.type.name, e.field) in self.changing
                if changes or isinstance(e, n.Lookup):
                    found[self._for_each(a.bound, e)] = None
            for over in a.bound:
                if isinstance(over.domain, str):
                    found[f"tuple(S.live[{over.domain!r}])"] = None
        if not found:
            return None
        return self._function(names, [f"return ({''.join(text + ', ' for text in found)})"])

    def _function(self, names: list[str], lines: list[str]) -> Callable[..., Any]:
        params = ", ".join(["S", *(f"v_{name}" for name in names)])
        source = "\n".join([f"def f({params}):", "    D = S.objects", *("    " + line for line in lines)])
        scope = {**GLOBALS, "_coming": self.coming}
        exec(compile(source, "<places>", "exec"), scope)  # noqa: S102 - the source is made here from checked trees
        function: Callable[..., Any] = scope["f"]
        return function

    def _lines(self, obj: n.Expr, bound: tuple[n.Over, ...], shifts: list[int]) -> list[str]:
        lines, indent = [], ""
        for over in bound:
            lines.append(f"{indent}for v_{over.var} in {self._elements(over)}:")
            indent += "    "
        tail = "".join(f"o + {x}, " for x in shifts)
        inner = [
            f"for o in {self._many(obj)}:",
            "    if o > 0:",
            f"        o *= {4 * CELLS}",
            f"        r.update(({tail}))",
        ]
        return lines + [indent + line for line in inner]

    def _elements(self, over: n.Over) -> str:
        """Source for all that a bound name may stand for."""
        if isinstance(over.domain, str):
            return f"S.live[{over.domain!r}]"
        return f"[e for g in {self._many(over.domain)} for e in g]"

    def _for_each(self, bound: tuple[n.Over, ...], expr: n.Expr) -> str:
        """Source for the values of an expression, of each thing that the names bound in it may stand for."""
        text, free = self._many(expr), n.free_names(expr)
        for over in reversed(bound):
            if over.var in free:
                text = f"[{text} for v_{over.var} in {self._elements(over)}]"
                free |= n.free_names(over.domain) if isinstance(over.domain, n.Expr) else set()
        return text

    def _many(self, expr: n.Expr) -> str:
        """Source for a group of all values that the expression may have in any future."""
        match expr:
            case n.If():
                return f"(*{self._many(expr.then)}, *{self._many(expr.other)})"
            case n.Builtin(op="head" | "last" | "nth"):
                return f"{{e for g in {self._many(expr.args[0])} for e in g}}"
            case n.Field() if (expr.obj.type.name, expr.field) in self.stepped:
                return self._growing(expr)
            case _ if self._single(expr):
                return f"({self.compiler.text(expr)},)"
            case n.Field():
                null, slot = self._place(expr)
                return f"{{D[o or {null}][{slot}] for o in {self._many(expr.obj)}}}"
            case n.Part():
                position = list(self.layout.voc.records[expr.record.type.name]).index(expr.field)
                return f"{{e[{position}] for e in {self._many(expr.record)}}}"
            case n.Lookup():
                return f"{{S.table[{(expr.kind, expr.field)!r}].get(e, 0) for e in {self._many(expr.value)}}}"
            case n.Arith():
                name = f"x{len(n.walk(expr))}"
                pair = [n.Var(expr.type, name + side) for side in "ab"]
                loops = f"for v_{name}a in {self._many(expr.left)} for v_{name}b in {self._many(expr.right)}"
                return f"{{{self.compiler.text(n.Arith(expr.type, expr.op, *pair))} {loops}}}"
            case _:
                raise Undesignated(f"{show(expr)} cannot designate what a step works on")

    def _growing(self, expr: n.Field) -> str:
        """A queue that internal steps change: what stands in it and, if they push to it, what may come."""
        null, slot = self._place(expr)
        if expr.type.tag == "queue" and (expr.obj.type.name, expr.field) not in self.filled:
            return f"[D[o or {null}][{slot}] for o in {self._many(expr.obj)}]"
        if (expr.obj.type.name, expr.field) not in self.layout.triggers:
            raise Undesignated(f"{show(expr)} designates what a step works on, and internal steps change it")
        return f"[(*D[o or {null}][{slot}], *_coming.get((o, {slot}), ())) for o in {self._many(expr.obj)}]"

    def _place(self, expr: n.Field) -> tuple[int, int]:
        kind = expr.obj.type.name
        return self.layout.null[kind], self.layout.slot[kind][expr.field]

    def _single(self, expr: n.Expr) -> bool:
        """Whether the expression has one value until the consumer's next call."""
        return not any(
            isinstance(e, n.If)
            or (isinstance(e, n.Builtin) and e.op in {"head", "last", "nth"})
            or (isinstance(e, n.Field) and (e.obj.type.name, e.field) in self.stepped)
            for e in n.walk(expr)
        )


def _known(access: Access, names: list[str]) -> bool:
    """Whether it is of an object that is there before: what a call makes, nobody else touches yet."""
    bound = {over.var for over in access.bound}
    free = n.free_names(access.obj)
    for over in access.bound:
        if isinstance(over.domain, n.Expr):
            free |= n.free_names(over.domain)
    return free - bound <= set(names)
