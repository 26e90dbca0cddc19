"""The measured power of the suite as a page and as data: ``docs/power.md`` and ``docs/power.yaml``.

The data hold what was measured and nothing else, so that a later measurement can be compared; the page is made from
them, and from what the benchmarks have left beside them (:data:`BESIDE`).  A row of the data is a fault; what came of a
detection is on one line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from verbs_conformance import faults, power_figures
from verbs_conformance.power import DRAWN, GUIDED, TIMES, UNDIRECTED, WRITTEN, Caught, Row
from verbs_conformance.power_figures import machine, where

Fields = Mapping[str, Any]
BESIDE = ("mutants", "alarms", "speed")
"""What else is on the page, each from its file beside that of the faults, if it is there."""
COMMAND = "verbspec faults --matrix --data docs/power.yaml --page docs/power.md"


# -- the data ------------------------------------------------------------------------------------


def data(rows: Iterable[Row], most: int, seconds: float) -> dict[str, Any]:
    """What was measured, as it is written."""
    return {
        **machine(),
        "most_calls": most,
        "seconds": round(seconds),
        "faults": {
            row.fault: {
                WRITTEN: _entry(row.written),
                **{manner: {seed: _entry(c) for seed, c in sorted(getattr(row, manner).items())} for manner in DRAWN},
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
    head = {name: value for name, value in measured.items() if name != "faults"}
    lines = [yaml.safe_dump(head, sort_keys=False, width=120).rstrip("\n"), "faults:"]
    for fault, found in measured["faults"].items():
        lines += [f"  {fault}:", f"    {WRITTEN}: {json.dumps(found[WRITTEN])}"]
        for manner in DRAWN:
            lines.append(f"    {manner}:" if found[manner] else f"    {manner}: {{}}")
            lines += [f"      {seed}: {json.dumps(each)}" for seed, each in found[manner].items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[Fields, list[Row]]:
    """What was measured, and its rows."""
    measured = yaml.safe_load(path.read_text(encoding="utf-8"))
    rows = []
    for name, found in measured["faults"].items():
        drawn = {m: {int(s): _caught(c) for s, c in found[m].items()} for m in DRAWN}
        rows.append(Row(name, _caught(found[WRITTEN]), drawn[GUIDED], drawn[UNDIRECTED]))
    return measured, rows


def _caught(entry: Fields | None) -> Caught | None:
    if entry is None:
        return None
    return Caught(entry["calls"], entry["seconds"], entry["program"], tuple(entry["suspects"]))


def beside(folder: Path) -> dict[str, Fields]:
    """What the benchmarks have left in a folder."""
    paths = {name: folder / f"{name}.yaml" for name in BESIDE}
    return {name: yaml.safe_load(p.read_text(encoding="utf-8")) for name, p in paths.items() if p.exists()}


# -- the figures ---------------------------------------------------------------------------------


def hard(rows: Iterable[Row]) -> list[Row]:
    """The rows of faults that a text forbids and a program can show."""
    return [r for r in rows if faults.known()[r.fault].oracle == "H" and r.fault in faults.pins()]


def fewer(rows: Iterable[Row]) -> list[float]:
    """The calls of guided programs over those of undirected ones, for each fault and seed that either caught.

    Where undirected programs did not catch a fault, all their calls are taken, which are too few; where guided ones
    did not, it is infinite."""
    found = []
    for row in rows:
        for seed, guided in row.guided.items():
            undirected = row.undirected.get(seed)
            if guided is not None:
                found.append(guided.calls / (undirected.calls if undirected is not None else guided.calls * TIMES))
            elif undirected is not None:
                found.append(math.inf)
    return found


def summary(rows: Sequence[Row], most: int) -> list[str]:
    """The figures in a few lines."""
    known, hards = faults.known(), hard(rows)
    lines = [
        f"- Faults that a text forbids and a program can show: {len(hards)}; written programs caught "
        f"{sum(r.written is not None for r in hards)}, with a right rule among the suspects "
        f"{sum(r.is_right for r in hards)}.",
        f"- Faults that no program can show: {len(faults.unseen())} of {len(known)} "
        f"({len(faults.unseen()) / len(known):.1%}).",
    ]
    seeds = [c for r in hards for c in r.guided.values()]
    if seeds:
        hits = sum(c is not None for c in seeds)
        lines.append(
            f"- Guided programs caught a fault within {most:,} calls in {hits} of {len(seeds)} detections "
            f"({hits / len(seeds):.0%})."
        )
    ratios = fewer(hards)
    if ratios:
        few = sum(x <= 1 / TIMES for x in ratios)
        lines.append(
            f"- Calls of guided programs over those of undirected ones: the median of the {len(ratios)} detections by "
            f"either is at most {median(ratios):.2f}; in {few} of them ({few / len(ratios):.0%}) it is at most "
            f"{1 / TIMES:.1f}."
        )
    return lines


# -- the page ------------------------------------------------------------------------------------


def page(measured: Fields, rows: Sequence[Row], others: Mapping[str, Fields]) -> str:
    """The page."""
    most = measured["most_calls"]
    parts = ["# The power of the suite", "\n".join(_asked(rows, others))]
    parts += ["## Known faults", _about(measured, rows), "\n".join(summary(rows, most))]
    parts += power_figures.texts(others).values()
    parts += ["## Fault by fault", _LEGEND, "\n".join(_table(rows, most))]
    parts += ["## Faults that no program can show", "\n".join(f"- `{n}`: {r}." for n, r in faults.unseen().items())]
    parts += [
        "## Entries of the corpus without a fault",
        "\n".join(f"- {n}: {reason}." for n, reason in faults.not_expressed().items()),
    ]
    return "\n\n".join(parts) + "\n"


def asked(rows: Sequence[Row]) -> list[power_figures.Asked]:
    """What is asked for of the suite's power against known faults."""
    hards, unseen, ratios = hard(rows), len(faults.unseen()) / len(faults.known()), fewer(hard(rows))
    right = sum(r.is_right for r in hards)
    found = [
        (
            "each fault that a text forbids caught by written programs, a right rule among at most 5 suspects",
            f"{right} of {len(hards)}",
            right == len(hards),
        ),
        ("at most 5 % of the faults such that no program can show them", f"{unseen:.1%}", unseen <= 0.05),
    ]
    if ratios:
        middle = median(ratios)
        what = "guided programs catch in at most a fifth of the calls of undirected ones, in the median"
        told = "no" if math.isinf(middle) else f"at most {middle:.2f}"
        found.append((what, told, middle <= 1 / TIMES))
    return found


