"""``verbspec run`` and ``verbspec replay``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from verbs_conformance import program as programs
from verbs_conformance import reporting, rerun, running, waivers
from verbs_conformance.run import ROUNDS
from verbs_conformance.target import Target, load, opened, options, profiles
from verbs_reports.results import read
from verbs_reports.verdicts import exit_code

_adapter = click.argument("adapter", required=False)
_pairs = click.option("-o", "--option", "pairs", multiple=True, metavar="KEY=VALUE", help="An option of the adapter.")
_waivers = click.option(
    "--waivers", "waived", type=click.Path(path_type=Path), metavar="FILE", help="Deviations that are accepted."
)
_profiles = click.option("--profile", "profile", multiple=True, metavar="NAME", help="An API or transport profile.")
_features = click.option(
    "--feature", "feature", multiple=True, metavar="NAME", help="Judge by this feature although its rules are a draft."
)


@click.command()
@_adapter
@_pairs
@_profiles
@_features
@_waivers
@click.option("--select", "patterns", multiple=True, metavar="GLOB", help="Only these rules or programs, as 'mr/*'.")
@click.option(
    "--perilous", is_flag=True, help="Also programs known to crash a kernel, last; never on one that is needed."
)
@click.option("--quick", is_flag=True, help="Each rule's shortest program once; no sweep, no stateful programs.")
@click.option("--budget", default="20s", show_default=True, help="Time for stateful programs, after all others.")
@click.option("--rounds", default=ROUNDS, show_default=True, type=click.IntRange(1), help="Schedules for each program.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Fixes every choice by chance.")
@click.option("--out", default="verbspec-results", show_default=True, type=click.Path(path_type=Path), help="Folder.")
@click.option("--strict", is_flag=True, help="A deviation from a should fails the run.")
@click.option("--full", is_flag=True, help="Print the fixtures' steps too.")
@click.option(
    "--rerun-failed",
    "failed",
    type=click.Path(path_type=Path),
    help="Only what failed there; file or folder.",
)
def run(
    adapter: str | None,
    pairs: Sequence[str],
    profile: Sequence[str],
    feature: Sequence[str],
    failed: Path | None,
    waived: Path | None,
    **rest: Any,
) -> int:
    """Run conformance against a backend and write a report.

    Exit codes: 0 conforms; 1 does not; 2 not decided, or a selected rule did not fire; 3 the suite or the adapter
    broke; 4 wrong usage; 5 nothing selected.
    """
    again, saved = None, Target()
    if failed is not None:
        file = reporting.results_file(failed)
        results = read(file)
        again, saved = rerun.failed(results, file.parent), rerun.target(results.header)
        if not again.names and not again.programs:
            raise click.UsageError(f"{file} holds no program that failed, so there is nothing to run again")
    wanted = Target(adapter or "", options(pairs), *profiles(profile), tuple(feature)).over(saved)
    rest["waivers"] = waivers.load(waived, load()) if waived is not None else ()
    with opened(wanted) as (backend, engine):
        command = shlex.join(["verbspec", *sys.argv[1:]])
        return running.run(engine, backend, wanted, command, again=again, **rest)


@click.command()
@click.argument("program", type=click.Path(path_type=Path))
@_adapter
@_pairs
@_profiles
@_features
@_waivers
@click.option("--seed", type=click.IntRange(0), help="Instead of the program's own; 1 if it has none.")
@click.option("--full", is_flag=True, help="Print the fixture's steps too.")
@click.option("--allow-undefined", is_flag=True, help="Make calls that break the consumer's duty; never on hardware.")
def replay(
    program: Path,
    adapter: str | None,
    pairs: Sequence[str],
    profile: Sequence[str],
    feature: Sequence[str],
    waived: Path | None,
    **rest: Any,
) -> int:
    """Run the programs of a file; the same program, seed and backend print the same lines.

    The file of a failure holds the adapter, its options, the profiles and the seed; what is given here is stronger.
    Programs that follow each other and want the same backend share it.
    """
    given = Target(adapter or "", options(pairs), *profiles(profile), tuple(feature))
    rest["waivers"] = waivers.load(waived, load()) if waived is not None else ()
    verdicts = []
    for target, group in groupby(programs.load(program), lambda each: given.over(_saved(each))):
        with opened(target) as (backend, engine):
            verdicts += [running.replay(engine, backend, each, **rest) for each in group]
    return exit_code(verdicts)


def _saved(program: programs.Program) -> Target:
    return Target(
        program.adapter, dict(program.options), _one(program.api), _one(program.transport), tuple(program.feature)
    )


def _one(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ""
