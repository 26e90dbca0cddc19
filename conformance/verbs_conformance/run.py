"""A conformance run: programs against one backend, verdicts on rules, a results file.

Three kinds of programs run, in this order: the directed witnesses of the selected rules, the regression programs,
and stateful programs that hypothesis draws until the budget is used up.  For a backend of two devices all but the
drawn ones are made over, where that is possible (``spread``); the others run on the first device alone.  Each
program's record is written as soon as it is known, so that whatever ends the run loses nothing.  The rules' verdicts
are made at the end:

* a rule that a failed program counts against (``verbs_reports.blame``) is ``fail``;
* a rule with a waiver is ``unexpected-pass`` if the deviation is gone, ``waived`` if it shows;
* a rule that only its outer set explained is ``deviation``;
* a rule that certainly fired is ``pass``;
* a rule for which ``unwitnessed.yaml`` gives a reason has the verdict that stands there;
* a rule that only another option of a stable choice can fire than those the backend takes is ``choice``;
* a rule whose programs fire it only on a device that does what this one has not shown (``device``) is ``choice``, and
  ``unsupported`` if the backend declares that it is no such device;
* else it is ``not-run``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib.metadata import version
from pathlib import Path

from verbs_adapters.contract import Backend, Hello
from verbs_conformance import acquittal, ruling
from verbs_conformance import program as programs
from verbs_conformance.device import read, suits
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement, shrink
from verbs_conformance.machine import Stateful
from verbs_conformance.program import Program, full_steps
from verbs_conformance.rerun import Again
from verbs_conformance.spread import Spread
from verbs_conformance.sweep import Sweep
from verbs_conformance.tally import Tally, failure, trouble
from verbs_conformance.waivers import Waiver
from verbs_conformance.waiving import Waiving
from verbs_reports import records as r
from verbs_reports.results import Writer
from verbs_reports.verdicts import Verdict, exit_code, worst
from verbs_spec import SPEC_VERSION

ROUNDS = 3
"""Schedules under which each directed and regression program runs."""

RESULTS = "results.jsonl"
"""The results file in the folder of a run."""

SHOWN = 5
"""Failing programs that are shrunk and written to files of their own; and as many that decided nothing."""

_ALWAYS = frozenset({Verdict.ERROR, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.CONSUMER_ERROR})
"""Verdicts of programs that count whatever the rules' verdicts are."""


@dataclass(slots=True)
class Settings:
    """What the command line decides about a run."""

    api: str
    transport: str
    seed: int = 1
    budget: float = 20.0
    """Seconds for stateful programs, which come after all others."""
    select: tuple[str, ...] = ()
    out: Path = Path("verbspec-results")
    strict: bool = False
    command: str = ""
    adapter: str = ""
    options: dict[str, str] = field(default_factory=dict)
    again: Again | None = None
    """What to run again of an earlier run; None for a run of its own."""
    rounds: int = ROUNDS
    waivers: tuple[Waiver, ...] = ()
    """Deviations that are accepted."""
    quick: bool = False
    """Only the shortest program of each rule, and what shows the waivers' deviations, once; more for a rule that these
    leave without a verdict."""
    perilous: bool = False
    """Also the programs that are known to crash a kernel, behind all others."""


