"""The first reading: typed trees become Python functions.

Each guard, output test and effect is turned into the source of one Python function and compiled once, at
load.  A function takes the store ``S`` and its names as positional arguments.  Names get a prefix, so no
name of a specification can meet one of Python's.  ``naive`` is the reading that tests this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.store import Layout, walk_pages

Function = Callable[..., Any]


def _sub(left: int, right: int) -> int:
    return left - right if left > right else 0


def _pow2(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _shl(value: int) -> int:
    return 1 << min(value, 63)


def _each(groups: Iterable[tuple[tuple[int, int], ...]]) -> tuple[tuple[int, int], ...]:
    return tuple(place for group in groups for place in group)


GLOBALS: dict[str, Any] = {
    "_sub": _sub,
    "_pow2": _pow2,
    "_shl": _shl,
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
        lines = self._block(body, fresh or {})
        return self._make(names, lines or ["pass"])

    def _make(self, names: Iterable[str], lines: list[str]) -> Function:
        params = ", ".join(["S", *(f"v_{name}" for name in names)])
        source = "\n".join([f"def f({params}):", "    D = S.objects", *("    " + line for line in lines)])
        scope = dict(GLOBALS)
        exec(compile(source, "<rule>", "exec"), scope)  # noqa: S102 - the source is made here from checked trees
        function: Function = scope["f"]
        return function

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
        return f"_sub({left}, {right})" if e.op == "-" else f"({left} {e.op} {right})"

    def _Compare(self, e: n.Compare) -> str:
        return f"({self.text(e.left)} {e.op} {self.text(e.right)})"

    def _If(self, e: n.If) -> str:
        return f"({self.text(e.then)} if {self.text(e.test)} else {self.text(e.other)})"

    def _Member(self, e: n.Member) -> str:
        return f"({self.text(e.item)} in {self.text(e.group)})"

    def _Flags(self, e: n.Flags) -> str:
        return "frozenset((" + "".join(self.text(i) + ", " for i in e.items) + "))"

    def _Record(self, e: n.Record) -> str:
        return "(" + "".join(self.text(p) + ", " for p in e.parts) + ")"

    def _Lookup(self, e: n.Lookup) -> str:
        return f"S.table[{(e.kind, e.field)!r}].get({self.text(e.value)}, 0)"

    def _Choice(self, e: n.Choice) -> str:
        return f"S.choose({e.name!r})"

    def _Over(self, e: n.Over) -> str:
        domain = f"S.live[{e.domain!r}]" if isinstance(e.domain, str) else self.text(e.domain)
        test = f" if {self.text(e.test)}" if e.test is not None else ""
        loop = f"for v_{e.var} in {domain}{test}"
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
                values = ", ".join(f"{f!r}: {self.text(v)}" for f, v in self._initial(stmt))
                return f"v_{stmt.name} = S.new({stmt.kind!r}, {number}, {{{values}}})"
            case n.Delete():
                return f"S.delete({stmt.obj.type.name!r}, {self.text(stmt.obj)})"
            case n.Store():
                return f"S.store({self.text(stmt.places)}, {self.text(stmt.data)})"
            case n.Assign():
                return f"S.set({self.text(stmt.obj)}, {self._slot(stmt)}, {self.text(stmt.value)})"
            case n.Push():
                trigger = self._trigger(stmt)
                return f"S.push({self.text(stmt.obj)}, {self._slot(stmt)}, {self.text(stmt.value)}, {trigger})"
            case n.Pop() | n.Clear():
                null = self.layout.null[stmt.obj.type.name]
                rest = f"D[{self.text(stmt.obj)} or {null}][{self._slot(stmt)}][1:]" if isinstance(stmt, n.Pop) else "()"
                return f"S.queue({self.text(stmt.obj)}, {self._slot(stmt)}, {rest}, {self._trigger(stmt)})"
            case _:
                raise TypeError(f"no such statement: {stmt}")

    def _initial(self, stmt: n.New) -> list[tuple[str, n.Expr]]:
        return list(stmt.values)

    def _slot(self, stmt: n.Assign | n.Push | n.Pop | n.Clear) -> int:
        return self.layout.slot[stmt.obj.type.name][stmt.field]

    def _trigger(self, stmt: n.Push | n.Pop | n.Clear) -> str:
        key = (stmt.obj.type.name, stmt.field)
        return repr(key) if key in self.layout.triggers else "None"
