"""From text to typed tree: expressions.

``parse`` builds on this and adds statements and the places of errors: what is wrong here is ``Refused`` with the node
of ``ast`` where it stands.  Defines are expanded here: an argument's tree is put in the parameter's place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.types import BOOL, BYTES, NAT, NULL, SPANS, Type, accepts
from verbs_reference.vocabulary import Vocabulary
from verbs_spec.text import Text

_QUANTIFIERS = {"any": BOOL, "all": BOOL, "count": NAT, "sum": NAT, "flat": SPANS}
ARITH = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_FUNCTIONS: dict[str, tuple[tuple[str, ...], Type]] = {
    "len": (("queue",), NAT),
    "empty": (("queue",), BOOL),
    "nonempty": (("queue",), BOOL),
    "alive": (("ref",), BOOL),
    "pow2": (("nat",), BOOL),
    "shl": (("nat",), NAT),
    "span": (("nat", "nat"), SPANS),
    "walk": (("queue", "nat", "nat", "nat", "nat"), SPANS),
    "slice": (("spans", "nat", "nat"), SPANS),
    "upto": (("nat",), Type("queue", "", NAT)),
    "load": (("spans",), BYTES),
    "size": (("bytes",), NAT),
    "added": (("bytes", "nat"), BYTES),
    "exchanged": (("bytes", "nat", "nat"), BYTES),
    "int": (("bool",), NAT),
}
_OTHERS = ("head", "last", "nth", "lookup", "choice", "implies", "given", *_QUANTIFIERS)

Scope = Mapping[str, n.Expr]


class Refused(Exception):
    """A form that the language does not have; carries the ast node for its place."""

    def __init__(self, message: str, node: ast.AST) -> None:
        super().__init__(message)
        self.node = node


@dataclass(slots=True)
class Expressions:
    """Parses expressions of one specification."""

    voc: Vocabulary
    _open: list[str] = field(default_factory=list)

    def _typed(self, node: ast.expr, scope: Scope, want: Type | None) -> n.Expr:
        expr = self._expr(node, scope, want)
        if want is not None and not accepts(want, expr.type):
            raise Refused(f"this is a {expr.type}, but a {want} is needed here", node)
        return expr

    def _expr(self, node: ast.expr, scope: Scope, want: Type | None = None) -> n.Expr:
        handler = getattr(self, "_on_" + type(node).__name__, None)
        if handler is None:
            raise Refused(f"{type(node).__name__} is not part of the language", node)
        return handler(node, scope, want)  # type: ignore[no-any-return]

    def _on_Constant(self, node: ast.Constant, scope: Scope, want: Type | None) -> n.Expr:
        if type(node.value) is int and node.value >= 0:
            return n.Const(NAT, node.value)
        raise Refused(f"{node.value!r} is not a literal of the language: numbers are naturals", node)

    def _on_Name(self, node: ast.Name, scope: Scope, want: Type | None) -> n.Expr:
        name = node.id
        if name in scope:
            return scope[name]
        if name in self.voc.enum_of:
            return n.Const(Type("enum", self.voc.enum_of[name]), name)
        literals = {"true": n.Const(BOOL, True), "false": n.Const(BOOL, False), "null": n.Const(NULL, 0)}
        if name in literals:
            return literals[name]
        known = ", ".join(sorted(scope)) or "nothing"
        raise Refused(
            f"unknown name {name!r}; known here: {known}; and the enumerators of {', '.join(self.voc.enums)}",
            node,
        )

    def _on_Attribute(self, node: ast.Attribute, scope: Scope, want: Type | None) -> n.Expr:
        base = self._expr(node.value, scope)
        if base.type.tag == "ref":
            fields = {f: i.type for f, i in self.voc.objects[base.type.name].items()}
        elif base.type.tag == "record":
            fields = self.voc.records[base.type.name]
        else:
            raise Refused(f"a {base.type} has no fields", node)
        if node.attr not in fields:
            raise Refused(f"{base.type} has no field {node.attr!r}; it has {', '.join(fields)}", node)
        kind = fields[node.attr]
        if base.type.tag == "ref":
            return n.Field(kind, base, node.attr)
        return n.Part(kind, base, node.attr)

    def _on_UnaryOp(self, node: ast.UnaryOp, scope: Scope, want: Type | None) -> n.Expr:
        if not isinstance(node.op, ast.Not):
            raise Refused("only 'not' may stand before a value: numbers are naturals", node)
        return n.Not(BOOL, self._typed(node.operand, scope, BOOL))

    def _on_BoolOp(self, node: ast.BoolOp, scope: Scope, want: Type | None) -> n.Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        return n.Logic(BOOL, op, tuple(self._typed(v, scope, BOOL) for v in node.values))

    def _on_BinOp(self, node: ast.BinOp, scope: Scope, want: Type | None) -> n.Expr:
        op = ARITH.get(type(node.op))
        if op is None:
            raise Refused("arithmetic has + - * // %", node)
        left, right = self._typed(node.left, scope, NAT), self._typed(node.right, scope, NAT)
        return n.Arith(NAT, op, left, right)

    def _on_IfExp(self, node: ast.IfExp, scope: Scope, want: Type | None) -> n.Expr:
        then = self._expr(node.body, scope, want)
        other = self._expr(node.orelse, scope, then.type)
        kind = other.type if then.type == NULL else then.type
        if not accepts(kind, other.type):
            raise Refused(f"the two sides are a {then.type} and a {other.type}", node)
        return n.If(kind, self._typed(node.test, scope, BOOL), then, other)

    def _on_Set(self, node: ast.Set, scope: Scope, want: Type | None) -> n.Expr:
        items = tuple(self._expr(e, scope) for e in node.elts)
        kinds = {i.type for i in items}
        if len(kinds) != 1 or items[0].type.tag != "enum":
            raise Refused("{...} is a flags value: enumerators of one enum", node)
        return n.Flags(Type("flags", items[0].type.name), items)

    def _on_Dict(self, node: ast.Dict, scope: Scope, want: Type | None) -> n.Expr:
        if node.keys or want is None or want.tag != "flags":
            raise Refused("{} is the empty flags value and may stand only where flags are expected", node)
        return n.Flags(want, ())

    def _on_List(self, node: ast.List, scope: Scope, want: Type | None) -> n.Expr:
        if want is None or want.tag != "queue" or want.elem is None:
            raise Refused("[...] may stand only where a queue is expected", node)
        return n.Sequence(want, tuple(self._typed(e, scope, want.elem) for e in node.elts))

    def _on_Compare(self, node: ast.Compare, scope: Scope, want: Type | None) -> n.Expr:
        if len(node.ops) != 1:
            raise Refused("comparisons are not chained: write 'a < b and b < c'", node)
        op, right_node = node.ops[0], node.comparators[0]
        if isinstance(op, ast.In | ast.NotIn):
            found = self._member(node, right_node, scope)
            return found if isinstance(op, ast.In) else n.Not(BOOL, found)
        sign = _COMPARE.get(type(op))
        if sign is None:
            raise Refused("comparisons are == != < <= > >= in", node)
        left = self._expr(node.left, scope)
        right = self._expr(right_node, scope, left.type)
        if left.type.tag == "memory" or right.type.tag == "memory":
            raise Refused("memory is compared through load(span(...))", node)
        if left.type.tag == "spans":
            raise Refused("places are compared by what they hold: load(...)", node)
        if left.type != right.type and not (accepts(left.type, right.type) or accepts(right.type, left.type)):
            raise Refused(f"a {left.type} cannot be compared with a {right.type}", node)
        if sign not in {"==", "!="} and left.type != NAT:
            raise Refused(f"only numbers have an order, not a {left.type}", node)
        return n.Compare(BOOL, sign, left, right)

    def _member(self, node: ast.Compare, group_node: ast.expr, scope: Scope) -> n.Expr:
        item = self._expr(node.left, scope)
        if isinstance(group_node, ast.Tuple):
            tests = [n.Compare(BOOL, "==", item, self._typed(e, scope, item.type)) for e in group_node.elts]
            return tests[0] if len(tests) == 1 else n.Logic(BOOL, "or", tuple(tests))
        group = self._expr(group_node, scope)
        fits = (group.type.tag == "flags" and item.type == Type("enum", group.type.name)) or (
            group.type.tag == "queue" and group.type.elem is not None and accepts(group.type.elem, item.type)
        )
        if not fits:
            raise Refused(f"a {item.type} cannot be in a {group.type}", node)
        return n.Member(BOOL, item, group)

    def _on_Call(self, node: ast.Call, scope: Scope, want: Type | None) -> n.Expr:
        if not isinstance(node.func, ast.Name):
            raise Refused("only functions of the language and defines are called", node)
        name = node.func.id
        if name in self.voc.records:
            return self._record(node, name, scope)
        if name in self.voc.defines:
            return self._expand(node, name, scope)
        if node.keywords:
            raise Refused(f"{name} takes no named arguments", node)
        if name in _QUANTIFIERS:
            return self._over(node, name, scope)
        if name in _FUNCTIONS:
            return self._function(node, name, scope)
        special = getattr(self, "_call_" + name, None) if name in _OTHERS else None
        if special is None:
            known = [*_FUNCTIONS, *_OTHERS, *self.voc.records, *self.voc.defines]
            raise Refused(f"unknown function {name!r}; known: {', '.join(known)}", node)
        return special(node, scope)  # type: ignore[no-any-return]

    def _function(self, node: ast.Call, name: str, scope: Scope) -> n.Expr:
        tags, result = _FUNCTIONS[name]
        if len(node.args) != len(tags):
            raise Refused(f"{name} takes {len(tags)} arguments, not {len(node.args)}", node)
        args = tuple(self._expr(a, scope) for a in node.args)
        for have, tag, arg_node in zip(args, tags, node.args, strict=True):
            if have.type.tag != tag and not (tag == "bytes" and have.type.tag == "memory"):
                raise Refused(f"{name} takes a {tag} here, not a {have.type}", arg_node)
        if name in {"empty", "nonempty"}:
            length = n.Builtin(NAT, "len", args)
            return n.Compare(BOOL, "==" if name == "empty" else "!=", length, n.Const(NAT, 0))
        if name == "int":
            return n.If(NAT, args[0], n.Const(NAT, 1), n.Const(NAT, 0))
        return n.Builtin(result, name, args)

    def _call_head(self, node: ast.Call, scope: Scope) -> n.Expr:
        return self._end(node, "head", scope)

    def _call_last(self, node: ast.Call, scope: Scope) -> n.Expr:
        return self._end(node, "last", scope)

    def _call_nth(self, node: ast.Call, scope: Scope) -> n.Expr:
        if len(node.args) != 2:
            raise Refused("nth takes a queue and a number", node)
        queue = self._expr(node.args[0], scope)
        if queue.type.tag != "queue" or queue.type.elem is None:
            raise Refused(f"nth takes a queue, not a {queue.type}", node)
        return n.Builtin(queue.type.elem, "nth", (queue, self._typed(node.args[1], scope, NAT)))

    def _end(self, node: ast.Call, op: str, scope: Scope) -> n.Expr:
        queue = self._expr(_only(node, op), scope)
        if queue.type.tag != "queue" or queue.type.elem is None:
            raise Refused(f"{op} takes a queue, not a {queue.type}", node)
        return n.Builtin(queue.type.elem, op, (queue,))

    def _call_implies(self, node: ast.Call, scope: Scope) -> n.Expr:
        if len(node.args) != 2:
            raise Refused("implies takes two arguments", node)
        left, right = (self._typed(a, scope, BOOL) for a in node.args)
        return n.Logic(BOOL, "or", (n.Not(BOOL, left), right))

    def _call_given(self, node: ast.Call, scope: Scope) -> n.Expr:
        arg = _only(node, "given")
        found = scope.get(arg.id) if isinstance(arg, ast.Name) else None
        if isinstance(found, n.Const):
            return n.Const(BOOL, False)
        if not isinstance(found, n.Var):
            raise Refused("given takes the name of a parameter or output that may be absent", node)
        return n.Builtin(BOOL, "given", (found,))

    def _call_choice(self, node: ast.Call, scope: Scope) -> n.Expr:
        arg = _only(node, "choice")
        if not isinstance(arg, ast.Name) or arg.id not in self.voc.choices:
            raise Refused(f"choice takes the name of a choice: {', '.join(self.voc.choices)}", node)
        options = self.voc.choices[arg.id][0]
        return n.Choice(Type("enum", self.voc.enum_of[options[0]]), arg.id)

    def _call_lookup(self, node: ast.Call, scope: Scope) -> n.Expr:
        if len(node.args) != 2 or not isinstance(node.args[0], ast.Attribute):
            raise Refused("lookup takes object.field and a value", node)
        target = node.args[0]
        kind = target.value.id if isinstance(target.value, ast.Name) else ""
        if kind not in self.voc.objects or target.attr not in self.voc.objects[kind]:
            raise Refused(f"lookup's first argument is a field of one of {', '.join(self.voc.objects)}", node)
        want = self.voc.objects[kind][target.attr].type
        return n.Lookup(Type("ref", kind), kind, target.attr, self._typed(node.args[1], scope, want))

    def _over(self, node: ast.Call, op: str, scope: Scope) -> n.Expr:
        arg = _only(node, op)
        if not isinstance(arg, ast.GeneratorExp) or len(arg.generators) != 1:
            raise Refused(f"{op} takes one 'body for x in domain'", node)
        var, var_type, domain, test, inner = self._generator(arg.generators[0], scope)
        want = {"any": BOOL, "all": BOOL, "sum": NAT, "flat": SPANS}.get(op)
        body = self._typed(arg.elt, inner, want) if want else n.Const(BOOL, True)
        return n.Over(_QUANTIFIERS[op], op, var, var_type, domain, test, body)

    def _generator(
        self, gen: ast.comprehension, scope: Scope
    ) -> tuple[str, Type, n.Expr | str, n.Expr | None, dict[str, n.Expr]]:
        if not isinstance(gen.target, ast.Name) or len(gen.ifs) > 1:
            raise Refused("a generator is 'for x in domain' with at most one 'if'", gen.target)
        domain: n.Expr | str
        name = gen.iter.id if isinstance(gen.iter, ast.Name) else ""
        if name in self.voc.objects and not (name in scope and scope[name].type.tag in {"queue", "flags"}):
            domain, elem = name, Type("ref", name)
        else:
            domain = self._expr(gen.iter, scope)
            if domain.type.tag == "flags":
                elem = Type("enum", domain.type.name)
            elif domain.type.tag == "queue" and domain.type.elem is not None:
                elem = domain.type.elem
            else:
                raise Refused(
                    f"a {domain.type} cannot be walked: a domain is a queue, flags, or one of "
                    f"{', '.join(self.voc.objects)}",
                    gen.iter,
                )
        var = _unused(gen.target.id, scope)
        inner = {**scope, gen.target.id: n.Var(elem, var)}
        test = self._typed(gen.ifs[0], inner, BOOL) if gen.ifs else None
        return var, elem, domain, test, inner

    def _record(self, node: ast.Call, name: str, scope: Scope) -> n.Expr:
        fields = self.voc.records[name]
        given = {k.arg: k.value for k in node.keywords if k.arg}
        if node.args or not set(given) <= set(fields):
            raise Refused(f"{name} takes by name {', '.join(fields)}, and nothing else", node)
        parts = tuple(
            self._typed(given[f], scope, kind) if f in given else n.Const(kind, self.voc.default(kind))
            for f, kind in fields.items()
        )
        return n.Record(Type("record", name), parts)

    def _expand(self, node: ast.Call, name: str, scope: Scope) -> n.Expr:
        inner, body = self._bind(node, name, scope)
        try:
            tree = tree_of(str(body).strip(), "eval").body
        except SyntaxError:
            raise Refused(f"{name} is a procedure: it stands as a statement", node) from None
        result = self.voc.defines[name].result
        with self._inside(name, node):
            return self._expr(tree, inner, self.voc.resolve(result) if result is not None else None)

    @contextmanager
    def _inside(self, name: str, node: ast.Call) -> Iterator[None]:
        """Expand a define; a refusal inside its body is placed at the call that expanded it."""
        if name in self._open:
            raise Refused(f"{name} leads back to itself; defines are not recursive", node)
        self._open.append(name)
        try:
            yield
        except Refused as e:
            raise Refused(f"in {name}: {e}", node) from None
        finally:
            self._open.pop()

    def _bind(self, node: ast.Call, name: str, scope: Scope) -> tuple[dict[str, n.Expr], Text]:
        define = self.voc.defines[name]
        if node.keywords or len(node.args) != len(define.params):
            names = ", ".join(str(p.name) for p in define.params)
            raise Refused(f"{name} takes {len(define.params)} arguments ({names})", node)
        inner = {
            str(p.name): self._typed(a, scope, self.voc.resolve(p.type))
            for p, a in zip(define.params, node.args, strict=True)
        }
        return inner, define.body


@cache
def tree_of(source: str, mode: str) -> Any:
    """Parse, each source once; an expression may span lines, so it is wrapped, and its lines count from 2."""
    return ast.parse(f"(\n{source}\n)" if mode == "eval" else source, mode=mode)


def _unused(name: str, scope: Scope) -> str:
    """The name, or a longer one where an argument of a define that is being expanded means another by it."""
    taken = set().union(*(n.free_names(e) for key, e in scope.items() if key != name))
    while name in taken:
        name += "_"
    return name


def _only(node: ast.Call, name: str) -> ast.expr:
    if len(node.args) != 1:
        raise Refused(f"{name} takes one argument", node)
    return node.args[0]
