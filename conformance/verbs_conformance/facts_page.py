"""The inverse index as a page: from each fact to the rules that state it, the programs that show it and the faults that
break it; from each rule to its facts, programs and faults.

It is not among the tables that ``verbs_spec`` makes, which knows neither programs nor faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verbs_conformance.program import Program
from verbs_conformance.tracing import Trace
from verbs_spec.document import Spec
from verbs_spec.facts import MARKS, Fact, Facts
from verbs_spec.markdown import code, codes, lines, prose, section, table

FILE = "facts.md"
_MADE = "<!-- Made from facts, rules, programs and faults by verbspec spec build; do not edit. -->\n"
_ABOUT = """\
What the sources say and do, one line each, and the rules that state it; the programs that show it, those of bugs first;
and the faults of the built-in device that break it. `verbspec explain FACT` shows one, `verbspec list facts` all.
"""
_BY_RULE = """\
The facts that a rule states, the programs that are made for it, and the faults of the built-in device that must be told
by it, or by a rule beside it (`verbspec list faults` says what each does).
"""


def page(
    spec: Spec, known: Facts, traces: Iterable[Trace], shown: Iterable[Program], faults: Mapping[str, set[str]]
) -> str:
    """The page; ``faults`` are those of each rule."""
    parts = [_MADE, "# Facts\n", _ABOUT]
    parts.append(table(["mark", "meaning"], ([code(mark), words] for mark, words in MARKS.items())))
    found = list(traces)
    for group, summary in known.groups.items():
        parts.append(f"## {group}\n\n{prose(summary)}\n")
        rows = (
            [code(f.id), f.mark, prose(f.says), _stated(f), codes((*t.regressions, *t.directed)), codes(t.faults)]
            for t in found
            for f in [t.fact]
            if f.group == group
        )
        parts.append(table(["fact", "mark", "what it says", "stated by", "shown by", "broken by"], rows))
    made: dict[str, dict[str, None]] = {}
    for each in shown:
        made.setdefault(each.target, {})[each.name] = None
    names = [str(n) for n in (*spec.rules, *(i.id for i in spec.invariants), *spec.choices)]
    rows_ = ([[f.id for f in known.of(name)], [*made.get(name, ())], sorted(faults.get(name, ()))] for name in names)
    told = [[code(name), *map(codes, row)] for name, row in zip(names, rows_, strict=True) if any(row)]
    by_rule = section("By rule", ["rule", "facts", "programs", "faults"], told)
    return "\n".join([*parts, *by_rule[:1], *([_BY_RULE] if by_rule else []), *by_rule[1:]])


def _stated(fact: Fact) -> str:
    parts = [codes(fact.rules)] if fact.rules else []
    if fact.reason:
        parts.append(f"not here: {prose(fact.reason)}")
    if fact.awaits:
        parts.append(f"awaits {codes(fact.awaits)}")
    return lines(parts)
