"""The command line, ``verbspec``.

Each command is a thin shell: it reads options, calls the layer that does the work, prints, and turns what came of it
into the documented exit code.  Errors that a person can mend are printed without a traceback, with whose fault it
is; 3 is for the adapter, the harness and the specification, 4 for wrong usage.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from verbs_adapters.contract import AdapterError
from verbs_adapters.contract import UsageError as AdapterUsageError
from verbs_conformance import explain as explaining
from verbs_conformance import faults_cli, lab_cli, listing, prover, reporting, rerun, running, waivers
from verbs_conformance import program as programs
from verbs_conformance.adapter_cli import adapter
from verbs_conformance.kept import Kept
from verbs_conformance.report_cli import report
from verbs_conformance.run import ROUNDS
from verbs_conformance.session import BadProgram
from verbs_conformance.start import INTERRUPTED, NOTHING_DONE
from verbs_conformance.target import Target, load, opened, options, profiles
from verbs_conformance.waivers import BadWaivers
from verbs_conformance.waivers_cli import waivers as waivers_
from verbs_reports.results import ResultsError, read
from verbs_reports.verdicts import exit_code
from verbs_spec.errors import ProfileError, SpecError
from verbs_spec.profiles import features, select

ERROR, USAGE = 3, 4


class Commands(click.Group):
    """A group whose usage errors end with exit code 4."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            return sys.exit(super().main(*args, **kwargs) or 0)
        except click.exceptions.Exit as e:
            sys.exit(e.exit_code)
        except click.UsageError as e:
            e.show()
            sys.exit(USAGE)
        except click.ClickException as e:
            e.show()
            sys.exit(e.exit_code)
        except (click.Abort, KeyboardInterrupt):
            click.echo(NOTHING_DONE, err=True)
            sys.exit(INTERRUPTED)
        except OSError as e:
            _of_the_system(e)
        except SpecError as e:
            _fail(f"{e}\nThe fault is the specification's.", ERROR)
        except AdapterUsageError as e:
            _fail(f"{e}\nNothing was started: correct the command and run it again.", USAGE)
        except AdapterError as e:
            _fail(f"{e}\nNothing was judged: the adapter cannot be used like this.", ERROR)
        except (BadProgram, BadWaivers, ResultsError, ProfileError) as e:
            _fail(str(e), USAGE)


def _of_the_system(error: OSError) -> None:
    """End because of a file or a folder."""
    where = f"{error.filename}: " if error.filename else ""
    _fail(f"{where}{error.strerror or error}\nA file cannot be read or written; the fault is not the backend's.", USAGE)


def _fail(message: str, code: int) -> None:
    click.echo(f"verbspec: {message}", err=True)
    sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="verbspec")
def main() -> None:
    """Judge an implementation of RDMA verbs against the specification."""


_adapter = click.argument("adapter", required=False)
_pairs = click.option("-o", "--option", "pairs", multiple=True, metavar="KEY=VALUE", help="An option of the adapter.")
_waivers = click.option(
    "--waivers", "waived", type=click.Path(path_type=Path), metavar="FILE", help="Deviations that are accepted."
)
_profiles = click.option("--profile", "profile", multiple=True, metavar="NAME", help="An API or transport profile.")
_features = click.option(
    "--feature", "feature", multiple=True, metavar="NAME", help="Judge by this feature although its rules are a draft."
)


@main.command()
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


@main.command()
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


@main.command("list")
@click.argument(
    "what", type=click.Choice(["rules", "questions", "profiles", "adapters", "facts", "faults", "programs"])
)
def list_(what: str) -> int:
    """List what there is."""
    return listing.show(what)


@main.command()
@click.argument("topic")
def explain(topic: str) -> int:
    """Explain a rule, a family of rules, an object, a verb, an errno, a status, a transition or a choice.

    A transition is RTS->ERR (quote the >), or RTS-ERR.  A question in words is answered from the rules: "which
    completions follow ERR"; 'verbspec list questions' lists those that are known.
    """
    return explaining.explain(topic)


@main.command()
@click.option("--select", "patterns", multiple=True, metavar="GLOB", help="Only these proofs, as 'inductive *'.")
@_profiles
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


@main.group("spec")
def spec_() -> None:
    """Work on the specification itself."""


@spec_.command()
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
    return listing.check(folder, Kept() if again else Kept.usual(), proving or None)


@spec_.command("build")
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
    listing.build_tables(folder, cells)
    if release:
        listing.release(release)
    return listing.search_programs(only or "*") if with_programs or only else 0


main.add_command(adapter)
main.add_command(report)
main.add_command(waivers_)
main.add_command(lab_cli.lab)
main.add_command(faults_cli.command)


if __name__ == "__main__":
    main()
