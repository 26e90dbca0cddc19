"""Makes the committed directed programs from the specification.

For each API profile the search starts from every fixture, the smallest first, one call deep and then deeper, until
every rule has a witness or nothing more is found.  A rule that fires for certain on no device of which nothing is said,
or that only permits, is then searched on devices of which something is said: first what its own formula speaks of, then
anything else that is left open.  What has no witness must have a reason in ``unwitnessed.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from verbs_conformance import program as programs
from verbs_conformance.device import Said, further, likely, permitting
from verbs_conformance.directed import Directed, rule_text
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.program import Program, full_steps
from verbs_reference.model import Model
from verbs_spec.document import CallRule, Spec
from verbs_spec.profiles import features, select

DEPTHS = (1, 2)
DEEPEST = 3
"""From the smallest fixture, where few calls can be made: a device that does not make an object stands on no other."""


def limits(engine: Engine, fixtures: Mapping[str, Program]) -> dict[str, Any]:
    """What the imagined device answers when it is opened: the outermost fixture's options, every feature present."""
    outermost = next(p for p in fixtures.values() if not p.fixture)
    found: dict[str, Any] = {k: int(v) for k, v in outermost.options}
    opening = engine.model.calls[engine.opening]
    found.update({o: True for o, t in opening.outputs.items() if t.tag == "bool"})
    return found


@dataclass(slots=True)
class Ground:
    """What one search goes on: a model, the fixtures that it starts from, what it wants and what it has half found."""

    engine: Engine
    fixtures: Mapping[str, Program]
    standing: list[Program]
    smallest: Program
    """The fixture that asks least of a device."""
    wanted: set[str]
    tentative: dict[str, Program] = field(default_factory=dict)
    """Programs that fire their rules only as some choice is taken."""

    def start(self, fixture: Program, said: Said = ()) -> Directed:
        """A search from one fixture; BadProgram if a device does not make what the fixture is of."""
        return Directed(self.engine, fixture, self.fixtures, limits(self.engine, self.fixtures), said)

    def anywhere(self) -> Iterator[Program]:
        """Witnesses that fire their rules on any device."""
        for depth in DEPTHS:
            for fixture in self.standing:
                if self.wanted:
                    search = self.start(fixture)
                    yield from search.search(self.wanted, depth)
                    for rule, program in search.tentative.items():
                        self.tentative.setdefault(rule, program)
            if (
                self.engine.model.spec.features
            ):  # what a choice decides in a small program is not searched in larger ones
                self.wanted -= self.tentative.keys()
        self.wanted |= self.tentative.keys()

    def on(self, devices: Callable[[Model, str], Iterable[Said]]) -> Iterator[Program]:
        """Witnesses on devices of which something is said: those ``devices`` that a rule may need."""
        plans: dict[Said, set[str]] = {}
        for rule in sorted(self.wanted):
            for said in filter(None, devices(self.engine.model, rule)):
                plans.setdefault(said, set()).add(rule)
        yield from self._known(plans)
        larger = [p.name for p in self.standing if p.name != self.smallest.name]
        for depth in (*DEPTHS, DEEPEST):
            for said, rules in plans.items():
                for fixture in (self.smallest.name, *(larger if depth in DEPTHS else ())):
                    yield from self._from(fixture, said, rules & self.wanted, depth)

    def _known(self, plans: Mapping[Said, set[str]]) -> Iterator[Program]:
        """Witnesses among the programs that are half found."""
        checker = self.start(self.standing[0])
        for said, rules in plans.items():
            for rule in sorted(rules & self.wanted & self.tentative.keys()):
                program = replace(self.tentative[rule], device=said)
                if checker.fires(program):
                    self.wanted.discard(rule)
                    yield checker.explicit(program)

    def _from(self, fixture: str, said: Said, rules: set[str], depth: int) -> Iterator[Program]:
        try:
            search = self.start(self.fixtures[fixture], said) if rules else None
        except BadProgram:
            return
        for program in search.search(rules, depth) if search is not None else ():
            self.wanted.discard(program.target)
            yield program


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
    standing = sorted(
        (p for p in fixtures.values() if p.under(spec)),
        key=lambda p: len(sum(full_steps(p, fixtures), ())),
    )
    own = [p for p in standing if set(p.feature) == set(spec.features)]
    nearest = own or [p for p in standing if p.feature] or standing
    ground = Ground(engine, fixtures, nearest, standing[0], set(wanted))
    for fixture in own:
        if only(name := f"fixture/{fixture.name}"):
            yield ground.start(fixture).program(name, "", ())
    checker = ground.start(standing[0])
    for program in known:
        if program.target in ground.wanted and program.under(spec) and checker.fires(program):
            ground.wanted.discard(program.target)
            yield program
    permits = ground.wanted & permitting(engine.model).keys()
    ground.wanted -= permits
    yield from ground.anywhere()
    ground.wanted |= permits
    yield from ground.on(likely)
    yield from ground.on(further)
    yield from (ground.tentative[rule] for rule in sorted(ground.wanted & ground.tentative.keys()))


def build(
    spec: Spec,
    api: str,
    transports: Sequence[str],
    known: list[Program],
    spared: set[str],
    only: Callable[[str], bool] = lambda _: True,
) -> list[Program]:
    """The directed programs of one API profile, in the order of the specification's rules.

    A rule is searched under the first transport that has it, on a device that has the features which the rule asks for
    and no other, or, if no fixture is for just these, those of the fixture that asks for fewest more.  With ``only`` no
    rule but those is looked at, and what is known for the others is kept as it is.
    """
    order: dict[str, int] = {}
    made: list[Program] = []
    for transport in transports:
        first = not order
        whole = select(spec, api, transport, features(spec))
        own = [str(r) for r in whole.rules if str(r) not in order]
        order |= {rule: i for i, rule in enumerate(own, len(order))}
        groups: dict[tuple[str, ...], set[str]] = {(): set()} if first else {}
        for rule in filter(only, set(own) - spared):
            groups.setdefault(staged(needed(whole, rule), whole), set()).add(rule)
        for group, rules in groups.items():
            engine = Engine(Model(select(spec, api, transport, group)))
            found = witnesses(engine, programs.fixtures(), known, rules, only if first else lambda _: False)
            made += found if first else (replace(p, transport=(transport,)) for p in found)
    made += [
        replace(p, says=rule_text(select(spec, api, (*p.transport, transports[0])[0], p.feature), p.target) or p.says)
        for p in known
        if p.api == (api,) and p.target in order | {"": 0} and not only(p.target or p.name)
    ]
    return sorted(made, key=lambda p: (order.get(p.target, -1), p.name))


def staged(group: tuple[str, ...], spec: Spec) -> tuple[str, ...]:
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
