"""The page of facts leads from a fact to rules, programs and faults, and from a rule back."""

from __future__ import annotations

from verbs_conformance import faults
from verbs_conformance import program as programs
from verbs_conformance.facts_page import page
from verbs_conformance.tracing import traces
from verbs_conformance.upkeep import facts_index
from verbs_spec import facts, load, loads

SPEC = loads(
    {
        "rules/mr.yaml": """object: mr
summary: A region.
calls:
  dereg_mr:
    rules:
      - {id: mr/dereg, sources: [man], says: It goes., returns: ["0"]}
      - {id: mr/bound, sources: [man], says: It stays., cause: "true", returns: [EBUSY]}
"""
    }
)
FACTS = facts.loads(
    {
        "facts/mr.yaml": """summary: On regions.
facts:
  - {id: B4, mark: H, says: A bound region stays., rules: [mr/bound]}
  - {id: R5, mark: V, says: Windows., rules: [mr/dereg], reason: no more is known}
  - {id: R6, mark: H, says: Later., awaits: [windows]}
"""
    }
)
PROGRAMS = programs.parse(
    """programs:
  - {program: mr/bound, target: mr/bound, steps: "settle()"}
  - {program: regress/bound, kind: regression, says: "B4: a bound region went", steps: "settle()"}
""",
    "x.yaml",
)


def test_the_page_leads_both_ways() -> None:
    traced = traces(FACTS, PROGRAMS, {"bound-goes": ["B4"]})
    lines = page(SPEC, FACTS, traced, PROGRAMS, {"mr/bound": {"bound-goes"}}).split("\n")
    assert "| `B4` | H | A bound region stays. | `mr/bound` | `regress/bound`, `mr/bound` | `bound-goes` |" in lines
    assert "| `R5` | V | Windows. | `mr/dereg`<br>not here: no more is known |  |  |" in lines
    assert "| `R6` | H | Later. | awaits `windows` |  |  |" in lines
    assert "| `mr/bound` | `B4` | `mr/bound` | `bound-goes` |" in lines
    assert "| `mr/dereg` | `R5` |  |  |" in lines


def test_of_the_specification_every_pinned_fault_stands_at_its_rules() -> None:
    spec = load()
    by_rule = facts_index(spec, facts.load()).split("## By rule")[1].split("\n")
    rows = {line.split("`")[1]: line for line in by_rule if line.startswith("| `")}
    for fault, pin in faults.pins().items():
        for rule in pin.rules & set(map(str, spec.rules)):
            assert f"`{fault}`" in rows[rule].split(" | ")[3], (fault, rule)
