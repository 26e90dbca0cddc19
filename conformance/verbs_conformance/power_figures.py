"""What the benchmarks have measured, in words for the page of the suite's power.

Their data are plain: each file is what one benchmark writes with its option for data.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from verbs_reports.text import plural

Fields = Mapping[str, Any]
NOTICED = ("killed", "crashed")
"""The verdicts on a mutant that a run notices."""


def machine() -> dict[str, Any]:
    """Where and when was measured."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processors": os.cpu_count() or 1,
        "machine": platform.machine(),
        "model": _model(Path("/proc/cpuinfo")),
        "python": platform.python_version(),
    }


def _model(told: Path) -> str:
    """The processor's model, where the kernel tells it."""
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def where(measured: Fields) -> str:
    """When and on what was measured, in words."""
    return (
        f"on {measured['date']} with {plural(measured['processors'], 'processor')} "
        f"({measured.get('model', 'unknown')}, {measured['machine']}) and Python {measured['python']}"
    )


def keep(path: Path, name: str, found: Fields) -> None:
    """Write the figures of a benchmark to a file, beside those of others."""
    kept = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept[name] = {**machine(), **found}
    path.write_text(yaml.safe_dump(kept, sort_keys=False), encoding="utf-8")


def texts(others: Mapping[str, Fields]) -> dict[str, str]:
    """The parts of the page, by the name of what they are about."""
    makers: dict[str, Callable[[Fields], str]] = {"mutants": mutants, "alarms": alarms, "speed": speed}
    return {name: make(others[name]) for name, make in makers.items() if name in others}


Asked = tuple[str, str, bool]
"""What is asked for, what was measured, and whether that is enough."""


def asked(others: Mapping[str, Fields]) -> list[Asked]:
    """What is asked for of the figures that were measured."""
    found: list[Asked] = []
    if "mutants" in others:
        hits, all_, same = killed(others["mutants"])
        share = hits / (all_ - same)
        found.append(("at least 90 % of the mutants noticed that are not equivalent", f"{share:.1%}", share >= 0.9))
    for kind, each in others.get("alarms", {}).items():
        found.append((f"no false alarm, {kind}", plural(each["alarms"], "alarm"), each["alarms"] == 0))
        share = each["unobserved"]
        found.append((f"at least 30 % of drawn calls with work unobserved, {kind}", f"{share:.0%}", share >= 0.3))
    suite, objects = (others.get("speed", {}).get(part) for part in ("suite", "objects"))
    if suite is not None:
        rate, share = suite["directed"], suite["share"]
        found.append(("at least 50 % of a bare machine's steps", f"{share:.0%}", share >= 0.5))
        found.append(("at least 5,000 checked calls per second of directed programs", f"{rate:,}", rate >= 5000))
    if objects is not None:
        ratio = objects["p99"]
        found.append(("a call at most 1.5 times as dear with 10,000 objects", f"{ratio:.2f}", ratio <= 1.5))
    return found


def killed(measured: Fields) -> tuple[int, int, int]:
    """How many of the mutants a run notices, how many there are, and how many of the others are equivalent."""
    found = measured["mutants"]
    return sum(m["verdict"] in NOTICED for m in found), len(found), sum("equivalent" in m for m in found)


def mutants(measured: Fields) -> str:
    """Faults that nobody planned."""
    hits, all_, same = killed(measured)
    return (
        f"## Mutants\n\nMeasured {where(measured)} by `python benchmarks/mutate.py`. A run notices {hits} of {all_} "
        f"drawn mutants of the device ({hits / all_:.1%}); {same} others are equivalent by an argument that is given. "
        f"Of the rest {hits / (all_ - same):.1%} are noticed. [mutants.md](mutants.md) shows each that is left."
    )


def alarms(measured: Fields) -> str:
    """What the healthy device was blamed for."""
    lines = [
        "## False alarms",
        "",
        "Drawn programs on the device as it should be, by `python benchmarks/false_alarms.py`.",
    ]
    for kind, found in measured.items():
        threads = plural(found["threads"], "thread") if found["threads"] else "no threads"
        lines += [
            "",
            f"- {kind}, {where(found)}: {found['programs']:,} programs with {found['calls']:,} drawn calls in "
            f"{found['ways']} ways, {threads}; {found['unobserved']:.0%} of the calls with work unobserved: "
            f"{plural(found['alarms'], 'alarm')}.",
        ]
    return "\n".join(lines)


def speed(measured: Fields) -> str:
    """What checking costs."""
    lines = ["## Speed", ""]
    if "suite" in measured:
        suite = measured["suite"]
        lines += [
            f"- By `python benchmarks/bench_suite.py`, {where(suite)}: {suite['directed']:,} checked calls per second "
            f"of directed programs; drawn ones make {suite['stateful']:,} steps per second, {suite['share']:.0%} of a "
            f"bare hypothesis machine's {suite['bare']:,}.",
        ]
    if "objects" in measured:
        objects = measured["objects"]
        lines += [
            f"- By `python benchmarks/bench_objects.py`, {where(objects)}: the 99th percentile of a call with "
            f"{objects['many']:,} objects is {objects['p99']:.2f} times that with {objects['few']:,}.",
        ]
    return "\n".join(lines)
