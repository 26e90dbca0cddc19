"""A conformance run: programs against one backend, verdicts on rules, a results file.

Three kinds of programs run, in this order: the directed witnesses of the selected rules, the regression programs,
and stateful programs that hypothesis draws until the budget is used up.  Each program's record is written as soon
as it is known, so that whatever ends the run loses nothing.  The rules' verdicts are made at the end:

* a rule that a failed program counts against (``verbs_reports.blame``) is ``fail``;
* a rule that only its outer set explained is ``deviation``;
* a rule that certainly fired is ``pass``;
* a rule for which ``unwitnessed.yaml`` gives a reason for this backend has the verdict that stands there;
* a rule that only another option of a stable choice can fire than those the backend takes is ``choice``;
* else it is ``not-run``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib.metadata import version
from pathlib import Path

from verbs_adapters.contract import Backend, Hello
from verbs_conformance import acquittal
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge, Judgement, shrink
from verbs_conformance.machine import Stateful
from verbs_conformance.program import Program
from verbs_conformance.rerun import Again
from verbs_conformance.session import Engine
from verbs_conformance.sweep import Sweep
from verbs_conformance.unwitnessed import Reason, reasons
from verbs_reference.options import barring
from verbs_reports import records as r
from verbs_reports.blame import counts_against
from verbs_reports.results import Writer
from verbs_reports.text import plural
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


@dataclass(slots=True)
class Tally:
    """What the run has found out so far."""

    fired: dict[str, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)
    failures: dict[str, list[Judgement]] = field(default_factory=dict)
    deviations: dict[str, int] = field(default_factory=dict)
    choices: dict[str, set[str]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    calls: int = 0
    unobserved: int = 0
    belief: int = 1
    stateful_calls: int = 0
    stateful_unobserved: int = 0
    ran: int = 0
    shown: list[tuple[Judgement, str]] = field(default_factory=list)
    undecided: list[tuple[Judgement, str]] = field(default_factory=list)
    """The first judgement of each program that says nothing of the backend, and its file."""

    def add(self, done: Judgement) -> None:
        """Count one program."""
        self.ran += 1
        self.calls += done.calls
        self.unobserved += done.unobserved
        if done.program.kind == "stateful":
            self.stateful_calls += done.calls - done.fixture_calls
            self.stateful_unobserved += done.unobserved - done.fixture_unobserved
        self.belief = max(self.belief, done.belief)
        self.verdicts.append(done.verdict)
        for rule, count in done.fired.items():
            self.fired[rule] = self.fired.get(rule, 0) + count
            self.programs[rule] = self.programs.get(rule, 0) + 1
        for rule, count in done.deviations.items():
            self.deviations[rule] = self.deviations.get(rule, 0) + count
        for name, left in done.choices.items():
            self.choices.setdefault(name, set(left)).intersection_update(left)
        rule = blamed(done)
        if rule:
            self.failures.setdefault(rule, []).append(done)


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
        self.judge = Judge(engine, backend, hello, programs.fixtures())
        self.rules = [str(rule) for rule in engine.model.spec.rules if self._wants(str(rule))]
        self.note = ""
        self.began = time.monotonic()

    def _wants(self, rule: str) -> bool:
        again = self.settings.again
        return self._selected(rule) if again is None else rule in again.rules

    def _selected(self, name: str) -> bool:
        return not self.settings.select or any(fnmatchcase(name, p) for p in self.settings.select)

    def unmatched(self) -> list[str]:
        """The patterns of the selection that match neither a rule nor a program under these profiles."""
        s = self.settings
        names = [*map(str, self.engine.model.spec.rules)]
        names += [p.name for p in programs.shipped("programs") if p.applies(s.api, s.transport)]
        left = [p for p in s.select if not any(fnmatchcase(n, p) for n in names)]
        if left:
            sweep = Sweep(self.engine, self.judge.fixtures)
            left = [p for p in left if next(sweep.programs(partial(fnmatchcase, pat=p)), None) is None]
        return left

    def programs(self) -> list[Program]:
        """The directed and regression programs that this run wants."""
        s = self.settings
        found = [p for p in programs.shipped("programs") if p.applies(s.api, s.transport)]
        if s.again is not None:
            return [p for p in found if p.name in s.again.names]
        return [p for p in found if self._selected(p.target) or self._selected(p.name)]

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
        for round_ in range(s.rounds):
            for program in self.programs():
                seed = program.seed if program.seed is not None else s.seed + round_
                self._done(writer, self.judge.run(program, seed))
        for program in self._sweep():
            self._done(writer, self.judge.run(program, s.seed))
        if s.again is not None:
            for program, seed in s.again.programs:
                if program.applies(s.api, s.transport):
                    self._done(writer, self.judge.run(program, seed))
        elif s.budget > 0 and not self.tally.failures and not s.select:
            stateful = Stateful(self.judge, s.seed, s.budget)
            for done in stateful.run():
                self._done(writer, done)

    def _sweep(self) -> Iterator[Program]:
        again = self.settings.again
        wanted = self._selected if again is None else again.names.__contains__
        return Sweep(self.engine, self.judge.fixtures).programs(wanted)

    def _done(self, writer: Writer, done: Judgement) -> None:
        file = ""
        if done.broken and len(self.tally.shown) < SHOWN and self._is_new(done):
            done = shrink(self.judge, done)
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
            done.program,
            seed=done.seed,
            api=(s.api,),
            transport=(s.transport,),
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
            capabilities=tuple(h.capabilities),
            limits=dict(h.limits),
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
            trouble=_trouble(done),
            reason=done.reason,
            seed=done.seed,
            file=file,
        )

    def _finish(self, writer: Writer, note: str) -> int:
        verdicts: list[Verdict] = []
        for choice in self._choices():
            writer.write(choice)
            verdicts.append(choice.verdict)
        rules = self.rule_records()
        for rule in rules:
            writer.write(rule)
            verdicts.append(rule.verdict)
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

    def rule_records(self) -> list[r.Rule]:
        """The verdict on each selected rule, and on those that a failed program counts against."""
        known = reasons()
        made = []
        for name in map(str, self.engine.model.spec.rules):
            if name not in self.rules and name not in self.tally.failures:
                continue
            rule = self.engine.model.spec.rules[name]
            verdict, reason = self._verdict(str(name), known)
            made.append(
                r.Rule(
                    rule=str(name),
                    object=str(name).split("/", maxsplit=1)[0],
                    level=rule.level,
                    status=rule.status,
                    says=" ".join(str(rule.says).split()),
                    sources=tuple(str(x) for x in rule.sources),
                    verdict=verdict,
                    fired=self.tally.fired.get(name, 0),
                    programs=self.tally.programs.get(name, 0),
                    reason=reason,
                )
            )
        return made

    def _verdict(self, rule: str, known: Mapping[str, Reason]) -> tuple[Verdict, str]:
        failed = self.tally.failures.get(rule)
        if failed:
            return (
                Verdict.FAIL,
                f"{plural(len(failed), 'failing program')} {'counts' if len(failed) == 1 else 'count'} against it, "
                f"first {failed[0].program.name}",
            )
        if rule in self.tally.deviations:
            return (
                Verdict.DEVIATION,
                f"{self.tally.deviations[rule]} times a result that the rule allows and does not prefer",
            )
        if self.tally.fired.get(rule):
            return Verdict.PASS, ""
        if rule in known and known[rule].applies(self.hello.capabilities):
            return known[rule].verdict, known[rule].text
        choice = barring(self.engine.model, rule, self.tally.choices)
        if choice:
            options = " or ".join(sorted(self.tally.choices[choice]))
            return (
                Verdict.CHOICE,
                f"The device takes {options} of the choice {choice}, which the rule is not about.",
            )
        return Verdict.NOT_RUN, "no program fired it for certain"

    def _choices(self) -> list[r.Choice]:
        made = []
        for name, (known, stable) in self.engine.model.voc.choices.items():
            taken = tuple(o for o in known if o in self.tally.choices.get(name, set()))
            empty = stable and name in self.tally.choices and not taken
            made.append(
                r.Choice(
                    choice=name,
                    options=known,
                    taken=taken,
                    stable=stable,
                    verdict=Verdict.FAIL if empty else Verdict.CHOICE,
                )
            )
        return made


def blamed(done: Judgement) -> str:
    """The rule that a failed program counts against."""
    return counts_against(done.program.target, done.suspects)


def failure(done: Judgement) -> r.Failure | None:
    """What a program's record says of the step that nothing explains."""
    if done.refused is None or done.failed_step is None:
        return None
    rule = blamed(done) or "no rule"
    return r.Failure(
        step=max(len(done.lines) - done.fixture_lines, 1),
        action=str(done.failed_step),
        seen=done.lines[-1].rsplit(" -> ", 1)[-1],
        allowed=done.allowed,
        suspects=done.suspects,
        message=f"no rule explains what {done.failed_step.call} returned; this counts against {rule}",
    )


def _trouble(done: Judgement) -> r.Trouble | None:
    t = done.trouble
    return None if t is None else r.Trouble(kind=t.kind, whose=t.whose, message=t.message, evidence=t.evidence)


def _version() -> str:

    return version("verbspec")
