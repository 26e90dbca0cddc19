"""Flips every outcome of every rule and judges recorded runs of softhca again: is the flip seen, is the rule named?

``python benchmarks/flips.py [--rule PATTERN] [--home WORDS] [--jobs N]`` prints a line for each flip that is not as
``conformance/verbs_conformance/unflipped.yaml`` says: that no program shows (UNSEEN), whose rule is not among the
suspects (WRONG), that is listed and need not be (STALE); then the totals.  It exits with 1 if there is such a line.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from fnmatch import fnmatch

from verbs_conformance.flipping import FEW, MOST, Result, bench_of, listed, mistake, shown_by
from verbs_conformance.homes import Home, tried

Job = tuple[Home, str, bool]
"""The profiles, the name of the flip, and whether it is tried where it is listed as seen."""


def trial(job: Job) -> tuple[Job, Result]:
    """One flip, in a worker."""
    home, name, elsewhere = job
    flip = next(f for f in tried()[home] if f.name == name)
    entry = listed().get(name)
    where = shown_by(home, entry) if elsewhere else bench_of(home)
    assert where is not None
    return job, where.trial(flip, MOST if elsewhere or entry is None else FEW)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rule", default="*", help="only the flips of these rules")
    parser.add_argument("--home", default="*", help="only under these profiles, as they are printed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="a line for each flip")
    options = parser.parse_args()
    began = time.perf_counter()
    jobs: list[Job] = []
    for home, found in tried().items():
        for flip in found:
            if fnmatch(str(home), options.home) and any(fnmatch(rule, options.rule) for rule in flip.rules):
                jobs.append((home, flip.name, False))
                if shown_by(home, listed().get(flip.name)) is not None:
                    jobs.append((home, flip.name, True))
    wrong = 0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for (where, name, elsewhere), result in pool.imap_unordered(trial, jobs, chunksize=16):
            complaint = mistake(None if elsewhere else listed().get(name), result)
            if complaint or options.verbose:
                print(
                    complaint or "ok",
                    f"[{where}{', elsewhere' * elsewhere}] {name}",
                    *detail(result),
                    sep="  ",
                    flush=True,
                )
            wrong += bool(complaint)
    print(f"{len(jobs)} flips, {wrong} not as they should be, {time.perf_counter() - began:.0f} s")
    return int(wrong > 0)


def detail(result: Result) -> list[str]:
    """Where it was seen, and the suspects."""
    if not result.seen:
        return [f"{result.judged} programs"]
    return [result.program, f"after {result.judged}", ", ".join(result.suspects)]


if __name__ == "__main__":
    sys.exit(main())
