"""What the waivers of a run cover, and which of them are out of date.

Theory of operation
-------------------
A waiver must hide nothing but its own deviation, so a failing program is not excused because its rule is suspected.
The answers that were recorded are judged again by the specification *amended* by the waiver's ``instead``.  Only if the
refused answer is explained then, is the waiver its cause.  The program is then run again, and judged by the amended
specification to its end: what is wrong behind the deviation still fails, and the next waiver may be needed there.  If
no waiver alone explains an answer, those that are left are tried together, and those that are not needed left out.

A waiver without ``instead`` does not say what the backend does.  It covers its own programs alone, and only if its rule
is among the suspects; what is behind the refused answer is then not judged.

Each waiver that a run is about has its own programs run.  If one passes whenever it runs, what it shows is gone: the
waiver is an ``unexpected-pass``, which fails the run until the program, or the waiver, is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from verbs_adapters.contract import Answer, Backend, Hello, Trouble
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadWaivers
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.playback import Playback, Recorder
from verbs_conformance.program import Program
from verbs_conformance.waivers import Waiver, batches, model
from verbs_reports import records as r
from verbs_reports.text import plural
from verbs_reports.verdicts import Verdict
from verbs_spec.errors import listed

Answers = Sequence[Answer | Trouble]

HELD = frozenset({Verdict.PASS, Verdict.DEVIATION, Verdict.CONSUMER_ERROR})
"""Verdicts with which nothing is wrong behind a deviation.  A program that was to be refused may break a duty of the
consumer where it goes on as if it had been: then it ends there, and is no failure."""


@dataclass(slots=True)
class Use:
    """What became of a waiver: programs that it covers, and the verdicts on its own."""

    covered: set[str] = field(default_factory=set)
    own: dict[str, list[Verdict]] = field(default_factory=dict)


class Waiving:
    """The waivers that apply to one backend under the profiles of an engine."""

    def __init__(
        self,
        waivers: Iterable[Waiver],
        engine: Engine,
        backend: Backend,
        hello: Hello,
        fixtures: Mapping[str, Program],
    ) -> None:
        self.engine = engine
        self.hello = hello
        self.fixtures = fixtures
        self.recorder = Recorder(backend)
        spec = engine.model.spec
        api, transport = spec.selected or ("", "")
        given = list(waivers)
        self.waivers = [w for w in given if w.rule in spec.rules and w.applies(hello, api, transport)]
        self.others = len(given) - len(self.waivers)
        self.programs: dict[str, list[Program]] = {}
        for each in self.waivers:
            self.programs[each.name] = each.runs(api, transport)
            if not self.programs[each.name]:
                raise BadWaivers(
                    f"{each.programs[0].where}: waiver {each.name} applies to {hello.name} ({hello.device}), but its "
                    f"program {listed(each.programs)} is not for {api}, {transport}: name one that is, or let 'for' "
                    "say which api or transport it is for"
                )
        self.uses = {str(w.name): Use() for w in self.waivers}
        self._engines: dict[frozenset[str], Engine] = {}
        together = batches(self.waivers)
        if len(together) > 1:
            first, again = next((a, b) for a in together[0] for b in together[1] if a.rule == b.rule)
            raise BadWaivers(
                f"{again.name.where}: waivers {first.name} and {again.name} both apply to {hello.name} "
                f"({hello.device}) and both say what is done instead of {first.rule}: make one of the two, or let "
                "their 'for' differ"
            )
        if together:
            self._engine(together[0])

    # -- covering --------------------------------------------------------------------------------

    def explain(self, done: Judgement) -> Judgement:
        """The judgement, ``waived`` if waivers cover the failure; what fails behind them otherwise."""
        made, used, ended = done, list[Waiver](), False
        while made.refused is not None and not ended:
            more = self.covering(made, list(self.recorder.answers), used)
            if not more:
                break
            used += more
            ended = not all(w.instead for w in more)
            if not ended:
                made = self._judge(self.recorder, used).run(done.program, done.seed)
        if not used:
            return done
        for each in used:
            self.uses[each.name].covered.add(done.program.name)
        names = {str(w.name): str(w.rule) for w in used}
        if not ended and made.verdict not in HELD:
            behind = f"behind what {' and '.join(names)} {'covers' if len(names) == 1 else 'cover'}"
            return replace(made, amended=True, reason=f"{made.reason}; {behind}" if made.reason else behind)
        return replace(
            done,
            verdict=Verdict.WAIVED,
            waivers=names,
            fired={rule: times for rule, times in made.fired.items() if rule not in names.values()},
            choices=made.choices,
            deviations=made.deviations,
            reason="waived: " + "; ".join(f"{w.name}: {w.reason}" for w in used),
        )

    def covering(self, done: Judgement, answers: Answers, used: Sequence[Waiver] = ()) -> list[Waiver]:
        """The waivers that explain a refused answer, besides those in use already; none if there is no such."""
        suspects = done.suspects
        left = [w for w in self.waivers if w not in used]
        left.sort(key=lambda w: (not self._is_own(w, done), w.rule not in suspects))
        for each in left:
            if self._explains(done, answers, used, [each]):
                return [each]
        needed = [w for w in left if w.instead]
        if len(needed) < 2 or not self._explains(done, answers, used, needed):
            return []
        for each in reversed(tuple(needed)):
            fewer = [w for w in needed if w is not each]
            if self._explains(done, answers, used, fewer):
                needed = fewer
        return needed

    def _explains(self, done: Judgement, answers: Answers, used: Sequence[Waiver], more: Sequence[Waiver]) -> bool:
        """Whether the amended specification explains every answer that was recorded."""
        if not all(w.instead for w in more):
            return self._is_own(more[0], done) and done.refused is not None and more[0].rule in done.refused.suspects
        playback = Playback(self.hello)
        playback.answers = list(answers)
        judged = self._judge(playback, [*used, *more]).run(done.program, done.seed)
        # behind the last answer the record ends, which is a trouble, or the consumer may not go on
        ended = judged.verdict in HELD or judged.trouble is not None
        return ended and playback.exhausted

    def _judge(self, backend: Backend, used: Sequence[Waiver]) -> Judge:
        return Judge(self._engine(used), backend, self.hello, self.fixtures)

    def _engine(self, used: Sequence[Waiver]) -> Engine:
        key = frozenset(str(w.name) for w in used)
        if key not in self._engines:
            self._engines[key] = Engine(model(self.engine.model.spec, used), self.engine)
        return self._engines[key]

    def _is_own(self, waiver: Waiver, done: Judgement) -> bool:
        return done.program.name in waiver.programs

    def own(self) -> list[tuple[Program, list[str]]]:
        """The programs of the waivers, each with the rules that it is about."""
        found: dict[str, tuple[Program, list[str]]] = {}
        for each in self.waivers:
            for program in self.programs[each.name]:
                found.setdefault(program.name, (program, []))[1].append(str(each.rule))
        return list(found.values())

    # -- what is out of date ---------------------------------------------------------------------

    def note(self, done: Judgement) -> None:
        """Take note of a judgement on a waiver's own program."""
        for each in self.waivers:
            if self._is_own(each, done):
                self.uses[each.name].own.setdefault(done.program.name, []).append(done.verdict)

    def records(self) -> list[r.Waiver]:
        """The waivers whose programs ran or that cover something, each with its verdict."""
        made = []
        for each in self.waivers:
            use = self.uses[each.name]
            if use.own or use.covered:
                verdict, note = self._verdict(each, use)
                made.append(
                    r.Waiver(
                        waiver=str(each.name),
                        rule=str(each.rule),
                        program=", ".join(each.programs),
                        verdict=verdict,
                        covered=len(use.covered),
                        instead=_told(each.instead),
                        reason=each.reason,
                        evidence=each.evidence,
                        note=note,
                    )
                )
        return made

    def _verdict(self, waiver: Waiver, use: Use) -> tuple[Verdict, str]:
        """That of the worst of its programs."""
        found = [_shown(waiver, name, verdicts, name in use.covered) for name, verdicts in use.own.items()]
        return max(found, key=lambda each: each[0].severity, default=(Verdict.WAIVED, ""))


