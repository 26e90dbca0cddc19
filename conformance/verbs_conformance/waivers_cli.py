"""``verbspec waivers``: check a waiver file without a backend."""

from __future__ import annotations

from pathlib import Path

import click

from verbs_conformance import columns
from verbs_conformance import waivers as files
from verbs_conformance.target import load
from verbs_spec.profiles import select


@click.group()
def waivers() -> None:
    """Work on waiver files: deviations of a backend that are accepted."""


@waivers.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> int:
    """Check a waiver file: its form, its rules and programs, and what it says in the specification's language."""
    spec = load()
    found = files.load(file, spec)
    for api, transport in files.profiles(spec):
        selected = select(spec, api, transport)
        here = [w for w in found if w.rule in selected.rules and w.under(api, transport)]
        for batch in files.batches(w for w in here if w.runs(api, transport)):
            files.model(selected, batch)
    rows = [
        (str(w.name), str(w.rule), ", ".join(w.programs), _conditions(w), "yes" if w.instead else "no") for w in found
    ]
    columns.table(columns.Terminal(highlight=False), ("waiver", "rule", "program", "for", "instead"), rows)
    click.echo(f"{file}: {len(found)} waivers, nothing wrong")
    return 0


def _conditions(waiver: files.Waiver) -> str:
    return ", ".join(f"{key} {' or '.join(values)}" for key, values in waiver.conditions.items())
