"""Tables of a rules file: the defines that look them up, and one rule a row."""

from __future__ import annotations

import pytest

from verbs_reference.model import Model
from verbs_reference.types import Type
from verbs_spec import SpecError, loads
from verbs_spec.document import Spec
from verbs_spec.profiles import select
from verbs_spec.tables import render
from verbs_spec.text import Text

PROFILES = {
    "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: InfiniBand.\n",
    "profiles/linux-user.yaml": "profile: linux-user\nkind: api\nsummary: libibverbs.\n",
}
DOOR = """object: door
summary: A door.
enums: {state: [SHUT, OPEN, GONE], tool: [KEY, OIL, SAW]}
objects: {door: {state: state}}
tables:
  moves:
    says: What a door needs.
    keys: {now: state, next: state}
    columns: {needs: tool, takes: tool}
    rows:
ROWS
calls:
  make:
    outputs: {door: ref door}
    rules: [{id: door/make, sources: [x], says: S., returns: ["0"], do: "door = new(door)"}]
  move:
    params: {door: ref door, to: state, by: flags tool}
    rules:
      - rows: "RULE"
        sources: [y]
        says: From {now} to {next} with {needs}, may be {takes}.
        returns: ["0"]
        do: "door.state = to"
      - id: door/lacks
        sources: [x]
        says: S.
        cause: "not moves(door.state, to) or not all(t in by for t in moves_needs(door.state, to))"
        returns: [EINVAL]
"""
ROWS = """\
      - {id: move/open, now: SHUT, next: OPEN, needs: KEY, takes: [OIL, SAW]}
      - {id: move/shut, now: OPEN, next: [OPEN, SHUT], sources: [z], level: may, says: It shuts.}
      - {id: move/break, next: GONE, needs: SAW}
"""


def door(rows: str = ROWS, rule: str = "moves(door.state, to)") -> Spec:
    text = DOOR.replace("ROWS\n", rows).replace("RULE", rule)
    return loads({"rules/door.yaml": text, **PROFILES})


def test_a_rule_a_row() -> None:
    rules = door().calls["move"].rules
    opening, shutting, breaking = rules[:3]

    assert [r.id for r in rules] == ["move/open", "move/shut", "move/break", "door/lacks"]
    assert opening.when == "((door.state) == SHUT and (to) == OPEN)"
    assert opening.says == "From SHUT to OPEN with KEY, may be OIL, SAW."
    assert breaking.says == "From any to GONE with SAW, may be nothing."
    assert (shutting.level, shutting.sources, shutting.says) == ("may", ("z", "y"), "It shuts.")


@pytest.mark.parametrize("now", ["SHUT", "OPEN", "GONE"])
@pytest.mark.parametrize("to", ["SHUT", "OPEN", "GONE"])
def test_defines_look_the_table_up(now: str, to: str) -> None:
    model = Model(select(door(), "linux-user", "ib"))

    def value(text: str, want: Type) -> object:
        tree = model.parser.expression(Text(text, door().summaries["door"].where), {}, want)
        return model.compiler.expression(tree, [])(model.store())

    there = to == "GONE" or (now, to) in {("SHUT", "OPEN"), ("OPEN", "OPEN"), ("OPEN", "SHUT")}
    needs = {"SAW"} if to == "GONE" else {"KEY"} if (now, to) == ("SHUT", "OPEN") else set()
    assert value(f"moves({now}, {to})", Type("bool")) is there
    assert value(f"moves_needs({now}, {to})", Type("flags", "tool")) == needs


def test_the_table_is_rendered_as_it_stands() -> None:
    page = render(door())["door.md"]

    assert "| row | now | next | needs | takes |" in page
    assert "| `move/shut` | OPEN | OPEN, SHUT | - | - |" in page
    assert "moves_needs(now: state" not in page


@pytest.mark.parametrize(
    ("rows", "rule", "error"),
    [
        (
            ROWS + "      - {id: move/again, now: [SHUT, GONE], next: OPEN}\n",
            "moves(door.state, to)",
            "rules/door.yaml:14:14: rows move/open and move/again are both for SHUT, OPEN",
        ),
        (
            "      - {id: move/open, now: SHUTT}\n",
            "moves(door.state, to)",
            "rules/door.yaml:11:30: 'now' of row move/open names 'SHUTT', which is no enumerator of state; "
            "known are SHUT, OPEN, GONE; did you mean 'SHUT'?",
        ),
        (
            "      - {id: move/open, nou: SHUT}\n",
            "moves(door.state, to)",
            "rules/door.yaml:11:25: unknown key 'nou' in row move/open of table moves; the keys are id, now, next, "
            "needs, takes, says, sources, level, status, profile; did you mean 'now'?",
        ),
        (
            ROWS,
            "moves(to)",
            "rules/door.yaml:21:15: 'rows' of a rule gives table moves 1 keys; they are now, next",
        ),
        (
            ROWS,
            "move(to)",
            "rules/door.yaml:21:15: 'rows' of a rule names 'move', which is no table; known are moves; "
            "did you mean 'moves'?",
        ),
        (
            ROWS,
            "to",
            "rules/door.yaml:21:15: 'rows' of a rule is 'to'; its form is: table(expression, ...)",
        ),
    ],
)
def test_malformed(rows: str, rule: str, error: str) -> None:
    with pytest.raises(SpecError) as caught:
        door(rows, rule)
    assert str(caught.value) == error
