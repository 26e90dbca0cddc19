"""The measured power of the suite as a page and as data: ``docs/power.md`` and ``docs/power.yaml``.

The data hold what was measured and nothing else, so that a later measurement can be compared; the page is made
from them.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from verbs_conformance import faults
from verbs_conformance.power import Caught, Row, middle

Fields = Mapping[str, Any]


def machine() -> dict[str, Any]:
    """Where and when was measured."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processors": os.cpu_count() or 1,
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def data(rows: Iterable[Row], most: int, seconds: float) -> dict[str, Any]:
    """What was measured, as it is written."""
    return {
        **machine(),
        "most_calls": most,
        "seconds": round(seconds),
        "faults": {
            row.fault: {
                "written": _entry(row.written),
                "guided": {seed: _entry(c) for seed, c in sorted(row.guided.items())},
                "undirected": {seed: _entry(c) for seed, c in sorted(row.undirected.items())},
            }
            for row in rows
        },
    }


def _entry(caught: Caught | None) -> dict[str, Any] | None:
    if caught is None:
        return None
    return {
        "calls": caught.calls,
        "seconds": caught.seconds,
        "program": caught.program,
        "suspects": list(caught.suspects),
    }


def write(path: Path, measured: Fields) -> None:
    """Write the data."""
    path.write_text(yaml.safe_dump(dict(measured), sort_keys=False, width=120), encoding="utf-8")


def read(path: Path) -> tuple[Fields, list[Row]]:
    """What was measured, and its rows."""
    measured = yaml.safe_load(path.read_text(encoding="utf-8"))
    rows = []
    for name, found in measured["faults"].items():
        drawn = {m: {int(s): _caught(c) for s, c in found[m].items()} for m in ("guided", "undirected")}
        rows.append(Row(name, _caught(found["written"]), drawn["guided"], drawn["undirected"]))
    return measured, rows


def _caught(entry: Fields | None) -> Caught | None:
    if entry is None:
        return None
    return Caught(entry["calls"], entry["seconds"], entry["program"], tuple(entry["suspects"]))


def page(measured: Fields, rows: Sequence[Row]) -> str:
    """The page."""
    head = (
        "# The power of the suite\n\n"
        f"Measured on {measured['date']} with {measured['processors']} processors ({measured['machine']}, "
        f"Python {measured['python']}) in {measured['seconds'] / 60:.0f} minutes by `verbspec faults --matrix`. "
        "Each fault of the built-in device (`verbspec list faults`) is switched on; a detection ends at the first "
        f"failure, of drawn programs also after {measured['most_calls']:,} checked calls. *Written*: the directed, "
        "swept and regression programs as `verbspec run` makes them. *Guided*: programs that hypothesis draws as in a "
        "run. *Undirected*: the same oracle, fixtures and menus, each call and each argument as likely as any other. "
        "Of drawn programs the median over the seeds stands here, with the number of seeds that caught the fault; "
        "∞ where most did not.\n\n"
    )
    return head + "\n".join(summary(rows)) + "\n\n" + "\n".join(_table(rows)) + "\n\n" + "\n".join(_unseen()) + "\n"


def summary(rows: Sequence[Row]) -> list[str]:
    """The figures in a few lines."""
    known = faults.known()
    hard = [r for r in rows if known[r.fault].oracle == "H" and r.fault in faults.pins()]
    caught = sum(r.written is not None for r in hard)
    right = sum(r.is_right for r in hard)
    share = len(faults.unseen()) / len(known)
    lines = [
        f"- Faults that a text forbids and a program can show: {len(hard)}; written programs caught {caught}, with a "
        f"right rule among the suspects {right}.",
        f"- Faults that no program can show: {len(faults.unseen())} of {len(known)} ({share:.0%}).",
    ]
    for manner in ("guided", "undirected"):
        seeds = [c for r in hard for c in getattr(r, manner).values()]
        if seeds:
            lines.append(f"- {manner.capitalize()}: {sum(c is not None for c in seeds)} of {len(seeds)} detections.")
    found = [_ratio(r) for r in hard if r.guided and r.undirected]
    ratios = [x for x in found if x is not None]
    if ratios:
        lines.append(
            f"- Calls of the guided programs over those of the undirected ones, median over the faults: "
            f"{median(ratios):.2f} (a detection that never came counts as all its calls)."
        )
    return lines


def _ratio(row: Row) -> float | None:
    """Guided over undirected calls; None where neither caught the fault, 0 where only the guided did."""
    guided, undirected = (middle(d, lambda c: c.calls) for d in (row.guided, row.undirected))
    if math.isinf(guided):
        return None if math.isinf(undirected) else math.inf
    return 0.0 if math.isinf(undirected) else guided / undirected


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| fault | from | written: calls | by | suspects | guided: calls | s | undirected: calls | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        known, w = faults.known()[row.fault], row.written
        cells = [f"`{row.fault}`", known.entry]
        cells += [f"{w.calls}", f"`{w.program}`", ", ".join(w.suspects)] if w is not None else ["∞", "", ""]
        for drawn in (row.guided, row.undirected):
            hits = sum(c is not None for c in drawn.values())
            calls, seconds = middle(drawn, lambda c: c.calls), middle(drawn, lambda c: c.seconds)
            cells += [f"{_number(calls)} ({hits}/{len(drawn)})", _number(seconds, 1)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _number(value: float, places: int = 0) -> str:
    return "∞" if math.isinf(value) else f"{value:.{places}f}"


def _unseen() -> list[str]:
    return ["Faults that no program can show:", ""] + [f"- `{n}`: {reason}." for n, reason in faults.unseen().items()]
