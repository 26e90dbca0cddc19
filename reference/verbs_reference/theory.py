"""What there is to prove of a model: its transitions, its invariants, and what is taken for granted.

A transition is one rule performed on a symbolic state: a call with any arguments that its types allow, or
an internal step on the head of its family's queue.  ``Situation`` is the state before it, the names that the
rule sees, and the facts of both:

- objects are interchangeable, so the object that a step works on is the first of its kind, and so are the
  head of the queue and the first argument of each kind (or null);
- an argument refers to a live object or is null;
- an argument for which every shape of a call lists enumerators has one of these;
- a field of an enum has only values that some rule gives it (``_Ranges``);
- live objects differ in the fields by which they are looked up (proved as ``unique``).

Invariants are indices into ``Theory.invariants``; ghosts run behind the rules that they name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.model import CallCase, CallCode, Family, Model, StepCase
from verbs_reference.solver import Base, Env, Reading, State, perform
from verbs_reference.symbolic import Alt, Seq, conj, disj, neg
from verbs_reference.types import BOOL, Type

Ranges = dict[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Scope:
    """How many objects of each kind, and how many cells of each queue, the state before a rule has."""

    objects: Mapping[str, int] = field(default_factory=dict)
    others: int = 2
    cells: int = 3

    @classmethod
    def parse(cls, text: str, kinds: Iterable[str]) -> Scope:
        """Read ``qp=2,wr=3,others=2,cells=3``; what is not named stays as it is.  ValueError if wrong."""
        known = [*kinds, "others", "cells"]
        numbers: dict[str, int] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, _, count = part.partition("=")
            if name not in known or not count.isdecimal() or int(count) == 0:
                raise ValueError(
                    f"{part!r} is no part of a scope: one is NAME=COUNT, with NAME one of {', '.join(known)}"
                )
            numbers[name] = int(count)
        others, cells = numbers.pop("others", cls().others), numbers.pop("cells", cls().cells)
        return cls(numbers, others, cells)

    def size(self, kind: str) -> int:
        """The objects of one kind."""
        return self.objects.get(kind, self.others)

    def __str__(self) -> str:
        named = "".join(f"{count} {kind}, " for kind, count in self.objects.items())
        return f"{named}{self.others} of each {'other ' if named else ''}object, {self.cells} elements a queue"


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property of all states, or of each live object of a kind."""

    id: str
    holds: n.Expr
    var: str = ""
    kind: str = ""

    def term(self, state: State) -> Any:
        """The property of one state."""
        if not self.kind:
            return Reading(state).value(self.holds, {})
        return conj(*(self.of(state, number) for number in state.numbers(self.kind)))

    def of(self, state: State, number: int) -> Any:
        """The property of one object, if it is alive."""
        holds = Reading(state).value(self.holds, {self.var: Alt({number: True})})
        return disj(neg(state.alive(self.kind, number)), holds)

    def reads(self) -> set[tuple[str, str]]:
        """The fields that it reads; an empty name is whether objects are alive."""
        return fields_read(self.holds) | ({(self.kind, "")} if self.kind else set())


def fields_read(expr: n.Expr) -> set[tuple[str, str]]:
    """The fields that an expression reads, by kind."""
    found = set()
    for e in n.walk(expr):
        match e:
            case n.Field():
                found.add((e.obj.type.name, e.field))
            case n.Lookup():
                found |= {(e.kind, e.field), (e.kind, "")}
            case n.Over() if isinstance(e.domain, str):
                found.add((e.domain, ""))
            case n.Builtin(op="alive"):
                found.add((e.args[0].type.name, ""))
    return found


