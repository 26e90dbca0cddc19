"""Cells: what is said of each cause of each verb, and of each state of an object and each input.

Theory of operation
-------------------
A state is a field of an enumeration, or a truth value, that rules assign, of an object that calls take.  Its inputs are
the calls that take such an object and the families of internal steps of it.  With the state known, each rule's guard is
evaluated in three values (as :mod:`verbs_conformance.transitions` does): a cause that certainly holds decides the cell;
otherwise the cell holds the rules that may decide it.  A cell without a rule is a hole.  Causes that do not ask for the
state stand in every cell of their call and are counted, not listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verbs_conformance.transitions import UNKNOWN, value
from verbs_reference import nodes as n
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import CallCode, Family, Model
from verbs_reference.types import BOOL, Type
from verbs_spec.document import CallRule, Spec
from verbs_spec.markdown import code, codes, lines, prose, section, table
from verbs_spec.profiles import features, select

FILE = "cells.md"
TRANSPORT = "roce"
_MADE = "<!-- Made from the rules by verbspec spec build; do not edit. -->\n"
_ABOUT = """\
Two things at a glance: what each verb answers for each cause of failure, and what may decide a call or a step in each
state of an object. With the state known a rule may be certain, possible or out of the question; a cell names those that
are left. *refused* means that no success is left; - that no step of the family runs; an arrow, the same as in the state
before. *n more* counts causes that do not ask for the state. Of a truth value only those inputs are shown to which it
makes a difference.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """What may decide an input in a state: causes that certainly hold, or else rules that may, and how many others."""

    state: str
    input: str
    refusing: tuple[str, ...]
    possible: tuple[str, ...]
    more: int = 0
    idle: bool = False
    """A family whose steps are out of the question in this state."""

    @property
    def hole(self) -> bool:
        """Whether nothing is said."""
        return not (self.refusing or self.possible or self.more or self.idle)

    def text(self) -> str:
        """The cell in a table."""
        if self.idle:
            return "-"
        if self.refusing:
            return f"refused: {codes(self.refusing)}"
        more = f" ({self.more} more)" if self.more else ""
        return f"{codes(self.possible)}{more}"


