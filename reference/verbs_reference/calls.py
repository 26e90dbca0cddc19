"""What a consumer's call touches of what internal steps touch too, and which entries can answer a poll."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verbs_reference import footprint as fp
from verbs_reference import nodes as n
from verbs_reference.accesses import Access, effects, meets, reads
from verbs_reference.footprint import ANY, SOME, Footprint
from verbs_reference.inlined import inline, inline_statement
from verbs_reference.model import CallCase, CallCode, Family, Model, StepCase
from verbs_reference.statics import Statics, lasting, places_of
from verbs_reference.store import Store

if TYPE_CHECKING:
    from verbs_reference.belief import Action

Function = Callable[..., Any]
Memory = list[tuple[Function | None, bool]]
Touched = dict[tuple[str, str], set[tuple[str, bool]]]
HEAD = "head of the queue"


@dataclass(slots=True)
class CallFacts:
    """Of one rule of a call: what it touches, fields and memory, by guard, output test and effect."""

    guard: Function | None
    reads: Function | None
    looks: Function | None
    writes: Function | None
    memory: Memory
    changes: bool
    entry: list[tuple[frozenset[int], Function]]

    @property
    def is_apart(self) -> bool:
        """Whether the call touches nothing that steps touch."""
        return self.reads is self.looks is self.writes is None and not self.memory


@dataclass(frozen=True, slots=True)
class Wanted:
    """The entry that must come to an empty queue for the call to be explained."""

    queue: tuple[str, str]
    number: int
    tests: tuple[list[tuple[frozenset[int], Function]], ...]
    args: tuple[Any, ...]
    width: int

    def excludes(self, store: Store, parts: dict[int, Any]) -> bool:
        """Whether an entry of which these parts are known cannot be it."""
        entry = tuple(parts.get(i) for i in range(self.width))
        return all(
            any(used <= parts.keys() and not test(store, *self.args, entry) for used, test in tests)
            for tests in self.tests
        )


class Calls:
    """The facts of all calls of a model; those that a model with a few other rules has too are taken over."""

    def __init__(self, statics: Statics, like: Calls | None = None) -> None:
        self.statics = statics
        self.model: Model = statics.model
        self.touches_of: dict[int, Touched] = {}
        """What each case of a step touches, by the case's identity."""
        self.touched = self._touched_by_steps(like)
        """For each field the parts that some step reads or writes; memory is the field ("", "")."""
        known = like if like is not None and _within(self.touched, like.touched) else None
        if known is not None:  # what a step may touch there it may touch here
            self.touched = known.touched
        self.facts: dict[str, CallFacts] = {}
        self.queues: dict[str, tuple[n.Expr, Function] | None] = {}
        self.tangling: set[str] = set()
        """The calls that tell apart how far the device has got: their outputs show, or their effects cut short, what
        internal steps do."""
        for code in self.model.calls.values():
            if known is not None and _same_call(code, known.model.calls.get(code.name)):
                self.queues[code.name] = known.queues[code.name]
                self.facts.update((case.id, known.facts[case.id]) for case in code.cases)
                self.tangling |= known.tangling & {code.name}
                continue
            names = [x for x in (*code.params, *code.outputs) if x not in code.creates]
            self.queues[code.name] = self._queue(code)
            for case in code.cases:
                with fp.placed(case.rule.id.where):
                    self.facts[case.id] = self._facts(code, case, names)

    def _touched_by_steps(self, like: Calls | None) -> Touched:
        found: Touched = {}
        for family in self.model.families:
            found.setdefault(family.trigger, set()).add(("H", False))
            for case in family.cases:
                if like is not None and self.statics.knows(case):
                    made = like.touches_of[id(case)]
                else:
                    made = _touched_by(family, case)
                self.touches_of[id(case)] = made
                for key, parts in made.items():
                    found.setdefault(key, set()).update(parts)
        return found

    def _facts(self, code: CallCode, case: CallCase, names: list[str]) -> CallFacts:
        guard = [] if case.guard_tree is None else self._risks(reads(case.guard_tree))
        outputs = [] if case.outputs_tree is None else self._risks(reads(case.outputs_tree))
        effect = self._risks(effects(case.body))
        if any(a.part in "VAM" for a in outputs) or any(a.writes and a.part in "VA" for a in effect):
            self.tangling.add(code.name)
        every = [*code.params, *code.outputs]

        def atoms(accesses: Iterable[Access]) -> Function | None:
            return self.statics.designators.atoms([a for a in accesses if _free(a) <= set(names)], every)

        return CallFacts(
            atoms(guard),
            atoms([*guard, *outputs]),
            atoms(a for a in effect if not a.writes),
            atoms(a for a in effect if a.writes),
            [self._memory(a, names, every) for a in (*guard, *outputs, *effect) if a.part == "M"],
            bool(case.body),
            self._entry(code, case),
        )

    def _memory(self, access: Access, names: list[str], every: list[str]) -> tuple[Function | None, bool]:
        tree = places_of(access)
        known = not access.bound and n.free_names(tree) <= set(names) and self.statics.is_steady(tree)
        return (self.model.compiler.expression(tree, every) if known else None), access.writes

    def _risks(self, accesses: Iterable[Access]) -> list[Access]:
        """The accesses that some step's access can conflict with."""
        found: dict[Access, None] = {}
        for a in accesses:
            key = ("", "") if a.part == "M" else (a.obj.type.name, "" if a.part == "A" else a.field)
            if any((w or a.writes) and meets(a.part, part) for part, w in self.touched.get(key, ())):
                found[a] = None
        return list(found)

    # -- of one observation ----------------------------------------------------------------------

    def is_apart(self, cases: list[CallCase], others: list[CallCase]) -> bool:
        """Whether the call touches nothing that steps touch, in any state; of the others the guard counts."""
        return all(self.facts[c.id].is_apart for c in cases) and all(self.facts[c.id].guard is None for c in others)

    def touches(self, store: Store, cases: list[CallCase], others: list[CallCase], action: Action) -> Footprint:
        """What the call touches if these cases may explain it; of the others the guard counts."""
        made = Footprint()
        values = (*action.args, *action.outputs)
        for case in cases:
            facts = self.facts[case.id]
            for function, into in (
                (facts.reads, made.reads),
                (facts.looks, made.needs),
                (facts.writes, made.writes),
            ):
                if function is not None:
                    into.update(function(store, *values))
            if facts.memory:
                _add_memory(store, made, facts.memory, values)
        for case in others:
            guard = self.facts[case.id].guard
            if guard is not None:
                made.reads |= guard(store, *values)
        return made

    def wanted(self, store: Store, code: CallCode, cases: list[CallCase], action: Action) -> Wanted | None:
        """What must come to the queue that the call looks at, if that queue is empty."""
        queue = self.queues[code.name]
        tests = tuple(self.facts[c.id].entry for c in cases)
        if queue is None or not all(tests):
            return None
        field = queue[0]
        assert isinstance(field, n.Field)
        number = queue[1](store, *action.args)
        kind = field.obj.type.name
        if number <= 0 or store.objects[number][self.model.layout.slot[kind][field.field]]:
            return None
        assert field.type.elem is not None
        width = len(self.model.voc.records[field.type.elem.name])
        return Wanted((kind, field.field), number, tests, (*action.args, *action.outputs), width)

    def _queue(self, code: CallCode) -> tuple[n.Expr, Function] | None:
        """The one queue whose head the call looks at."""
        trees = [t for c in code.cases for t in (c.guard_tree, c.outputs_tree) if t is not None]
        heads = {e.args[0] for t in trees for e in n.walk(t) if isinstance(e, n.Builtin) and e.op == "head"}
        if len(heads) != 1:
            return None
        field = heads.pop()
        if not isinstance(field, n.Field) or field.type.elem is None or field.type.elem.tag != "record":
            return None
        if not self.statics.is_steady(field.obj) or not n.free_names(field.obj) <= set(code.params):
            return None
        return field, self.model.compiler.expression(field.obj, list(code.params))

    def _entry(self, code: CallCode, case: CallCase) -> list[tuple[frozenset[int], Function]]:
        """Tests of the entry at the queue's head, each with the parts of the entry that it looks at."""
        queue = self.queues[code.name]
        if queue is None:
            return []
        head = next(
            e
            for c in code.cases
            for t in (c.guard_tree, c.outputs_tree)
            if t is not None
            for e in n.walk(t)
            if isinstance(e, n.Builtin) and e.op == "head"
        )
        made = []
        names = [*code.params, *code.outputs, HEAD.replace(" ", "_")]
        for tree in (case.guard_tree, case.outputs_tree):
            for part in n.conjuncts(tree) if tree is not None else []:
                changed = n.replaced(part, head, n.Var(head.type, names[-1]))
                used = self._parts(changed, names[-1])
                if used and self.statics.is_steady(changed):
                    made.append((used, self.model.compiler.expression(changed, names)))
        return made

    def _parts(self, expr: n.Expr, name: str) -> frozenset[int] | None:
        """The parts of a record that an expression looks at; None if it uses the record as a whole."""
        found: set[int] = set()
        whole = 0
        for e in n.walk(expr):
            if isinstance(e, n.Part) and isinstance(e.record, n.Var) and e.record.name == name:
                found.add(list(self.model.voc.records[e.record.type.name]).index(e.field))
                whole -= 1
            if isinstance(e, n.Var) and e.name == name:
                whole += 1
        return frozenset(found) if whole == 0 else None