@dataclass(slots=True)
class Situation:
    """A state before a rule of one call or family, the names that the rule sees, and what holds of them."""

    base: Base
    before: State
    env: Env
    types: dict[str, Type]
    facts: list[Any]

    def value(self, expr: n.Expr) -> Any:
        """An expression over the names on the state before."""
        return Reading(self.before).value(expr, self.env)

    def assumed(self) -> list[Any]:
        """All that holds of the state before by its types."""
        return [*self.base.unknowns.facts, *self.facts]


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule, with the call or family that it belongs to."""

    id: str
    source: CallCode | Family
    case: CallCase | StepCase


def _made(model: Model) -> set[str]:
    """The kinds of objects that a rule makes."""
    sources: list[CallCode | Family] = [*model.families, *model.calls.values()]
    bodies = [case.body for source in sources for case in source.cases]
    return {s.kind for body in bodies for s in n.flat(body) if isinstance(s, n.New)}


class Theory:
    """The transitions and invariants of a model, with ghosts."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sources: list[CallCode | Family] = [*model.families, *model.calls.values()]
        self.transitions = [Transition(case.id, source, case) for source in self.sources for case in source.cases]
        self.listed = {name: _listed_params(model, code) for name, code in model.calls.items()}
        self.ghosts = self._parse_ghosts()
        self.invariants = [*self._unique(), *self._parse_invariants()]
        self.ranges = _Ranges(self).found

    def _parse_ghosts(self) -> dict[str, list[tuple[n.Stmt, ...]]]:
        names = {t.id: scope_of(t.source) for t in self.transitions}
        made: dict[str, list[tuple[n.Stmt, ...]]] = {}
        for ghost in self.model.spec.ghosts:
            for rule in map(str, ghost.at):
                if rule in names:
                    scope = {name: n.Var(kind, name) for name, kind in names[rule].items()}
                    made.setdefault(rule, []).append(self.model.parser.statements(ghost.do, scope))
        return made

    def _parse_invariants(self) -> Iterator[Invariant]:
        for each in self.model.spec.invariants:
            var, kind = (str(each.each.name), str(each.each.kind)) if each.each else ("", "")
            scope: dict[str, n.Expr] = {var: n.Var(Type("ref", kind), var)} if kind else {}
            yield Invariant(str(each.id), self.model.parser.expression(each.holds, scope, BOOL), var, kind)

    def _unique(self) -> Iterator[Invariant]:
        for kind, name in self.model.layout.looked_up:
            ref = Type("ref", kind)
            value = self.model.voc.objects[kind][name].type
            this, other = n.Var(ref, "this"), n.Var(ref, "other")
            same = n.Compare(BOOL, "==", n.Field(value, this, name), n.Field(value, other, name))
            twin = n.Logic(BOOL, "and", (n.Compare(BOOL, "!=", this, other), same))
            holds = n.Not(BOOL, n.Over(BOOL, "any", "other", ref, kind, None, twin))
            yield Invariant(f"unique {kind}.{name}", holds, "this", kind)

    # -- situations ----------------------------------------------------------------------------------

    def situation(self, source: CallCode | Family, scope: Scope, exact: bool = False) -> Situation:
        """Any state of the scope, before a rule of this call or family."""
        layout = self.model.layout
        made = _made(self.model)
        sizes = {kind: scope.size(kind) if kind in made else 0 for kind in layout.kinds}  # of others there is none
        base = Base(layout, sizes, scope.cells, exact, self.ranges)
        before = State(base)
        situation = Situation(base, before, {}, scope_of(source), [])
        if isinstance(source, Family):
            self._step_names(source, situation)
        else:
            self._call_names(source, situation)
        return situation

    def _step_names(self, family: Family, situation: Situation) -> None:
        base, before = situation.base, situation.before
        before.changed[family.kind, "", 1] = True
        queue = base.field(*family.trigger, 1)
        is_ref = family.head_type.tag == "ref" and family.head_type.name != family.kind
        head = base.unknowns.one_of("head", [1, 0]) if is_ref else queue.cells[0][1]
        before.changed[(*family.trigger, 1)] = Seq([(True, head), *queue.cells[1:]])
        situation.env.update({family.var: Alt({1: True}), family.head_var: head})
        for name, tree in family.lets.items():
            situation.env[name] = situation.value(tree)
        if family.domain_tree is not None:
            situation.facts.append(situation.value(family.domain_tree))

    def _call_names(self, code: CallCode, situation: Situation) -> None:
        seen: dict[str, int] = {}
        for name, kind in {**code.params, **code.outputs}.items():
            made = self._argument(code, name, kind, situation, seen)
            if made is not None:
                situation.env[name] = made

    def _argument(self, code: CallCode, name: str, kind: Type, situation: Situation, seen: dict[str, int]) -> Any:
        unknowns = situation.base.unknowns
        if name in self.listed[code.name]:
            return unknowns.one_of(name, self.listed[code.name][name])
        if kind.tag != "ref":
            return unknowns.make(name, kind)
        if name in code.creates:
            return None
        seen[kind.name] = min(seen.get(kind.name, 0) + 1, situation.base.sizes[kind.name])
        made = unknowns.one_of(name, range(seen[kind.name] + 1))
        alive = (disj(neg(c), situation.before.alive(kind.name, k)) for k, c in made.cases.items() if k)
        situation.facts += alive
        return made

    # -- transitions ---------------------------------------------------------------------------------

    def guard(self, transition: Transition, situation: Situation) -> Any:
        """When the rule applies; outputs are what the rule lets them be."""
        case = transition.case
        if isinstance(case, StepCase):
            return situation.value(case.when_tree)
        assert isinstance(transition.source, CallCode)
        parts = [situation.value(t) for t in (case.guard_tree, case.outputs_tree) if t is not None]
        others = [c for c in transition.source.causes if bars(c, case)]
        return conj(*parts, *(neg(situation.value(c.guard_tree)) for c in others if c.guard_tree is not None))

    def after(self, transition: Transition, situation: Situation) -> State:
        """The state behind the rule and its ghosts."""
        state = situation.before.copy()
        env = dict(situation.env)
        if isinstance(transition.source, CallCode):
            env.update({name: Alt({0: True}) for name in transition.source.creates})
        perform(state, transition.case.body, env)
        for ghost in self.ghosts.get(transition.id, ()):
            perform(state, ghost, env)
        return state


