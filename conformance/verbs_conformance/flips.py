"""Flips: the specification with one outcome of one rule changed.

They show that the suite judges by the YAML and by nothing else: if a rule's outcome is flipped, a conforming
backend must fail, and the flipped rule must be among the suspects.  A flip changes the text of one field; the
program runs are recorded once and judged again under each flip.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value
from verbs_spec.document import CallRule, Rule, Spec, StepRule
from verbs_spec.text import Text

OTHER_ERRNO = "EIO"
OTHER_STATUS = "FATAL_ERR"


@dataclass(frozen=True, slots=True)
class Flip:
    """One changed field of one rule."""

    rule: str
    what: str
    changes: dict[str, Any]

    @property
    def name(self) -> str:
        """The rule's id and what was changed."""
        return f"{self.rule}: {self.what}"


def flips(spec: Spec) -> Iterator[Flip]:
    """Every flip of a specification."""
    for rule in spec.rules.values():
        if isinstance(rule, CallRule):
            yield from _call_flips(rule)
        else:
            yield from _step_flips(rule)


def apply(spec: Spec, flip: Flip) -> Spec:
    """The specification with the flip."""

    def changed(rule: Any) -> Any:
        return replace(rule, **flip.changes) if rule.id == flip.rule else rule

    return replace(
        spec,
        calls={n: replace(c, rules=tuple(changed(r) for r in c.rules)) for n, c in spec.calls.items()},
        families={n: replace(f, rules=tuple(changed(r) for r in f.rules)) for n, f in spec.families.items()},
    )


def _text(rule: Rule, text: str) -> Text:
    return Text(text, rule.where, quoted=True)


def _call_flips(rule: CallRule) -> Iterator[Flip]:
    name = str(rule.id)
    other = (_text(rule, OTHER_ERRNO),)
    if rule.undefined is not None:
        yield Flip(name, "undefined made defined", {"undefined": None, "returns": other})
        return
    yield Flip(name, "returns another errno", {"returns": other, "prefer": (), "outputs": None})
    if rule.outputs is not None:
        yield Flip(name, "outputs negated", {"outputs": _text(rule, f"not ({rule.outputs})")})
    if rule.do is not None:
        yield from _dropped(rule, name, rule.do)


def _step_flips(rule: StepRule) -> Iterator[Flip]:
    name = str(rule.id)
    if rule.do is None:
        return
    yield from _dropped(rule, name, rule.do)
    tree = ast.parse(textwrap.dedent(str(rule.do)).strip())
    changed = _OtherStatus().visit(tree)
    text = ast.unparse(changed)
    if _OtherStatus.done(text):
        yield Flip(name, f"completes with {OTHER_STATUS}", {"do": _text(rule, text)})


def _dropped(rule: Rule, name: str, do: Text) -> Iterator[Flip]:
    """One flip for each statement left out, but for those that make objects or take from queues."""
    body = ast.parse(textwrap.dedent(str(do)).strip()).body
    for i, stmt in enumerate(body):
        if _is_structural(stmt):
            continue
        rest = [s for j, s in enumerate(body) if j != i]
        if not rest and isinstance(rule, StepRule):
            continue  # a step that changes nothing can be taken for ever
        text = ast.unparse(ast.Module(rest, [])) if rest else ""
        shown = ast.unparse(stmt).split("\n")[0]
        yield Flip(name, f"without {shown!r}", {"do": _text(rule, text) if text else None})


def _is_structural(stmt: ast.stmt) -> bool:
    """Whether leaving the statement out leaves no machine: an object is missing, or a step takes nothing."""
    for node in ast.walk(stmt):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"new", "pop", "start", "used", "refuse", "take", "delete", "discard"}
        ):
            return True
    return False


class _OtherStatus(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(OTHER_STATUS, node.ctx) if node.id.endswith("_ERR") or node.id == "SUCCESS" else node

    @staticmethod
    def done(text: str) -> bool:
        return OTHER_STATUS in text


# -- recorded runs -------------------------------------------------------------------------------


class Recorder:
    """A backend that keeps what another one answers."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.answers: list[Answer | Trouble] = []

    def hello(self) -> Hello:
        """As the backend says."""
        return self.backend.hello()

    def reset(self, seed: int) -> Trouble | None:
        """Start a new record."""
        self.answers = []
        return self.backend.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Pass on and keep."""
        answer = self.backend.call(verb, args)
        self.answers.append(answer)
        return answer

    def close(self) -> None:
        """Close the backend."""
        self.backend.close()


class Playback:
    """A backend that gives recorded answers, whatever is asked; past the end it crashes."""

    def __init__(self, hello: Hello) -> None:
        self._hello = hello
        self.answers: list[Answer | Trouble] = []
        self._next = 0

    def hello(self) -> Hello:
        """What the recorded backend said."""
        return self._hello

    def reset(self, seed: int) -> Trouble | None:
        """Play from the beginning."""
        self._next = 0
        return None

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """The next recorded answer."""
        if self._next >= len(self.answers):
            return Trouble("crash", "glue", "the record ends here")
        self._next += 1
        return self.answers[self._next - 1]

    def close(self) -> None:
        """Nothing to give back."""
