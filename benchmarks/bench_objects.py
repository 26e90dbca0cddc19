"""What a checked call costs when many objects are alive, next to the same with few.

``python benchmarks/bench_objects.py [MANY] [CALLS] [--data FILE]`` registers regions until so many are alive (10,000 if
not said), then judges the same mixture of calls on softhca as it does with FEW of them, in turns: registrations,
receives, sends, polls and deregistrations.  It prints the median and the 99th percentile of a call for both, and their
ratios; seconds are of the processor's time, device and judgement together.  With ``--data`` the figures stand in that
file afterwards, beside those of other benchmarks.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path
from statistics import median, quantiles

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance.power_figures import keep
from verbs_conformance.program import full_steps
from verbs_conformance.session import Session
from verbs_conformance.step import Step
from verbs_conformance.target import engine, load, offered

API, TRANSPORT = "linux-user", "roce"
FEW = 10
TURNS = 4
REGION = {"pd": "pd0", "addr": "buf0.addr", "length": "64", "access": "{LOCAL_WRITE}"}
RECEIVE = {"qp": "qp1", "wr_id": "1", "sg_list": "[]"}
SEND = {"qp": "qp0", "opcode": "SEND", "wr_id": "2", "sg_list": "[]", "signaled": "true"}
MIXTURE = (
    Step("reg_mr", REGION, {"#0": "mine"}),
    Step("post_recv", RECEIVE),
    Step("post_send", SEND),
    Step("settle", {}),
    Step("poll_cq", {"cq": "cq0"}),
    Step("poll_cq", {"cq": "cq1"}),
    Step("poll_cq", {"cq": "cq1"}),
    Step("dereg_mr", {"mr": "mine"}),
)
"""Calls that leave the device as it was."""


def crowd(count: int) -> Session:
    """A session of a connected pair with so many regions."""
    backend = SoftHca({"api": API, "transport": TRANSPORT, "max_objects": str(2 * count + 100)})
    hello = backend.hello()
    fixtures = programs.fixtures()
    session = Session(engine(API, TRANSPORT, offered(load(), hello)), backend, hello)
    backend.reset(1)
    before, own = full_steps(fixtures["pair"], fixtures)
    for step in (*before, *own):
        done(session, step)
    for number in range(count):
        done(session, Step("reg_mr", REGION, {"#0": f"other{number}"}))
    return session


def done(session: Session, step: Step) -> None:
    """Make one call; SystemExit if it is not explained."""
    for made, outcome in session.run(step):
        if outcome.problem is not None:
            sys.exit(f"{made} -> {outcome.seen}: {outcome.problem}")


def spent(session: Session, calls: int) -> list[float]:
    """The seconds of each call of the mixture, once caches are warm."""
    for step in MIXTURE * 20:
        done(session, step)
    took = []
    for _ in range(calls // len(MIXTURE)):
        for step in MIXTURE:
            began = time.process_time()
            done(session, step)
            took.append(time.process_time() - began)
    return took


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("many", type=int, nargs="?", default=10_000)
    parser.add_argument("calls", type=int, nargs="?", default=8_000)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    many, calls = asked.many, asked.calls
    sessions = {count: crowd(count) for count in (FEW, many)}
    took: dict[int, list[float]] = {count: [] for count in sessions}
    gc.freeze()
    for _ in range(TURNS):
        for count, session in sessions.items():
            took[count] += spent(session, calls // TURNS)
    p99 = {count: quantiles(found, n=100)[98] for count, found in took.items()}
    for count, found in took.items():
        print(f"{count:6} regions: median {median(found) * 1e6:6.0f} us, p99 {p99[count] * 1e6:6.0f} us a checked call")
    print(f"ratio: median {median(took[many]) / median(took[FEW]):.2f}, p99 {p99[many] / p99[FEW]:.2f}")
    if asked.data:
        keep(asked.data, "objects", {"few": FEW, "many": many, "p99": round(p99[many] / p99[FEW], 3)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
