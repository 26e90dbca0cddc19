"""The second half of the reading: a specification under its profiles becomes a machine.

A :class:`Model` holds, for each call, its rules with compiled guards, output tests and effects, and, for
each family of internal steps, one compiled function that says which case applies to the head of the queue
that the family takes.  It runs nothing by itself: ``belief`` decides when which step runs, and knows no verb,
object, state or status by name either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from verbs_reference import nodes as n
from verbs_reference import vocabulary
from verbs_reference.compiled import Compiler
from verbs_reference.parse import Parser
from verbs_reference.store import Layout, Store
from verbs_reference.trees import CallTree, CallTrees, FamilyTree, StepTrees, Trees, same_words
from verbs_reference.types import BOOL, Type, absent
from verbs_reference.vocabulary import Vocabulary
from verbs_spec.document import CallRule, Spec, StepRule
from verbs_spec.errors import SpecError, Where

Function = Callable[..., Any]
TreeT = TypeVar("TreeT")
MadeT = TypeVar("MadeT")


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
    inlined: dict[n.Expr, n.Expr] = field(default_factory=dict, repr=False, compare=False)
    """Expressions of the family, and what they are without its own names, as far as that was asked for."""


class Model:
    """A specification under one API and one transport profile, ready to run.

    ``like`` is the model of a specification that differs in a few rules: what is the very same in both is not read
    and compiled again.
    """

    def __init__(self, spec: Spec, like: Model | None = None) -> None:
        self.spec = spec
        known = like if like is not None and same_words(spec, like.spec) else None
        self.voc: Vocabulary = vocabulary.build(spec) if known is None else known.voc
        self.parser: Parser = Parser(self.voc) if known is None else known.parser
        self._reject_unknown_types()
        self.trees: Trees = Trees(self.parser, self.voc, spec, None if known is None else known.trees)
        trees = self.trees
        triggers = {(f.kind, f.field) for f in trees.families}
        self.layout = Layout(self.voc, trees.looked_up(), triggers)
        self._reject_changed_keys(trees)
        self._set_initial_values()
        self.layout.transient = self._transient(trees)
        self.compiler: Compiler = Compiler(self.layout)
        self._made: dict[int, Any] = {}
        """What was compiled of each tree, by its identity."""
        if known is not None and self.layout.agrees(known.layout):
            self.layout, self.compiler, self._made = known.layout, known.compiler, dict(known._made)
        self._left_out: dict[tuple[str, str], tuple[Any]] = {}
        self.families: list[Family] = [self._once(f, self._family) for f in trees.families]
        self.calls: dict[str, CallCode] = {c.name: self._once(c, self._call) for c in trees.calls}

    def store(self) -> Store:
        """A state with no objects."""
        return Store(self.layout)

    def _once(self, tree: TreeT, make: Callable[[TreeT], MadeT]) -> MadeT:
        """What is compiled of a tree, unless it is there already."""
        if id(tree) not in self._made:
            self._made[id(tree)] = make(tree)
        made: MadeT = self._made[id(tree)]
        return made

    def left_out(self, code: CallCode, name: str) -> Any:
        """What stands for a parameter or output that is not there."""
        known = self._left_out.get((code.name, name))
        if known is None:
            default = self.voc.default(code.params.get(name) or code.outputs[name])
            known = self._left_out[code.name, name] = (absent(default) if name in code.optional else default,)
        return known[0]

    def _reject_unknown_types(self) -> None:
        for define in self.spec.defines.values():
            for param in define.params:
                self.voc.resolve(param.type)

    def _reject_changed_keys(self, trees: Trees) -> None:
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

    def _transient(self, trees: Trees) -> dict[str, tuple[int, ...]]:
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

    def _call(self, tree: CallTree) -> CallCode:
        cases = [self._once(rule, partial(self._call_case, tree)) for rule in tree.rules]
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

    def _call_case(self, tree: CallTree, trees: CallTrees) -> CallCase:
        rule, guard, outputs, body, undefined = trees
        names = [*tree.params, *tree.outputs]
        return CallCase(
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

    def _plain(self, outputs: n.Expr | None, names: list[str]) -> Function | None:
        """The part of an output test that depends on the call alone, not on the state."""
        if outputs is None:
            return None
        kept = tuple(c for c in n.conjuncts(outputs) if n.is_stateless(c))
        if not kept:
            return None
        return self.compiler.expression(n.Logic(BOOL, "and", (*kept, n.Const(BOOL, True))), names)

    def _family(self, tree: FamilyTree) -> Family:
        pick = self.compiler.pick(tree)
        cases = [self._once(rule, partial(self._step_case, tree)) for rule in tree.rules]
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

    def _step_case(self, tree: FamilyTree, trees: StepTrees) -> StepCase:
        rule, when, body = trees
        return StepCase(str(rule.id), rule, when, body, self.compiler.step(tree, body))


def literal(expr: n.Expr, where: Where) -> object:
    """The value of a tree made of literals only."""
    if isinstance(expr, n.Const):
        return expr.value
    if isinstance(expr, n.Flags):
        return frozenset(literal(i, where) for i in expr.items)
    raise SpecError("an initial value is a literal: a number, true, false, an enumerator or {enumerators}", where)
