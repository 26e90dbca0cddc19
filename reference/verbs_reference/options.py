"""Which rules a backend can reach, given the options that it takes of the specification's choices.

A rule whose guard can hold under one option of a stable choice only is out of reach for a backend that takes another.
That it did not fire then says nothing against the run.  The test looks at the guard's logic alone and errs towards
*can*: what it calls out of reach is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from verbs_reference import nodes as n
from verbs_reference.model import Model


def can_be(expr: n.Expr, want: bool, choice: str, option: str) -> bool:
    """Whether a condition can have this truth value for a backend that takes this option of a choice."""
    match expr:
        case n.Compare(op="==" | "!=", left=n.Choice(name=name), right=n.Const(value=value)) if name == choice:
            return ((option == value) == (expr.op == "==")) == want
        case n.Not():
            return can_be(expr.arg, not want, choice, option)
        case n.Logic():
            every = (expr.op == "and") == want
            found = (can_be(a, want, choice, option) for a in expr.args)
            return all(found) if every else any(found)
        case n.If():
            return any(
                can_be(expr.test, side, choice, option)
                and can_be(expr.then if side else expr.other, want, choice, option)
                for side in (True, False)
            )
        case n.Const(value=bool() as value):
            return value == want
        case _:
            return True


def conditions(model: Model, rule: str) -> Iterator[n.Expr | None]:
    """The guard of a rule in each call or family where it stands; None where it has none."""
    for code in model.calls.values():
        yield from (c.guard_tree for c in code.cases if c.id == rule)
    for family in model.families:
        yield from (c.when_tree for c in family.cases if c.id == rule)


def asked(model: Model, rule: str) -> Iterator[tuple[str, set[str]]]:
    """The choices that leave a rule within reach with some of their options only, and these options."""
    guards = list(conditions(model, rule))
    for choice, (options, _) in model.voc.choices.items():
        open_to = {o for o in options if any(g is None or can_be(g, True, choice, o) for g in guards)}
        if open_to and open_to != set(options):
            yield str(choice), open_to


def barring(model: Model, rule: str, taken: Mapping[str, set[str]]) -> str:
    """A stable choice because of which the rule is out of reach, as it is not with another option; "" if there is none.

    ``taken`` has the options that a run left possible, by choice; a choice that is missing was not met.
    """
    for choice, open_to in asked(model, rule):
        left = taken.get(choice)
        if model.voc.choices[choice][1] and left and not open_to & left:
            return choice
    return ""
