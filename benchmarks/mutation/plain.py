"""What of a source decides what a healthy device does: the rest is left out before two sources are compared.

Left out are docstrings and messages (strings with a space in them, and formatted ones), annotations and names for
types, and what only a switched-on fault makes a device do.  A mutant whose source is the same then as the original's
is not worth judging.  What each comparison leaves out is one step, so that the mutants can be counted by it.
"""

from __future__ import annotations

import ast

NOTHING = ast.Constant(None)
FAULTS = {"faults", "_faults", "fault"}
TYPES = {"tuple", "list", "dict", "set", "frozenset", "type", "Callable", "Mapping", "Sequence", "Iterator", "Iterable"}


class Untyped(ast.NodeTransformer):
    """Leaves out annotations and names for types."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An annotated assignment, without what is annotated."""
        self.generic_visit(node)
        node.annotation = NOTHING
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function."""
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call; the first argument of ``cast`` is a type."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "cast":
            node.args[:1] = [NOTHING]
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """A module, whose own assignments may name types."""
        self.generic_visit(node)
        for each in node.body:
            if isinstance(each, ast.Assign) and is_type(each.value):
                each.value = NOTHING
        return node


class Silent(ast.NodeTransformer):
    """Leaves out docstrings and messages."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A text with a space in it is a message."""
        return NOTHING if isinstance(node.value, str) and " " in node.value else node

    def visit_JoinedStr(self, _node: ast.JoinedStr) -> ast.AST:
        """A formatted text is a message."""
        return NOTHING


class Healthy(ast.NodeTransformer):
    """Leaves out what no fault makes the device do, all being switched off."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Whether a fault is switched on: it is not."""
        self.generic_visit(node)
        match node:
            case ast.Compare(ast.Constant(str()), [ast.In() | ast.NotIn() as way], [ast.Name(id=name)]) if (
                name in FAULTS
            ):
                return ast.Constant(isinstance(way, ast.NotIn))
            case ast.Compare(ast.Constant(str()), [ast.In() | ast.NotIn() as way], [ast.Attribute(attr=name)]) if (
                name in FAULTS
            ):
                return ast.Constant(isinstance(way, ast.NotIn))
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """The contrary of what is known."""
        self.generic_visit(node)
        known = truth(node.operand)
        return node if known is None or not isinstance(node.op, ast.Not) else ast.Constant(not known)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """A conjunction or disjunction of which parts are known."""
        self.generic_visit(node)
        ends = isinstance(node.op, ast.Or)
        left: list[ast.expr] = []
        for each in node.values:
            known = truth(each)
            if known is None or known is ends:
                left.append(each)
            if known is ends:
                break
        node.values = left or [ast.Constant(not ends)]
        return node if len(node.values) > 1 else node.values[0]

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """A choice that is known."""
        self.generic_visit(node)
        known = truth(node.test)
        if known is None:
            return node
        return node.body if known else node.orelse

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """A branch that is never taken, or always."""
        self.generic_visit(node)
        known = truth(node.test)
        if known is None:
            return node
        return (node.body if known else node.orelse) or ast.Pass()


def truth(node: ast.expr) -> bool | None:
    """Whether an expression is known to hold; None if it is not known."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def is_type(node: ast.expr) -> bool:
    """Whether an expression names a type, as ``tuple[int, str]`` or ``X | None``."""
    match node:
        case ast.Subscript(ast.Name(id=name)):
            return name in TYPES
        case ast.BinOp(left, ast.BitOr(), right):
            return is_type(left) or is_type(right)
        case ast.Call(ast.Name(id="TypeVar")):
            return True
    return False


REASONS = {"annotation": Untyped, "message": Silent, "fault": Healthy}
"""Why a mutant is left out, in the order in which it is tried, each with what it leaves out of the sources."""


def reason(one: str, other: str) -> str:
    """Why two sources make the same healthy device; empty if they may not."""
    first, second = ast.parse(one), ast.parse(other)
    if ast.dump(first) == ast.dump(second):
        return "text"
    for why, leave_out in REASONS.items():
        first, second = leave_out().visit(first), leave_out().visit(second)
        if ast.dump(first) == ast.dump(second):
            return why
    return ""