class Run:
    """One run; ``notice`` is told of each program as it ends."""

    def __init__(
        self,
        engine: Engine,
        backend: Backend,
        hello: Hello,
        settings: Settings,
        notice: Callable[[Judgement, Tally], None] = lambda _done, _tally: None,
    ) -> None:
        self.engine = engine
        self.hello = hello
        self.settings = settings
        self.notice = notice
        self.tally = Tally()
        fixtures = programs.fixtures()
        self.spread = Spread(engine, fixtures) if hello.others else None
        self.alone: dict[str, str] = {}
        """The programs that ran on the first of several devices alone, each with the reason."""
        self.waiving = Waiving(settings.waivers, engine, backend, hello, fixtures) if settings.waivers else None
        self.judge = Judge(engine, self.waiving.recorder if self.waiving else backend, hello, fixtures)
        self.rules = [str(rule) for rule in engine.model.spec.rules if self._wants(str(rule))]
        self.note = ""
        self.began = time.monotonic()

    def _wants(self, rule: str) -> bool:
        again = self.settings.again
        return self._selected(rule) if again is None else rule in again.rules

    def _selected(self, name: str) -> bool:
        return not self.settings.select or (name != "" and any(fnmatchcase(name, p) for p in self.settings.select))

    def unmatched(self) -> list[str]:
        """The patterns of the selection that match neither a rule nor a program under these profiles."""
        s = self.settings
        names = [*map(str, self.engine.model.spec.rules)]
        names += [p.name for p in programs.shipped("programs") if p.under(self.engine.model.spec)]
        left = [p for p in s.select if not any(fnmatchcase(n, p) for n in names)]
        if left:
            sweep = Sweep(self.engine, self.judge.fixtures)
            left = [p for p in left if next(sweep.programs(partial(fnmatchcase, pat=p)), None) is None]
        return left

    def programs(self, *, quick: bool = False) -> list[Program]:
        """The directed and regression programs that this run wants, then the waivers' own that are not among them."""
        return self._wanted(short=quick or self.settings.quick)

    def _wanted(self, *, short: bool) -> list[Program]:
        s = self.settings
        found = [p for p in programs.shipped("programs") if self._is_for(p) and not p.peril]
        own = self.waiving.own() if self.waiving is not None else []
        names = {p.name for p in found}
        found += [p for p, _ in own if p.name not in names]
        if s.again is not None:
            return [p for p in found if p.name in s.again.names]
        wanted = [p for p in found if self._selected(p.target) or self._selected(p.name)]
        if short:
            wanted = self._shortest(wanted)
        names = {p.name for p in wanted}
        more = [p for p, rules in own if self._selected(p.name) or any(map(self._selected, rules))]
        return wanted + [p for p in more if p.name not in names]

    def perils(self) -> list[Program]:
        """The wanted programs that are known to crash a kernel, whether or not this run may make them."""
        found = [p for p in programs.shipped("programs") if p.peril and self._is_for(p)]
        if self.settings.again is not None:
            return [p for p in found if p.name in self.settings.again.names]
        return [p for p in found if self._selected(p.target) or self._selected(p.name)]

    def _is_for(self, program: Program) -> bool:
        """Whether a program can show anything of the backend: it is for its profiles and features, and for a device
        that this may be, by what it declares."""
        if not program.under(self.engine.model.spec):
            return False
        return not program.device or suits(self.engine, read(self.engine.model, program.device), self.hello)

    def _shortest(self, found: list[Program]) -> list[Program]:
        """For each rule the program with the fewest steps that is for it, its fixture's among them; a directed one if
        there is one."""
        found = sorted(found, key=lambda p: (p.kind != "directed", self.steps(p)))
        return list({p.target: p for p in reversed(found) if p.target}.values())[::-1]

    def steps(self, program: Program) -> int:
        """How many steps a program has, those of its fixture among them."""
        return sum(map(len, full_steps(program, self.judge.fixtures)))

    def planned(self, *, quick: bool = False) -> list[int]:
        """The steps of each program that will run, but for those that are drawn."""
        quick = quick or self.settings.quick
        rounds = 1 if quick else self.settings.rounds
        found = [self.steps(p) for r in range(rounds) for p in self._round(r, quick=quick)]
        if quick:
            return found
        again = self.settings.again.programs if self.settings.again is not None else ()
        return found + [self.steps(p) for p in (*self._sweep(), *(p for p, _ in again))]

    def _round(self, number: int, *, quick: bool = False) -> list[Program]:
        """The programs of one round: those for devices of one kind, which most backends are not, run in the first."""
        return [p for p in self.programs(quick=quick) if number == 0 or not p.device]

    @property
    def draws(self) -> bool:
        """Whether programs are drawn if none of the others fails."""
        s = self.settings
        return s.budget > 0 and not s.select and not s.quick and s.again is None

    def execute(self) -> int:
        """Run everything; the exit code.  Ctrl-C ends the run early and is noted in the footer."""
        s = self.settings
        s.out.mkdir(parents=True, exist_ok=True)
        with Writer(s.out / RESULTS, self.header()) as writer:
            try:
                self._all(writer)
            except KeyboardInterrupt:
                self.note = "interrupted by Ctrl-C"
            return self._finish(writer, self.note)

    def _all(self, writer: Writer) -> None:
        s = self.settings
        for program, seed in self.written():
            self._judge(writer, program, seed)
        if s.again is None and self.draws and not self.tally.failures:
            stateful = Stateful(self.judge, s.seed, s.budget, lambda: self.tally.verdicts[-1] is Verdict.WAIVED)
            for done in stateful.run():
                if self.spread is not None:
                    self.alone[done.program.name] = "drawn programs know one device"
                self._done(writer, done)

    def written(self) -> Iterator[tuple[Program, int]]:
        """All programs but those that are drawn, each with its seed; the perilous ones last."""
        s = self.settings
        for round_ in range(1 if s.quick else s.rounds):
            for program in self._round(round_):
                yield program, program.seed if program.seed is not None else s.seed + round_
        for program in self._sweep() if not s.quick else ():
            yield program, s.seed
        yield from self._further() if s.quick else ()
        for program, seed in s.again.programs if s.again is not None else ():
            if program.under(self.engine.model.spec):
                yield program, seed
        for program in self.perils() if s.perilous else ():
            yield program, s.seed

    def _further(self) -> Iterator[tuple[Program, int]]:
        """For each rule that the shortest programs have left without a verdict: its programs, under one schedule after
        the other, until one fires it."""
        s = self.settings
        undecided = {x.rule for x in self.rule_records() if x.verdict is Verdict.NOT_RUN}
        short = {p.name for p in self._wanted(short=True)}
        found = [p for p in self._wanted(short=False) if p.target in undecided]
        for round_, program in itertools.product(range(s.rounds), found):
            if not self.tally.fired.get(program.target) and (round_ or program.name not in short):
                yield program, program.seed if program.seed is not None else s.seed + round_

    def _judge(self, writer: Writer, program: Program, seed: int) -> None:
        """Run one program, on two devices if there are two and it can."""
        if self.spread is not None:
            program, alone = self.spread.place(program)
            if alone:
                self.alone[program.name] = alone
        self._done(writer, self.judge.run(program, seed))

    def _sweep(self) -> Iterator[Program]:
        again = self.settings.again
        wanted = self._selected if again is None else again.names.__contains__
        return Sweep(self.engine, self.judge.fixtures).programs(wanted)

    def _done(self, writer: Writer, done: Judgement) -> None:
        file = ""
        if self.waiving is not None:
            done = self.waiving.explain(done)
            self.waiving.note(done)
        if done.broken and len(self.tally.shown) < SHOWN and self._is_new(done):
            done = done if done.amended else shrink(self.judge, done)
            file = self._save(done)
            self.tally.shown.append((done, file))
        elif done.undecided and all(done.program.name != d.program.name for d, _ in self.tally.undecided):
            if len(self.tally.undecided) < SHOWN:
                file = self._save(done)
            self.tally.undecided.append((done, file))
        self.tally.add(done)
        self.judge.acquit(done)
        writer.write(self.record(done, file))
        self.notice(done, self.tally)

    def _is_new(self, done: Judgement) -> bool:
        suspect = done.refused.suspects[:1] if done.refused else (done.reason,)
        return all(suspect != ((d.refused.suspects[:1]) if d.refused else (d.reason,)) for d, _ in self.tally.shown)

    def _save(self, done: Judgement) -> str:
        name = done.program.name.replace("/", "_").replace(" ", "_")
        path = self.settings.out / "failures" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        s = self.settings
        kept = replace(
            done.program.whole(),
            seed=done.seed,
            api=(s.api,),
            transport=(s.transport,),
            feature=self.engine.model.spec.features,
            adapter=s.adapter,
            options=tuple(s.options.items()),
            passed=acquittal.evidence(done.refused.suspects, self.judge.passed) if done.refused else (),
        )
        path.write_text(kept.to_yaml(), encoding="utf-8")
        return str(path.relative_to(self.settings.out))

    # -- records ---------------------------------------------------------------------------------

    def header(self) -> r.Header:
        """The results file's first line."""

        s, h = self.settings, self.hello
        return r.Header(
            suite=_version(),
            spec=f"{SPEC_VERSION} {self.engine.model.spec.digest}",
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            command=s.command,
            adapter=r.Adapter(name=s.adapter, options=dict(s.options)),
            device=r.Device(name=h.name, version=h.version, device=h.device, firmware=h.firmware, kernel=h.kernel),
            api=s.api,
            transport=s.transport,
            seed=s.seed,
            features=self.engine.model.spec.features,
            capabilities=tuple(h.capabilities),
            limits=dict(h.limits),
            devices=1 + len(h.others),
        )

    def record(self, done: Judgement, file: str = "") -> r.Program:
        """The record of one program; steps are told only where there is something to see."""
        return r.Program(
            name=done.program.name,
            kind=done.program.kind if done.program.kind in {"stateful", "regression", "replay"} else "directed",  # type: ignore[arg-type]
            target=done.program.target,
            verdict=done.verdict,
            calls=done.calls,
            steps=tuple(done.lines[done.fixture_lines :]) if done.verdict != Verdict.PASS else (),
            fixture=done.program.fixture,
            fired=done.fired,
            possible=done.possible,
            unobserved=done.unobserved,
            belief=done.belief,
            failure=failure(done),
            trouble=trouble(done),
            reason=done.reason,
            waivers=done.waivers,
            seed=done.seed,
            file=file,
            alone=self.alone.get(done.program.name, ""),
        )

    def waiver_records(self) -> list[r.Waiver]:
        """What became of the waivers so far."""
        return self.waiving.records() if self.waiving is not None else []

    def rule_records(self) -> list[r.Rule]:
        """The verdict on each selected rule, and on those that a failed program counts against or a waiver is for."""
        found = ruling.rules(self.engine, self.hello, self.tally, self.rules, self.waiver_records())
        return [*found, *ruling.unsupported(self.engine, self.hello, self._wants)] if found or self.tally.ran else found

    def _finish(self, writer: Writer, note: str) -> int:
        verdicts: list[Verdict] = []
        rules = self.rule_records()
        judged: list[r.Choice | r.Waiver | r.Rule] = [*ruling.choices(self.engine, self.tally)]
        for found in (*judged, *self.waiver_records(), *rules):
            writer.write(found)
            verdicts.append(found.verdict)
        # programs that were selected without a rule speak for themselves
        verdicts += [v for v in self.tally.verdicts if v in _ALWAYS or not rules]
        if note:
            verdicts.append(Verdict.INCONCLUSIVE)
        code = exit_code(verdicts if rules or self.tally.ran or note else [], strict=self.settings.strict)
        counts: dict[Verdict, int] = {}
        for rule in rules:
            counts[rule.verdict] = counts.get(rule.verdict, 0) + 1
        t = self.tally
        writer.write(
            r.Footer(
                verdict=worst(verdicts, Verdict.NOT_RUN),
                exit_code=code,
                counts=counts,
                calls=t.calls,
                seconds=round(time.monotonic() - self.began, 3),
                programs=t.ran,
                largest_belief=t.belief,
                unobserved_share=round(t.unobserved / t.calls, 4) if t.calls else 0.0,
                note=note,
            )
        )
        return code


def _version() -> str:

    return version("verbspec")
