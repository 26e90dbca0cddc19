"""``verbspec spec check``: what is wrong with the specification and with the programs made for it.

The parts are run in this order, the cheap ones first:

    texts       citations, facts, released ids; what is declared and never used, states that nothing leads to
    programs    each names a rule that is there
    models      under every API, transport and set of features the rules can be put together and have types, and say
                something of each state of an object and each input
    runs        each rule has a program, or a reason; of each call that fails in one, some program shows a success; on
                the model, every directed program fires its rule, on its device for certain, and every regression
                program of a draft feature passes
    proofs      only with ``--prove``: cases of a family leave no hole and do not overlap, a rule is possible

What the last three found in order is kept until something that it hangs on changes, see :mod:`verbs_conformance.kept`:
models and runs as a whole under the bytes of the rules and the programs, so that nothing is done where nothing has
changed; each model under what the rules of its selection mean; each program under that, its own steps and those of its
fixtures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from verbs_conformance import cells
from verbs_conformance.build import fired_by_fixtures, limits
from verbs_conformance.device import Device
from verbs_conformance.directed import Directed, rule_text
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.imagined import Imagination
from verbs_conformance.kept import Kept, Meaning, key
from verbs_conformance.program import Program, full_steps
from verbs_reference.model import Model
from verbs_reference.proofs import prove
from verbs_reports.verdicts import Verdict
from verbs_spec import facts, lint, slugs, sources
from verbs_spec.document import Spec
from verbs_spec.errors import SpecError
from verbs_spec.profiles import features, select

TRANSPORT = "roce"
_PASSED = (Verdict.PASS, Verdict.CHOICE)
SCHEDULES = 48
"""So many schedules are tried before a program counts as one that does not fire its rule."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked."""

    spec: Spec
    facts: facts.Facts
    slugs: slugs.Slugs
    programs: tuple[Program, ...]
    fixtures: Mapping[str, Program]
    reasons: Iterable[str]
    """Rules that need no program."""
    unpassed: frozenset[str] = frozenset()
    """Programs that are known not to pass on the model."""
    kept: Kept = field(default_factory=Kept)
    meaning: Meaning = field(default_factory=Meaning)
    only: tuple[str, ...] = ()
    """Of APIs, and of transports, only these; all of a kind of which none is named."""

    _chosen: dict[tuple[str, str, tuple[str, ...]], Spec] = field(default_factory=dict)

    def chosen(self, api: str, transport: str, having: tuple[str, ...]) -> Spec:
        """What holds under an API and a transport with these features."""
        name = (api, transport, having)
        if name not in self._chosen:
            self._chosen[name] = select(self.spec, *name)
        return self._chosen[name]

    def of(self, kind: str) -> list[str]:
        """The names of the profiles of a kind."""
        found = [str(p.name) for p in self.spec.profiles.values() if p.kind == kind]
        return [name for name in found if name in self.only] or found


def problems(subject: Subject, proving: Iterable[str] | None = None) -> Iterator[str]:
    """One line for each thing that is wrong; ``proving`` are the patterns of what is to be proved, None for nothing."""
    yield from texts(subject)
    yield from programs(subject)
    yield from unless_kept(subject, _whole(subject), lambda: chain(models(subject), runs(subject)))
    if proving is not None:
        yield from proofs(subject, proving)


def unless_kept(subject: Subject, name: str, work: Callable[[], Iterable[str]]) -> Iterator[str]:
    """What is wrong by a check, which is made unless it is kept, and kept if it finds nothing."""
    if subject.kept.get(name) is None:
        found = list(work())
        if not found:
            subject.kept.put(name, True)
        yield from found


def _whole(subject: Subject) -> str:
    """The name of the check of all models and runs."""
    shipped = (*subject.programs, *subject.fixtures.values())
    spared = sorted(map(str, (*subject.reasons, "", *subject.unpassed)))
    return key("whole", subject.spec.digest, *subject.only, *spared, *(p.to_yaml() for p in shipped))


def texts(subject: Subject) -> Iterator[str]:
    """Citations, facts, ids, what is never used and what is never reached."""
    spec = subject.spec
    yield from sources.weak(spec)
    yield from facts.wrong(spec, subject.facts)
    yield from facts.overdue(spec, subject.facts)
    yield from slugs.wrong(spec, subject.slugs)
    yield from lint.unused(spec)
    yield from lint.unreached(spec)


