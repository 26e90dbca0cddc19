"""Flips every outcome of every rule and judges recorded runs of softhca again: is the flip seen, is the rule named?

``python benchmarks/flips.py [linux-kernel|linux-kernel-2008]`` prints a line for each flip that no recorded program
notices (UNSEEN) and for each whose rule is not among the suspects (WRONG), and the totals.  It is a measure, not yet a
test: what it lists is work to be done.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from verbs_adapters.contract import Answer, Trouble
from verbs_adapters.softhca import SoftHca
from verbs_conformance import flips, program
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.program import Program
from verbs_conformance.session import Engine
from verbs_reference.model import Model
from verbs_spec.document import Spec
from verbs_spec.loader import load
from verbs_spec.profiles import select

MOST = 12
"""Recorded programs that are judged again for one flip, of those made for its rule and of the regression programs."""


@dataclass(frozen=True)
class Record:
    """A program's run on the healthy device."""

    program: Program
    answers: list[Answer | Trouble]
    rules: frozenset[str]


def record(spec: Spec, api: str) -> list[Record]:
    """Run every shipped program of a profile once."""
    backend = flips.Recorder(SoftHca({"api": api}))
    judge = Judge(Engine(Model(spec)), backend, backend.hello(), program.fixtures())
    made = []
    for each in program.shipped("programs"):
        if each.applies(api, "roce"):
            done = judge.run(each, 1)
            made.append(Record(each, list(backend.answers), frozenset({*done.fired, *done.possible})))
    return made


def chosen(records: list[Record], rule: str) -> list[Record]:
    """The records in which a rule may have fired, those made for it and the shortest first."""
    found = [r for r in records if rule in r.rules]
    found.sort(key=lambda r: (r.program.target != rule, len(r.answers)))
    return found[:MOST] + [r for r in found[MOST:] if r.program.kind == "regression"][:MOST]


def notices(judge: Judge, backend: flips.Playback, records: list[Record], flip: flips.Flip) -> Judgement | None:
    """The first run that the flipped specification refuses."""
    for each in records:
        backend.answers = each.answers
        done = judge.run(each.program, 1)
        if done.refused or (flip.what.startswith("undefined") and flip.rule not in done.fired):
            return done
    return None


def main() -> None:
    """Measure and print."""
    api = sys.argv[1] if len(sys.argv) > 1 else "linux-kernel"
    began = time.perf_counter()
    spec = select(load(), api, "roce")
    records = record(spec, api)
    backend = flips.Playback(SoftHca({"api": api}).hello())
    total = unseen = wrong = 0
    for flip in flips.flips(spec):
        total += 1
        judge = Judge(Engine(Model(flips.apply(spec, flip))), backend, backend.hello(), program.fixtures())
        done = notices(judge, backend, chosen(records, flip.rule), flip)
        if done is None:
            unseen += 1
            print("UNSEEN", flip.name)
        elif done.refused and flip.rule not in done.refused.suspects:
            wrong += 1
            print("WRONG", flip.name, done.refused.suspects)
    took = time.perf_counter() - began
    print(f"{total} flips of {api}: {unseen} unseen, {wrong} without the rule among the suspects, {took:.0f} s")


if __name__ == "__main__":
    main()
