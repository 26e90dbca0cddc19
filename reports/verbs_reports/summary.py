"""Summary: what a report says, before any format says how it looks.

A pure function of :class:`~verbs_reports.results.Results`.  Two decisions are made here, once for all
formats.

*What a truncated run says of a rule* that has no record.  The rule that a broken program counts against gets
that program's verdict: one cause, one failure.  Everything else is ``inconclusive``, also a rule that
fired and held, since the programs that were to come might have broken it.

*Whom a footer may contradict.*  Nobody: where it is milder than the records, the worse counts, and a
notice says so.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Final

import msgspec

from verbs_reports.blame import counts_against
from verbs_reports.results import Program, Results
from verbs_reports.text import plural
from verbs_reports.verdicts import BROKEN, Verdict, worst

TRUNCATED: Final = "TRUNCATED: the run did not end; what follows is what it had obtained"


_HARMLESS: Final = frozenset({Verdict.PASS, Verdict.CHOICE})

CONTEXT: Final = 20
"""How many steps before the failing one a report shows at once."""


class RuleLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says of one rule.

    ``derived``: there is no rule record, the line is concluded from programs; then what only the
    specification knows (level, sentence, sources) is empty.
    """

    rule: str
    object: str
    level: str
    status: str
    says: str
    sources: tuple[str, ...]
    verdict: Verdict
    fired: int
    programs: int
    reason: str
    derived: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a program; ``failing`` is the step that failed, ``after`` all that follow it."""

    number: int
    text: str
    failing: bool = False
    after: bool = False


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that the formats share.

    ``alarms`` are to be shown first and loud, ``notices`` beside the verdict.  ``counts`` holds the
    verdicts that occur among ``rules``, worst first.  ``explained`` are the programs that show
    something, worst first; ``silent`` the others that did not pass.
    """

    verdict: Verdict
    headline: str
    alarms: tuple[str, ...]
    notices: tuple[str, ...]
    counts: dict[Verdict, int]
    rules: tuple[RuleLine, ...]
    explained: tuple[Program, ...]
    silent: tuple[Program, ...]

    @property
    def objects(self) -> dict[str, tuple[RuleLine, ...]]:
        """The rules by object, the worst first; objects in the order of their first rule."""
        groups: dict[str, list[RuleLine]] = {}
        for line in self.rules:
            groups.setdefault(line.object, []).append(line)
        return {name: _worst_first(lines) for name, lines in groups.items()}

    @property
    def not_pass(self) -> tuple[RuleLine, ...]:
        """The rules that are not ``pass``, worst first."""
        return _worst_first([line for line in self.rules if line.verdict is not Verdict.PASS])


def summarize(results: Results) -> Summary:
    """Decide what a report of these results says.  Never raises."""
    rules = [RuleLine(**msgspec.structs.asdict(rule)) for rule in results.rules]
    if results.truncated:
        rules += _derived(results)
    counted = Counter(line.verdict for line in rules)
    counts = {verdict: counted[verdict] for verdict in Verdict if counted[verdict]}
    ranked = sorted(results.programs, key=lambda program: -program.verdict.severity)
    explained = tuple(program for program in ranked if _shows(program))
    return Summary(
        verdict=results.verdict,
        headline=_headline(counts, results),
        alarms=_alarms(results),
        notices=_notices(results, rules, counts),
        counts=counts,
        rules=tuple(rules),
        explained=explained,
        silent=tuple(p for p in ranked if not _shows(p) and p.verdict not in _HARMLESS),
    )


def blamed(program: Program) -> str:
    """Give the id of the rule that a program speaks about: that of the waiver that covers it, else see
    :mod:`verbs_reports.blame`; or its target, or ``""``."""
    if program.waivers:
        return next(iter(program.waivers.values()))
    suspects = program.failure.suspects if program.failure is not None else ()
    return counts_against(program.target, suspects) or program.target


def steps_of(program: Program) -> tuple[Step, ...]:
    """Give the steps of a program, numbered from 1.

    The failing step may not be among its lines (the call was never answered); then its action ends them.
    """
    failing = program.failure.step if program.failure is not None else 0
    steps = [
        Step(number=number, text=text, failing=number == failing, after=0 < failing < number)
        for number, text in enumerate(program.steps, 1)
    ]
    if program.failure is not None and failing > len(steps):
        steps.append(Step(number=failing, text=program.failure.action, failing=True))
    return tuple(steps)


def replay_command(program: Program) -> str:
    """Give the command that runs one program again, from the folder of the results; ``""`` without a file.

    The file holds the adapter and its options, the profiles and the seed.
    """
    return shlex.join(["verbspec", "replay", program.file]) if program.file else ""


