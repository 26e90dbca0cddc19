"""Reports from results files: what ``verbspec report`` and the end of a run write."""

from __future__ import annotations

from pathlib import Path

import click

from verbs_reports import html, junit, markdown
from verbs_reports.results import read

FORMS = {"html": html.render, "junit": junit.render, "markdown": markdown.render}
FILES = {"html": "report.html", "junit": "junit.xml", "markdown": "summary.md"}


def render(form: str, results: Path, out: Path | None) -> int:
    """Render one results file in one form."""
    text = FORMS[form](read(results))
    if out is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        out.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"{form} report written to {out}")
    return 0


def write_all(folder: Path) -> dict[str, Path]:
    """Write every form beside the results of a folder."""
    results = read(folder / "results.jsonl")
    made = {}
    for form, make in FORMS.items():
        made[form] = folder / FILES[form]
        made[form].write_text(make(results), encoding="utf-8", newline="\n")
    return made
