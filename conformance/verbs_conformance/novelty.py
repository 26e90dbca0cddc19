"""Which of several steps is the least like what was made before.

Theory of operation
-------------------
A step is outlined by its call and its arguments, with each object that they name replaced by its kind and by the states
that it is in: its fields of an enumeration or of two values, as the model has them in the first branch.  That is the
row and the column of a cell of the specification, an input in a state.  Numbers that are fresh each time are left out.
The novelty counts how often each outline was made, alone and behind the outline of the step before it, in all programs
of a run: what was made least often comes first, so that rare inputs in rare states are met soon, and common ones last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from verbs_conformance.plans import Plan
from verbs_conformance.session import Session
from verbs_conformance.shapes import Shape
from verbs_conformance.step import Step
from verbs_reference.model import Model

Outline = tuple[object, ...]
_NAME = re.compile(r"[A-Za-z_]\w*")


class Novelty:
    """What the programs of a run have made.

    Hypothesis repeats the beginnings of programs and expects that the same numbers draw the same.  So a program knows
    its own steps and those of the programs before the last :meth:`learn`, and no others.
    """

    def __init__(self, model: Model) -> None:
        self._known: Counter[object] = Counter()
        self._new: Counter[object] = Counter()
        self._own: Counter[object] = Counter()
        self._states = {
            kind: [model.layout.slot[kind][name] for name, info in fields.items() if info.type.tag in {"enum", "bool"}]
            for kind, fields in model.voc.objects.items()
        }

    def learn(self) -> None:
        """From now on programs know what was made until now."""
        self.begin()
        self._known.update(self._new)
        self._new.clear()

    def begin(self) -> None:
        """A program begins."""
        self._new.update(self._own)
        self._own.clear()

    def outline(self, session: Session, shape: Shape, step: Step) -> Outline:
        """What kind of step it is, in the state that its objects are in."""
        fresh = {menu.name for menu in shape.menus if menu.entries[0] == "fresh"}
        texts = [(name, text) for name, text in step.args.items() if name not in fresh]
        named = [n for n in dict.fromkeys(w for _, text in texts for w in _NAME.findall(text)) if n in session.names]
        store = session.belief.store
        standing = [session.names[name] for name in named]
        states = session.belief.evaluate(
            lambda _: tuple(
                (kind, *(store.objects[number][i] for i in self._states[kind])) for kind, number in standing
            )
        )
        places = {name: str(i) for i, name in enumerate(named)}
        pattern = tuple(_NAME.sub(lambda m: places.get(m[0], m[0]), text) for _, text in texts)
        return (step.call, pattern, states)

    def ranked(self, before: Outline, outlines: Sequence[Outline]) -> list[int]:
        """The places of these, what was made least often first, then what was made so behind ``before``."""
        return sorted(range(len(outlines)), key=lambda i: (self._met(outlines[i]), self._met((before, outlines[i]))))

    def least(self, plans: Sequence[Plan]) -> list[Plan]:
        """Those of some plans that were followed least often."""
        often = [self._met((plan.target,)) for plan in plans]
        least = min(often)
        return [plan for plan, times in zip(plans, often, strict=True) if times == least]

    def note(self, before: Outline, outline: Outline) -> None:
        """Count a step that is made."""
        self._own[outline] += 1
        self._own[before, outline] += 1

    def _met(self, what: object) -> int:
        return self._known[what] + self._own[what]
