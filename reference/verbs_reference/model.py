"""The second half of the reading: a specification under its profiles becomes a machine.

A :class:`Model` holds, for each call, its rules with compiled guards, output tests and effects, and, for
each family of internal steps, one compiled function that says which case applies to the head of the queue
that the family takes.  It runs nothing by itself: ``belief`` decides when which step runs, and knows no verb,
object, state or status by name either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from verbs_reference import nodes as n
from verbs_reference import vocabulary
from verbs_reference.compiled import Compiler
from verbs_reference.parse import Parser
from verbs_reference.store import Layout, Store
from verbs_reference.types import BOOL, Type, absent
from verbs_reference.vocabulary import Vocabulary
from verbs_spec.document import Call, CallRule, Spec, StepFamily, StepRule
from verbs_spec.errors import SpecError, Where
from verbs_spec.text import Text

Function = Callable[..., Any]


@dataclass(slots=True)
class CallCase:
    """One rule of a call: trees for the solver and for analysis, functions for running."""

    id: str
    rule: CallRule
    guard_tree: n.Expr | None
    outputs_tree: n.Expr | None
    body: tuple[n.Stmt, ...]
    guard: Function | None
    outputs: Function | None
    plain: Function | None
    effect: Function | None
    undefined: Function | None
    returns: frozenset[str]
    prefer: frozenset[str]

    @property
    def is_cause(self) -> bool:
        """Whether this is a way to fail."""
        return self.rule.cause is not None

    @property
    def always(self) -> bool:
        """Whether the guard is the constant true: a failure for which nothing that a consumer sees is the reason."""
        return isinstance(self.guard_tree, n.Const)


@dataclass(slots=True)
class CallCode:
    """A call: parameters and outputs with types, those that may be absent, ways to succeed, ways to fail."""

    name: str
    params: dict[str, Type]
    outputs: dict[str, Type]
    optional: frozenset[str]
    successes: list[CallCase]
    causes: list[CallCase]
    creates: tuple[str, ...]
    found: frozenset[str] = frozenset()
    """The outputs that name an object which is there."""

    @property
    def opens(self) -> bool:
        """Whether the call makes something out of nothing: a device."""
        return not self.params and next(iter(self.outputs), "") in self.creates

    def gives_nothing(self, out: Mapping[str, Any]) -> bool:
        """Whether these outputs say that nothing was found: the first one counts what was, and is 0."""
        first = next(iter(self.outputs), "")
        return bool(first) and self.outputs[first].tag == "nat" and out.get(first) == 0

    @property
    def cases(self) -> list[CallCase]:
        """All rules of the call."""
        return [*self.successes, *self.causes]


@dataclass(slots=True)
class StepCase:
    """One case of an internal step."""

    id: str
    rule: StepRule
    when_tree: n.Expr
    body: tuple[n.Stmt, ...]
    effect: Function


@dataclass(slots=True)
class Family:
    """A family of internal steps; ``pick(S, number)`` is the applying case's position, or -1."""

    name: str
    kind: str
    var: str
    trigger: tuple[str, str]
    head_var: str
    head_type: Type
    lets: dict[str, n.Expr]
    domain_tree: n.Expr | None
    optional: bool
    cases: list[StepCase]
    pick: Function
    wheres: str


