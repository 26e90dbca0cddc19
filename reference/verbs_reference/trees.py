"""The first half of a model: the rules' texts as trees, a call and a family of steps at a time.

What two specifications have in common, rule by rule, is read once: the trees of one are handed to the other, and
an equal identity then says that nothing has to be done again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from verbs_reference import nodes as n
from verbs_reference.parse import Parser
from verbs_reference.types import BOOL, Type
from verbs_reference.vocabulary import Vocabulary
from verbs_spec.document import Call, CallRule, Spec, StepFamily, StepRule
from verbs_spec.errors import SpecError
from verbs_spec.text import Text

StepTrees = tuple[StepRule, n.Expr, tuple[n.Stmt, ...]]
"""A case of a step: the rule, its guard, its effect."""
CallTrees = tuple[CallRule, n.Expr | None, n.Expr | None, tuple[n.Stmt, ...], tuple[Any, ...]]
"""A rule of a call: the rule, its guard, its test of the outputs, its effect, what it names as undefined."""
PartT = TypeVar("PartT", Call, StepFamily)
Body = tuple[CallRule | StepRule, tuple[n.Stmt, ...]]


class _Part(ABC):
    """What is asked of the trees of a call or a family."""

    @abstractmethod
    def expressions(self) -> Iterator[n.Expr]:
        """Every expression."""

    @abstractmethod
    def bodies(self) -> Iterator[Body]:
        """The statements of every rule."""

    @cached_property
    def assigned(self) -> set[tuple[str, str]]:
        """The fields that some statement assigns."""
        found = (s for _, body in self.bodies() for s in n.flat(body))
        return {(s.obj.type.name, s.field) for s in found if isinstance(s, n.Assign)}

    @cached_property
    def looked_up(self) -> set[tuple[str, str]]:
        """The fields through which objects are found."""
        return {(e.kind, e.field) for top in self.expressions() for e in n.walk(top) if isinstance(e, n.Lookup)}


class FamilyTree(_Part):
    """A family's parts as trees; rules that another family has too are taken from there."""

    def __init__(self, parser: Parser, family: StepFamily, like: FamilyTree | None = None) -> None:
        self.read = family
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
        known = {id(trees[0]): trees for trees in like.rules} if like is not None else {}
        self.rules: list[StepTrees] = [known.get(id(rule)) or self._rule(parser, rule) for rule in family.rules]

    def _rule(self, parser: Parser, rule: StepRule) -> StepTrees:
        when = parser.expression(rule.when, self.scope, BOOL) if rule.when is not None else n.Const(BOOL, True)
        return rule, when, parser.statements(rule.do, self.scope) if rule.do is not None else ()

    def expressions(self) -> Iterator[n.Expr]:
        yield from self.lets.values()
        if self.domain is not None:
            yield self.domain
        for _, when, body in self.rules:
            yield when
            yield from (e for s in body for e in n.in_statement(s))

    def bodies(self) -> Iterator[Body]:
        yield from ((rule, body) for rule, _, body in self.rules)


class CallTree(_Part):
    """A call's parts as trees; rules that another call has too are taken from there."""

    def __init__(self, parser: Parser, voc: Vocabulary, call: Call, like: CallTree | None = None) -> None:
        self.read = call
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
        known = {id(trees[0]): trees for trees in like.rules} if like is not None else {}
        self.rules: list[CallTrees] = [
            known.get(id(rule)) or _call_rule(parser, rule, before, after) for rule in call.rules
        ]

    def expressions(self) -> Iterator[n.Expr]:
        for _, guard, outputs, body, _ in self.rules:
            yield from (e for e in (guard, outputs) if e is not None)
            yield from (e for s in body for e in n.in_statement(s))

    def bodies(self) -> Iterator[Body]:
        yield from ((rule, body) for rule, _, _, body, _ in self.rules)

    def created(self) -> tuple[str, ...]:
        """Outputs that name a new object."""
        return tuple(o for o, t in self.outputs.items() if t.tag == "ref" and o not in self.found)


def _default_of(voc: Vocabulary, text: Text) -> n.Expr:
    """What a parameter or output stands for in the rules where no profile has it: the default of its type."""
    kind, _ = voc.output(text)
    return n.Const(kind, voc.default(kind))


def _call_rule(parser: Parser, rule: CallRule, before: dict[str, n.Expr], after: dict[str, n.Expr]) -> CallTrees:
    guard = rule.cause if rule.cause is not None else rule.when
    tree = parser.expression(guard, before, BOOL) if guard is not None else None
    test = parser.expression(rule.outputs, after, BOOL) if rule.outputs is not None else None
    body = parser.statements(rule.do, after) if rule.do is not None else ()
    undefined = parser.objects(rule.undefined, before) if rule.undefined is not None else ()
    return rule, tree, test, body, undefined


def same_words(one: Spec, other: Spec) -> bool:
    """Whether what expressions may name is the very same in two specifications."""
    words = ("enums", "records", "objects", "defines", "choices", "tables")
    return all(getattr(one, each) is getattr(other, each) for each in words)


def _is_like(one: PartT, other: PartT) -> bool:
    """Whether two calls or families differ in their rules only."""
    return replace(other, rules=one.rules) == one


class Trees:
    """All trees of a specification; parts and rules that another one with the same words has are taken from there."""

    def __init__(self, parser: Parser, voc: Vocabulary, spec: Spec, like: Trees | None = None) -> None:
        calls = {t.name: t for t in like.calls} if like is not None else {}
        self.calls: list[CallTree] = []
        for call in spec.calls.values():
            old = calls.get(str(call.name))
            if old is None or old.read is not call:
                old = CallTree(parser, voc, call, old if old is not None and _is_like(call, old.read) else None)
            self.calls.append(old)
        families = {t.name: t for t in like.families} if like is not None else {}
        self.families: list[FamilyTree] = []
        for family in spec.families.values():
            known = families.get(str(family.name))
            if known is None or known.read is not family:
                known = FamilyTree(
                    parser, family, known if known is not None and _is_like(family, known.read) else None
                )
            self.families.append(known)

    def _parts(self) -> Iterator[_Part]:
        yield from self.calls
        yield from self.families

    def assigned(self) -> set[tuple[str, str]]:
        """The fields that some statement assigns."""
        return set().union(*(part.assigned for part in self._parts()))

    def bodies(self) -> Iterator[Body]:
        """The statements of every rule."""
        return (each for part in self._parts() for each in part.bodies())

    def looked_up(self) -> set[tuple[str, str]]:
        """The fields through which objects are found."""
        return set().union(*(part.looked_up for part in self._parts()))
