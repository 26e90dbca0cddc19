"""Draws mutants of softhca's sources and judges each by what a conformance run makes: how many are noticed?

``python benchmarks/mutate.py [--count N] [--seed N] [--jobs N] [--only GROUP_OR_MODULE] [--left]`` prints a line for
each mutant as it is judged, then the figures.  What came of each is kept in the folder ``--out``: a run that was ended
goes on where it was.  ``--left`` judges those again that were left.  ``--page`` writes the page and the data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import yaml
from mutation.conditions import CONDITIONS, kept
from mutation.drawing import draw
from mutation.judging import CRASHED, KILLED, SECONDS, Bench
from mutation.mutant import ROOT, Mutant
from mutation.outcome import Journal, OtherSources, Record, equivalents, record, why
from mutation.page import data, page, summary

from mutation import outcome

COUNT = 400
SEED = 1
PAGE = ROOT / "docs" / "mutants.md"
DATA = ROOT / "docs" / "mutants.yaml"


def main(words: Sequence[str] | None = None) -> int:
    """Draw, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of processor time, for one mutant")
    parser.add_argument("--only", default="", help="only the drawn mutants of these groups or modules, by comma")
    parser.add_argument("--left", action="store_true", help="judge again what was left and is not equivalent")
    parser.add_argument("--out", type=Path, default=Path("verbspec-results") / "mutants")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.name} and {DATA.name}")
    options = parser.parse_args(words)
    drawn = outcome.kept(
        options.out, f"drawn-{options.count}-{options.seed}", lambda: draw(options.count, options.seed)
    )
    mutants = [m for m in drawn.mutants if not options.only or {m.group, m.module} & set(options.only.split(","))]
    print(f"seed {options.seed}: {len(mutants)} mutants; passed over {dict(drawn.passed)}", flush=True)
    try:
        journal = Journal(options.out / "mutants.jsonl")
    except OtherSources as e:
        parser.error(str(e))
    todo = [m for m in mutants if _is_wanted(journal.found.get(m.name), again=options.left)]
    if todo:
        _judge(todo, journal, options)
    measured = data(
        *(journal.of(mutants), drawn, equivalents()),
        count=options.count,
        seed=options.seed,
        most_seconds=options.seconds,
        softhca=outcome.digest(),
        mutmut=version("mutmut"),
        conditions="; ".join(map(str, CONDITIONS)),
    )
    print("\n".join(summary(measured)))
    if options.page:
        DATA.write_text(yaml.safe_dump(measured, sort_keys=False, width=120, allow_unicode=True), encoding="utf-8")
        PAGE.write_text(page(measured), encoding="utf-8")
    return 0


def _is_wanted(known: Record | None, *, again: bool) -> bool:
    return known is None or (again and known.verdict not in {KILLED, CRASHED} and not why(equivalents(), known))


def _judge(todo: Sequence[Mutant], journal: Journal, options: argparse.Namespace) -> None:
    tell = partial(print, flush=True)
    bench = Bench(kept(CONDITIONS, options.out / "healthy.pickle", tell), seconds=options.seconds)
    for number, (mutant, came) in enumerate(bench.judge_all(todo, options.jobs), 1):
        journal.note(record(mutant, came))
        print(f"{number:4} {mutant.name:32} {came.verdict:12} {came.seconds:6.2f} s  {came.by}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
