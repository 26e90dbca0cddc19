"""Reports from results files: what ``verbspec report`` and the end of a run write."""

from __future__ import annotations

from pathlib import Path

import click

from verbs_conformance.run import RESULTS
from verbs_reports import html, junit, markdown
from verbs_reports.results import ResultsError, read

FORMS = {"html": html.render, "junit": junit.render, "markdown": markdown.render}
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


def write_all(folder: Path) -> dict[str, Path]:
    """Write every form beside the results of a folder."""
    results = read(folder / RESULTS)
    made = {}
    for form, make in FORMS.items():
        made[form] = folder / FILES[form]
        made[form].write_text(make(results), encoding="utf-8", newline="\n")
    return made
