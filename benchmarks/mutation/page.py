"""The mutants as data and as a page: ``docs/mutants.yaml`` and ``docs/mutants.md``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mutation.judging import CRASHED, KILLED, NOT_EXECUTED, SURVIVED, TIMED_OUT
from mutation.mutant import Drawn
from mutation.outcome import Known, Record, why
from verbs_conformance.power_figures import machine, where

Z = 1.96
"""Standard deviations on either side that hold 95 % of a normal distribution."""
LEFT = (SURVIVED, NOT_EXECUTED)
PASSED = {
    "annotation": "annotations and names for types",
    "message": "messages and docstrings",
    "fault": "what only a switched-on fault makes a device do",
    "text": "the same program in another text, or one drawn before",
    "syntax": "no Python",
}
"""What mutants are passed over for."""


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The interval that holds a share with a confidence of 95 %, from how often it came up."""
    if not trials:
        return 0.0, 1.0
    share, square = hits / trials, Z * Z
    middle = share + square / (2 * trials)
    spread = Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    return (middle - spread) / (1 + square / trials), (middle + spread) / (1 + square / trials)


def rate(hits: int, trials: int) -> str:
    """A share with its interval."""
    low, high = wilson(hits, trials)
    return f"{hits / trials if trials else 0:.1%} ({hits} of {trials}; 95 % interval {low:.1%} to {high:.1%})"


def data(records: Sequence[Record], drawn: Drawn, known: Known, **run: Any) -> dict[str, Any]:
    """What was measured, as it is written."""
    return {
        **machine(),
        **run,
        "mutants_known": dict(drawn.known),
        "seconds": round(sum(r.seconds for r in records)),
        "passed_over": dict(sorted(drawn.passed.items())),
        "mutants": [_entry(r, known) for r in records],
    }


def _entry(r: Record, known: Known) -> dict[str, Any]:
    entry: dict[str, Any] = {"mutant": r.name, "group": r.group, "in": r.function, "old": r.old, "new": r.new}
    entry["verdict"] = r.verdict
    if r.verdict in LEFT or r.verdict == TIMED_OUT:
        entry |= {"programs": r.programs, "calls": r.calls}
    if r.verdict in LEFT and why(known, r):
        entry["equivalent"] = why(known, r)
    if r.unfired:
        entry["unfired"] = list(r.unfired)
    return entry | ({"by": r.by, "seconds": r.seconds} if r.by else {})


def summary(measured: Mapping[str, Any]) -> list[str]:
    """The figures in a few lines."""
    found = measured["mutants"]
    times = Counter(m["verdict"] for m in found)
    noticed = times[KILLED] + times[CRASHED]
    same = sum("equivalent" in m for m in found)
    told = sum(m["verdict"] in LEFT and bool(m.get("unfired")) for m in found)
    late = times[TIMED_OUT]
    return [
        f"- Killed: {rate(noticed, len(found))}. Of these {times[CRASHED]} ended with an exception.",
        f"- Timed out, not counted as killed: {late}; with them {rate(noticed + late, len(found))}.",
        f"- Survived: {times[SURVIVED]}, and {times[NOT_EXECUTED]} that no written program executes. {same} of them "
        f"are equivalent, by the argument given below; killed of the others: {rate(noticed, len(found) - same)}.",
        f"- Of the survivors {told} keep a rule from being fired, which a run tells as not decided.",
    ]


def page(measured: Mapping[str, Any]) -> str:
    """The page."""
    found = measured["mutants"]
    passed = ", ".join(f"{n} ({PASSED.get(w, w)})" for w, n in measured["passed_over"].items())
    head = (
        "# Mutants of softhca\n\n"
        f"Measured {where(measured)} in {measured['seconds'] / 60:.0f} minutes of processor time by `python "
        f"benchmarks/mutate.py --count {measured['count']} --seed {measured['seed']}`. The sources are those "
        f"of digest {measured['softhca']}, and lines are theirs. The operators are those of mutmut "
        f"{measured['mutmut']}. Mutants are drawn evenly from six groups of modules, and each is judged by what a "
        "conformance run makes: the written programs that execute the changed lines, then drawn ones, at most "
        f"{measured['most_seconds']:g} s of processor time in all. The runs are those of {measured['conditions']}."
        f"\n\nPassed over while drawing: {passed}. mutmut itself leaves out annotations, decorators and decorated "
        "functions. Modules that are in no group: options, capabilities, arguments, port, faults, scripts, threads, "
        "and the package's own.\n\n"
        "A survivor that is not equivalent gets a program. These figures tell what is noticed now, of these mutants; "
        "another seed draws some for which no program was written.\n\n"
    )
    if len(found) < measured["count"]:
        head += f"The run was ended early: {len(found)} of the {measured['count']} drawn mutants were judged.\n\n"
    return head + "\n".join([*summary(measured), "", *_table(found), "", *_survivors(found)]) + "\n"


def _table(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["| modules | mutants | killed | by an exception | timed out | survived | of these equivalent |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, of in (*_named(found, lambda m: f"**{m['group']}**"), *_named(found, _module)):
        times = Counter(m["verdict"] for m in of)
        cells = [len(of), times[KILLED], times[CRASHED], times[TIMED_OUT], times[SURVIVED] + times[NOT_EXECUTED]]
        cells.append(sum("equivalent" in m for m in of))
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return lines


def _module(m: Mapping[str, Any]) -> str:
    return str(m["mutant"].partition(":")[0])


def _named(
    found: Sequence[Mapping[str, Any]], of: Callable[[Mapping[str, Any]], str]
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    names = dict.fromkeys(map(of, found))
    return [(name, [m for m in found if of(m) == name]) for name in names]


def _survivors(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["## Survivors", ""]
    for m in found:
        if m["verdict"] not in (*LEFT, TIMED_OUT):
            continue
        module, line, _ = m["mutant"].split(":")
        lines += [f"`{module}.py`, line {line}, in `{m['in']}`: {m['verdict']}{_says(m)}", "", "```diff"]
        lines += [f"-{each}" for each in m["old"].splitlines()] + [f"+{each}" for each in m["new"].splitlines()]
        lines += ["```", ""]
    return lines


def _says(m: Mapping[str, Any]) -> str:
    if "equivalent" in m:
        return f". Equivalent: {m['equivalent']}"
    if m["verdict"] == TIMED_OUT:
        return f" in {m['by']}"
    return f" {m['programs']} programs and {m['calls']} drawn calls"
