"""What happened in one explanation, run again slowly: which rule wrote which field, and from what.

A *cell* is (object number, slot).  For each firing the history holds the cells that its guard read, and
for each cell that its effect wrote what the new value was made of; for a record that was pushed, part
by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verbs_reference import nodes as n
from verbs_reference.accesses import Access, effects, reads
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import CallCase, CallCode, Family, Model, StepCase
from verbs_reference.pending import Analysis
from verbs_reference.store import Store

if TYPE_CHECKING:
    from verbs_reference.belief import Action

Cell = tuple[int, int]
Part = int | None


@dataclass(frozen=True, slots=True)
class Event:
    """A rule that fired: in a process on the head of its queue, or for a call; with the options chosen for
    it."""

    rule: str
    process: tuple[int, int] | None
    head: Any
    action: Action | None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Firing:
    """What one firing read, wrote, and was about."""

    rule: str
    is_step: bool
    control: set[Cell] = field(default_factory=set)
    writes: dict[Cell, list[tuple[Part, set[Cell]]]] = field(default_factory=dict)
    pushed: dict[Cell, Any] = field(default_factory=dict)
    about: set[int] = field(default_factory=set)


class Texts:
    """What is made of a model's trees once: functions, accesses, bodies without a family's own names."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.steps = {c.id: (f, c) for f in model.families for c in f.cases}
        self.calls = {c.id: (d, c) for d in model.calls.values() for c in d.cases}
        self._functions: dict[tuple[n.Expr, tuple[str, ...]], Any] = {}
        self._reads: dict[int, tuple[n.Expr, list[Access]]] = {}
        self._guards: dict[str, list[n.Expr]] = {}
        self._bodies: dict[str, list[n.Stmt]] = {}
        self._written: dict[str, frozenset[tuple[str, int]]] = {}

    def function(self, tree: n.Expr, names: tuple[str, ...]) -> Any:
        """The compiled expression."""
        key = (tree, names)
        if key not in self._functions:
            self._functions[key] = self.model.compiler.expression(tree, names)
        return self._functions[key]

    def reads(self, tree: n.Expr) -> list[Access]:
        """What an expression reads."""
        known = self._reads.get(id(tree))
        if known is None:
            known = self._reads[id(tree)] = (tree, list(reads(tree)))
        return known[1]

    def guard(self, family: Family, case: StepCase) -> list[n.Expr]:
        """Domain and guard of a step's rule."""
        if case.id not in self._guards:
            trees = [t for t in (family.domain_tree, case.when_tree) if t is not None]
            self._guards[case.id] = [inline(family, t) for t in trees]
        return self._guards[case.id]

    def body(self, family: Family, case: StepCase) -> list[n.Stmt]:
        """The effect of a step's rule, statement by statement."""
        if case.id not in self._bodies:
            self._bodies[case.id] = n.flat(inline_statement(family, s) for s in case.body)
        return self._bodies[case.id]

    def written(self, rule: str) -> frozenset[tuple[str, int]]:
        """The fields, by kind and slot, that the rules of the same step or call write."""
        if rule not in self._written:
            cases = self.steps[rule][0].cases if rule in self.steps else self.calls[rule][0].cases
            slot, memory = self.model.layout.slot, self.model.layout.memory
            found = set()
            for access in (a for c in cases for a in effects(c.body) if a.writes):
                if access.part == "M":
                    found |= {(kind, slot[kind][fields[0]]) for kind, fields in memory.items()}
                elif access.part in "VT":
                    kind = access.obj.type.name
                    found.add((kind, slot[kind][access.field]))
            self._written[rule] = frozenset(found)
        return self._written[rule]


