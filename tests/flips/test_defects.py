"""Each defect that a text forbids is told: where its rule's outcome is negated, a program of it is refused.

The device is the model of the specification with one outcome of one of the fact's rules flipped; the judge has the
specification as it is.  Programs are the defect's regression programs and those of its rules.  So a fact that names a
rule which does not forbid the defect, or has no program that shows it, is found, of draft features too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice

import pytest

from verbs_conformance import device as devices
from verbs_conformance import listing
from verbs_conformance import program as programs
from verbs_conformance.build import limits
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.flips import apply, flips
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_conformance.tracing import Trace
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec import facts, load
from verbs_spec.document import Spec
from verbs_spec.errors import SpecError
from verbs_spec.profiles import select

TRANSPORT = "roce"
PROGRAMS, FLIPS = 12, 8
"""So many programs, and so many flips with each, are tried before a defect counts as one that nothing tells."""
UNTOLD = {
    "B95": "inline data of a read is the consumer's error",
    "B137": "an overrun is the consumer's error",
}


@cache
def traces() -> dict[str, Trace]:
    return {str(t.fact.id): t for t in listing.traced()}


@cache
def shipped() -> dict[str, list[Program]]:
    found: dict[str, list[Program]] = {}
    for program in programs.shipped("programs"):
        found.setdefault(program.name, []).append(program)
    return found


@cache
def spec(api: str, having: tuple[str, ...]) -> Spec:
    return select(load(), api, TRANSPORT, having)


@cache
def engine(api: str, having: tuple[str, ...]) -> Engine:
    return Engine(Model(spec(api, having)))


def tries(trace: Trace) -> Iterator[tuple[Program, str]]:
    """Programs of a defect, each under an API: first all of them, each under the first of its APIs."""
    apis = [str(p.name) for p in load().profiles.values() if p.kind == "api"]
    found = [program for name in (*trace.regressions, *trace.directed) for program in shipped()[name]]
    homes = [[api for api in apis if program.applies(api, TRANSPORT)] for program in found]
    for turn in range(len(apis)):
        yield from ((program, own[turn]) for program, own in zip(found, homes, strict=True) if turn < len(own))


def told(trace: Trace) -> bool:
    """Whether some program of the defect is refused under some flip of some of its rules."""
    fixtures = programs.fixtures()
    for program, api in islice(tries(trace), PROGRAMS):
        having = tuple(sorted(program.feature))
        own = [program.target] if program.target else trace.fact.rules
        mine = [f for f in flips(spec(api, having)) if f.rule in own]
        for flip in mine[:FLIPS]:
            where = engine(api, having)
            opened = limits(where, fixtures)
            try:
                model = Model(apply(spec(api, having), flip), where.model)
                backend = ReferenceBackend(model, opened, device=devices.read(model, program.device))
                done = Judge(where, backend, backend.hello(), fixtures).run(program, 1)
            except (SpecError, BadProgram, LookupError):  # the flipped model cannot go on
                continue
            if done.verdict == Verdict.FAIL:
                return True
    return False


DEFECTS = [str(f.id) for f in facts.load().facts.values() if f.mark == "H" and set(f.rules) & load().rules.keys()]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_negated_outcome_is_refused(defect: str) -> None:
    assert told(traces()[defect]) is (defect not in UNTOLD)
