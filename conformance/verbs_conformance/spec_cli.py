"""Commands about the specification itself: ``list``, ``explain``, ``prove``, ``spec check``, ``spec build``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from verbs_conformance import explain as explaining
from verbs_conformance import listing, prover, upkeep
from verbs_conformance.kept import Kept
from verbs_conformance.target import profiles
from verbs_spec.loader import load
from verbs_spec.profiles import features, select


@click.command("list")
@click.argument(
    "what", type=click.Choice(["rules", "questions", "profiles", "adapters", "facts", "faults", "programs"])
)
def list_(what: str) -> int:
    """List what there is."""
    return listing.show(what)


@click.command()
@click.argument("topic")
def explain(topic: str) -> int:
    """Explain a rule, a family of rules, an object, a verb, an errno, a status, a transition or a choice.

    A transition is RTS->ERR (quote the >), or RTS-ERR.  A question in words is answered from the rules: "which
    completions follow ERR"; 'verbspec list questions' lists those that are known.
    """
    return explaining.explain(topic)


@click.command()
@click.option("--select", "patterns", multiple=True, metavar="GLOB", help="Only these proofs, as 'inductive *'.")
@click.option("--profile", "profile", multiple=True, metavar="NAME", help="An API or transport profile.")
@click.option(
    "--feature",
    "feature",
    multiple=True,
    metavar="NAME",
    help="With the rules of this feature, be they a draft or not; all: of every feature.",
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="The time that z3 has for one question (20).")
def prove(patterns: Sequence[str], profile: Sequence[str], feature: Sequence[str], seconds: float | None) -> int:
    """Prove what the specification says of itself: cases partition, invariants are inductive."""
    api, transport = profiles(profile)
    spec = load()
    named = features(spec) if "all" in feature else feature
    return prover.prove(select(spec, api or "linux-kernel", transport or "roce", named), patterns, seconds)


@click.group()
def spec() -> None:
    """Work on the specification itself."""


@spec.command()
@click.option("--tables", "folder", default="spec/tables", type=click.Path(path_type=Path), help="The rendered tables.")
@click.option("--again", is_flag=True, help="Also what was checked before and has not changed since.")
@click.option(
    "--prove",
    "proving",
    multiple=True,
    metavar="GLOB",
    help="Prove of these families and calls, as 'sq/*', that "
    "their cases leave no hole and do not overlap, and of these rules that they are possible (seconds each, with z3).",
)
def check(folder: Path, again: bool, proving: Sequence[str]) -> int:
    """Check the specification: it loads under every profile, its tables and its programs are up to date and fire."""
    return upkeep.check(folder, Kept() if again else Kept.usual(), proving or None)


@spec.command("build")
@click.option("--tables", "folder", default="spec/tables", type=click.Path(path_type=Path), help="Where tables go.")
@click.option(
    "--programs/--no-programs",
    "with_programs",
    default=False,
    help="Search the directed programs anew (minutes).",
)
@click.option(
    "--only", metavar="GLOB", help="Search programs for these rules, as 'mr/*', and keep the others (seconds)."
)
@click.option("--release", metavar="NAME", help="List the ids that are new as released: from then on they stay.")
@click.option("--cells", is_flag=True, help="Also the page of cells, which is kept up to date where it is.")
def build_(folder: Path, with_programs: bool, only: str | None, release: str | None, cells: bool) -> int:
    """Render the tables and, if asked, search the directed programs."""
    upkeep.build_tables(folder, cells)
    if release:
        upkeep.release(release)
    return upkeep.search_programs(only or "*") if with_programs or only else 0
