"""``verbspec faults``: the built-in device's faults, and how soon the suite notices each."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click
from rich.console import Console

from verbs_conformance import columns, faults, listing, power, power_page
from verbs_reports.text import plural
from verbs_spec.errors import near


@click.command("faults")
@click.option("--matrix", is_flag=True, help="Measure how soon each is noticed, by each kind of programs (an hour).")
@click.option("--only", "patterns", multiple=True, metavar="GLOB", help="Only these faults, as 'inv-*'.")
@click.option("--seeds", default=power.SEEDS, show_default=True, type=click.IntRange(1), help="Of drawn programs.")
@click.option("--calls", default=power.MOST, show_default=True, type=click.IntRange(1), help="Of a detection, at most.")
@click.option("--jobs", default=0, help="Processes.  [default: one a processor]", type=click.IntRange(0))
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE", help="Write what was measured.")
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Write the page.")
def command(
    matrix: bool, patterns: Sequence[str], seeds: int, calls: int, jobs: int, data: Path | None, page: Path | None
) -> int:
    """List the built-in device's faults; with --matrix measure how soon the suite notices each."""
    if not matrix:
        return listing.show("faults")
    names = _chosen(patterns)
    rows = {name: power.Row(name) for name in names}
    todo = power.tasks(names, seeds, calls)
    began = time.monotonic()
    console = Console(stderr=True)
    with console.status("measuring") as status:
        for i, (task, caught) in enumerate(power.measure(todo, jobs or os.cpu_count() or 1), 1):
            rows[task.fault].note(task, caught)
            status.update(f"{i} of {plural(len(todo), 'detection')}; {task.fault}, {task.manner}")
    measured = power_page.data(rows.values(), calls, time.monotonic() - began)
    if data is not None:
        power_page.write(data, measured)
    if page is not None:
        page.write_text(power_page.page(measured, list(rows.values())), encoding="utf-8")
    _tell(list(rows.values()))
    missed = [r.fault for r in rows.values() if r.fault in faults.pins() and not r.is_right]
    if missed:
        click.echo(f"the written programs do not tell {', '.join(missed)} with a right rule", err=True)
    return 1 if missed else 0


def _chosen(patterns: Sequence[str]) -> list[str]:
    known = list(faults.known())
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise click.UsageError(
                f"--only {pattern}: no fault has such a name{near(pattern, known) or '.'} Names: verbspec list faults"
            )
    return [n for n in known if not patterns or any(fnmatchcase(n, p) for p in patterns)]


def _tell(rows: Sequence[power.Row]) -> None:
    table = []
    for row in rows:
        found = [f"{row.written.calls}" if row.written else "-"]
        for drawn in (row.guided, row.undirected):
            hits = [c.calls for c in drawn.values() if c is not None]
            found.append(f"{min(hits)}..{max(hits)} ({len(hits)}/{len(drawn)})" if hits else f"- (0/{len(drawn)})")
        table.append((row.fault, *found, ", ".join(row.written.suspects[:1]) if row.written else ""))
    heads = ("fault", "written: calls", "guided", "undirected", "first suspect")
    columns.table(columns.Terminal(highlight=False), heads, table)
    for line in power_page.summary(rows):
        click.echo(line.removeprefix("- "))