def programs(subject: Subject) -> Iterator[str]:
    """Programs and reasons without a rule."""
    rules = subject.spec.rules
    yield from (f"unwitnessed.yaml names the rule {r}, which is not there" for r in subject.reasons if r not in rules)
    for program in subject.programs:
        if program.target and program.target not in rules:
            yield f"program {program.name} is for the rule {program.target}, which is not there"
    run = {p.name for p in subject.programs if p.feature}
    yield from (f"unpassed.yaml names the program {p}, which is none of a feature" for p in subject.unpassed - run)


def models(subject: Subject) -> Iterator[str]:
    """Whether the rules can be put together under every profile; an error of the specification says where not."""
    for api in subject.of("api"):
        for transport in subject.of("transport"):
            for having in dict.fromkeys((features(subject.spec), ())):
                chosen = subject.chosen(api, transport, having)
                told = transport in (TRANSPORT, subject.of("transport")[0]) and having == features(subject.spec)
                name = key("holes" if told else "model", subject.meaning.of(chosen))
                yield from unless_kept(subject, name, partial(_model, chosen, told))


def _model(chosen: Spec, told: bool) -> list[str]:
    """Put a model together, and tell its holes."""
    model = Model(chosen)
    return [f"{hole} under {chosen.selected[0]}" for hole in cells.holes(model)] if told and chosen.selected else []


def runs(subject: Subject) -> Iterator[str]:
    """Rules without a program, and programs that do not do what they were made for."""
    for api in subject.of("api"):
        standing = _standing(subject, api)
        whole = {t: subject.chosen(api, t, features(subject.spec)) for t in subject.of("transport")}
        for transport, chosen in whole.items():
            shown = {p.target for p in subject.programs if p.under(chosen)}
            have = shown | standing | set(subject.reasons)
            yield from (
                f"rule {r} has no program under {api}, {transport} and no reason in unwitnessed.yaml"
                for r in chosen.rules
                if r not in have
            )
            yield from (
                f"{call} fails in a program under {api}, {transport} and succeeds in none, so that nothing tells its "
                "causes from a verb that always fails: add a program for a way to succeed"
                for call in _uncontrolled(chosen, shown, have)
            )
        groups: dict[tuple[str, tuple[str, ...]], list[Program]] = {}
        for program in filter(_is_run, subject.programs):
            transport = next((t for t in (TRANSPORT, *whole) if t in whole and program.under(whole[t])), "")
            if transport in whole:
                groups.setdefault((transport, tuple(sorted(program.feature))), []).append(program)
        for (transport, having), group in groups.items():
            yield from _group(subject, (api, transport), having, group)


def _uncontrolled(chosen: Spec, shown: set[str], have: set[str]) -> Iterator[str]:
    """The calls of which programs show causes of failure and no program, nor a fixture, a success."""
    for name, call in chosen.calls.items():
        failing = any(r.cause is not None and str(r.id) in shown for r in call.rules)
        if failing and not any(r.cause is None and str(r.id) in have for r in call.rules):
            yield str(name)


def proofs(subject: Subject, patterns: Iterable[str]) -> Iterator[str]:
    """Holes, overlaps, rules that nothing can lead to and causes that others stand for, found by z3."""
    for api in subject.of("api"):
        model = Model(subject.chosen(api, TRANSPORT, features(subject.spec)))
        for result in prove(model, [f"{kind} {p}" for p in patterns for kind in ("partition", "possible", "needed")]):
            if result.verdict != "proved":
                about = f" ({', '.join(result.rules)})" if result.rules else ""
                yield f"{result.name} is {result.verdict} under {api}{about}"


def _is_run(program: Program) -> bool:
    return bool(program.target) or (program.kind == "regression" and bool(program.feature))


def _standing(subject: Subject, api: str) -> set[str]:
    """The rules that the fixtures of an API fire."""
    spec = subject.spec
    name = key(
        "fixtures",
        subject.meaning.of(subject.chosen(api, TRANSPORT, features(spec))),
        *_written(subject.fixtures.values()),
    )
    found = subject.kept.get(name)
    if found is None:
        found = sorted(fired_by_fixtures(spec, api, TRANSPORT, subject.fixtures))
        subject.kept.put(name, found)
    return set(found)