def _asked(rows: Sequence[Row], others: Mapping[str, Fields]) -> list[str]:
    lines = ["| asked for | measured | enough |", "|---|---|---|"]
    for what, told, enough in (*asked(rows), *power_figures.asked(others)):
        lines.append(f"| {what} | {told} | {'yes' if enough else '**no**'} |")
    return lines


def _about(measured: Fields, rows: Sequence[Row]) -> str:
    seeds = max((len(r.guided) for r in rows), default=0)
    return (
        f"Measured {where(measured)} in {measured['seconds'] / 60:.0f} minutes by\n\n"
        f"    {COMMAND} --calls {measured['most_calls']} --seeds {seeds}\n\n"
        "Each fault of the built-in device (`verbspec list faults`) that a program can show is switched on; a "
        "detection ends at the first failure. *Written*: the directed, swept and regression programs as `verbspec run` "
        "makes them. *Guided*: "
        f"programs that hypothesis draws as in a run, {_times(seeds)}, each for at most {measured['most_calls']:,} "
        "checked calls; they follow the steps of written programs, regressions among them, so known faults are found "
        "sooner than unknown ones ([decision 156](decisions/0156-power-compared.md)). *Undirected*: the same oracle, "
        "fixtures and menus, each call and each argument as likely as any other, until "
        f"{TIMES} times as many calls were made as the guided ones needed, or as many where those caught nothing."
    )


def _times(number: int) -> str:
    return {1: "with one seed"}.get(number, f"with {number} seeds")


_LEGEND = (
    "The suspects are those of the written programs, a right one in bold: the fault breaks that rule. Of drawn "
    "programs the middle one of the seeds stands here, in brackets the number of seeds that caught the fault; > stands "
    "where it was not caught with so many calls. Seconds are of one processor's time."
)


def _table(rows: Sequence[Row], most: int) -> list[str]:
    lines = [
        "| fault | from | written: calls | by | suspects | guided: calls | s | undirected: calls | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.fault in faults.unseen():
            continue
        known, w = faults.known()[row.fault], row.written
        cells = [f"`{row.fault}`", known.entry]
        cells += [f"{w.calls}", f"`{w.program}`", _suspects(row.fault, w)] if w is not None else ["∞", "", ""]
        cells += _drawn([(c, most) for c in row.guided.values()])
        cells += _drawn([(c, _bound(row.guided.get(seed), most)) for seed, c in row.undirected.items()])
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _suspects(fault: str, told: Caught) -> str:
    right = faults.pins()[fault].rules if fault in faults.pins() else frozenset()
    return ", ".join(f"**{s}**" if s in right else s for s in told.suspects)


def _bound(guided: Caught | None, most: int) -> int:
    """The calls that undirected programs had."""
    return most if guided is None else TIMES * guided.calls


def _drawn(found: Collection[tuple[Caught | None, int]]) -> list[str]:
    """The middle one of what came of some detections, each with the calls that it had."""
    if not found:
        return ["", ""]
    told = sorted(found, key=lambda f: (f[0] is None, f[0].calls if f[0] is not None else f[1]))
    caught, calls = told[(len(told) - 1) // 2]
    hits = f"({sum(c is not None for c, _ in told)}/{len(told)})"
    return [f"> {calls} {hits}", ""] if caught is None else [f"{caught.calls} {hits}", f"{caught.seconds:.1f}"]
