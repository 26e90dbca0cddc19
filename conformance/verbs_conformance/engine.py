"""A model, and what every session of it needs: the analysis of its steps, and compiled arguments of programs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from verbs_conformance.errors import BadProgram
from verbs_reference import nodes as n
from verbs_reference.model import Model
from verbs_reference.pending import Analysis
from verbs_reference.types import Type
from verbs_spec.errors import SpecError, Where
from verbs_spec.text import Text


class Engine:
    """A model with what is derived from it once, and a cache of compiled arguments.

    ``like`` is an engine of a model that differs in a few rules: what it knows of the others is taken over.
    """

    def __init__(self, model: Model, like: Engine | None = None) -> None:
        self.model = model
        self._like = like
        self.opening = next((c for c in model.calls if model.calls[c].opens), "")
        opened = model.calls[self.opening] if self.opening else None
        self.device = opened.outputs[opened.creates[0]] if opened else None
        self._compiled: dict[tuple[str, int], tuple[Any, tuple[tuple[str, str], ...]]] = {}
        """By an argument's text and the identity of its type, which is the model's and lives as long."""

    @cached_property
    def analysis(self) -> Analysis:
        """What of the model a belief needs to know, found when the first one asks."""
        like, self._like = self._like, None
        return Analysis(self.model, like.analysis if like is not None else None)

    @cached_property
    def giving(self) -> frozenset[str]:
        """The calls that give the device work: those that put something into a queue."""
        return frozenset(
            c.name
            for c in self.model.calls.values()
            for case in c.successes
            for s in n.flat(case.body)
            if isinstance(s, n.Push)
        )

    @cached_property
    def polling(self) -> tuple[str, str]:
        """The call that takes entries from a queue, and its first output, which counts them."""
        for name, code in self.model.calls.items():
            first = next(iter(code.outputs.items()), None)
            pops = any(isinstance(s, n.Pop) for c in code.successes for s in c.body)
            if pops and first is not None and first[1].tag == "nat" and len(code.params) == 1:
                return name, first[0]
        raise BadProgram("the specification has no call that takes entries from a queue and counts them")

    def argument(self, text: str, want: Type, names: dict[str, tuple[str, int]]) -> tuple[Any, tuple[int, ...]]:
        """A compiled argument and the numbers to call it with; BadProgram if the text is no such value."""
        key = (text, id(want))
        known = self._compiled.get(key)
        if known is None or any(k not in names or names[k][0] != kind for k, kind in known[1]):
            known = self._compile(text, want, names)
            self._compiled[key] = known
        return known[0], tuple(names[k][1] for k, _ in known[1])

    def _compile(
        self, text: str, want: Type, names: dict[str, tuple[str, int]]
    ) -> tuple[Any, tuple[tuple[str, str], ...]]:
        scope: dict[str, n.Expr] = {k: n.Var(Type("ref", kind), k) for k, (kind, _) in names.items()}
        try:
            tree = self.model.parser.expression(Text(text, Where("program", 1, 1), quoted=True), scope, want)
        except SpecError as e:
            raise BadProgram(e.message) from None
        used = tuple((k, names[k][0]) for k in sorted(n.free_names(tree)))
        return self.model.compiler.expression(tree, [k for k, _ in used]), used
