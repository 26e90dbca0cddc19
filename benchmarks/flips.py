"""Flips every outcome of every rule and judges recorded runs of softhca again: is the flip seen, is the rule named?

``python benchmarks/flips.py [API ...] [--rule PATTERN] [--jobs N]`` prints a line for each flip that is not as
``conformance/verbs_conformance/unflipped.yaml`` says: that no program shows (UNSEEN), whose rule is not among the
suspects (WRONG), that is listed and need not be (STALE); then the totals.  It exits with 1 if there is such a line.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from fnmatch import fnmatch
from functools import cache

from verbs_conformance.flipping import APIS, PLAIN, Bench, Result, listed, mistake

Job = tuple[str, str, str]
"""API, device, name of the flip."""


@cache
def bench(api: str, device: str) -> Bench:
    """The bench of a device, its records made."""
    made = Bench(api, device)
    assert made.records
    return made


def trial(job: Job) -> tuple[Job, Result]:
    """One flip, in a worker."""
    api, device, name = job
    where = bench(api, device)
    flip = next(f for f in where.flips if f.name == name)
    return job, where.trial(flip)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("api", nargs="*", default=APIS)
    parser.add_argument("--rule", default="*", help="only the flips of these rules")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="a line for each flip")
    options = parser.parse_args()
    began = time.perf_counter()
    jobs: list[Job] = []
    for api in options.api:
        known = listed(api)
        for flip in bench(api, PLAIN).flips:
            if fnmatch(flip.rule, options.rule):
                jobs.append((api, PLAIN, flip.name))
                if flip.name in known and known[flip.name].device:
                    jobs.append((api, known[flip.name].device, flip.name))
    wrong = 0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for (api, device, name), result in pool.imap_unordered(trial, jobs):
            found = mistake(listed(api).get(name), result, device)
            if found or options.verbose:
                print(found or "ok", f"[{api}, {device}] {name}", *detail(result), sep="  ", flush=True)
            wrong += bool(found)
    print(f"{len(jobs)} flips, {wrong} not as they should be, {time.perf_counter() - began:.0f} s")
    return int(wrong > 0)


def detail(result: Result) -> list[str]:
    """Where it was seen, and the suspects."""
    if not result.seen:
        return [f"{result.judged} programs"]
    return [result.program, f"after {result.judged}", ", ".join(result.suspects)]


if __name__ == "__main__":
    sys.exit(main())
