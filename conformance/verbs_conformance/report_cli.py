"""``verbspec report``: pages of a results file, and what differs between two."""

from __future__ import annotations

from pathlib import Path

import click

from verbs_conformance import reporting

_file = click.Path(path_type=Path)
_out = click.option("--out", type=_file, help="A file; without it the report is printed.")


@click.group()
def report() -> None:
    """Make a report of a results file, or of the newest in a folder; or compare two."""


def _form(name: str) -> None:
    """Add the command for one form."""

    @report.command(name, help=f"Render a results file as {name}.")
    @click.argument("results", type=_file)
    @_out
    def render(results: Path, out: Path | None) -> int:
        return reporting.render(name, results, out)


for _name in reporting.FORMS:
    _form(_name)


@report.command()
@click.argument("before", type=_file)
@click.argument("after", type=_file)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown; --out writes it in any case.")
@_out
def diff(before: Path, after: Path, as_markdown: bool, out: Path | None) -> int:
    """Compare two runs, as before and after a patch: rules, programs and choices that are not as before.

    Exit codes: 0 nothing is worse; 1 a rule or a program is.
    """
    return reporting.compare(before, after, as_markdown=as_markdown, out=out)
