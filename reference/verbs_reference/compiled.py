"""The first reading: typed trees become Python functions.

Each guard, output test and effect is turned into the source of one Python function and compiled once, at
load.  A function takes the store ``S`` and its names as positional arguments.  Names get a prefix, so no
name of a specification can meet one of Python's.  ``naive`` is the reading that tests this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol

from verbs_reference import nodes as n
from verbs_reference.contents import added, exchanged, same_bytes, slice_places, walk_pages
from verbs_reference.store import UPTO, Layout
from verbs_reference.types import Absent

Function = Callable[..., Any]


class FamilyTree(Protocol):
    """What of a family the compiler needs."""

    kind: str
    field: str
    var: str
    head_var: str
    lets: dict[str, n.Expr]
    domain: n.Expr | None
    rules: list[tuple[Any, n.Expr, tuple[n.Stmt, ...]]]


def _sub(left: int, right: int) -> int:
    return left - right if left > right else 0


def _div(left: int, right: int) -> int:
    return left // right if right else 0


def _mod(left: int, right: int) -> int:
    return left % right if right else left


def _nth(queue: tuple[Any, ...], index: int, default: Any) -> Any:
    return queue[index] if index < len(queue) else default


def _upto(count: int) -> tuple[int, ...]:
    return tuple(range(min(count, UPTO)))


def _pow2(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _given(value: object) -> bool:
    return not isinstance(value, Absent)


def _shl(value: int) -> int:
    return 1 << min(value, 63)


def _each(groups: Iterable[tuple[tuple[int, int], ...]]) -> tuple[tuple[int, int], ...]:
    return tuple(place for group in groups for place in group)


GLOBALS: dict[str, Any] = {
    "_sub": _sub,
    "_div": _div,
    "_mod": _mod,
    "_nth": _nth,
    "_upto": _upto,
    "_same": same_bytes,
    "_slice": slice_places,
    "_pow2": _pow2,
    "_shl": _shl,
    "_given": _given,
    "_added": added,
    "_exchanged": exchanged,
    "_walk": walk_pages,
    "_flat": _each,
    "_sum": sum,
    "any": any,
    "all": all,
    "len": len,
    "tuple": tuple,
    "frozenset": frozenset,
    "__builtins__": {},
}


@cache
def _function(source: str) -> Function:
    """The function of a source: one for all models that have it, as it keeps nothing."""
    scope = dict(GLOBALS)
    exec(compile(source, "<rule>", "exec"), scope)  # noqa: S102 - the source is made here from checked trees
    function: Function = scope["f"]
    return function


class Compiler:
    """Makes functions for one layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.voc = layout.voc

    def expression(self, expr: n.Expr, names: Iterable[str]) -> Function:
        """A function ``f(S, *names)`` that returns the expression's value."""
        return self._make(names, [f"return {self.text(expr)}"])

    def effect(self, body: tuple[n.Stmt, ...], names: Iterable[str], fresh: dict[str, str] | None = None) -> Function:
        """A function ``f(S, *names)`` that performs the statements on S.

        ``fresh`` maps a name that ``new`` binds to the argument that holds the number to use.
        """
        return self._make(names, self._complete(body, fresh or {}) or ["pass"])

    def objects(self, parts: tuple[n.Expr | tuple[n.Over, ...], ...], names: Iterable[str]) -> Function:
        """A function that returns the numbers of the objects that an ``undefined`` names."""
        pieces = []
        for part in parts:
            if isinstance(part, tuple):
                loops = " ".join(self._loop(over) for over in part)
                pieces.append(f"*({self.text(part[-1].body)} {loops}),")
            else:
                pieces.append(f"{self.text(part)},")
        return self._make(names, [f"return ({' '.join(pieces)})"])

    def pick(self, family: FamilyTree) -> Function:
        """A function ``f(S, number)``: the position of the case that applies to the head, or -1 if none may run."""
        lines = self._prelude(family)
        if family.domain is not None:
            lines.append(f"if not {self.text(family.domain)}: return -1")
        for i, (_, when, _) in enumerate(family.rules):
            lines.append(f"if {self.text(when)}: return {i}")
        return self._make([family.var], [*lines, "return -1"])

    def step(self, family: FamilyTree, body: tuple[n.Stmt, ...]) -> Function:
        """A function ``f(S, number)`` that performs one case."""
        return self._make([family.var], [*self._prelude(family), *self._complete(body, {})])

    def _complete(self, body: tuple[n.Stmt, ...], fresh: dict[str, str]) -> list[str]:
        """The lines of a whole effect: at its end what no queue holds any more is forgotten."""
        lines = self._block(body, fresh)
        return [*lines, "S.collect()"] if any("S.queue(" in line for line in lines) else lines

    def _prelude(self, family: FamilyTree) -> list[str]:
        slot = self.layout.slot[family.kind][family.field]
        lines = [f"v_{family.head_var} = D[v_{family.var}][{slot}][0]"]
        lines += [f"v_{name} = {self.text(tree)}" for name, tree in family.lets.items()]
        return lines

    def _loop(self, e: n.Over) -> str:
        domain = f"S.live[{e.domain!r}]" if isinstance(e.domain, str) else self.text(e.domain)
        test = f" if {self.text(e.test)}" if e.test is not None else ""
        return f"for v_{e.var} in {domain}{test}"

    def _make(self, names: Iterable[str], lines: list[str]) -> Function:
        params = ", ".join(["S", *(f"v_{name}" for name in names)])
        return _function("\n".join([f"def f({params}):", "    D = S.objects", *("    " + line for line in lines)]))

    # -- expressions -----------------------------------------------------------------------------

    def text(self, expr: n.Expr) -> str:
        """Python source for an expression."""
        method: Callable[[Any], str] = getattr(self, "_" + type(expr).__name__)
        return method(expr)

    def _Const(self, e: n.Const) -> str:
        return repr(e.value)

    def _Var(self, e: n.Var) -> str:
        return f"v_{e.name}"

    def _Field(self, e: n.Field) -> str:
        kind = e.obj.type.name
        return f"D[{self.text(e.obj)} or {self.layout.null[kind]}][{self.layout.slot[kind][e.field]}]"

    def _Part(self, e: n.Part) -> str:
        position = list(self.voc.records[e.record.type.name]).index(e.field)
        return f"{self.text(e.record)}[{position}]"

    def _Not(self, e: n.Not) -> str:
        return f"(not {self.text(e.arg)})"

    def _Logic(self, e: n.Logic) -> str:
        return "(" + f" {e.op} ".join(self.text(a) for a in e.args) + ")"

    def _Arith(self, e: n.Arith) -> str:
        left, right = self.text(e.left), self.text(e.right)
        if e.op in {"//", "%"} and isinstance(e.right, n.Const) and e.right.value != 0:
            return f"({left} {e.op} {right})"
        function = {"-": "_sub", "//": "_div", "%": "_mod"}.get(e.op)
        return f"{function}({left}, {right})" if function else f"({left} {e.op} {right})"

    def _Compare(self, e: n.Compare) -> str:
        if e.left.type.tag == "bytes":
            test = f"_same({self.text(e.left)}, {self.text(e.right)})"
            return test if e.op == "==" else f"(not {test})"
        return f"({self.text(e.left)} {e.op} {self.text(e.right)})"

    def _If(self, e: n.If) -> str:
        return f"({self.text(e.then)} if {self.text(e.test)} else {self.text(e.other)})"

    def _Member(self, e: n.Member) -> str:
        return f"({self.text(e.item)} in {self.text(e.group)})"

    def _Flags(self, e: n.Flags) -> str:
        return "frozenset((" + "".join(self.text(i) + ", " for i in e.items) + "))"

    def _Sequence(self, e: n.Sequence) -> str:
        return "(" + "".join(self.text(i) + ", " for i in e.items) + ")"

    def _Record(self, e: n.Record) -> str:
        return "(" + "".join(self.text(p) + ", " for p in e.parts) + ")"

    def _Lookup(self, e: n.Lookup) -> str:
        return f"S.table[{(e.kind, e.field)!r}].get({self.text(e.value)}, 0)"

    def _Choice(self, e: n.Choice) -> str:
        return f"S.choose({e.name!r})"

    def _Over(self, e: n.Over) -> str:
        loop = self._loop(e)
        if e.op == "count":
            return f"_sum(1 {loop})"
        function = {"any": "any", "all": "all", "sum": "_sum", "flat": "_flat"}[e.op]
        return f"{function}({self.text(e.body)} {loop})"

    def _Builtin(self, e: n.Builtin) -> str:
        args = [self.text(a) for a in e.args]
        kind = e.args[0].type
        match e.op:
            case "head" | "last":
                empty = repr(self.voc.default(e.type))
                return f"({args[0]} or ({empty},))[{0 if e.op == 'head' else -1}]"
            case "nth":
                return f"_nth({args[0]}, {args[1]}, {self.voc.default(e.type)!r})"
            case "alive":
                return f"D[{args[0]} or {self.layout.null[kind.name]}][1]"
            case "len" | "size":
                return f"len({args[0]})"
            case "span":
                return f"(({args[0]}, {args[1]}),)"
            case "load":
                return f"S.load({args[0]})"
            case _:
                return f"_{e.op}({', '.join(args)})"

    # -- statements ------------------------------------------------------------------------------

    def _block(self, body: tuple[n.Stmt, ...], fresh: dict[str, str]) -> list[str]:
        lines: list[str] = []
        for stmt in body:
            if isinstance(stmt, n.Branch):
                lines.append(f"if {self.text(stmt.test)}:")
                lines += ["    " + line for line in self._block(stmt.then, fresh) or ["pass"]]
                if stmt.other:
                    lines.append("else:")
                    lines += ["    " + line for line in self._block(stmt.other, fresh)]
            else:
                lines.append(self._statement(stmt, fresh))
        return lines

    def _statement(self, stmt: n.Stmt, fresh: dict[str, str]) -> str:
        match stmt:
            case n.Let():
                return f"v_{stmt.name} = {self.text(stmt.value)}"
            case n.New():
                number = f"v_{fresh[stmt.name]}" if stmt.name in fresh else "S.fresh()"
                values = ", ".join(f"{f!r}: {self.text(v)}" for f, v in stmt.values)
                return f"v_{stmt.name} = S.new({stmt.kind!r}, {number}, {{{values}}})"
            case n.Delete():
                return f"S.delete({stmt.obj.type.name!r}, {self.text(stmt.obj)})"
            case n.Store():
                return f"S.store({self.text(stmt.places)}, {self.text(stmt.data)})"
            case n.Havoc():
                return f"S.havoc({self.text(stmt.places)})"
            case n.Assign() if self._trigger(stmt) != "None":
                value = self.text(stmt.value)
                return f"S.queue({self.text(stmt.obj)}, {self._slot(stmt)}, {value}, {self._trigger(stmt)})"
            case n.Assign():
                return f"S.set({self.text(stmt.obj)}, {self._slot(stmt)}, {self.text(stmt.value)})"
            case n.Push():
                trigger = self._trigger(stmt)
                return f"S.push({self.text(stmt.obj)}, {self._slot(stmt)}, {self.text(stmt.value)}, {trigger})"
            case n.Pop() | n.Clear():
                null = self.layout.null[stmt.obj.type.name]
                rest = (
                    f"D[{self.text(stmt.obj)} or {null}][{self._slot(stmt)}][1:]" if isinstance(stmt, n.Pop) else "()"
                )
                return f"S.queue({self.text(stmt.obj)}, {self._slot(stmt)}, {rest}, {self._trigger(stmt)})"
            case _:
                raise TypeError(f"no such statement: {stmt}")

    def _slot(self, stmt: n.Assign | n.Push | n.Pop | n.Clear) -> int:
        return self.layout.slot[stmt.obj.type.name][stmt.field]

    def _trigger(self, stmt: n.Assign | n.Push | n.Pop | n.Clear) -> str:
        key = (stmt.obj.type.name, stmt.field)
        return repr(key) if key in self.layout.triggers else "None"
