"""From text to typed tree.

The syntax is Python's; the standard library's ``ast`` parses it and this module admits the few forms that
``docs/spec-format.md`` lists, resolves names and checks types.  ``expressions`` does so for expressions, this module
for statements.  Every refusal is a ``SpecError`` at the place of the offending form, with the list of what would be
allowed.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from verbs_reference import nodes as n
from verbs_reference import types as t
from verbs_reference.expressions import ARITH, Expressions, Refused, Scope, tree_of
from verbs_reference.types import BOOL, BYTES, NAT, SPANS, Type
from verbs_spec.errors import SpecError
from verbs_spec.text import Text

_R = TypeVar("_R")


@dataclass(slots=True)
class Parser(Expressions):
    """Parses expressions and statements of one specification."""

    _locals: int = 0

    def expression(self, text: Text, scope: Scope, want: Type | None = None) -> n.Expr:
        """Parse one expression; ``want`` is the type that its place demands."""
        source = str(text).strip()
        return self._guarded(text, lambda: self._typed(tree_of(source, "eval").body, scope, want), 2)

    def statements(self, text: Text, scope: Scope) -> tuple[n.Stmt, ...]:
        """Parse a block of statements."""
        source = textwrap.dedent(str(text)).strip()
        return self._guarded(text, lambda: self._block(tree_of(source, "exec").body, dict(scope)), 1)

    def objects(self, text: Text, scope: Scope) -> tuple[n.Expr | tuple[n.Over, ...], ...]:
        """Parse the objects of an ``undefined``: ``{a, b}``, comprehensions, joined by ``|``.

        Returns a tuple of reference expressions, and for a comprehension a pair of an Over whose body is
        the reference.
        """
        source = str(text).strip()
        return self._guarded(text, lambda: tuple(self._objects(tree_of(source, "eval").body, scope)), 2)

    def _guarded(self, text: Text, work: Callable[[], _R], first_line: int) -> _R:
        try:
            return work()
        except Refused as e:
            node = e.node
            line, column = max(getattr(node, "lineno", 1) - first_line, 0), getattr(node, "col_offset", 0)
            raise SpecError(f"in {str(text).strip()!r}: {e}", text.at(line, column)) from None
        except SyntaxError as e:
            where = text.at(max((e.lineno or 1) - first_line, 0), max((e.offset or 1) - 1, 0))
            raise SpecError(f"{str(text).strip()!r} is not an expression: {e.msg}", where) from None

    # -- statements ----------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], scope: dict[str, n.Expr]) -> tuple[n.Stmt, ...]:
        made: list[n.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ast.Assign):
                made.append(self._assign(stmt, scope))
            elif isinstance(stmt, ast.AugAssign):
                made.append(self._augmented(stmt, scope))
            elif isinstance(stmt, ast.If):
                test = self._typed(stmt.test, scope, BOOL)
                then, other = self._block(stmt.body, dict(scope)), self._block(stmt.orelse, dict(scope))
                made.append(n.Branch(test, then, other))
            elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
                made.extend(self._action(stmt.value, scope))
            elif not isinstance(stmt, ast.Pass):
                raise Refused(f"{type(stmt).__name__} is not a statement of the language", stmt)
        return tuple(made)

    def _target(self, node: ast.expr, scope: Scope, tag: str = "") -> n.Field:
        expr = self._expr(node, scope)
        if not isinstance(expr, n.Field) or (tag and expr.type.tag != tag):
            raise Refused(f"the target must be a {tag + ' ' if tag else ''}field of an object", node)
        return expr

    def _assign(self, stmt: ast.Assign, scope: dict[str, n.Expr]) -> n.Stmt:
        target = stmt.targets[0]
        if isinstance(target, ast.Name):
            return self._local(target, stmt.value, scope)
        left = self._target(target, scope)
        return n.Assign(left.obj, left.field, self._typed(stmt.value, scope, left.type))

    def _local(self, target: ast.Name, value: ast.expr, scope: dict[str, n.Expr]) -> n.Stmt:
        if target.id in scope:
            raise Refused(f"{target.id!r} has a value already; a local name is given once", target)
        name = target.id
        if self._open:  # the names of a procedure are its own, whoever calls it
            self._locals += 1
            name = f"{name}__{self._locals}"
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "new":
            kind = value.args[0].id if value.args and isinstance(value.args[0], ast.Name) else ""
            if kind not in self.voc.objects:
                raise Refused(f"new's first argument is one of {', '.join(self.voc.objects)}", value)
            values = []
            for k in value.keywords:
                if k.arg not in self.voc.objects[kind]:
                    raise Refused(f"{kind} has no field {k.arg!r}; it has {', '.join(self.voc.objects[kind])}", value)
                values.append((k.arg, self._typed(k.value, scope, self.voc.objects[kind][k.arg].type)))
            scope[target.id] = n.Var(Type("ref", kind), name)
            return n.New(name, kind, tuple(values))
        expr = self._expr(value, scope)
        scope[target.id] = n.Var(expr.type, name)
        return n.Let(name, expr)

    def _augmented(self, stmt: ast.AugAssign, scope: Scope) -> n.Stmt:
        left = self._target(stmt.target, scope, "nat")
        op = ARITH.get(type(stmt.op))
        if op not in {"+", "-"}:
            raise Refused("only += and -= change a field in place", stmt)
        value = n.Arith(NAT, op, left, self._typed(stmt.value, scope, NAT))
        return n.Assign(left.obj, left.field, value)

    def _action(self, node: ast.Call, scope: dict[str, n.Expr]) -> tuple[n.Stmt, ...]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self.voc.defines:
            inner, body = self._bind(node, name, scope)
            with self._inside(name, node):
                return self._block(tree_of(textwrap.dedent(str(body)).strip(), "exec").body, dict(inner))
        if name == "push" and len(node.args) == 2:
            queue = self._target(node.args[0], scope, "queue")
            return (n.Push(queue.obj, queue.field, self._typed(node.args[1], scope, queue.type.elem)),)
        if name in {"pop", "clear"} and len(node.args) == 1:
            queue = self._target(node.args[0], scope, "queue")
            return (n.Pop(queue.obj, queue.field) if name == "pop" else n.Clear(queue.obj, queue.field),)
        if name == "delete" and len(node.args) == 1:
            obj = self._expr(node.args[0], scope)
            if obj.type.tag == "ref":
                return (n.Delete(obj),)
        if name == "havoc" and len(node.args) == 1:
            return (n.Havoc(self._typed(node.args[0], scope, SPANS)),)
        if name == "store" and len(node.args) == 2:
            return (n.Store(self._typed(node.args[0], scope, SPANS), self._typed(node.args[1], scope, BYTES)),)
        raise Refused(
            f"{name or 'this'} is not an action; known: push(queue, value), pop(queue), clear(queue), "
            f"delete(object), store(spans, bytes), havoc(spans), {', '.join(self.voc.defines)}",
            node,
        )

    def _objects(self, node: ast.expr, scope: Scope) -> list[n.Expr | tuple[n.Over, ...]]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return [*self._objects(node.left, scope), *self._objects(node.right, scope)]
        if isinstance(node, ast.Set):
            found: list[n.Expr | tuple[n.Over, ...]] = []
            for e in node.elts:
                expr = self._expr(e, scope)
                if expr.type.tag != "ref":
                    raise Refused(f"undefined names objects, not a {expr.type}", e)
                found.append(expr)
            return found
        if isinstance(node, ast.SetComp):
            inner: Scope = scope
            overs = []
            for gen in node.generators:
                var, var_type, domain, test, inner = self._generator(gen, inner)
                overs.append((var, var_type, domain, test))
            body = self._expr(node.elt, inner)
            return [tuple(n.Over(t.NONE, "each", *o, body) for o in overs)]
        raise Refused("undefined is {a, b}, {x for x in domain if test}, or several joined by |", node)
