"""The facts as a page: from each fact to the rules that state it, and from each rule to its facts."""

from __future__ import annotations

from verbs_spec.document import Spec
from verbs_spec.facts import MARKS, Fact, Facts
from verbs_spec.markdown import code, codes, lines, prose, section, table

FILE = "facts.md"
_ABOUT = """\
What the sources say and do, one line each, and the rules that state it. `verbspec explain FACT` adds the programs that
show it and the faults of the built-in device that break it; `verbspec list facts` does so for all.
"""


def page(spec: Spec, known: Facts) -> str:
    """The page."""
    parts = ["# Facts\n", _ABOUT, table(["mark", "meaning"], ([code(mark), words] for mark, words in MARKS.items()))]
    for group, summary in known.groups.items():
        parts.append(f"## {group}\n\n{prose(summary)}\n")
        parts.append(
            table(
                ["fact", "mark", "what it says", "stated by"],
                ([code(f.id), f.mark, prose(f.says), _stated(f)] for f in known.facts.values() if f.group == group),
            )
        )
    stating = {name: known.of(name) for name in (*spec.rules, *(i.id for i in spec.invariants), *spec.choices)}
    parts += section(
        "By rule",
        ["rule", "facts"],
        ([code(name), codes(f.id for f in found)] for name, found in stating.items() if found),
    )
    return "\n".join(parts)


def _stated(fact: Fact) -> str:
    parts = [codes(fact.rules)] if fact.rules else []
    if fact.reason:
        parts.append(f"not here: {prose(fact.reason)}")
    if fact.awaits:
        parts.append(f"awaits {codes(fact.awaits)}")
    return lines(parts)