class Model:
    """A specification under one API and one transport profile, ready to run."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.voc: Vocabulary = vocabulary.build(spec)
        self.parser = Parser(self.voc)
        self._reject_unknown_types()
        trees = _Trees(self.parser, self.voc, spec)
        triggers = {(f.kind, f.field) for f in trees.families}
        self.layout = Layout(self.voc, trees.looked_up(), triggers)
        self._reject_changed_keys(trees)
        self._set_initial_values()
        self.layout.transient = self._transient(trees)
        self.compiler = Compiler(self.layout)
        self.families: list[Family] = [self._family(f) for f in trees.families]
        self.calls: dict[str, CallCode] = {c.name: self._call(c) for c in trees.calls}

    def store(self) -> Store:
        """A state with no objects."""
        return Store(self.layout)

    def left_out(self, code: CallCode, name: str) -> Any:
        """What stands for a parameter or output that is not there."""
        kind = code.params.get(name) or code.outputs[name]
        default = self.voc.default(kind)
        return absent(default) if name in code.optional else default

    def _reject_unknown_types(self) -> None:
        for define in self.spec.defines.values():
            for param in define.params:
                self.voc.resolve(param.type)

    def _reject_changed_keys(self, trees: _Trees) -> None:
        """A field through which objects are looked up must stay as it was made."""
        for rule, body in trees.bodies():
            for stmt in n.flat(body):
                if isinstance(stmt, n.Assign) and (stmt.obj.type.name, stmt.field) in self.layout.looked_up:
                    assert rule.do is not None
                    raise SpecError(
                        f"{rule.id} changes {stmt.obj.type.name}.{stmt.field}, by which objects are looked up; "
                        "such a field is given when the object is made and never again",
                        rule.do.where,
                    )

    def _set_initial_values(self) -> None:
        for kind, fields in self.voc.objects.items():
            for i, info in enumerate(fields.values()):
                if info.init is not None:
                    tree = self.parser.expression(info.init, {}, info.type)
                    self.layout.defaults[kind][i] = literal(tree, info.init.where)

    def _transient(self, trees: _Trees) -> dict[str, tuple[int, ...]]:
        """The kinds that only taken queues refer to, with the slots that are assigned after an object was made."""
        made = {kind.name for c in trees.calls for kind in c.outputs.values() if kind.tag == "ref"}
        referred = {
            inner.name
            for kind, fields in self.voc.objects.items()
            for name, info in fields.items()
            for inner in [info.type.elem if info.type.tag == "queue" and info.type.elem else info.type]
            if inner.tag == "ref" and (kind, name) not in self.layout.triggers
        }
        referred |= {t.name for fields in self.voc.records.values() for t in fields.values() if t.tag == "ref"}
        assigned = trees.assigned()
        return {
            kind: tuple(self.layout.slot[kind][f] for k, f in sorted(assigned) if k == kind)
            for kind in self.voc.objects
            if kind not in made | referred
        }

    def _call(self, tree: _CallTree) -> CallCode:
        names = [*tree.params, *tree.outputs]
        cases = []
        for rule, guard, outputs, body, undefined in tree.rules:
            cases.append(
                CallCase(
                    id=str(rule.id),
                    rule=rule,
                    guard_tree=guard,
                    outputs_tree=outputs,
                    body=body,
                    guard=self.compiler.expression(guard, tree.params) if guard is not None else None,
                    outputs=self.compiler.expression(outputs, names) if outputs is not None else None,
                    plain=self._plain(outputs, names),
                    effect=self.compiler.effect(body, names, {x: x for x in tree.created()}) if body else None,
                    undefined=self.compiler.objects(undefined, tree.params) if undefined else None,
                    returns=frozenset(str(r) for r in rule.returns),
                    prefer=frozenset(str(r) for r in rule.prefer),
                )
            )
        successes = [c for c in cases if not c.is_cause]
        return CallCode(
            tree.name,
            tree.params,
            tree.outputs,
            tree.optional,
            successes,
            [c for c in cases if c.is_cause],
            tree.created(),
            tree.found,
        )

    def _plain(self, outputs: n.Expr | None, names: list[str]) -> Function | None:
        """The part of an output test that depends on the call alone, not on the state."""
        if outputs is None:
            return None
        kept = tuple(c for c in n.conjuncts(outputs) if n.is_stateless(c))
        if not kept:
            return None
        return self.compiler.expression(n.Logic(BOOL, "and", (*kept, n.Const(BOOL, True))), names)

    def _family(self, tree: _FamilyTree) -> Family:
        pick = self.compiler.pick(tree)
        cases = [
            StepCase(str(rule.id), rule, when, body, self.compiler.step(tree, body)) for rule, when, body in tree.rules
        ]
        return Family(
            tree.name,
            tree.kind,
            tree.var,
            (tree.kind, tree.field),
            tree.head_var,
            tree.head_type,
            tree.lets,
            tree.domain,
            tree.optional,
            cases,
            pick,
            str(tree.where),
        )


class _FamilyTree:
    """A family's parts as trees."""

    def __init__(self, parser: Parser, family: StepFamily) -> None:
        self.name = str(family.name)
        self.where = family.name.where
        self.kind, self.var = str(family.each.kind), str(family.each.name)
        self.optional = family.optional
        scope: dict[str, n.Expr] = {self.var: n.Var(Type("ref", self.kind), self.var)}
        if family.take is None:
            raise SpecError(
                f"family {self.name} takes no queue; each internal step works on the head of one queue: "
                "add take: NAME = OBJECT.QUEUE",
                self.where,
            )
        queue = parser.expression(family.take.queue, scope)
        if not isinstance(queue, n.Field) or queue.type.tag != "queue" or queue.obj != scope[self.var]:
            raise SpecError(f"take names a queue of {self.var}", family.take.queue.where)
        assert queue.type.elem is not None
        self.field, self.head_type = queue.field, queue.type.elem
        self.head_var = str(family.take.name)
        scope[self.head_var] = n.Var(self.head_type, self.head_var)
        self.lets: dict[str, n.Expr] = {}
        for name, text in family.let.items():
            self.lets[str(name)] = parser.expression(text, scope)
            scope[str(name)] = n.Var(self.lets[str(name)].type, str(name))
        self.scope = scope
        self.domain = parser.expression(family.domain, scope, BOOL) if family.domain is not None else None
        self.rules: list[tuple[StepRule, n.Expr, tuple[n.Stmt, ...]]] = []
        for rule in family.rules:
            when = parser.expression(rule.when, scope, BOOL) if rule.when is not None else n.Const(BOOL, True)
            self.rules.append((rule, when, parser.statements(rule.do, scope) if rule.do is not None else ()))


