"""What ``verbspec prove`` prints."""

from __future__ import annotations

from collections.abc import Sequence

import click

from verbs_reference.model import Model
from verbs_reference.proofs import SECONDS
from verbs_reference.proofs import prove as proofs
from verbs_spec.document import Spec


def prove(spec: Spec, patterns: Sequence[str], seconds: float | None = None) -> int:
    """Prove and print; 0 if all is proved, 1 if something is refuted, 2 if something is unknown, 5 if nothing fits."""
    counts = {"proved": 0, "refuted": 0, "unknown": 0}
    for result in proofs(Model(spec), patterns, seconds=seconds or SECONDS):
        counts[result.verdict] += 1
        click.echo(f"{result.verdict:8} {result.name}  ({result.scope}; {result.seconds:.1f} s)")
        for line in result.lines:
            click.echo(f"           {line}")
    click.echo(", ".join(f"{n} {word}" for word, n in counts.items()))
    if not sum(counts.values()):
        return 5
    return 1 if counts["refuted"] else 2 if counts["unknown"] else 0
