"""Draws programs for softhca as it should be, in many of the ways that it may go: each failure is a false alarm.

``python benchmarks/false_alarms.py [--programs N] [--ways N] [--threads N] [--seed N] [--jobs N] [--data FILE]``
spreads the programs evenly over the ways.  A way is a seed, an API, a transport, a pace or so many threads, the
condition of the wire, and one of the values of each option for what the sources leave open, all drawn by the seed of
the run and printed with what came of it; features are those that the device declares.  It prints the failing
programs, and the share of the drawn calls that were made while the device had something to do that was not observed;
it exits with 1 if anything failed.  With ``--data`` the figures stand in that file afterwards, as its entry for a
device with or without threads.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml

from verbs_adapters.softhca import SoftHca, options
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.machine import Stateful
from verbs_conformance.power_figures import machine
from verbs_conformance.target import engine, load, offered

TRANSPORTS = ("roce", "roce", "ib", "iwarp")
FIXED = frozenset({"api", "transport", "pace", "wire", "mtu", "port_mtu"})
"""Options with listed values that a way does not draw as it does the others."""
USUAL = 0.5
"""How often an option has its usual value."""


@dataclass(slots=True)
class Came:
    """What came of one way."""

    programs: int = 0
    calls: int = 0
    unobserved: int = 0
    undecided: int = 0
    seconds: float = 0.0
    alarms: list[str] = field(default_factory=list)

    def add(self, other: Came) -> None:
        """Count what came of another way too."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def ways(count: int, seed: int, threads: int) -> list[dict[str, str]]:
    """So many ways, as options of softhca; APIs, paces and wires in turn, the others drawn."""
    draw = random.Random(seed)
    every = options.OPTIONS
    made = []
    for number in range(count):
        transport = TRANSPORTS[number % len(TRANSPORTS)]
        way = {
            "api": every["api"].known[number % len(every["api"].known)],
            "transport": transport,
            "wire": "healthy" if transport == "iwarp" else every["wire"].known[number % len(every["wire"].known)],
        }
        if threads:
            way["threads"] = str(threads)
        else:
            way["pace"] = every["pace"].known[number % len(every["pace"].known)]
        for name, option in every.items():
            if option.known and name not in FIXED and draw.random() >= USUAL:
                way[name] = draw.choice(option.known)
        made.append(way)
    return made


def judged(way: dict[str, str], number: int, count: int) -> Came:
    """Draw so many programs for a device that goes this way."""
    backend = SoftHca(way)
    hello = backend.hello()
    judge = Judge(engine(way["api"], way["transport"], offered(load(), hello)), backend, hello, programs.fixtures())
    came, began = Came(), time.process_time()
    for done in Stateful(judge, number, math.inf, lambda: True).run():
        came.programs += 1
        came.calls += done.calls - done.fixture_calls
        came.unobserved += done.unobserved - done.fixture_unobserved
        came.undecided += done.undecided
        if done.broken:
            came.alarms.append(told(done))
        if came.programs >= count:
            break
    backend.close()
    came.seconds = time.process_time() - began
    return came


def told(done: Judgement) -> str:
    """A failure, with the whole program: in threads it may never show again."""
    lines = [f"{done.program.name} on {done.program.fixture}, seed {done.seed}", *done.lines]
    return "\n    ".join(
        [*lines, *(f"allowed: {line}" for line in done.allowed), f"suspects: {', '.join(done.suspects)}"]
    )


def figures(total: Came, asked: argparse.Namespace) -> dict[str, Any]:
    """What was measured, as it is written."""
    return {
        **machine(),
        "seed": asked.seed,
        "threads": asked.threads,
        "ways": asked.ways,
        "programs": total.programs,
        "calls": total.calls,
        "unobserved": round(total.unobserved / max(total.calls, 1), 3),
        "undecided": total.undecided,
        "alarms": len(total.alarms),
        "seconds": round(total.seconds),
    }


def keep(path: Path, measured: dict[str, Any]) -> None:
    """Write figures to a file, beside those of the other kind of device."""
    kept = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept["threaded" if measured["threads"] else "unthreaded"] = measured
    path.write_text(yaml.safe_dump(kept, sort_keys=False), encoding="utf-8")


def main() -> int:
    """Draw, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--ways", type=int, default=20)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    found, total = ways(asked.ways, asked.seed, asked.threads), Came()
    each = -(-asked.programs // asked.ways)
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        numbers = [asked.seed * asked.ways + number for number in range(asked.ways)]
        for way, came in zip(found, pool.map(partial(judged, count=each), found, numbers), strict=True):
            words = " ".join(f"{name}={value}" for name, value in way.items())
            print(f"{came.programs} programs, {came.calls} calls, {len(came.alarms)} alarms: {words}", flush=True)
            print("".join(f"  {alarm}\n" for alarm in came.alarms), end="", flush=True)
            total.add(came)
    measured = figures(total, asked)
    print(", ".join(f"{name} {value}" for name, value in measured.items()))
    if asked.data:
        keep(asked.data, measured)
    return 1 if total.alarms else 0


if __name__ == "__main__":
    sys.exit(main())