class _CallTree:
    """A call's parts as trees."""

    def __init__(self, parser: Parser, voc: Vocabulary, call: Call) -> None:
        self.name = str(call.name)
        params = {str(p): voc.optional(t) for p, t in call.params.items()}
        outputs = {str(o): voc.output(t) for o, t in call.outputs.items()}
        self.params = {name: kind for name, (kind, _) in params.items()}
        self.outputs = {name: kind for name, (kind, _) in outputs.items()}
        self.optional = frozenset(name for name, (_, optional) in {**params, **outputs}.items() if optional)
        self.found = frozenset(str(o) for o, t in call.outputs.items() if t.startswith("found "))
        before: dict[str, n.Expr] = {p: n.Var(t, p) for p, t in self.params.items()}
        before |= {str(name): _default_of(voc, text) for name, text in call.absent.items()}
        named = {o: n.Var(t, o) for o, t in self.outputs.items() if t.tag != "ref" or o in self.found}
        after = {**before, **named}
        self.rules = []
        for rule in call.rules:
            guard = rule.cause if rule.cause is not None else rule.when
            tree = parser.expression(guard, before, BOOL) if guard is not None else None
            test = parser.expression(rule.outputs, after, BOOL) if rule.outputs is not None else None
            body = parser.statements(rule.do, after) if rule.do is not None else ()
            undefined = parser.objects(rule.undefined, before) if rule.undefined is not None else ()
            self.rules.append((rule, tree, test, body, undefined))

    def created(self) -> tuple[str, ...]:
        """Outputs that name a new object."""
        return tuple(o for o, t in self.outputs.items() if t.tag == "ref" and o not in self.found)


def _default_of(voc: Vocabulary, text: Text) -> n.Expr:
    """What a parameter or output stands for in the rules where no profile has it: the default of its type."""
    kind, _ = voc.output(text)
    return n.Const(kind, voc.default(kind))


class _Trees:
    """All trees of a specification."""

    def __init__(self, parser: Parser, voc: Vocabulary, spec: Spec) -> None:
        self.calls = [_CallTree(parser, voc, c) for c in spec.calls.values()]
        self.families = [_FamilyTree(parser, f) for f in spec.families.values()]

    def expressions(self) -> Iterator[n.Expr]:
        """Every expression."""
        for call in self.calls:
            for _, guard, outputs, body, _ in call.rules:
                yield from (e for e in (guard, outputs) if e is not None)
                yield from (e for s in body for e in n.in_statement(s))
        for family in self.families:
            yield from family.lets.values()
            if family.domain is not None:
                yield family.domain
            for _, when, body in family.rules:
                yield when
                yield from (e for s in body for e in n.in_statement(s))

    def assigned(self) -> set[tuple[str, str]]:
        """The fields that some statement assigns."""
        bodies = [r[3] for c in self.calls for r in c.rules] + [r[2] for f in self.families for r in f.rules]
        return {(s.obj.type.name, s.field) for body in bodies for s in n.flat(body) if isinstance(s, n.Assign)}

    def bodies(self) -> Iterator[tuple[CallRule | StepRule, tuple[n.Stmt, ...]]]:
        """The statements of every rule."""
        for call in self.calls:
            yield from ((rule, body) for rule, _, _, body, _ in call.rules)
        for family in self.families:
            yield from ((rule, body) for rule, _, body in family.rules)

    def looked_up(self) -> set[tuple[str, str]]:
        """The fields through which objects are found."""
        return {(e.kind, e.field) for top in self.expressions() for e in n.walk(top) if isinstance(e, n.Lookup)}


def literal(expr: n.Expr, where: Where) -> object:
    """The value of a tree made of literals only."""
    if isinstance(expr, n.Const):
        return expr.value
    if isinstance(expr, n.Flags):
        return frozenset(literal(i, where) for i in expr.items)
    raise SpecError("an initial value is a literal: a number, true, false, an enumerator or {enumerators}", where)
