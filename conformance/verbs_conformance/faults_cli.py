"""``verbspec faults``: the built-in device's faults, and how soon the suite notices each."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click
from rich.console import Console

from verbs_conformance import columns, faults, listing, power, power_page
from verbs_conformance.power_journal import Journal, OtherSources
from verbs_reports.text import plural
from verbs_spec.errors import near


@click.command("faults")
@click.option("--matrix", is_flag=True, help="Measure how soon each is noticed, by each kind of programs (an hour).")
@click.option("--only", "patterns", multiple=True, metavar="GLOB", help="Only these faults, as 'inv-*'.")
@click.option(
    "--seeds",
    default=power.SEEDS,
    show_default=True,
    type=click.IntRange(0),
    help="Of drawn programs; with 0 only the written ones are measured.",
)
@click.option(
    "--calls",
    default=power.MOST,
    show_default=True,
    type=click.IntRange(1, power.MOST_OF_ALL // power.TIMES),
    help=f"Of a detection by guided programs, at most; undirected ones have up to {power.TIMES} times as many.",
)
@click.option("--jobs", default=0, help="Processes.  [default: one a processor]", type=click.IntRange(0))
@click.option(
    "--minutes", default=0.0, help="Begin no detection after so many, and leave out seeds that are not whole."
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keep what is measured there at once, and go on where an earlier measurement with it has ended.",
)
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE", help="Write what was measured.")
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Write the page.")
def command(
    matrix: bool,
    patterns: Sequence[str],
    seeds: int,
    calls: int,
    jobs: int,
    minutes: float,
    journal: Path | None,
    data: Path | None,
    page: Path | None,
) -> int:
    """List the built-in device's faults; with --matrix measure how soon the suite notices each.

    Without --matrix, --data and --page make the page anew of what was measured."""
    if not matrix and page is not None and data is not None:
        _page(page, *power_page.read(data))
        return 0
    if not matrix:
        return listing.show("faults")
    names = _chosen(patterns)
    todo = power.tasks(names, seeds, calls)
    known = _journal(journal)
    began = time.monotonic()
    until = began + 60 * minutes if minutes else math.inf
    left = [task for task in todo if not power.is_known(task, known.found)]
    console = Console(stderr=True)
    with console.status("measuring") as status:
        for i, (task, caught) in enumerate(power.measure(left, jobs or os.cpu_count() or 1, until), 1):
            known.note(task, caught)
            status.update(f"{i} of {plural(len(left), 'detection')}; {task.fault}, {task.manner}")
    known.spent(time.monotonic() - began)
    rows = power.rows(names, todo, known.found)
    measured = power_page.data(rows, calls, known.seconds)
    if data is not None:
        power_page.write(data, measured)
    if page is not None:
        _page(page, measured, rows)
    _tell(rows, calls)
    missed = [r.fault for r in rows if r.fault in faults.pins() and not r.is_right]
    if missed:
        click.echo(f"the written programs do not tell {', '.join(missed)} with a right rule", err=True)
    return 1 if missed else 0


def _journal(path: Path | None) -> Journal:
    try:
        return Journal(path)
    except OtherSources as e:
        raise click.UsageError(str(e)) from None


def _chosen(patterns: Sequence[str]) -> list[str]:
    known = list(faults.known())
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise click.UsageError(
                f"--only {pattern}: no fault has such a name{near(pattern, known) or '.'} Names: verbspec list faults"
            )
    return [n for n in known if not patterns or any(fnmatchcase(n, p) for p in patterns)]


def _page(path: Path, measured: power_page.Fields, rows: Sequence[power.Row]) -> None:
    path.write_text(power_page.page(measured, rows, power_page.beside(path.parent)), encoding="utf-8")


def _tell(rows: Sequence[power.Row], calls: int) -> None:
    table = []
    for row in rows:
        found = [f"{row.written.calls}" if row.written else "-"]
        for drawn in (row.guided, row.undirected):
            hits = [c.calls for c in drawn.values() if c is not None]
            found.append(f"{min(hits)}..{max(hits)} ({len(hits)}/{len(drawn)})" if hits else f"- (0/{len(drawn)})")
        table.append((row.fault, *found, ", ".join(row.written.suspects[:1]) if row.written else ""))
    heads = ("fault", "written: calls", "guided", "undirected", "first suspect")
    columns.table(columns.Terminal(highlight=False), heads, table)
    for line in power_page.summary(rows, calls):
        click.echo(line.removeprefix("- "))
