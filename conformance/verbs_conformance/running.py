"""What ``verbspec run`` and ``verbspec replay`` print."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from verbs_adapters.contract import Backend
from verbs_conformance import columns, heap, reporting
from verbs_conformance import program as programs
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.pace import Pace
from verbs_conformance.program import Program
from verbs_conformance.rerun import Again
from verbs_conformance.run import RESULTS, SHOWN, Run, Settings
from verbs_conformance.start import INTERRUPTED
from verbs_conformance.tally import Tally, blamed
from verbs_conformance.target import Target
from verbs_conformance.waivers import Waiver
from verbs_conformance.waiving import Waiving
from verbs_reports.results import read
from verbs_reports.summary import devices
from verbs_reports.text import plural
from verbs_reports.verdicts import NOTHING_SELECTED, Verdict
from verbs_spec.errors import near

_STYLES = {
    Verdict.PASS: "",
    Verdict.FAIL: "bold red",
    Verdict.UNEXPECTED_PASS: "bold red",
    Verdict.NOT_RUN: "yellow",
    Verdict.DEVIATION: "yellow",
}

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Seconds of ``90``, ``90s``, ``2m`` or ``1h``; a usage error otherwise."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise click.UsageError(f"{text!r} is no duration: write 90s, 2m or 1h")
    return value


def run(
    engine: Engine,
    backend: Backend,
    target: Target,
    command: str,
    *,
    patterns: Sequence[str],
    budget: str,
    rounds: int,
    seed: int,
    out: Path,
    strict: bool,
    full: bool,
    quick: bool,
    again: Again | None,
    waivers: tuple[Waiver, ...] = (),
    perilous: bool = False,
) -> int:
    """Run, with a line of progress, then the table of rules, the failures and where the report is."""
    api, transport = engine.model.spec.selected or ("", "")
    settings = Settings(
        api,
        transport,
        seed,
        duration(budget),
        tuple(patterns),
        out,
        strict,
        command,
        target.adapter,
        dict(target.options),
        again,
        rounds,
        waivers=waivers,
        quick=quick,
        perilous=perilous,
    )
    console = columns.Terminal(highlight=False, soft_wrap=True)
    hello = backend.hello()
    console.print(f"{hello.name} {hello.version} ({hello.device}) under {api}, {transport}; seed {seed}", markup=False)
    with console.status("running") as status:

        def notice(done: Judgement, tally: Tally) -> None:
            if text := pace.told(done):
                console.print(text, markup=False)
            failures = sum(map(len, tally.failures.values()))
            status.update(f"{tally.ran} programs, {tally.calls} calls, {failures} failed; {done.program.name}")

        job = Run(engine, backend, hello, settings, notice)
        pace = Pace(job)
        for pattern in job.unmatched():
            _nothing_matches(engine, pattern)
        heap.keep()
        code = job.execute()
    left_out = job.perils() if not perilous and not job.note else []
    if left_out:
        console.print(
            f"{plural(len(left_out), 'program')} left out, known to crash a kernel (first {left_out[0].name}); "
            "--perilous runs them, after all others",
            markup=False,
        )
    return _tell(console, job, code, full)


def _nothing_matches(engine: Engine, pattern: str) -> None:
    known = [*map(str, engine.model.spec.rules), *(p.name for p in programs.shipped("programs"))]
    click.echo(
        f"--select {pattern}: no rule and no program has such a name under these profiles{near(pattern, known) or '.'} "
        "Names: verbspec list rules, verbspec list programs",
        err=True,
    )


def _tell(console: Console, job: Run, code: int, full: bool) -> int:
    """Print what came of a run, and write the reports."""
    out, t = job.settings.out, job.tally
    if code == NOTHING_SELECTED:
        click.echo("nothing was selected under these profiles, so nothing ran", err=True)
        return code
    try:
        _table(console, job)
        _waivers(console, job)
        for done, file in t.shown:
            _failure(console, job.engine, done, out / file if file else None, full)
        _undecided(console, job)
        pages = reporting.write_all(out)
    except KeyboardInterrupt:
        click.echo(f"interrupted; what was judged is in {out / RESULTS}: verbspec report html {out}", err=True)
        return INTERRUPTED
    console.print(f"{plural(t.ran, 'program')}, {plural(t.calls, 'call')}; largest belief {t.belief}{_stateful(t)}")
    if job.spread is not None:
        console.print(devices(read(out / RESULTS)), markup=False)
    console.print(f"report: {pages['html']}", markup=False)
    console.print(f"again:  {job.settings.command}", markup=False)
    if job.note:
        click.echo(f"{job.note}: the report holds what was judged until then", err=True)
    return code


def _stateful(tally: Tally) -> str:
    if not tally.stateful_calls:
        return ""
    share = tally.stateful_unobserved / tally.stateful_calls
    text = f"; stateful: {tally.stateful_calls} calls, {share:.0%} of them with work unobserved"
    if not tally.given_up:
        return text
    return f"{text}; {plural(tally.given_up, 'drawn program')} given up early, where the device has too many ways to go"


def _table(console: Console, job: Run) -> None:
    records = job.rule_records()
    if records:
        columns.table(
            console,
            ("rule", "verdict", "fired", "reason"),
            [(x.rule, str(x.verdict), str(x.fired), x.reason) for x in records],
            [_STYLES.get(x.verdict, "dim") for x in records],
        )


def _waivers(console: Console, job: Run) -> None:
    """What the waivers cover, whatever came of it."""
    records = job.waiver_records()
    if job.waiving is not None and job.waiving.others:
        console.print(f"{plural(job.waiving.others, 'waiver')} not for this backend under these profiles")
    if records:
        columns.table(
            console,
            ("waiver", "rule", "verdict", "programs", "reason"),
            [(x.waiver, x.rule, str(x.verdict), str(x.covered), x.note or x.reason) for x in records],
            [_STYLES.get(x.verdict, "dim") for x in records],
        )


def _failure(console: Console, engine: Engine, done: Judgement, file: Path | None, full: bool) -> None:
    console.print()
    console.print(title(done), style="bold red", markup=False)
    for line in transcript(engine, done, full):
        console.print(line, markup=False)
    if file is not None:
        console.print("  replay: " + shlex.join(["verbspec", "replay", str(file)]), markup=False)


def _undecided(console: Console, job: Run) -> None:
    """The programs that say nothing of the backend, each with its reason and the way to see it again."""
    found = job.tally.undecided
    if found:
        console.print()
    for done, file in found[:SHOWN]:
        console.print(title(done), style="yellow", markup=False)
        console.print(f"  {done.reason}", markup=False)
        console.print("  replay: " + shlex.join(["verbspec", "replay", str(job.settings.out / file)]), markup=False)
    if len(found) > SHOWN:
        console.print(f"and {plural(len(found) - SHOWN, 'more program')} that decided nothing: see the report")


def title(done: Judgement) -> str:
    """What ran and what came of it."""
    return f"{done.verdict}: {done.program.name} (after the fixture {done.program.fixture}, seed {done.seed})"


def transcript(engine: Engine, done: Judgement, full: bool) -> list[str]:
    """The steps with what was seen, and why the program ended; equal runs give equal lines."""
    first = 0 if full else done.fixture_lines
    lines = [f"  {i:3}  {line}" for i, line in enumerate(done.lines[first:], 1)]
    if done.refused is not None:
        lines += [f"       allowed: {text}" for text in done.allowed]
        lines.append(f"  suspects: {', '.join(done.suspects)}")
        rule = engine.model.spec.rules.get(next(iter(done.waivers.values()), "") or blamed(done))
        if rule is not None:
            lines.append(f"  {rule.id} says: {' '.join(str(rule.says).split())}")
    if done.trouble is not None:
        lines.append(f"  {done.trouble.kind}, the fault is the {done.trouble.whose}'s: {done.trouble.message}")
        lines += [f"    | {text}" for text in done.trouble.evidence.splitlines()[-10:]]
    if done.trouble is None and done.reason:
        lines.append(f"  {done.reason}")
    return lines


def replay(
    engine: Engine,
    backend: Backend,
    program: Program,
    *,
    seed: int | None,
    full: bool,
    allow_undefined: bool,
    waivers: tuple[Waiver, ...] = (),
) -> Verdict:
    """Run a program again and print what happens; a seed given here is stronger than the program's."""
    hello, fixtures = backend.hello(), programs.fixtures()
    waiving = Waiving(waivers, engine, backend, hello, fixtures)
    judge = Judge(engine, waiving.recorder, hello, fixtures, allow_undefined=allow_undefined)
    own = 1 if program.seed is None else program.seed
    done = waiving.explain(judge.run(program, own if seed is None else seed))
    click.echo(title(done))
    for line in transcript(engine, done, full):
        click.echo(line)
    return done.verdict
