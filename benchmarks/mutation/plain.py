"""What of a source decides what a healthy device does: the rest is left out before two sources are compared.

Left out are docstrings and messages (strings with a space in them, and formatted ones), annotations and names for
types, and what only a switched-on fault makes a device do.  A mutant whose source is the same then as the original's
is not worth judging.  What each comparison leaves out is one step, so that the mutants can be counted by it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

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
                while not ends and len(left) > 1 and is_pure(left[-2]):
                    del left[-2]  # whatever it is, the conjunction does not hold
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


class Known(ast.NodeTransformer):
    """Puts what is known for what is set to it once and for all: a local name, or an attribute of the object itself."""

    def __init__(self) -> None:
        self.names: dict[str, ast.Constant] = {}
        self.attributes: dict[str, ast.Constant] = {}

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """A module, in which an attribute may be set once."""
        self.attributes = _set_once(node, lambda n: n.attr if isinstance(n, ast.Attribute) and is_own(n) else None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function, in which a name may be set once."""
        before, self.names = self.names, _set_once(node, lambda n: n.id if isinstance(n, ast.Name) else None)
        self.generic_visit(node)
        self.names = before
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name that is known."""
        return self.names.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An attribute that is known."""
        self.generic_visit(node)
        return self.attributes.get(node.attr, node) if isinstance(node.ctx, ast.Load) and is_own(node) else node


def _set_once(node: ast.AST, name_of: Callable[[ast.AST], str | None]) -> dict[str, ast.Constant]:
    """What is known of the names that are set once in a part of a source, to what is known."""
    stored = [name_of(n) for n in ast.walk(node) if isinstance(getattr(n, "ctx", None), ast.Store)]
    stored += [n.arg for n in ast.walk(node) if isinstance(n, ast.arg)]
    found: dict[str, ast.Constant] = {}
    for each in ast.walk(node):
        match each:
            case ast.Assign([target], ast.Constant(bool()) as value):
                name = name_of(target)
                if name is not None and stored.count(name) == 1:
                    found[name] = value
    return found


def is_own(node: ast.Attribute) -> bool:
    """Whether an attribute is one of ``self``."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


class Unused(ast.NodeTransformer):
    """Leaves out the private functions that nothing names any more."""

    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self.gone = named(before) - named(after)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function."""
        self.generic_visit(node)
        return ast.Pass() if node.name.startswith("_") and node.name in self.gone else node


def named(node: ast.AST) -> set[str]:
    """What is named in a part of a source."""
    return {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)
    }


def healthy(tree: ast.AST) -> ast.AST:
    """A source without what only a switched-on fault makes the device do."""
    before, text = copy.deepcopy(tree), ""
    while text != (text := ast.dump(tree)):
        tree = Known().visit(Healthy().visit(tree))
    found = Unused(before, tree).visit(tree)
    assert isinstance(found, ast.AST)
    return found


def truth(node: ast.expr) -> bool | None:
    """Whether an expression is known to hold; None if it is not known."""
    match node:
        case ast.Constant(bool(value)):
            return value
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in FAULTS:
            return False
    return None


def is_pure(node: ast.expr) -> bool:
    """Whether an expression only looks at something."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=of) | ast.UnaryOp(operand=of):
            return is_pure(of)
        case ast.Compare(left, _, others):
            return all(map(is_pure, (left, *others)))
    return False


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


REASONS: dict[str, Callable[[ast.AST], ast.AST]] = {
    "annotation": lambda t: Untyped().visit(t),
    "message": lambda t: Silent().visit(t),
    "fault": healthy,
}
"""Why a mutant is left out, in the order in which it is tried, each with what it leaves out of the sources."""


def reason(one: str, other: str) -> str:
    """Why two sources make the same healthy device; empty if they may not."""
    first: ast.AST = ast.parse(one)
    second: ast.AST = ast.parse(other)
    if ast.dump(first) == ast.dump(second):
        return "text"
    for why, leave_out in REASONS.items():
        first, second = leave_out(first), leave_out(second)
        if ast.dump(first) == ast.dump(second):
            return why
    return ""
