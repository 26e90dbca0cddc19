"""Flips: the specification with one outcome of one rule changed.

Theory of operation
-------------------
They show that the suite judges by the YAML and by nothing else: if a rule's outcome is flipped, a conforming
backend must fail, and the flipped rule must be among the suspects.  ``flipping`` judges recorded runs again under
each flip; this module makes them.

A flip changes the text of one field of one rule.  What an outcome can be changed into is read off the
specification, so that no name of it stands here:

- a call's result becomes one that no rule of the call allows, and what is preferred the rest of what is allowed;
- what is undefined becomes a refusal;
- each part of the test on a call's outputs is negated (a part left out allows more, which no conforming backend
  can show: what is too wide is found with planted faults);
- each statement of an effect is left out (of one that the rows of a table have in common, in all of them); those
  of a step with its procedures unfolded first, so that what one procedure does for several rules is flipped for each
  of them;
- each value that a statement gives is changed: an enumerator into another (one that no rule names, if there is
  one), a part of a record that calls give back into another value, an entry
  given twice;
- an effect is added: to a refused call what the call does when it succeeds, to everything else that the first
  object it is about goes to the last of its states.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from verbs_conformance.bodies import Body, at, paths, replaced, with_keyword
from verbs_spec.document import CallRule, Rule, Spec, StepRule
from verbs_spec.text import Text

OTHER_RESULTS = ("EIO", "ENXIO", "E2BIG")
"""Results of the operating system, for what a call can be made to return instead."""


@dataclass(frozen=True, slots=True)
class Flip:
    """One changed field of one rule; ``rows`` are further rules that have their effect from the very same text."""

    rule: str
    what: str
    changes: dict[str, Any]
    rows: frozenset[str] = frozenset()

    @property
    def rules(self) -> frozenset[str]:
        """The rules that it changes."""
        return self.rows | {self.rule}

    @property
    def name(self) -> str:
        """The rule's id and what was changed."""
        return f"{self.rule}: {self.what}"


def flips(spec: Spec, only: Collection[str] | None = None) -> list[Flip]:
    """Every flip of a specification, or of some rules of it, each once."""
    maker = _Maker(spec)
    found: dict[str, Flip] = {}
    for rule in spec.rules.values() if only is None else (spec.rules[name] for name in only):
        for flip in maker.of(rule, maker.rows(rule)):
            found.setdefault(flip.name, flip)
    return list(found.values())


def apply(spec: Spec, flip: Flip) -> Spec:
    """The specification with the flip; all but the call or family that has the rule stays the very same."""

    def changed(part: Any) -> Any:
        if not any(str(rule.id) in flip.rules for rule in part.rules):
            return part
        new = (replace(rule, **flip.changes) if str(rule.id) in flip.rules else rule for rule in part.rules)
        return replace(part, rules=tuple(new))

    return replace(
        spec,
        calls={n: changed(call) for n, call in spec.calls.items()},
        families={n: changed(family) for n, family in spec.families.items()},
    )


