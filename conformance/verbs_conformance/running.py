"""What ``verbspec run`` and ``verbspec replay`` print."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from verbs_adapters.contract import Backend
from verbs_conformance import program as programs
from verbs_conformance import reporting
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program
from verbs_conformance.run import Run, Settings, Tally
from verbs_conformance.session import Engine
from verbs_reports.results import read
from verbs_reports.verdicts import Verdict, exit_code

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Seconds of ``90``, ``90s``, ``2m`` or ``1h``; a usage error otherwise."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        value = -1.0
    if value < 0:
        raise click.UsageError(f"{text!r} is no duration: write 90s, 2m or 1h")
    return value


def with_profile(adapter: str, options: dict[str, str], api: str, transport: str) -> dict[str, str]:
    """The options, with the profiles handed on to the built-in device unless they are given there."""
    if adapter != "softhca":
        return options
    found = dict(options)
    for key, value in (("api", api), ("transport", transport)):
        if value:
            found.setdefault(key, value)
    return found


def run(
    engine: Engine,
    backend: Backend,
    adapter: str,
    options: dict[str, str],
    command: str,
    *,
    patterns: Sequence[str],
    budget: str,
    seed: int,
    out: Path,
    strict: bool,
    full: bool,
    failed: Path | None,
) -> int:
    """Run, with a line of progress, then the table of rules, the failures and where the report is."""
    api, transport = engine.model.spec.selected or ("", "")
    only: tuple[str, ...] = ()
    if failed is not None:
        only = tuple(
            p.name for p in read(failed).programs if p.verdict in {Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE}
        )
        if not only:
            raise click.UsageError(f"{failed} holds no program that failed, so there is nothing to run again")
    settings = Settings(
        api,
        transport,
        seed,
        duration(budget),
        tuple(patterns),
        out,
        strict,
        command,
        adapter,
        dict(options),
        only,
    )
    console = Console(highlight=False, soft_wrap=True)
    hello = backend.hello()
    console.print(f"{hello.name} {hello.version} ({hello.device}) under {api}, {transport}; seed {seed}")
    with console.status("running") as status:

        def notice(done: Judgement, tally: Tally) -> None:
            failures = sum(map(len, tally.failures.values()))
            status.update(f"{tally.ran} programs, {tally.calls} calls, {failures} failed; {done.program.name}")

        job = Run(engine, backend, hello, settings, notice)
        code = job.execute()
    _table(console, job)
    for done, file in job.tally.shown:
        _failure(console, done, out / file if file else None, adapter, options, full)
    pages = reporting.write_all(out)
    t = job.tally
    console.print(f"{t.ran} programs, {t.calls} calls; largest belief {t.belief}{_stateful(t)}")
    console.print(f"report: {pages['html']}")
    console.print(f"again:  {command}")
    return code


def _stateful(tally: Tally) -> str:
    if not tally.stateful_calls:
        return ""
    share = tally.stateful_unobserved / tally.stateful_calls
    return f"; stateful: {tally.stateful_calls} calls, {share:.0%} of them with work unobserved"


def _table(console: Console, job: Run) -> None:
    table = Table("rule", "verdict", "fired", "reason", box=None, pad_edge=False)
    for record in job.rule_records():
        style = {"pass": "", "fail": "bold red", "not-run": "yellow", "deviation": "yellow"}.get(record.verdict, "dim")
        table.add_row(record.rule, str(record.verdict), str(record.fired), record.reason, style=style)
    console.print(table)


def _failure(
    console: Console, done: Judgement, file: Path | None, adapter: str, options: dict[str, str], full: bool
) -> None:
    title = "fail" if done.verdict == Verdict.FAIL else str(done.verdict)
    console.print()
    console.print(
        f"{title}: {done.program.name} (after the fixture {done.program.fixture}, seed {done.seed})",
        style="bold red",
    )
    for line in transcript(done, full):
        console.print(line, markup=False)
    if file is not None:
        pairs = [x for k, v in options.items() for x in ("-o", f"{k}={v}")]
        console.print("  replay: " + shlex.join(["verbspec", "replay", str(file), adapter, *pairs]), markup=False)


def transcript(done: Judgement, full: bool) -> list[str]:
    """The steps with what was seen, and why the program ended; equal runs give equal lines."""
    first = 0 if full else done.fixture_lines
    lines = [f"  {i:3}  {line}" for i, line in enumerate(done.lines[first:], 1)]
    if done.refused is not None:
        lines += [f"       allowed: {text}" for text in done.allowed]
        lines.append(f"  suspects: {', '.join(done.refused.suspects)}")
    if done.trouble is not None:
        lines.append(f"  {done.trouble.kind}, the fault is the {done.trouble.whose}'s: {done.trouble.message}")
        lines += [f"    | {text}" for text in done.trouble.evidence.splitlines()[-10:]]
    elif done.reason:
        lines.append(f"  {done.reason}")
    return lines


def replay(
    engine: Engine, backend: Backend, found: list[Program], *, seed: int, full: bool, allow_undefined: bool
) -> int:
    """Run programs again and print what happens."""
    judge = Judge(engine, backend, backend.hello(), programs.fixtures(), allow_undefined=allow_undefined)
    verdicts: list[Any] = []
    for program in found:
        done = judge.run(program, program.seed if program.seed is not None else seed)
        verdicts.append(done.verdict)
        click.echo(f"{done.verdict}: {program.name} (after the fixture {program.fixture}, seed {done.seed})")
        for line in transcript(done, full):
            click.echo(line)
    return exit_code(verdicts)
