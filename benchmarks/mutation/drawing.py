"""Which mutants there are, and which are drawn.

mutmut changes a source in each place that one of its operators knows.  All mutants of a group of modules are put into
an order that a seed and their texts decide, and the first are taken, as many from each group.  So a change of the
sources changes the draw by the mutants of the changed lines alone.  What is passed over on the way, because it cannot
change what a healthy device does (:mod:`mutation.plain`), is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import libcst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

from mutation.mutant import SOURCES, Drawn, Mutant, mutant
from mutation.plain import reason

GROUPS: dict[str, tuple[str, ...]] = {
    "engine": ("engine", "clock", "device", "objects"),
    "key": ("keys", "access", "region", "regions", "registrar", "mapping", "memory", "overlapped"),
    "window": ("mw", "windows", "networkdirect", "winverbs"),
    "queue": ("queue", "qp", "pairs", "posting", "srq", "transitions", "attributes", "connection"),
    "transport": (
        *("requester", "responder", "execution", "answers", "retry", "wire", "weather", "psn", "stream"),
        *("datagram", "ah", "atomic"),
    ),
    "completion": ("cq", "channel", "completer", "event", "words"),
}
"""The modules of each group.  Those in none read options (``options``, ``capabilities``, ``arguments``), tell of ports
by verbs that the specification does not have (``port``), list faults and scripts, or run the engine in threads, which
is judged by chance alone."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A mutant that is not made yet."""

    group: str
    module: str
    tree: MetadataWrapper
    mutation: Mutation
    rank: str


def draw(count: int, seed: int, groups: Mapping[str, tuple[str, ...]] = GROUPS, folder: Path = SOURCES) -> Drawn:
    """Draw so many mutants, evenly from the groups."""
    drawn = Drawn()
    shares = [count // len(groups) + (i < count % len(groups)) for i in range(len(groups))]
    for (group, modules), share in zip(groups.items(), shares, strict=True):
        sites = sorted((s for m in modules for s in _sites(group, m, folder, seed)), key=lambda s: s.rank)
        drawn.known[group] = len(sites)
        taken: dict[str, Mutant] = {}
        for site in sites:
            if len(taken) == share:
                break
            mutant, why = _made(site, (folder / f"{site.module}.py").read_text(encoding="utf-8"))
            if mutant is None or mutant.name in taken:
                drawn.passed[why or "text"] += 1
            else:
                taken[mutant.name] = mutant
        drawn.mutants += taken.values()
    return drawn


def _sites(group: str, module: str, folder: Path, seed: int) -> Iterator[_Site]:
    tree = MetadataWrapper(libcst.parse_module((folder / f"{module}.py").read_text(encoding="utf-8")))
    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    tree.visit(visitor)
    times: Counter[str] = Counter()
    for mutation in visitor.mutations:
        text = f"{seed} {module} {_text(tree, mutation)}"
        times[text] += 1
        rank = hashlib.sha256(f"{text} {times[text]}".encode()).hexdigest()
        yield _Site(group, module, tree, mutation, rank)


def _text(tree: MetadataWrapper, mutation: Mutation) -> str:
    """What is changed into what, in which line of which function."""
    around: libcst.CSTNode | None = mutation.contained_by_top_level_function  # a class's own assignment, too
    parts = [tree.module.code_for_node(n) for n in (mutation.original_node, mutation.mutated_node)]
    place = tree.resolve(PositionProvider).get(mutation.original_node)
    line = "" if place is None else tree.module.code.splitlines()[place.start.line - 1].strip()
    return "\n".join([around.name.value if isinstance(around, libcst.FunctionDef) else "", line, *parts])


def _made(site: _Site, text: str) -> tuple[Mutant | None, str]:
    """The mutant of a site, or why it is left out."""
    changed = site.tree.module.deep_replace(site.mutation.original_node, site.mutation.mutated_node)
    assert isinstance(changed, libcst.Module)
    try:
        compile(changed.code, site.module, "exec")
    except SyntaxError:
        return None, "syntax"
    why = reason(text, changed.code)
    return (None, why) if why else (mutant(site.group, site.module, text, changed.code, _span(site)), "")


def _span(site: _Site) -> tuple[int, ...]:
    """The lines of what was changed; none if libcst does not know where it is."""
    place = site.tree.resolve(PositionProvider).get(site.mutation.original_node)
    return () if place is None else tuple(range(place.start.line, place.end.line + 1))
