"""A random bijection of the specification's names, and the same names changed back at the adapter's edge."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec

from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value
from verbs_conformance.program import Program
from verbs_conformance.step import Step
from verbs_spec.document import Delta, Profile, Spec
from verbs_spec.nodes import RESERVED
from verbs_spec.text import Text

PROSE = {
    "says",
    "sources",
    "summary",
    "summaries",
    "asks",
    "doc",
    "reason",
    "returns",
    "prefer",
    "level",
    "profile",
    "digest",
    "object",
    "selected",
}
WORD = re.compile(r"[A-Za-z_]\w*")


class Renaming:
    """Every declared name of a specification and a new one for it."""

    def __init__(self, spec: Spec, seed: int) -> None:
        words: set[str] = set()
        for enum in spec.enums.values():
            words |= {enum.name, *enum.values}
        for record in spec.records.values():
            words |= {record.name, *record.fields}
        for kind in spec.objects.values():
            words |= {kind.name, *kind.fields}
        for define in spec.defines.values():
            words |= {define.name}
        words |= set(spec.choices)
        for call in spec.calls.values():
            words |= {call.name, *call.params, *call.outputs, *call.shapes}
        self.kept = {str(w) for w in words if w in RESERVED}
        rng = random.Random(seed)
        self.names = {
            str(w): f"n{i}{rng.choice('aeiou')}" for i, w in enumerate(rng.sample(sorted(map(str, words)), len(words)))
        }
        for word in self.kept:
            self.names[word] = word
        ids = [*spec.rules, *spec.families]
        self.ids = {str(r): f"r{i}/x{i}" for i, r in enumerate(rng.sample([str(i) for i in ids], len(ids)))}
        self.back = {v: k for k, v in self.names.items()}
        self.calls = set(map(str, spec.calls))
        assert len(self.back) == len(self.names)

    def word(self, text: str) -> str:
        """A name's new name; other words as they are."""
        return self.names.get(text, text)

    def expression(self, text: str) -> str:
        """An expression with its names changed."""
        return WORD.sub(lambda m: self.word(m.group()), text)

    def spec(self, spec: Spec) -> Spec:
        """The specification with its names changed."""
        made: Spec = self._node(spec)
        return made

    def program(self, program: Program) -> Program:
        """A program with its names changed; names of its own variables stay."""
        own = {name for step in program.steps for name in step.out.values()}
        return (
            replace(
                program,
                target=self.ids.get(program.target, program.target),
                device=tuple((self.ids.get(k, self.word(k)), self.word(v)) for k, v in program.device),
                steps=tuple(self.step(s) for s in program.steps),
            )
            if not own & self.names.keys()
            else program
        )

    def step(self, step: Step) -> Step:
        """A step with its names changed."""
        args = {self.word(k): v if v.startswith("pattern") else self.expression(v) for k, v in step.args.items()}
        # what is no call of the specification is the suite's own, whatever a field is called
        return Step(self.word(step.call) if step.call in self.calls else step.call, args, dict(step.out))

    def _node(self, node: Any, key: str = "") -> Any:
        if key in PROSE or node is None or isinstance(node, bool | Delta | Profile):
            return node
        if isinstance(node, Text):
            new = self.ids.get(node) or self.expression(node)
            return Text(new, node.where, quoted=node.quoted)
        if isinstance(node, str):
            return self.ids.get(node) or self.word(node)
        if isinstance(node, tuple):
            return tuple(self._node(n) for n in node)
        if isinstance(node, Mapping):
            return {self._key(k): self._node(v) for k, v in node.items()}
        if is_dataclass(node):
            changed = {f.name: self._node(getattr(node, f.name), f.name) for f in fields(node) if f.init}
            return replace(node, **changed)  # type: ignore[type-var]
        return node

    def _key(self, key: str) -> Any:
        new = self.ids.get(key) or self.word(key)
        return Text(new, key.where) if isinstance(key, Text) else new


class Edge:
    """A backend whose verbs, parameters, outputs and enumerators have the new names."""

    def __init__(self, backend: Backend, renaming: Renaming) -> None:
        self.backend = backend
        self.renaming = renaming

    def hello(self) -> Hello:
        """With limits and capabilities under their new names."""
        h = self.backend.hello()
        r = self.renaming
        by_lower = {k.lower(): v for k, v in r.names.items()}
        return msgspec.structs.replace(
            h,
            limits={r.word(k): v for k, v in h.limits.items()},
            capabilities=tuple(by_lower.get(c.lower(), c).upper() for c in h.capabilities),
        )

    def reset(self, seed: int) -> Trouble | None:
        """As the backend."""
        return self.backend.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """With the old names inside and the new ones outside."""
        old = self._value(args, self.renaming.back, {"data"})
        answer = self.backend.call(self.renaming.back.get(verb, verb), old)
        if isinstance(answer, Trouble):
            return answer
        return Answer(answer.result, self._value(answer.out, self.renaming.names, {"data"}))

    def close(self) -> None:
        """As the backend."""
        self.backend.close()

    def _value(self, value: Any, names: Mapping[str, str], contents: set[str]) -> Any:
        if isinstance(value, Mapping):
            keep = contents | {self.renaming.word(c) for c in contents}
            return {names.get(k, k): v if k in keep else self._value(v, names, contents) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(v, names, contents) for v in value]
        return names.get(value, value) if isinstance(value, str) else value
