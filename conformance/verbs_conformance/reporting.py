"""Reports from results files: what ``verbspec report`` and the end of a run write."""

from __future__ import annotations

from pathlib import Path

import click

from verbs_conformance import columns
from verbs_conformance.run import RESULTS
from verbs_reports import diff, html, junit, markdown
from verbs_reports.diff import diff as differences
from verbs_reports.results import ResultsError, read

FORMS = {"html": html.render, "junit": junit.render, "markdown": markdown.render}
_WAYS = {"better": "green", "otherwise": "yellow", "new": "yellow", "gone": "dim"}
FILES = {"html": "report.html", "junit": "junit.xml", "markdown": "summary.md"}


def results_file(path: Path) -> Path:
    """The file itself; of a folder the results file in it that was written last."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.jsonl"), key=lambda p: (p.stat().st_mtime_ns, p.name))
    if not found:
        raise ResultsError(
            f"the folder {path} holds no results file (*.jsonl): give the folder that 'verbspec run --out' wrote, "
            f"or the {RESULTS} in it"
        )
    return found[-1]


def render(form: str, results: Path, out: Path | None) -> int:
    """Render one results file, or the newest of a folder, in one form."""
    text = FORMS[form](read(results_file(results)))
    if out is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        out.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"{form} report written to {out}")
    return 0


def compare(before: Path, after: Path, *, as_markdown: bool, out: Path | None) -> int:
    """Print or write what differs between two runs; 1 if something is worse."""
    found = differences(read(results_file(before)), read(results_file(after)))
    if out is not None:
        out.write_text(diff.render(found), encoding="utf-8", newline="\n")
        click.echo(f"{found.headline}; written to {out}")
    elif as_markdown:
        click.echo(diff.render(found), nl=False)
    else:
        console = columns.Terminal(highlight=False, soft_wrap=True)
        for fact in found.facts:
            console.print(fact, markup=False)
        if found.changes:
            styles = ["bold red" if c.regression else _WAYS.get(c.way, "") for c in found.changes]
            columns.table(console, diff.HEAD, [c.row for c in found.changes], styles)
        console.print(found.headline, markup=False)
    return 1 if found.regressions else 0


def write_all(folder: Path) -> dict[str, Path]:
    """Write every form beside the results of a folder."""
    results = read(folder / RESULTS)
    made = {}
    for form, make in FORMS.items():
        made[form] = folder / FILES[form]
        made[form].write_text(make(results), encoding="utf-8", newline="\n")
    return made