def _group(subject: Subject, profiles: tuple[str, str], having: tuple[str, ...], group: list[Program]) -> Iterator[str]:
    """What is wrong with the programs for one set of features."""
    known = set(map(str, subject.spec.profiles))
    for feature in (f for f in having if f not in known):
        yield f"program {group[0].name} needs the feature {feature}, which is not there"
    if not set(having) <= known:
        return
    chosen = subject.chosen(*profiles, having)
    for program in group:  # not kept: what a rule says is none of its meaning
        if program.kind == "directed" and program.target and program.says != rule_text(chosen, program.target):
            yield (
                f"program {program.name} does not say what its rule says under {_under(chosen)}; "
                f"run 'verbspec spec build --only {program.target}'"
            )
    name = key("runs", subject.meaning.of(chosen), *_written(subject.fixtures.values()))
    right = subject.kept.get(name) or []
    marks = [key("run", p.to_yaml(), str(p.name in subject.unpassed)) for p in group]
    left = [i for i, mark in enumerate(marks) if mark not in right]
    if left:
        found = list(_run(chosen, [group[i] for i in left], subject.fixtures, subject.unpassed))
        subject.kept.put(name, [*right, *(marks[i] for i, each in zip(left, found, strict=True) if not each)])
        yield from filter(None, found)


def _run(
    chosen: Spec, group: Iterable[Program], fixtures: Mapping[str, Program], unpassed: frozenset[str]
) -> Iterator[str]:
    """What is wrong with each program; nothing for one that is right."""
    engine = Engine(Model(chosen))
    standing = min(
        (p for p in fixtures.values() if p.under(chosen)), key=lambda p: len(sum(full_steps(p, fixtures), ()))
    )
    device = limits(engine, fixtures)
    runner = Directed(engine, standing, fixtures, device)
    for program in group:
        try:
            yield _wrong(runner, program, fixtures, device, program.name in unpassed)
        except (BadProgram, SpecError) as e:
            yield f"program {program.name} cannot be run under {_under(chosen)}: {e}"


def _wrong(
    runner: Directed, program: Program, fixtures: Mapping[str, Program], device: dict[str, Any], fails: bool
) -> str:
    """What is wrong with a program, which is known to fail or not."""
    chosen = runner.model.spec
    if program.target:
        if program.target not in chosen.rules or _does(runner, program, fixtures, device):
            return ""
        return (
            f"program {program.name} does not fire its rule {program.target} under {_under(chosen)} on the model; "
            "mend the rule, or search the program anew with 'verbspec spec build --only'"
        )
    verdict = runner.judge().run(program, 1).verdict
    if (verdict in _PASSED) is not fails:
        return ""
    passes = "passes; take it off unpassed.yaml" if fails else f"does not pass: {verdict}"
    return f"program {program.name}, on the model under {_under(chosen)}, {passes}"


def _under(chosen: Spec) -> str:
    return ", ".join((chosen.selected or ("",))[:1] + chosen.features)


def _does(runner: Directed, program: Program, fixtures: Mapping[str, Program], limits: dict[str, Any]) -> bool:
    """Whether a program does what it is for: fires its rule, on its own device for certain, on any in some schedule."""
    return runner.fires(program) if program.device else _fires(runner, program, fixtures, limits)


def _fires(runner: Directed, program: Program, fixtures: Mapping[str, Program], limits: dict[str, Any]) -> bool:
    """Whether some schedule of the model fires the program's rule, whatever the open choices are."""
    steps = sum(full_steps(program, fixtures), ())
    choices = {name: options for name, (options, _) in runner.model.voc.choices.items()}
    for seed in range(SCHEDULES):
        chance = random.Random(seed)  # noqa: S311 - schedules, not secrets
        options = {name: chance.choice(list(each)) for name, each in choices.items()} if seed else {}
        world = runner.world = Imagination(runner.model, seed, limits, Device(options))
        names: dict[str, tuple[str, int]] = {}
        for step in steps:
            fired = runner.perform(step, names)
            if seed:
                world.wander(seed)
            if program.target in fired:
                return True
    return False


def _written(group: Iterable[Program]) -> list[str]:
    return [p.to_yaml() for p in group]
