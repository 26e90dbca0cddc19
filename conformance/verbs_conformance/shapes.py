"""Which calls a generated program may make next.

A shape of the specification gives, for each parameter of a call, a menu of expressions, the usual value first.
``each`` stands for every live object of the parameter's kind, ``fresh`` for the next unused number.  A name that
begins with ``_`` is not passed; the other entries refer to it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

from verbs_conformance.step import Step
from verbs_reference.model import Model

Names = dict[str, str]
"""The live names of a program and the kinds of their objects."""


@dataclass(frozen=True, slots=True)
class Menu:
    """A parameter's entries: templates whose fields are names chosen before; ``kind`` for ``each``."""

    name: str
    kind: str
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to make a call."""

    name: str
    call: str
    menus: tuple[Menu, ...]
    makes: tuple[str, ...]
    """Kinds of the objects that the call makes, in order."""
    peril: bool = False
    """Whether the call is known to crash a kernel, so that none but written programs make it."""

    needs: frozenset[str] = field(init=False, repr=False, compare=False)
    """Kinds of which there must be an object."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", frozenset(m.kind for m in self.menus if m.entries == ("each",)))


def harmless(model: Model) -> list[Shape]:
    """The shapes of a model's calls that a generated program may use on any device, in the specification's order."""
    return [shape for shape in shapes(model) if not shape.peril]


def shapes(model: Model) -> list[Shape]:
    """All shapes of a model's calls, in the specification's order."""
    made = []
    for call in model.spec.calls.values():
        code = model.calls[str(call.name)]
        for shape in call.shapes.values():
            own = {str(k) for k in shape.menus}
            menus = []
            for name, entries in shape.menus.items():
                kind = _kind(str(entries[0]), code.params.get(str(name)))
                menus.append(Menu(str(name), kind, tuple(_template(str(e), own) for e in entries)))
            makes = tuple(code.outputs[o].name for o in code.creates)
            made.append(Shape(str(shape.name), str(call.name), tuple(menus), makes, shape.peril is not None))
    return made


def _kind(entry: str, param: object) -> str:
    words = entry.split()
    if words and words[0] == "each":
        return words[1] if len(words) > 1 else str(getattr(param, "name", ""))
    return ""


def _template(text: str, names: set[str]) -> str:
    """The entry as a format string: names of other menus become fields."""
    if text.split(maxsplit=1)[0] in {"each", "fresh"}:
        return text.split(maxsplit=1)[0]
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return _escape(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    cuts = sorted(
        (node.col_offset, node.end_col_offset or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in names and id(node) not in called
    )
    made, at = "", 0
    for start, end in cuts:
        made += _escape(text[at:start]) + "{" + text[start:end] + "}"
        at = end
    return made + _escape(text[at:])


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


class Offer(Sequence[str]):
    """What a menu offers now, each text made when it is asked for."""

    def __init__(self, menu: Menu, names: Names, chosen: dict[str, str], fresh: int) -> None:
        self._chosen, self._fresh = chosen, fresh
        self._entries: list[tuple[str, bool]] = []
        for entry in menu.entries:
            if entry == "each":
                self._entries += [(name, False) for name, kind in names.items() if kind == menu.kind]
            else:
                self._entries.append((entry, True))

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._text(*e) for e in self._entries[index]]
        return self._text(*self._entries[index])

    def _text(self, entry: str, template: bool) -> str:
        if not template:
            return entry
        return str(self._fresh) if entry == "fresh" else entry.format(**self._chosen)


def build(
    shape: Shape,
    names: Names,
    fresh: int,
    counts: dict[str, int],
    pick: Callable[[Menu, Sequence[str]], str | None],
) -> Step | None:
    """A step of this shape; ``pick`` chooses from each menu, None where nothing can be chosen."""
    chosen: dict[str, str] = {}
    for menu in shape.menus:
        offered = Offer(menu, names, chosen, fresh)
        text = pick(menu, offered) if offered else None
        if text is None:
            return None
        chosen[menu.name] = text
    args = {k: v for k, v in chosen.items() if not k.startswith("_")}
    out = {f"#{i}": f"{kind}{counts.get(kind, 0)}" for i, kind in enumerate(shape.makes)}
    return Step(shape.call, args, out)


def usual_and_near(shape: Shape, names: Names, fresh: int, counts: dict[str, int]) -> Iterator[Step]:
    """The usual step of a shape, then every step that differs from it in one menu."""

    def first(_menu: Menu, offered: Sequence[str]) -> str:
        return offered[0]

    usual = build(shape, names, fresh, counts, first)
    if usual is None:
        return
    yield usual
    seen = {str(usual)}
    for other in shape.menus:
        for i in range(1, 64):

            def pick(menu: Menu, offered: Sequence[str], other: Menu = other, i: int = i) -> str | None:
                if menu is not other:
                    return offered[0]
                return offered[i] if i < len(offered) else None

            step = build(shape, names, fresh, counts, pick)
            if step is None:
                break
            if str(step) not in seen:
                seen.add(str(step))
                yield step