def states(model: Model) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The states that objects have, by object and field."""
    taken = {t.name for c in model.calls.values() for t in c.params.values() if t.tag == "ref"}
    bodies = [case.body for call in model.calls.values() for case in call.cases]
    bodies += [tuple(inline_statement(f, s) for s in c.body) for f in model.families for c in f.cases]
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for body in bodies:
        for stmt in n.flat(body):
            if isinstance(stmt, n.Assign) and stmt.obj.type.name in taken:
                kind, field = stmt.obj.type.name, stmt.field
                of = model.voc.objects[kind][field].type
                if of.tag == "enum":
                    found[kind, field] = tuple(model.voc.enums[of.name])
                elif of.tag == "bool":
                    found[kind, field] = (False, True)
    return found


def cells(model: Model, kind: str, field: str, values: Sequence[Any]) -> list[list[Cell]]:
    """A row for each state: a cell for each input."""
    enum = model.voc.objects[kind][field].type
    inputs: list[tuple[CallCode | Family, str]] = [
        (call, name) for call in model.calls.values() for name, t in call.params.items() if t == Type("ref", kind)
    ]
    inputs += [(family, family.var) for family in model.families if family.kind == kind]
    columns = []
    for source, name in inputs:
        state = n.Field(enum, n.Var(Type("ref", kind), name), field)
        if isinstance(source, CallCode):
            alone = list(source.params.values()).count(Type("ref", kind)) == 1
            columns.append(_of_call(source, source.name if alone else f"{source.name} ({name})", state, values))
        else:
            columns.append(_of_family(source, state, values))
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in values]


def holes(model: Model) -> Iterator[str]:
    """One line for each cell of which nothing is said."""
    for (kind, field), values in states(model).items():
        for row in cells(model, kind, field, values):
            yield from (f"{kind}.{field} {c.state}, {c.input}: nothing is said" for c in row if c.hole)


def rendered(spec: Spec) -> str:
    """The page of a whole specification, with every feature."""
    apis = [str(p.name) for p in spec.profiles.values() if p.kind == "api"]
    return page(spec, {api: Model(select(spec, api, TRANSPORT, features(spec))) for api in apis})


def page(spec: Spec, models: Mapping[str, Model]) -> str:
    """The page: the causes of all verbs, and for each API the states of its objects."""
    parts = [_MADE, "# Cells\n", _ABOUT]
    parts += section("Verbs and causes", ["verb", "cause", "answer", "in words"], _causes(spec))
    shown: dict[str, list[str]] = {}
    for api, model in models.items():
        for (kind, field), values in states(model).items():
            rows = cells(model, kind, field, values)
            told = [[code(row[0].input), *(cell.text() for cell in row)] for row in zip(*rows, strict=True)]
            if values == (False, True):
                told = [row for row in told if row[1] != row[2]]
            if told:
                made = table([f"`{kind}.{field}`", *(code(r[0].state) for r in rows)], map(_shortened, told))
                shown.setdefault(f"{kind}.{field}\0{made}", []).append(api)
    for key, apis in shown.items():
        name, made = key.split("\0")
        parts.append(f"## `{name}` under {codes(apis)}\n\n{made}")
    return "\n".join(parts)


def _shortened(row: list[str]) -> list[str]:
    """A row in which a cell that is as the one before it is an arrow."""
    return [row[0], row[1], *("←" if cell == row[i] else cell for i, cell in enumerate(row[2:], 1))]


def _causes(spec: Spec) -> Iterator[list[str]]:
    for call in spec.calls.values():
        for rule in call.rules:
            if rule.cause is not None:
                yield [code(call.name), code(rule.id), _answer(spec, rule), prose(rule.says)]


def _answer(spec: Spec, rule: CallRule) -> str:
    own = f"undefined: {code(rule.undefined)}" if rule.undefined is not None else codes(rule.returns)
    parts = [("may: " if rule.level == "may" else "") + own]
    if rule.profile:
        parts.append(f"only {codes(rule.profile)}")
    for profile in spec.profiles.values():
        for delta in profile.deltas:
            if delta.rule == rule.id and delta.field in ("returns", "undefined", "level") and delta.value is not None:
                changed = code(delta.value) if isinstance(delta.value, str) else codes(delta.value)
                parts.append(f"{code(profile.name)}: {'undefined: ' if delta.field == 'undefined' else ''}{changed}")
    return lines(parts)


def _word(state: Any) -> str:
    return str(state).lower() if isinstance(state, bool) else str(state)


class _Guard:
    """A guard, and whether a state decides something of it."""

    def __init__(self, tree: n.Expr | None, state: n.Expr) -> None:
        self._tree = tree if tree is not None else n.Const(BOOL, True)
        self._alone = value(self._tree, {})
        self.asks = self._alone is UNKNOWN and state in n.walk(self._tree)

    def value(self, known: Mapping[n.Expr, Any]) -> Any:
        """Its value in a state."""
        return value(self._tree, known) if self.asks else self._alone


def _of_call(source: CallCode, label: str, state: n.Expr, values: Iterable[Any]) -> Iterator[Cell]:
    """The cells of a call in each state."""
    guards = {c.id: _Guard(c.guard_tree, state) for c in source.cases}
    more = sum(not guards[c.id].asks for c in source.causes)
    for each in values:
        holding = {name: guard.value({state: each}) for name, guard in guards.items()}
        refusing = tuple(c.id for c in source.causes if c.rule.level != "may" and holding[c.id] is True)
        if refusing:
            yield Cell(_word(each), label, refusing, ())
            continue
        asked = [c for c in source.causes if guards[c.id].asks]
        possible = tuple(c.id for c in (*source.successes, *asked) if holding[c.id] is not False)
        yield Cell(_word(each), label, (), possible, more)


def _of_family(source: Family, state: n.Expr, values: Iterable[Any]) -> Iterator[Cell]:
    """The cells of a family in each state."""
    domain = _Guard(None if source.domain_tree is None else inline(source, source.domain_tree), state)
    guards = {c.id: _Guard(inline(source, c.when_tree), state) for c in source.cases}
    for each in values:
        if domain.value({state: each}) is False:
            yield Cell(_word(each), source.name, (), (), idle=True)
            continue
        possible = tuple(name for name, guard in guards.items() if guard.value({state: each}) is not False)
        yield Cell(_word(each), source.name, (), possible)
