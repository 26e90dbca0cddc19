"""Makes the committed directed programs from the specification.

For each API profile the search starts from every fixture, the smallest first, one call deep and then deeper, until
every rule has a witness or nothing more is found.  What has none must have a reason in ``unwitnessed.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from verbs_conformance import program as programs
from verbs_conformance.directed import Directed
from verbs_conformance.program import Program, full_steps
from verbs_conformance.session import Engine
from verbs_reference.model import Model
from verbs_spec.document import CallRule, Spec
from verbs_spec.profiles import features, select

DEPTHS = (1, 2)


def limits(engine: Engine, fixtures: Mapping[str, Program]) -> dict[str, Any]:
    """What the imagined device answers when it is opened: the outermost fixture's options, every feature present."""
    outermost = next(p for p in fixtures.values() if not p.fixture)
    found: dict[str, Any] = {k: int(v) for k, v in outermost.options}
    opening = engine.model.calls[engine.opening]
    found.update({o: True for o, t in opening.outputs.items() if t.tag == "bool"})
    return found


def witnesses(
    engine: Engine,
    fixtures: Mapping[str, Program],
    known: list[Program],
    wanted: set[str],
    only: Callable[[str], bool],
) -> Iterator[Program]:
    """A program for each wanted rule that the search can fire, and for each fixture of the model's features.

    A known program that still fires its rule is kept, so that only what is missing is searched: from the features' own
    fixtures, where there are any.
    """
    spec = engine.model.spec
    wanted = set(wanted)
    standing = sorted(
        (p for p in fixtures.values() if p.under(spec)),
        key=lambda p: len(sum(full_steps(p, fixtures), ())),
    )
    own = [p for p in standing if set(p.feature) == set(spec.features)]
    device = limits(engine, fixtures)
    for fixture in own:
        if only(name := f"fixture/{fixture.name}"):
            yield Directed(engine, fixture, fixtures, device).program(name, "", ())
    checker = Directed(engine, standing[0], fixtures, device)
    for program in known:
        if program.target in wanted and program.under(spec) and checker.fires(program):
            wanted.discard(program.target)
            yield program
    nearest = own or [p for p in standing if p.feature] or standing
    yield from _searched(engine, fixtures, nearest, device, wanted)


def _searched(
    engine: Engine,
    fixtures: Mapping[str, Program],
    standing: list[Program],
    device: dict[str, Any],
    wanted: set[str],
) -> Iterator[Program]:
    tentative: dict[str, Program] = {}
    for depth in DEPTHS:
        for fixture in standing:
            if wanted:
                search = Directed(engine, fixture, fixtures, device)
                yield from search.search(wanted, depth)
                for rule, program in search.tentative.items():
                    tentative.setdefault(rule, program)
        if engine.model.spec.features:  # what a choice decides in a small program is not searched in larger ones
            yield from (tentative[rule] for rule in sorted(wanted & tentative.keys()))
            wanted -= tentative.keys()
    yield from (tentative[rule] for rule in sorted(wanted & tentative.keys()))


def build(
    spec: Spec,
    api: str,
    transport: str,
    known: list[Program],
    spared: set[str],
    only: Callable[[str], bool] = lambda _: True,
) -> list[Program]:
    """The directed programs of one API profile, in the order of the specification's rules.

    A rule is searched on a device that has the features which the rule asks for and no other, or, if no fixture is for
    just these, those of the fixture that asks for fewest more.  With ``only`` no rule but those is looked at, and
    what is known for the others is kept as it is.
    """
    whole = select(spec, api, transport, features(spec))
    order = {str(r): i for i, r in enumerate(whole.rules)}
    groups: dict[tuple[str, ...], set[str]] = {(): set()}
    for rule in filter(only, order.keys() - spared):
        groups.setdefault(_staged(needed(whole, rule), whole), set()).add(rule)
    found = [p for p in known if p.api == (api,) and p.target in order | {"": 0} and not only(p.target or p.name)]
    for group, rules in groups.items():
        engine = Engine(Model(select(spec, api, transport, group)))
        found += witnesses(engine, programs.fixtures(), known, rules, only)
    return sorted(found, key=lambda p: (order.get(p.target, -1), p.name))


def _staged(group: tuple[str, ...], spec: Spec) -> tuple[str, ...]:
    """The features of the fixture that asks for these and for fewest more; the features themselves if none does."""
    found = [p.feature for p in programs.fixtures().values() if p.applies(*(spec.selected or ("", "")))]
    more = sorted((len(f), sorted(f)) for f in found if set(f) >= set(group))
    return tuple(x for x in spec.features if x in more[0][1]) if group and more else group


def needed(spec: Spec, rule: str) -> tuple[str, ...]:
    """The features without which a rule, or what it is a rule of, is not there."""
    own = spec.rules[rule]
    part = spec.calls[own.call] if isinstance(own, CallRule) else spec.families[own.family]
    return tuple(f for f in spec.features if f in own.profile or f in part.profile)


def fired_by_fixtures(spec: Spec, api: str, transport: str, fixtures: Mapping[str, Program]) -> set[str]:
    """The rules that the fixtures of a profile fire, so that every program does."""
    engine = Engine(Model(select(spec, api, transport, features(spec))))
    device = limits(engine, fixtures)
    return {
        rule
        for p in fixtures.values()
        if p.under(engine.model.spec)
        for rule in Directed(engine, p, fixtures, device).history
    }
