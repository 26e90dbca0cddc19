"""Which rules move a state: derived from what the rules assign, for any field whose type is an enumeration.

Theory of operation
-------------------
A rule can move a field from one enumerator to another if it assigns the new one, or a parameter that may be it, and
if nothing in its guard contradicts that the field holds the old one before.  Guards are evaluated in three values:
what hangs on neither the field nor that parameter is unknown, and unknown does not contradict.  A call moves nothing
while a cause that must be heeded certainly holds; these causes are what refuses the transition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import CallCode, Family, Model

UNKNOWN: Any = object()
Facts = Mapping[n.Expr, Any]


@dataclass(frozen=True, slots=True)
class Transition:
    """A way from one state to another: the field, as ``qp.state``, and the rule; or a rule that refuses it."""

    field: str
    rule: str
    refuses: bool = False


def transitions(model: Model, old: str, new: str) -> list[Transition]:
    """Every rule that moves a field from the old to the new state, or refuses to."""
    kinds = {name for name, values in states(model).items() if old in values and new in values}
    found: dict[Transition, None] = {}
    for code in model.calls.values():
        found.update(dict.fromkeys(_of_call(code, kinds, old, new)))
    for family in model.families:
        found.update(dict.fromkeys(_of_steps(family, kinds, old, new)))
    return list(found)


def open_causes(model: Model, old: str, new: str) -> list[str]:
    """The causes of calls that may make this transition, without those that the two states rule out."""
    kinds = {name for name, values in states(model).items() if old in values and new in values}
    found: dict[str, None] = {}
    for code in model.calls.values():
        for case in code.successes:
            for stmt, tests in _assigns(case.body):
                facts = _facts(stmt, old, new) if stmt.value.type.name in kinds else None
                guard = [case.guard_tree] if case.guard_tree is not None else []
                if facts is not None and not _contradicts([*tests, *guard], facts):
                    facts = {**facts, **_told(case.guard_tree)}
                    guards = {c.id: c.guard_tree for c in code.causes if c.guard_tree is not None}
                    found.update(dict.fromkeys(c for c, tree in guards.items() if value(tree, facts) is not False))
    return list(found)


def _told(guard: n.Expr | None) -> dict[n.Expr, Any]:
    """What a guard that holds says of names and of whole conditions."""
    found: dict[n.Expr, Any] = {}
    for part in n.conjuncts(guard) if guard is not None else []:
        found[part] = True
        if isinstance(part, n.Compare) and part.op == "==" and isinstance(part.left, n.Var):
            found[part.left] = value(part.right, {})
    return found


def states(model: Model) -> dict[str, tuple[str, ...]]:
    """The enumerations that some rule assigns a value of: the states that there are."""
    bodies = [c.body for code in model.calls.values() for c in code.cases]
    bodies += [c.body for family in model.families for c in family.cases]
    names = {s.value.type.name for b in bodies for s in n.flat(b) if isinstance(s, n.Assign) and _is_state(s)}
    return {name: model.voc.enums[name] for name in sorted(names)}


def _is_state(stmt: n.Assign) -> bool:
    return stmt.value.type.tag == "enum"


def _of_call(code: CallCode, kinds: set[str], old: str, new: str) -> Iterator[Transition]:
    for case in code.cases:
        for stmt, tests in _assigns(case.body):
            facts = _facts(stmt, old, new) if stmt.value.type.name in kinds else None
            if facts is None or _contradicts([*tests, *([case.guard_tree] if case.guard_tree else [])], facts):
                continue
            facts = {**facts, **_told(case.guard_tree)}
            field = f"{stmt.obj.type.name}.{stmt.field}"
            refusing = [
                c.id
                for c in code.causes
                if c is not case
                and c.rule.level == "must"
                and c.undefined is None
                and c.guard_tree is not None
                and value(c.guard_tree, facts) is True
            ]
            if refusing and not case.is_cause:
                yield from (Transition(field, rule, refuses=True) for rule in refusing)
            else:
                yield Transition(field, case.id)


def _of_steps(family: Family, kinds: set[str], old: str, new: str) -> Iterator[Transition]:
    domain = [inline(family, family.domain_tree)] if family.domain_tree is not None else []
    for case in family.cases:
        body = tuple(inline_statement(family, s) for s in case.body)
        for stmt, tests in _assigns(body):
            facts = _facts(stmt, old, new) if stmt.value.type.name in kinds else None
            if facts is not None and not _contradicts([*domain, inline(family, case.when_tree), *tests], facts):
                yield Transition(f"{stmt.obj.type.name}.{stmt.field}", case.id)


def _assigns(body: Iterable[n.Stmt], tests: tuple[n.Expr, ...] = ()) -> Iterator[tuple[n.Assign, tuple[n.Expr, ...]]]:
    """The assignments of a state, each with the tests under which it stands."""
    for stmt in body:
        if isinstance(stmt, n.Assign) and _is_state(stmt):
            yield stmt, tests
        elif isinstance(stmt, n.Branch):
            yield from _assigns(stmt.then, (*tests, stmt.test))
            yield from _assigns(stmt.other, (*tests, n.Not(stmt.test.type, stmt.test)))


def _facts(stmt: n.Assign, old: str, new: str) -> Facts | None:
    """What is known if this assignment makes the transition; None if it does not."""
    before: dict[n.Expr, Any] = {n.Field(stmt.value.type, stmt.obj, stmt.field): old}
    result = value(stmt.value, before)
    if result is UNKNOWN:
        before[stmt.value] = new
    return before if result is UNKNOWN or result == new else None


def _contradicts(tests: Iterable[n.Expr], facts: Facts) -> bool:
    return any(value(test, facts) is False for test in tests)


def value(expr: n.Expr, facts: Facts) -> Any:
    """The value of an expression as far as the facts decide it."""
    if expr in facts:
        return facts[expr]
    match expr:
        case n.Const():
            return expr.value
        case n.Not():
            inner = value(expr.arg, facts)
            return UNKNOWN if inner is UNKNOWN else not inner
        case n.Logic():
            return _logic(expr, facts)
        case n.If():
            test = value(expr.test, facts)
            return UNKNOWN if test is UNKNOWN else value(expr.then if test else expr.other, facts)
        case n.Compare(op="==" | "!="):
            left, right = value(expr.left, facts), value(expr.right, facts)
            return UNKNOWN if UNKNOWN in (left, right) else (left == right) == (expr.op == "==")
        case n.Flags():
            items = [value(i, facts) for i in expr.items]
            return UNKNOWN if UNKNOWN in items else frozenset(items)
        case n.Member():
            item, group = value(expr.item, facts), value(expr.group, facts)
            return UNKNOWN if UNKNOWN in (item, group) else item in group
        case _:
            return UNKNOWN


def _logic(expr: n.Logic, facts: Facts) -> Any:
    decisive = expr.op == "or"
    values = [value(a, facts) for a in expr.args]
    if any(v is decisive for v in values):
        return decisive
    return UNKNOWN if UNKNOWN in values else not decisive