def _shown(waiver: Waiver, program: str, verdicts: Sequence[Verdict], covered: bool) -> tuple[Verdict, str]:
    """Whether one of a waiver's own programs shows what the waiver says."""
    remedy = f"remove the waiver at {waiver.name.where}"
    if len(waiver.programs) > 1:
        remedy = f"remove the program from the waiver at {waiver.name.where}, and from 'instead' what it showed"
    if covered:
        return Verdict.WAIVED, ""
    if any(v in {Verdict.FAIL, Verdict.ERROR} for v in verdicts):
        return Verdict.FAIL, f"{program} fails in another way than the waiver says"
    if Verdict.WAIVED in verdicts:
        return Verdict.UNEXPECTED_PASS, f"{program} shows other waivers' deviations only; {remedy}"
    if any(v in {Verdict.PASS, Verdict.DEVIATION} for v in verdicts):
        return (
            Verdict.UNEXPECTED_PASS,
            f"the deviation is gone: {program} passes ({plural(len(verdicts), 'run')}); {remedy}",
        )
    return Verdict.INCONCLUSIVE, f"{program} decided nothing"


def _told(instead: Mapping[str, object]) -> dict[str, str]:
    return {k: ", ".join(map(str, v)) if isinstance(v, tuple) else str(v).strip() for k, v in instead.items()}
