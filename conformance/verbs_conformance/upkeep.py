"""What keeps the specification in order: its check, the pages made from it, released ids, the search for programs."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import partial
from importlib import resources
from pathlib import Path

import click

from verbs_conformance import cells, facts_page, faults
from verbs_conformance import program as programs
from verbs_conformance.build import build
from verbs_conformance.checking import TRANSPORT, Subject, problems
from verbs_conformance.kept import Kept, key
from verbs_conformance.listing import traced
from verbs_conformance.unwitnessed import reasons as unwitnessed
from verbs_conformance.unwitnessed import unpassed
from verbs_spec import facts, slugs, tables
from verbs_spec.document import Spec
from verbs_spec.errors import near
from verbs_spec.loader import load


def check(folder: Path, kept: Kept, proving: Iterable[str] | None = None) -> int:
    """Check the specification; 0 if nothing is wrong, 1 with a line for each thing that is."""
    spec, known = load(), facts.load()
    wrong = []
    if folder.is_dir():
        wrong += [f"{folder}: {line}; run 'verbspec spec build'" for line in tables.drift(spec, folder)]
        wrong += _drifted(folder / facts_page.FILE, facts_index(spec, known))
    else:
        click.echo(
            f"there is no {folder} here, so the rendered tables are not compared: name them with --tables", err=True
        )
    wrong += _cells(spec, folder / cells.FILE, kept)
    shipped = tuple(programs.shipped("programs"))
    subject = Subject(
        spec, known, slugs.load(), shipped, programs.fixtures(), tuple(unwitnessed()), frozenset(unpassed()), kept
    )
    wrong += problems(subject, proving)
    for line in wrong:
        click.echo(line)
    outcome = f"{len(wrong)} things wrong" if wrong else "nothing wrong"
    click.echo(f"{len(spec.rules)} rules, {len(known.facts)} facts, {len(shipped)} programs: {outcome}")
    return 1 if wrong else 0


def _cells(spec: Spec, path: Path, kept: Kept) -> list[str]:
    """Whether the page of cells, if there is one, is that of the rules."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    name = key("cells", spec.digest, text)
    if kept.get(name) is None:
        if wrong := _drifted(path, cells.rendered(spec)):
            return wrong
        kept.put(name, True)
    return []


def _drifted(path: Path, page: str) -> list[str]:
    """Whether a page is not what it would be made now."""
    if path.is_file() and path.read_text(encoding="utf-8") == page:
        return []
    return [f"{path}: differs from the rules, the programs or the faults; run 'verbspec spec build'"]


def facts_index(spec: Spec, known: facts.Facts) -> str:
    """The page of facts, with the programs and faults that there are."""
    by_rule: dict[str, set[str]] = {}
    for fault, pin in faults.pins().items():
        for rule in pin.rules:
            by_rule.setdefault(rule, set()).add(fault)
    return facts_page.page(spec, known, traced(), programs.shipped("programs"), by_rule)


def build_tables(folder: Path, with_cells: bool) -> None:
    """Write the rendered tables, and the page of cells if it is asked for or there is one."""
    spec = load()
    tables.write(spec, folder)
    (folder / facts_page.FILE).write_text(facts_index(spec, facts.load()), encoding="utf-8")
    if with_cells or (folder / cells.FILE).is_file():
        (folder / cells.FILE).write_text(cells.rendered(spec), encoding="utf-8")
    click.echo(f"tables written to {folder}")


def release(name: str) -> None:
    """List the ids of the specification that are new under a release."""
    spec, known = load(), slugs.load()
    path = Path(str(resources.files("verbs_spec").joinpath(slugs.FILE)))
    path.write_text(slugs.render(spec, known, name), encoding="utf-8")
    click.echo(f"{len(slugs.load().released) - len(known.released)} ids are new in {name}; written to {path.name}")


def search_programs(only: str = "*") -> int:
    """Search the directed programs of every API profile, of rules like ``only``, and write them into this package."""
    spec = load()
    names = [*spec.rules, *(f"fixture/{name}" for name in programs.fixtures())]
    if not any(fnmatchcase(name, only) for name in names):
        raise click.UsageError(f"--only {only}: no rule or fixture/NAME is called so{near(only, names) or '.'}")
    root = Path(str(resources.files("verbs_conformance").joinpath("programs")))
    known = [p for p in programs.shipped("programs") if p.kind == "directed"]
    by_hand = {p.target for p in programs.shipped("programs")} - {p.target for p in known}
    others = [str(p.name) for p in spec.profiles.values() if p.kind == "transport" and p.name != TRANSPORT]
    transports = (TRANSPORT, *others)
    spared = by_hand | set(unwitnessed())
    for profile in spec.profiles.values():
        if profile.kind == "api":
            found = build(spec, str(profile.name), transports, known, spared, partial(fnmatchcase, pat=only))
            path = root / f"directed_{str(profile.name).replace('-', '_')}.yaml"
            path.write_text(programs.dump(found), encoding="utf-8")
            click.echo(f"{len(found)} programs written to {path.name}")
    return 0
