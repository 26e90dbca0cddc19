"""Trees as a person would write them."""

from __future__ import annotations

from verbs_reference.nodes import (
    Arith,
    Builtin,
    Choice,
    Compare,
    Const,
    Expr,
    Field,
    Flags,
    If,
    Logic,
    Lookup,
    Member,
    Not,
    Over,
    Part,
    Record,
    Sequence,
    Var,
    children,
)


def show(expr: Expr) -> str:
    """The expression as a person would write it."""
    match expr:
        case Const() if expr.type.tag == "bool":
            return str(expr.value).lower()
        case Const():
            return str(expr.value)
        case Var():
            return expr.name
        case Field() | Part() | Lookup() | Choice():
            return _show_read(expr)
        case Not() | Logic() | Arith() | Compare() | Member() | If():
            return _show_operator(expr)
        case Flags() | Record() | Sequence() | Builtin() | Over():
            return _show_group(expr)
        case _:
            return type(expr).__name__


def _show_read(expr: Field | Part | Lookup | Choice) -> str:
    match expr:
        case Field():
            return f"{show(expr.obj)}.{expr.field}"
        case Part():
            return f"{show(expr.record)}.{expr.field}"
        case Lookup():
            return f"lookup({expr.kind}.{expr.field}, {show(expr.value)})"
        case Choice():
            return f"choice({expr.name})"


def _show_operator(expr: Not | Logic | Arith | Compare | Member | If) -> str:
    match expr:
        case Not():
            return f"not {show(expr.arg)}"
        case Logic():
            return "(" + f" {expr.op} ".join(show(a) for a in expr.args) + ")"
        case Arith() | Compare():
            return f"{show(expr.left)} {expr.op} {show(expr.right)}"
        case Member():
            return f"{show(expr.item)} in {show(expr.group)}"
        case If():
            return f"({show(expr.then)} if {show(expr.test)} else {show(expr.other)})"


def _show_group(expr: Flags | Record | Sequence | Builtin | Over) -> str:
    match expr:
        case Flags():
            return "{" + ", ".join(show(i) for i in expr.items) + "}"
        case Record() | Sequence():
            return f"({', '.join(show(c) for c in children(expr))})"
        case Builtin():
            return f"{expr.op}({', '.join(show(a) for a in expr.args)})"
        case Over():
            domain = expr.domain if isinstance(expr.domain, str) else show(expr.domain)
            test = f" if {show(expr.test)}" if expr.test is not None else ""
            return f"{expr.op}({show(expr.body)} for {expr.var} in {domain}{test})"
