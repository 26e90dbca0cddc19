"""What the device of a program is taken to do where the rules leave it open: the key ``device`` of a program.

Some rules fire only on a device that takes one option of a choice, that does what a rule merely permits, or that lacks
something.  A program for such a rule says so::

    device:
      stale_inv: ACCEPT              # a choice and the option that the device takes
      pd/alloc-memory: true          # a rule that permits: the device does it wherever the rule allows it
      window/bind-early: false       # or never
      mem_mgt_extensions: false      # what the device answers when it is opened

On the model the program runs on such a device, and is a witness only if it certainly fires its rule there.  A real
device does what it does: the program is then one like any other, and fires its rule if the device is of that kind.
That a rule did not fire is explained by the ``device`` of its programs; see :mod:`verbs_conformance.ruling`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from verbs_adapters.contract import Hello
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.program import shipped
from verbs_conformance.session import attributes
from verbs_reference import nodes as n
from verbs_reference.inlined import inline
from verbs_reference.model import Model
from verbs_spec.errors import listed, near

Said = tuple[tuple[str, str], ...]
"""As it stands in a program."""
WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Device:
    """What a device does where the rules leave it open."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Options of choices, by choice."""
    permitted: frozenset[str] = frozenset()
    """Rules that permit, and of which the device makes use."""
    declined: frozenset[str] = frozenset()
    """Those of which it makes none."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """Outputs of the call that opens it."""


ANY = Device()
"""A device of which nothing is said."""


def permitting(model: Model) -> dict[str, bool]:
    """The rules that permit and do not ask: causes at level ``may``, and cases of families that need not run; whether
    one is of a call."""
    found = {c.id: True for code in model.calls.values() for c in code.causes if c.rule.level == "may"}
    found |= {c.id: False for family in model.families if family.optional for c in family.cases}
    return found


def answers(model: Model) -> dict[str, str]:
    """The outputs of the call that opens a device, those that say something of it, with their types."""
    opening = next((code for code in model.calls.values() if code.opens), None)
    return {} if opening is None else {o: t.tag for o, t in opening.outputs.items() if t.tag in ("bool", "nat")}


def read(model: Model, said: Said) -> Device:
    """The device that a program speaks of; BadProgram if it names what the rules do not leave open."""
    choices = {str(name): known for name, (known, _) in model.voc.choices.items()}
    permits, opened = permitting(model), answers(model)
    options, used, told = {}, dict[str, bool](), {}
    for name, value in said:
        if name in choices:
            if value not in choices[name]:
                raise BadProgram(
                    f"device says {name}: {value}, and the choice {name} has no such option; it has "
                    f"{listed(choices[name])}{near(value, choices[name])}"
                )
            options[name] = value
        elif name in permits:
            if value not in WORDS:
                raise BadProgram(
                    f"device says {name}: {value}; the rule permits something, and a device that makes use of it is "
                    f"{name}: true, one that does not {name}: false"
                )
            used[name] = WORDS[value]
        elif name in opened:
            told[name] = _answer(name, value, opened[name])
        else:
            raise BadProgram(_unknown(model, name, {"choices": choices, "rules": permits, "answers": opened}))
    permitted, declined = (frozenset(r for r, use in used.items() if use is way) for way in (True, False))
    return Device(options, permitted, declined, told)


def _answer(name: str, value: str, tag: str) -> Any:
    if tag == "bool" and value in WORDS:
        return WORDS[value]
    if tag == "nat" and value.isdigit():
        return int(value)
    wanted = "true or false" if tag == "bool" else "a number"
    raise BadProgram(f"device says {name}: {value}, and a device answers {wanted} there when it is opened")


def _unknown(model: Model, name: str, known: Mapping[str, Iterable[str]]) -> str:
    if name in model.spec.rules:
        return (
            f"device names the rule {name}, which asks for what it says and permits nothing; rules that permit are "
            f"{listed(known['rules'])}"
        )
    told = "; ".join(f"{what} are {listed(words)}" for what, words in known.items())
    return (
        f"device names {name!r}, which is no choice, no rule that permits, and nothing that a device answers when it "
        f"is opened{near(name, itertools.chain(*known.values())) or '.'} Known under these profiles: {told}"
    )


def suits(engine: Engine, device: Device, hello: Hello) -> bool:
    """Whether a backend may be of this kind, by what it answers when it is opened."""
    opened = attributes(engine.model.calls[engine.opening], hello) if device.answers else {}
    return all(opened[name] == value for name, value in device.answers.items())


def told(device: Device) -> str:
    """A device in words, after "a device that"."""
    parts = [f"takes {option} of the choice {name}" for name, option in device.options.items()]
    parts += [f"makes use of what {rule} permits" for rule in sorted(device.permitted)]
    parts += [f"makes no use of what {rule} permits" for rule in sorted(device.declined)]
    for name, value in device.answers.items():
        word = "declares" if value is True else "lacks" if value is False else f"has {value} for"
        parts.append(f"{word} {name if word.startswith('has') else name.upper()}")
    return " and ".join(parts)


def kinds(engine: Engine, rule: str) -> list[Device]:
    """The devices that a rule's programs speak of; none if one of the programs is for any device.

    What a rule only permits, only a device that makes use of it does, whether or not a program says so."""
    permitted: Said = ((rule, "true"),) if rule in permitting(engine.model) else ()
    found = [p.device or permitted for p in shipped("programs") if p.target == rule and p.under(engine.model.spec)]
    return [read(engine.model, said) for said in dict.fromkeys(found)] if all(found) else []


# -- which devices a rule may need ---------------------------------------------------------------


def likely(model: Model, rule: str) -> list[Said]:
    """Devices that a rule's own formula speaks of, the usual one first: options of the choices that it asks, and a
    device that lacks what it asks of one.  If the rule only permits, each makes use of it."""
    base: Said = ((rule, "true"),) if rule in permitting(model) else ()
    choices, lacking = _mentioned(model, rule)
    known = (map(str, model.voc.choices[name][0]) for name in choices)
    found = [(*zip(choices, options, strict=True), *base) for options in itertools.product(*known)] if choices else []
    return [base, *found, *(((answer, "false"), *base) for answer in lacking)]


def further(model: Model, rule: str) -> Iterator[Said]:
    """Devices that differ from the likely ones in one more choice, or make use of one more rule that permits."""
    first = likely(model, rule)
    for name, (options, _) in model.voc.choices.items():
        for option in map(str, options):
            yield from (((str(name), option), *said) for said in first if name not in dict(said))
    for other, of_call in permitting(model).items():
        for use in ("true", "false") if of_call else ("true",):
            yield from ((*said, (other, use)) for said in first if other != rule)


def _mentioned(model: Model, rule: str) -> tuple[list[str], list[str]]:
    """The choices that a rule's guard asks, and those of a device's answers, yes or no, that it asks."""
    guards = [c.guard_tree for code in model.calls.values() for c in code.cases if c.id == rule]
    for family in model.families:
        guards += [inline(family, c.when_tree) for c in family.cases if c.id == rule]
    parts = [part for guard in guards if guard is not None for part in n.walk(guard)]
    opened = answers(model)
    choices = dict.fromkeys(p.name for p in parts if isinstance(p, n.Choice))
    asked = dict.fromkeys(p.field for p in parts if isinstance(p, n.Field) and opened.get(p.field) == "bool")
    return list(choices), list(asked)