class History:
    """Runs a trail again on a store of its own."""

    def __init__(self, texts: Texts, analysis: Analysis) -> None:
        self.texts = texts
        self.model = texts.model
        self.analysis = analysis
        self.store: Store = self.model.store()
        self._base: list[Firing] = []

    def run(self, events: Iterable[Event]) -> None:
        """Take what happened; the store is left as it leaves it."""
        self._base = [self._fire(e) for e in events]
        self._base.reverse()
        self.store.journal.clear()

    def with_path(self, events: Iterable[Event]) -> list[Firing]:
        """All firings, the newest first, if these had followed; the store is as before."""
        try:
            made = [self._fire(e) for e in events]
        finally:
            self.store.undo(0)
        return [*reversed(made), *self._base]

    def cells(self, tree: n.Expr, env: dict[str, Any], store: Store | None = None) -> set[Cell]:
        """The changing fields that an expression reads."""
        return self._resolve(self.texts.reads(tree), env, store or self.store)

    def _resolve(self, accesses: Iterable[Access], env: dict[str, Any], store: Store) -> set[Cell]:
        found: set[Cell] = set()
        for a in accesses:
            if a.part == "M":
                found |= self._memory(a, env, store)
            elif a.part != "A" and (a.obj.type.name, a.field) in self.analysis.changing:
                slot = self.model.layout.slot[a.obj.type.name][a.field]
                found |= {(o, slot) for o in self._designated(a, env, store) if o > 0}
        return found

    def _designated(self, access: Access, env: dict[str, Any], store: Store) -> Iterable[int]:
        try:
            if access.bound:
                sets = {k: frozenset((v,)) for k, v in env.items()}
                return [p[0] for p in self.analysis.resolver.places(store, access, sets)]
            return [self.value(access.obj, env, store)]
        except (KeyError, TypeError, NameError):
            return []

    def _memory(self, access: Access, env: dict[str, Any], store: Store) -> set[Cell]:
        tree = access.obj.args[0] if isinstance(access.obj, n.Builtin) and access.obj.op == "load" else access.obj
        try:
            places = self.value(tree, env, store)
        except (KeyError, TypeError, NameError):
            return set()
        owners = {store.pages.get(start // 4096, 0) for start, _ in places}
        return {(o, self._memory_slot(o, store)) for o in owners if o}

    def _memory_slot(self, number: int, store: Store) -> int:
        kind = next(k for k in self.model.layout.memory if number in store.live[k])
        return self.model.layout.slot[kind][self.model.layout.memory[kind][0]]

    def value(self, tree: n.Expr, env: dict[str, Any], store: Store) -> Any:
        """The value of an expression."""
        return self.texts.function(tree, tuple(env))(store, *env.values())

    # -- one firing ------------------------------------------------------------------------------

    def _fire(self, event: Event) -> Firing:
        self.store.once = dict(event.options)
        try:
            if event.process is not None:
                return self._step(event, *self.texts.steps[event.rule])
            return self._call(event, *self.texts.calls[event.rule])
        finally:
            self.store.once = {}

    def _step(self, event: Event, family: Family, case: StepCase) -> Firing:
        assert event.process is not None
        number = event.process[1]
        env = {family.var: number, family.head_var: event.head}
        made = Firing(event.rule, True)
        made.about = self._about({number} | ({event.head} if isinstance(event.head, int) else set()))
        for tree in self.texts.guard(family, case):
            made.control |= self.cells(tree, env)
        self._sources(made, self.texts.body(family, case), env)
        mark = len(self.store.journal)
        case.effect(self.store, number)
        self._written(made, mark)
        return made

    def _call(self, event: Event, code: CallCode, case: CallCase) -> Firing:
        assert event.action is not None
        action = event.action
        env = dict(zip([*code.params, *code.outputs], [*action.args, *action.outputs], strict=False))
        made = Firing(event.rule, False)
        kinds = code.params.values()
        made.about = self._about({v for t, v in zip(kinds, action.args, strict=True) if t.tag == "ref"})
        if case.guard_tree is not None:
            made.control |= self.cells(case.guard_tree, env)
        self._sources(made, n.flat(case.body), env)
        mark = len(self.store.journal)
        if case.effect is not None:
            case.effect(self.store, *action.args, *action.outputs)
        self._written(made, mark)
        return made

    def _about(self, numbers: Iterable[int]) -> set[int]:
        """Objects and those that they refer to."""
        found: set[int] = set()
        for number in numbers:
            kind = next((k for k, live in self.store.live.items() if number in live), None)
            if kind is not None:
                fields = self.model.voc.objects[kind]
                slots = [self.model.layout.slot[kind][f] for f, i in fields.items() if i.type.tag == "ref"]
                found |= {number, *(self.store.objects[number][s] for s in slots)}
        return found - {0}

    def _sources(self, made: Firing, body: list[n.Stmt], env: dict[str, Any]) -> None:
        """What each assigned value is made of, as things are before the effect."""
        for stmt in body:
            match stmt:
                case n.Assign() | n.Push():
                    access = Access(stmt.obj, stmt.field, "V", True)
                    slot = self.model.layout.slot[stmt.obj.type.name][stmt.field]
                    parts: list[tuple[Part, n.Expr]] = [(None, stmt.value)]
                    if isinstance(stmt.value, n.Record):
                        parts = list(enumerate(stmt.value.parts))
                    for number in self._designated(access, env, self.store):
                        rows = made.writes.setdefault((number, slot), [])
                        where = self.cells(stmt.obj, env)
                        rows += [(part, self.cells(tree, env) | where) for part, tree in parts]
                case n.Store():
                    for cell in self._memory(Access(stmt.places, "", "M", True), env, self.store):
                        sources = self.cells(stmt.data, env) | self.cells(stmt.places, env)
                        made.writes.setdefault(cell, []).append((None, sources))
                case _:
                    pass

    def _written(self, made: Firing, mark: int) -> None:
        """Note what the journal says was changed, and what was pushed."""
        for container, key, old in self.store.journal[mark:]:
            if type(container) is list and container is not self.store.counter:
                cell = (container[0], key)
                new = container[key]
                if isinstance(new, tuple) and isinstance(old, tuple) and len(new) > len(old):
                    made.pushed[cell] = new[-1]
                if not (isinstance(new, tuple) and isinstance(old, tuple) and len(new) < len(old)):
                    made.writes.setdefault(cell, [])