def facts_of(results: Results) -> dict[str, dict[str, str]]:
    """Give what is to be known of the device, the profile and the run: group, name, value; no empty ones."""
    header, device, footer = results.header, results.header.device, results.footer
    options = " ".join(f"{key}={value}" for key, value in header.adapter.options.items())
    groups = {
        "Device": {
            "backend": f"{device.name} {device.version}".strip(),
            "device": device.device,
            "firmware": device.firmware,
            "kernel": device.kernel,
            "adapter": header.adapter.name,
            "options": options,
        },
        "Judged under": {
            "API": header.api,
            "transport": header.transport,
            "features": ", ".join(header.features),
            "specification": header.spec,
            "suite": f"verbspec {header.suite}",
        },
        "Run": {
            "started": header.started,
            "took": "" if footer is None else f"{footer.seconds:.1f} s",
            "exit code": "none: it did not end" if footer is None else str(footer.exit_code),
            "programs": str(len(results.programs) if footer is None else footer.programs),
            "devices": devices(results),
            "calls": str(sum(program.calls for program in results.programs) if footer is None else footer.calls),
            "largest belief": "" if footer is None else str(footer.largest_belief),
            "taken in flight": "" if footer is None else f"{footer.unobserved_share:.0%} of the steps",
            "seed": str(header.seed),
        },
    }
    return {group: {name: value for name, value in facts.items() if value} for group, facts in groups.items()}


def devices(results: Results) -> str:
    """Of a backend with several devices, how many programs ran on them and why others did not; else nothing."""
    if results.header.devices == 1:
        return ""
    reasons = Counter(program.alone for program in results.programs)
    both = f"{plural(reasons.pop('', 0), 'program')} ran on {results.header.devices} devices"
    alone = "; ".join(f"{number}: {reason}" for reason, number in reasons.most_common())
    return f"{both}, {reasons.total()} on the first alone ({alone})" if alone else both


def _worst_first(lines: list[RuleLine]) -> tuple[RuleLine, ...]:
    return tuple(sorted(lines, key=lambda line: -line.verdict.severity))


def _shows(program: Program) -> bool:
    return program.failure is not None or program.trouble is not None or program.verdict in BROKEN


def _headline(counts: dict[Verdict, int], results: Results) -> str:
    total = sum(counts.values())
    rules = f"{plural(total, 'rule')}: {_numbers(counts)}" if total else "No rule was judged"
    chosen = Counter(choice.verdict for choice in results.choices)
    choices = {verdict: chosen[verdict] for verdict in Verdict if chosen[verdict]}
    # As long as every choice is merely recorded there is nothing to say of them here.
    return f"{rules}; choices: {_numbers(choices)}" if choices.keys() - _HARMLESS else rules


def _numbers(counts: dict[Verdict, int]) -> str:
    return ", ".join(f"{number} {verdict}" for verdict, number in counts.items())


def _alarms(results: Results) -> tuple[str, ...]:
    if not results.truncated:
        return ()
    half = " (its last line was half written and is left out)" if results.half_line else ""
    return (TRUNCATED + half + ".",)


def _notices(results: Results, rules: list[RuleLine], counts: dict[Verdict, int]) -> tuple[str, ...]:
    notices = []
    footer = results.footer
    if derived := sum(line.derived for line in rules):
        notices.append(
            f"{plural(derived, 'rule line')} concluded from the programs: the run stopped before it judged the rules."
        )
    if footer is not None:
        if footer.note:
            notices.append(footer.note)
        if not rules:
            what = "No rule was selected, only programs." if results.programs else "Nothing was selected."
            notices.append(what)
        if footer.verdict is not results.verdict:
            notices.append(
                f"The footer says {footer.verdict}, the records say {results.verdict}; the worse counts. "
                "This is a bug in what wrote the file."
            )
        if {verdict: number for verdict, number in footer.counts.items() if number} != counts:
            notices.append("The footer counts the rules otherwise than the records, which are counted here.")
    broken = sum(program.verdict in BROKEN for program in results.programs)
    if broken and results.verdict not in BROKEN:
        notices.append(f"{plural(broken, 'program')} failed, although no rule did: see the programs below.")
    return tuple(notices)


def _derived(results: Results) -> list[RuleLine]:
    """Conclude lines for the rules that programs speak of and that have no record."""
    known = {rule.rule for rule in results.rules}
    named: dict[str, list[Program]] = {}
    for program in results.programs:
        suspects = program.failure.suspects if program.failure is not None else ()
        for rule in dict.fromkeys((*suspects, program.target, *program.fired, *program.possible)):
            if rule and rule not in known:
                named.setdefault(rule, []).append(program)
    return [_line(rule, named[rule]) for rule in sorted(named)]


def _line(rule: str, programs: list[Program]) -> RuleLine:
    """Conclude one line; see the module's text for the decision."""
    fired = [program for program in programs if program.fired.get(rule)]
    times = sum(program.fired[rule] for program in fired)
    broken = [program for program in programs if _shows(program) and blamed(program) == rule]
    if broken:
        verdict = worst(program.verdict for program in broken)
        first = next(program for program in broken if program.verdict is verdict)
        reason = (first.failure and first.failure.message) or first.reason or f"see program {first.name}"
    else:
        verdict = Verdict.INCONCLUSIVE
        suspected = sum(p.failure is not None and rule in p.failure.suspects for p in programs)
        held = f"fired in {plural(len(fired), 'program')}" if fired else "had not certainly fired"
        doubt = f", suspected in {plural(suspected, 'program')}" if suspected else ""
        reason = f"{held}{doubt} when the run stopped"
    return RuleLine(
        rule=rule,
        object=rule.partition("/")[0] or rule,
        level="",
        status="",
        says="",
        sources=(),
        verdict=verdict,
        fired=times,
        programs=len(fired),
        reason=reason,
        derived=True,
    )
