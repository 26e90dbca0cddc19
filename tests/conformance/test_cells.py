"""Cells: in each state of an object, what decides each input."""

from __future__ import annotations

import pytest

from verbs_conformance import cells
from verbs_conformance.cells import Cell
from verbs_reference.model import Model
from verbs_spec import loads
from verbs_spec.document import Spec
from verbs_spec.profiles import select

RULES = """object: lamp
summary: A lamp.
enums:
  light: [DARK, BRIGHT, BROKEN]
records:
  order: {bright: bool}
objects:
  lamp: {light: light, orders: queue order, hot: bool}
calls:
  open:
    outputs: {lamp: ref lamp}
    rules:
      - {id: lamp/open, sources: [man], says: A lamp., returns: ["0"], do: "lamp = new(lamp)"}
  turn:
    params: {lamp: ref lamp, bright: bool}
    rules:
      - id: lamp/turn
        sources: [man]
        says: It is ordered.
        returns: ["0"]
        do: "push(lamp.orders, order(bright=bright))"
      - {id: lamp/broken, sources: [man], says: No., cause: "lamp.light == BROKEN", returns: [EIO]}
      - id: lamp/again
        level: may
        sources: [man]
        says: It may be bright.
        cause: "lamp.light == BRIGHT and bright"
        returns: [EBUSY]
      - {id: lamp/full, sources: [man], says: Too many., cause: "len(lamp.orders) > 3", returns: [ENOMEM]}
steps:
  lamp/work:
    for: l in lamp
    take: o = l.orders
    domain: "l.light != BROKEN"
    rules:
      - id: lamp/lit
        sources: [man]
        says: Light.
        when: "o.bright"
        do: "l.light = BRIGHT; l.hot = true; pop(l.orders)"
      - id: lamp/out
        sources: [man]
        says: Dark.
        when: "not o.bright and not l.hot"
        do: "l.light = DARK; pop(l.orders)"
      - id: lamp/blown
        sources: [man]
        says: Broken.
        when: "not o.bright and l.hot"
        do: "l.light = BROKEN; pop(l.orders)"
"""
API = "profile: user\nkind: api\nsummary: S."
WIRE = "profile: wire\nkind: transport\nsummary: S."


def spec(rules: str = RULES) -> Spec:
    return loads({"rules/lamp.yaml": rules, "profiles/user.yaml": API, "profiles/wire.yaml": WIRE})


def of(rules: str, field: str) -> dict[tuple[str, str], Cell]:
    model = Model(select(spec(rules), "user", "wire"))
    return {
        (c.state, c.input): c
        for row in cells.cells(model, "lamp", field, cells.states(model)["lamp", field])
        for c in row
    }


def test_a_state_decides_a_call() -> None:
    found = of(RULES, "light")
    assert found["DARK", "turn"] == Cell("DARK", "turn", (), ("lamp/turn",), 1)
    assert found["BRIGHT", "turn"] == Cell("BRIGHT", "turn", (), ("lamp/turn", "lamp/again"), 1)
    assert found["BROKEN", "turn"] == Cell("BROKEN", "turn", ("lamp/broken",), ())
    assert found["BROKEN", "turn"].text() == "refused: `lamp/broken`"


def test_a_state_decides_a_step() -> None:
    found = of(RULES, "light")
    assert found["BROKEN", "lamp/work"].text() == "-"
    assert found["DARK", "lamp/work"].possible == ("lamp/lit", "lamp/out", "lamp/blown")
    assert of(RULES, "hot")["true", "lamp/work"].possible == ("lamp/lit", "lamp/blown")


@pytest.mark.parametrize(
    ("old", "new", "hole"),
    [
        ('when: "o.bright"', 'when: "o.bright and l.light == DARK"', None),
        ("l.light != BROKEN", "true", None),
        ('when: "not o.bright and not l.hot"', 'when: "l.light == BROKEN"', None),
    ],
)
def test_an_edited_rule_changes_its_cells(old: str, new: str, hole: str | None) -> None:
    assert RULES.count(old) == 1
    assert of(RULES.replace(old, new), "light") != of(RULES, "light")
    assert next(cells.holes(Model(select(spec(RULES.replace(old, new)), "user", "wire"))), None) == hole


def test_a_hole_is_found() -> None:
    rules = RULES
    for when in ('when: "o.bright"', 'when: "not o.bright and not l.hot"', 'when: "not o.bright and l.hot"'):
        rules = rules.replace(when, f'{when[:-1]} and l.light == DARK"')
    assert list(cells.holes(Model(select(spec(rules), "user", "wire")))) == [
        "lamp.light BRIGHT, lamp/work: nothing is said"
    ]


def test_the_page() -> None:
    page = cells.page(spec(), {"user": Model(select(spec(), "user", "wire"))})
    assert "| `turn` | `lamp/again` | may: `EBUSY` | It may be bright. |" in page
    assert "| `lamp.light` | `DARK` | `BRIGHT` | `BROKEN` |" in page
    assert "| `turn` | `lamp/turn` (1 more) | `lamp/turn`, `lamp/again` (1 more) | refused: `lamp/broken` |" in page
    assert "| `lamp/work` | `lamp/lit`, `lamp/out`, `lamp/blown` | ← | - |" in page
    hot = page.split("## `lamp.hot`")[1].split("##")[0]
    assert "`turn`" not in hot
    assert "| `lamp/work` | `lamp/lit`, `lamp/out` | `lamp/lit`, `lamp/blown` |" in hot