def _free(access: Access) -> set[str]:
    return n.free_names(access.obj) - {over.var for over in access.bound}


def _add_memory(store: Store, made: Footprint, memory: Memory, values: tuple[Any, ...]) -> None:
    for places, writes in memory:
        made.reads.add(SOME)
        into = made.writes if writes else made.reads
        if writes:
            made.writes.add(ANY)
        if places is None:
            into.add(SOME if writes else ANY)
        else:
            into |= fp.blocks(places(store, *values))


def _same_call(one: CallCode, other: CallCode | None) -> bool:
    return one is other or (other is not None and _call_trees(one) == _call_trees(other))


def _call_trees(code: CallCode) -> tuple[object, ...]:
    cases = [(c.id, c.returns, c.guard_tree, c.outputs_tree, c.body) for c in code.cases]
    return code.params, code.outputs, code.creates, cases


def _within(some: Touched, all_of: Touched) -> bool:
    return all(parts <= all_of.get(key, set()) for key, parts in some.items())


def _touched_by(family: Family, case: StepCase) -> Touched:
    """For each field the parts that a step reads or writes."""
    found: Touched = {}
    domain = family.domain_tree
    accesses = [] if domain is None else list(lasting(inline(family, domain)))
    accesses += list(reads(inline(family, case.when_tree)))
    accesses += list(effects(inline_statement(family, s) for s in case.body))
    for a in accesses:
        key = ("", "") if a.part == "M" else (a.obj.type.name, "" if a.part == "A" else a.field)
        found.setdefault(key, set()).add((a.part, a.writes))
    return found
