"""What there is: ``list``."""

from __future__ import annotations

from verbs_adapters import registry
from verbs_conformance import columns, faults
from verbs_conformance import program as programs
from verbs_conformance.tracing import Trace, traces
from verbs_spec import facts
from verbs_spec.loader import load

HEADS = {
    "rules": ("rule", "level", "status", "says"),
    "questions": ("question", "answered by"),
    "profiles": ("profile", "kind", "summary"),
    "adapters": ("adapter", "what it is"),
    "programs": ("program", "kind", "fixture", "says"),
    "facts": ("fact", "mark", "state", "rules", "programs", "faults", "says"),
    "faults": ("fault", "from", "told by", "what the device does"),
}


def show(what: str) -> int:
    """Print a list."""
    spec = load()
    rows: list[tuple[str, ...]] = []
    if what == "rules":
        rows = [(str(r.id), r.level, r.status, _one(r.says)) for r in spec.rules.values()]
    elif what == "questions":
        rows = [(str(q.asks[0]), ", ".join(map(str, q.answers))) for q in spec.questions]
    elif what == "profiles":
        rows = [
            (str(p.name), f"draft {p.kind}" if p.draft else p.kind, _one(p.summary)) for p in spec.profiles.values()
        ]
    elif what == "adapters":
        rows = list(registry.names().items())
    elif what == "programs":
        rows = [(p.name, p.kind, p.fixture, _one(p.says)) for p in programs.shipped("programs")]
    elif what == "facts":
        rows = [_traced(t) for t in traced()]
    else:
        rows = [(f.name, f.entry, f.oracle, f.sentence) for f in faults.known().values()]
        rows += [("-", entry, "", reason) for entry, reason in faults.not_expressed().items()]
    columns.table(columns.Terminal(highlight=False), HEADS[what], rows)
    return 0


def traced() -> list[Trace]:
    """Every fact with its rules, programs and faults."""
    return traces(facts.load(), programs.shipped("programs"), {f.name: f.entries for f in faults.known().values()})


def _traced(trace: Trace) -> tuple[str, ...]:
    fact = trace.fact
    shown = (*trace.regressions, *trace.directed)
    return (
        str(fact.id),
        fact.mark,
        trace.state,
        ", ".join(fact.rules),
        str(len(shown) or ""),
        ", ".join(trace.faults),
        _one(fact.says),
    )


def _one(text: str) -> str:
    return " ".join(str(text).split())