def bars(cause: CallCase, case: CallCase) -> bool:
    """Whether a cause that holds keeps the call from ending by this rule.

    A broken duty of the consumer bars everything; a cause that must be reported bars success.
    """
    broken = bool(cause.rule.undefined)
    return cause is not case and (broken or (not case.is_cause and cause.rule.level != "may"))


def scope_of(source: CallCode | Family) -> dict[str, Type]:
    """The names that the rules of a call or family see."""
    if isinstance(source, CallCode):
        return {**source.params, **source.outputs}
    lets = {name: tree.type for name, tree in source.lets.items()}
    return {source.var: Type("ref", source.kind), source.head_var: source.head_type, **lets}


def _listed_params(model: Model, code: CallCode) -> dict[str, tuple[str, ...]]:
    """Parameters for which each shape of a call lists enumerators, and which these are."""
    made = {}
    shapes = model.spec.calls[code.name].shapes.values()
    for name, kind in code.params.items():
        menus = [shape.menus.get(name, ()) for shape in shapes]
        if kind.tag == "enum" and menus and all(menus) and all(str(e) in model.voc.enum_of for m in menus for e in m):
            made[name] = tuple(dict.fromkeys(str(e) for m in menus for e in m))
    return made


class _Ranges:
    """Which enumerators each field of an enum can have: the least sets that are closed under all rules."""

    def __init__(self, theory: Theory) -> None:
        self.theory = theory
        self.voc = theory.model.voc
        self.sets: dict[tuple[str, str], dict[str, None]] = {
            (kind, name): {}
            for kind, fields in self.voc.objects.items()
            for name, info in fields.items()
            if info.type.tag == "enum"
        }
        size = -1
        while size != (size := sum(map(len, self.sets.values()))):
            for transition in theory.transitions:
                self._rule(transition)
        self.found: Ranges = {
            key: tuple(e for e in self.voc.enums[self.voc.objects[key[0]][key[1]].type.name] if e in values)
            for key, values in self.sets.items()
            if values
        }

    def _rule(self, transition: Transition) -> None:
        source = transition.source
        known = self.theory.listed[source.name] if isinstance(source, CallCode) else {}
        for body in (transition.case.body, *self.theory.ghosts.get(transition.id, ())):
            self._body(body, known)

    def _body(self, body: Iterable[n.Stmt], known: Mapping[str, tuple[str, ...]]) -> None:
        for stmt in body:
            match stmt:
                case n.Branch():
                    self._body((*stmt.then, *stmt.other), known)
                case n.Assign():
                    self._add((stmt.obj.type.name, stmt.field), stmt.value, known)
                case n.New():
                    given = dict(stmt.values)
                    fields = self.voc.objects[stmt.kind]
                    defaults = self.theory.model.layout.defaults[stmt.kind]
                    for (name, info), default in zip(fields.items(), defaults, strict=True):
                        self._add((stmt.kind, name), given.get(name, n.Const(info.type, default)), known)

    def _add(self, key: tuple[str, str], value: n.Expr, known: Mapping[str, tuple[str, ...]]) -> None:
        if key in self.sets:
            self.sets[key].update(dict.fromkeys(self._values(value, known)))

    def _values(self, expr: n.Expr, known: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
        match expr:
            case n.Const():
                return [str(expr.value)]
            case n.Var() if expr.name in known:
                return known[expr.name]
            case n.If():
                return [*self._values(expr.then, known), *self._values(expr.other, known)]
            case n.Field():
                default = self.voc.default(expr.type)
                return [*self.sets[expr.obj.type.name, expr.field], str(default)]
            case _:
                return self.voc.enums[expr.type.name]
