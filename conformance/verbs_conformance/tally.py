"""What a run has counted so far, and what a failed program counts against."""

from __future__ import annotations

from dataclasses import dataclass, field

from verbs_conformance.judge import Judgement
from verbs_reports import records as r
from verbs_reports.blame import counts_against
from verbs_reports.verdicts import Verdict


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
    given_up: int = 0
    ran: int = 0
    shown: list[tuple[Judgement, str]] = field(default_factory=list)
    waived: dict[str, list[Judgement]] = field(default_factory=dict)
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
            self.given_up += done.given_up
        self.belief = max(self.belief, done.belief)
        self.verdicts.append(done.verdict)
        for rule, count in done.fired.items():
            self.fired[rule] = self.fired.get(rule, 0) + count
            self.programs[rule] = self.programs.get(rule, 0) + 1
        for rule, count in done.deviations.items():
            self.deviations[rule] = self.deviations.get(rule, 0) + count
        for name, left in done.choices.items():
            self.choices.setdefault(name, set(left)).intersection_update(left)
        if done.verdict is Verdict.WAIVED:
            for rule in dict.fromkeys(done.waivers.values()):
                self.waived.setdefault(rule, []).append(done)
        elif rule := blamed(done):
            self.failures.setdefault(rule, []).append(done)


def blamed(done: Judgement) -> str:
    """The rule that a failed program counts against."""
    return counts_against(done.program.target, done.suspects)


def failure(done: Judgement) -> r.Failure | None:
    """What a program's record says of the step that nothing explains."""
    if done.refused is None or done.failed_step is None:
        return None
    rule = next(iter(done.waivers.values()), "") or blamed(done) or "no rule"
    return r.Failure(
        step=max(len(done.lines) - done.fixture_lines, 1),
        action=str(done.failed_step),
        seen=done.lines[-1].rsplit(" -> ", 1)[-1],
        allowed=done.allowed,
        suspects=done.suspects,
        message=f"no rule explains what {done.failed_step.call} returned; this counts against {rule}",
    )


def trouble(done: Judgement) -> r.Trouble | None:
    t = done.trouble
    return None if t is None else r.Trouble(kind=t.kind, whose=t.whose, message=t.message, evidence=t.evidence)