class _Maker:
    """Makes the flips of one specification."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def of(self, rule: CallRule | StepRule, rows: list[str]) -> Iterator[Flip]:
        """The flips of a rule; of an effect that rows share, those of the first of them only."""
        if isinstance(rule, CallRule):
            yield from self._results(rule)
            if rule.undefined is not None:
                return
        if not rows or rows[0] == rule.id:
            yield from (replace(flip, rows=frozenset(rows)) for flip in self._of_effect(rule))

    def rows(self, rule: CallRule | StepRule) -> list[str]:
        """The rules that have their effect from the text which this one has it from: the rows of a table."""
        if rule.do is None or not isinstance(rule, CallRule):
            return []
        mine = rule.do, rule.do.where
        others = self.spec.calls[str(rule.call)].rules
        return [str(r.id) for r in others if r.do is not None and (r.do, r.do.where) == mine]

    def _of_effect(self, rule: CallRule | StepRule) -> Iterator[Flip]:
        if rule.do is not None:
            body = _statements(rule.do)
            if isinstance(rule, StepRule):
                body = self._unfolded(body)
            for what, changed in self._effects(body, self._progress(rule, body)):
                if not isinstance(rule, StepRule) or not all(isinstance(s, ast.Pass) for s in changed):
                    yield self._with_effect(rule, what, changed)  # a step that does nothing could be taken for ever
            yield from self._added(rule, body)
        else:
            yield from self._added(rule, [])

    def _with_effect(self, rule: Rule, what: str, body: Body) -> Flip:
        text = ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) if body else ""
        return Flip(str(rule.id), what, {"do": _text(rule, text) if text else None})

    # -- results and outputs ---------------------------------------------------------------------

    def _results(self, rule: CallRule) -> Iterator[Flip]:
        name = str(rule.id)
        known = {str(r) for other in self.spec.calls[str(rule.call)].rules for r in other.returns}
        other = (_text(rule, next(r for r in OTHER_RESULTS if r not in known)),)
        if rule.undefined is not None:
            yield Flip(name, "undefined made defined", {"undefined": None, "returns": other})
            return
        yield Flip(name, "returns another result", {"returns": other, "prefer": (), "outputs": None})
        rest = tuple(r for r in rule.returns if str(r) not in {str(p) for p in rule.prefer})
        if rule.prefer and rest:
            yield Flip(name, "prefers another result", {"prefer": rest})
        if rule.outputs is not None:
            tree = ast.parse(textwrap.dedent(str(rule.outputs)).strip().replace("\n", " "), mode="eval").body
            parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
            for part in parts:
                rest_of_it = [ast.UnaryOp(ast.Not(), p) if p is part else p for p in parts]
                text = " and ".join(f"({ast.unparse(p)})" for p in rest_of_it)
                yield Flip(name, f"outputs not {_short(part)!r}", {"outputs": _text(rule, text)})

    # -- effects ---------------------------------------------------------------------------------

    def _progress(self, rule: CallRule | StepRule, body: Body) -> Callable[[ast.stmt], bool]:
        """Which statements a step cannot do without: it could be taken for ever, which is no device at all.

        They take from the queue; if none does, they change what the guard looks at."""
        if isinstance(rule, CallRule):
            return lambda _: False
        if any(_calls(s, "pop") for s in body):
            return lambda stmt: _calls(stmt, "pop")
        guards = [t for t in (self.spec.families[str(rule.family)].domain, rule.when) if t is not None]
        looks = {x.attr for t in guards for x in ast.walk(_parsed(str(t))) if isinstance(x, ast.Attribute)}
        return lambda stmt: any(
            isinstance(x, ast.Attribute) and isinstance(x.ctx, ast.Store) and x.attr in looks for x in ast.walk(stmt)
        )

    def _effects(self, body: Body, is_progress: Callable[[ast.stmt], bool]) -> Iterator[tuple[str, Body]]:
        """Each statement, wherever it stands, left out, changed or done twice."""
        for path in paths(body):
            stmt = at(body, path)
            if self._idle([stmt]) or is_progress(stmt):
                continue
            if not _calls(stmt, "new") and not _names(stmt):
                yield f"without {_short(stmt)!r}", replaced(body, path, [])
            if _calls(stmt, "push") and not isinstance(stmt, ast.If):
                yield f"twice {_short(stmt)!r}", replaced(body, path, [stmt, stmt])
            for what, changed in self._changed(stmt):
                yield what, replaced(body, path, [changed])

    def _idle(self, body: Body) -> bool:
        """Whether statements do nothing: they give names, or call procedures that are empty under these profiles."""
        return all(isinstance(s, ast.Pass) or _local(s) for s in self._unfolded(body))

    def _changed(self, stmt: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
        """The statement with another value."""
        if isinstance(stmt, ast.Assign):
            other = self._other_enumerator(stmt.value)
            if other is not None:
                made = copy.deepcopy(stmt)
                made.value = other
                yield f"{ast.unparse(made)!r} for {ast.unparse(stmt)!r}", made
        for call in ast.walk(stmt):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            for i, keyword in enumerate(call.keywords):
                shown = ast.unparse(keyword)
                if call.func.id in self.spec.records and str(keyword.arg) in self._shown:
                    kind = str(self.spec.records[call.func.id].fields[str(keyword.arg)].type)
                    value = self._other_value(kind, keyword.value)
                    if value is not None:
                        what = f"{call.func.id} with {keyword.arg}={ast.unparse(value)} for {shown!r}"
                        yield what, with_keyword(stmt, call, i, value)

    def _other_value(self, kind: str, value: ast.expr) -> ast.expr | None:
        if kind == "nat":
            return ast.BinOp(value, ast.Add(), ast.Constant(1))
        if kind == "bool":
            return ast.UnaryOp(ast.Not(), value)
        if kind in self.spec.enums:
            other = self._unused(kind)
            return ast.Name(other, ast.Load()) if ast.unparse(value) != other else None
        if kind.startswith("flags "):
            values = self.spec.enums[kind.removeprefix("flags ")].values
            text = "{}" if isinstance(value, ast.Set) else "{" + str(values[0]) + "}"
            return ast.parse(text, mode="eval").body
        return None

    def _other_enumerator(self, value: ast.expr) -> ast.expr | None:
        if isinstance(value, ast.Name):
            for name, enum in self.spec.enums.items():
                if value.id in enum.values:
                    return ast.Name(self._unused(str(name), value.id), ast.Load())
        return None

    def _unused(self, enum: str, but: str = "") -> str:
        """An enumerator that no rule names, or the one that follows."""
        values = [str(v) for v in self.spec.enums[enum].values]
        return next(
            (v for v in values if v not in self._named), values[(values.index(but) + 1 if but else 0) % len(values)]
        )

    @cached_property
    def _shown(self) -> set[str]:
        """The parts of records that some call gives back."""
        tests = [r.outputs for r in self.spec.rules.values() if isinstance(r, CallRule) and r.outputs is not None]
        return {node.attr for t in tests for node in ast.walk(_parsed(str(t))) if isinstance(node, ast.Attribute)}

    @cached_property
    def _named(self) -> set[str]:
        """Every word of rules and defines."""
        texts: list[str] = [str(d.body) for d in self.spec.defines.values()]
        for rule in self.spec.rules.values():
            parts = [rule.when, rule.do]
            if isinstance(rule, CallRule):
                parts += [rule.cause, rule.outputs]
            texts += [str(p) for p in parts if p is not None]
        return {node.id for t in texts for node in ast.walk(_parsed(t)) if isinstance(node, ast.Name)}

    @cached_property
    def _assigned(self) -> set[str]:
        """The fields that a rule assigns."""
        bodies = [self._unfolded(_statements(rule.do)) for rule in self.spec.rules.values() if rule.do is not None]
        targets = (
            t for body in bodies for s in body for x in ast.walk(s) if isinstance(x, ast.Assign) for t in x.targets
        )
        return {target.attr for target in targets if isinstance(target, ast.Attribute)}

    # -- effects added ---------------------------------------------------------------------------

    def _added(self, rule: CallRule | StepRule, body: Body) -> Iterator[Flip]:
        if isinstance(rule, CallRule) and rule.cause is not None:
            texts = set()  # rows of a table have one effect
            for other in self.spec.calls[str(rule.call)].rules:
                if other.cause is None and other.do is not None and str(other.do) not in texts:
                    texts.add(str(other.do))
                    made = self._without_results(other, self._unfolded(_statements(other.do)))
                    if not self._idle(made):
                        yield self._with_effect(rule, f"with the effect of {other.id}", [*body, *made])
            return
        if any(_calls(s, "delete") for s in body):
            return
        for name, kind in self._subjects(rule):
            field = self._state(kind)
            if field is not None:
                made = ast.parse(f"{name}.{field[0]} = {field[1]}").body
                if ast.unparse(made[0]) not in {ast.unparse(s) for s in body}:
                    yield self._with_effect(rule, f"with {ast.unparse(made[0])!r}", [*body, *made])
                return

    def _without_results(self, rule: CallRule, body: Body) -> Body:
        """What an effect does but for what concerns the object that only a success returns, and what hangs on that."""
        gone = {str(o) for o, kind in self.spec.calls[str(rule.call)].outputs.items()}
        left: Body = []
        for stmt in body:
            if any(isinstance(x, ast.Name) and x.id in gone for x in ast.walk(stmt)):
                gone |= {t.id for t in getattr(stmt, "targets", ()) if isinstance(t, ast.Name)}
            else:
                left.append(stmt)
        return left

    def _subjects(self, rule: CallRule | StepRule) -> Iterator[tuple[str, str]]:
        """The objects that a rule is about, by name and kind, the first one first."""
        if isinstance(rule, CallRule):
            for name, kind in self.spec.calls[str(rule.call)].params.items():
                if str(kind).startswith("ref "):
                    yield str(name), str(kind).removeprefix("ref ").removesuffix("?")
        else:
            each = self.spec.families[str(rule.family)].each
            yield str(each.name), str(each.kind)

    def _state(self, kind: str) -> tuple[str, str] | None:
        """The first field of an object that goes through several states, and the last of them that a rule names."""
        for name, field in self.spec.objects[kind].fields.items():
            if str(field.type) in self.spec.enums and name in self._assigned:
                values = [str(v) for v in self.spec.enums[str(field.type)].values]
                return str(name), [v for v in values if v in self._named or v == values[0]][-1]
        return None

    # -- procedures ------------------------------------------------------------------------------

    def _unfolded(self, body: Body) -> Body:
        """Statements with the procedures that they call written out."""
        made: Body = []
        for stmt in body:
            if isinstance(stmt, ast.If):
                test = copy.deepcopy(stmt)
                test.body, test.orelse = self._unfolded(stmt.body), self._unfolded(stmt.orelse)
                made.append(test)
            elif (define := self._procedure(stmt)) is not None:
                call = stmt.value  # type: ignore[attr-defined]
                names = [str(p.name) for p in define.params]
                values = dict(zip(names, call.args, strict=True))
                inner = [_Named(values).visit(copy.deepcopy(s)) for s in _statements(define.body)]
                made += self._unfolded(inner)
            else:
                made.append(stmt)
        return made

    def _procedure(self, stmt: ast.stmt) -> Any:
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call) and isinstance(stmt.value.func, ast.Name):
            return self.spec.defines.get(stmt.value.func.id)
        return None


class _Named(ast.NodeTransformer):
    """Puts values in the place of names."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.values.get(node.id, node))


def _text(rule: Rule, text: str) -> Text:
    return Text(text, rule.where, quoted=True)


def _parsed(text: str) -> ast.Module:
    source = textwrap.dedent(text).strip()
    try:
        return ast.parse(source)
    except SyntaxError:  # an expression that goes on in the next line
        return ast.parse(f"({source})")


def _statements(text: Text) -> Body:
    return ast.parse(textwrap.dedent(str(text)).strip()).body


def _short(node: ast.AST) -> str:
    first, *rest = ast.unparse(node).split("\n")
    return f"{first} ..." if rest else first


def _calls(stmt: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for node in ast.walk(stmt)
    )


def _names(stmt: ast.stmt) -> bool:
    """Whether the statement gives a name, which what follows needs."""
    return isinstance(stmt, ast.Assign) and any(isinstance(target, ast.Name) for target in stmt.targets)


def _local(stmt: ast.stmt) -> bool:
    """Whether the statement gives a name and makes nothing."""
    return _names(stmt) and not _calls(stmt, "new")
