"""JUnit: results as JUnit XML, for CI systems.

One test suite an object with one test case a rule; one for the choices; one for the waivers; one for the programs; one,
``verbspec.run``, with a single case that is an error when the run did not end.  What is neither a failure
nor an error but did not pass either is *skipped* with its verdict and reason, since JUnit knows nothing in
between.
"""

# mypy: allow-untyped-calls
# junitparser has types, but not on all its functions.

from __future__ import annotations

from io import BytesIO
from typing import Final

from junitparser import Error, JUnitXml, Skipped, TestCase, TestSuite
from junitparser import Failure as Failed

from verbs_reports.results import Choice, Header, Program, Results, Waiver
from verbs_reports.summary import RuleLine, Summary, blamed, facts_of, replay_command, steps_of, summarize
from verbs_reports.text import clean, one_line, plural
from verbs_reports.verdicts import BROKEN, UNDECIDED, Verdict

TOLD: Final = 3
"""How many programs are told in the case of a rule; the suite of the programs tells them all."""

_SKIPPED: Final = UNDECIDED | {Verdict.UNSUPPORTED, Verdict.WAIVED}


def render(results: Results) -> str:
    """Give the results as a JUnit XML document.  Never raises."""
    summary = summarize(results)
    header = results.header
    document = JUnitXml(one_line(f"verbspec {header.device.name} {header.api} {header.transport}"))
    document.add_testsuite(_suite("verbspec.run", header, [_run(results, summary)], _properties(results)))
    by_rule: dict[str, list[Program]] = {}
    for program in summary.explained:
        by_rule.setdefault(blamed(program), []).append(program)
    for name, lines in summary.objects.items():
        cases = [_rule(line, by_rule.get(line.rule, [])) for line in lines]
        document.add_testsuite(_suite(name, header, cases))
    if results.choices:
        cases = [_choice(choice) for choice in results.choices]
        document.add_testsuite(_suite("verbspec.choices", header, cases))
    if results.waivers:
        cases = [_waiver(waiver) for waiver in results.waivers]
        document.add_testsuite(_suite("verbspec.waivers", header, cases))
    cases = [_program(program) for program in results.programs]
    document.add_testsuite(_suite("verbspec.programs", header, cases))
    document.update_statistics()
    buffer = BytesIO()
    document.write(buffer, pretty=True)
    return buffer.getvalue().decode()


def _suite(name: str, header: Header, cases: list[TestCase], properties: dict[str, str] | None = None) -> TestSuite:
    suite = TestSuite(one_line(name))
    suite.timestamp = one_line(header.started)
    for key, value in (properties or {}).items():
        suite.add_property(one_line(key), one_line(value))
    suite.add_testcases(cases)
    return suite


def _properties(results: Results) -> dict[str, str]:
    header = results.header
    facts = {
        f"{group}.{name}".lower().replace(" ", "-"): value
        for group, members in facts_of(results).items()
        for name, value in members.items()
    }
    declared = {"capabilities": " ".join(header.capabilities), "command": header.command}
    limits = {f"limit.{name}": str(value) for name, value in header.limits.items()}
    return facts | declared | limits


def _run(results: Results, summary: Summary) -> TestCase:
    seconds = None if results.footer is None else results.footer.seconds
    case = TestCase("the run ended", "verbspec.run", seconds)
    told = (*summary.alarms, *summary.notices, summary.headline)
    if summary.alarms:
        case.result = [_result(Error, summary.verdict, summary.alarms[0], "\n".join(told))]
    elif summary.verdict in BROKEN and not _has_broken(results):
        # Only the footer knows why; without this the document would be green.
        case.result = [_result(Failed, summary.verdict, "the run as a whole", "\n".join(told))]
    else:
        case.system_out = clean("\n".join(told))
    return case


def _has_broken(results: Results) -> bool:
    found = {record.verdict for record in results.rules} | {record.verdict for record in results.choices}
    found |= {record.verdict for record in results.waivers}
    return bool(BROKEN & (found | {record.verdict for record in results.programs}))


def _rule(line: RuleLine, programs: list[Program]) -> TestCase:
    case = TestCase(one_line(line.rule), one_line(line.object))
    reason = line.reason or next((p.failure.message for p in programs if p.failure is not None), "")
    text = [line.says, *(f"source: {source}" for source in line.sources)]
    for program in programs[:TOLD]:
        text += ["", f"program {program.name}: {program.verdict}", *_story(program)]
    if len(programs) > TOLD:
        text += ["", f"{plural(len(programs) - TOLD, 'more program')} in the suite verbspec.programs"]
    _judge(case, line.verdict, reason, "\n".join(text))
    return case


def _choice(choice: Choice) -> TestCase:
    case = TestCase(one_line(choice.choice), "verbspec.choices")
    taken = ", ".join(choice.taken) or "nothing"
    stable = "must be constant, " if choice.stable else ""
    _judge(case, choice.verdict, f"{stable}still possible: {taken}", f"allowed: {', '.join(choice.options)}")
    return case


def _waiver(waiver: Waiver) -> TestCase:
    case = TestCase(one_line(waiver.waiver), "verbspec.waivers")
    text = [f"rule {waiver.rule}, program {waiver.program}", waiver.reason, *waiver.evidence]
    text += [f"instead, {field}: {value}" for field, value in waiver.instead.items()]
    _judge(case, waiver.verdict, waiver.note or waiver.reason, "\n".join(text))
    return case


def _program(program: Program) -> TestCase:
    case = TestCase(one_line(program.name), f"verbspec.programs.{program.kind}")
    reason = program.reason
    if program.failure is not None:
        reason = program.failure.message or reason
    elif program.trouble is not None:
        reason = program.trouble.message or reason
    _judge(case, program.verdict, reason, "\n".join(_story(program)))
    return case


def _judge(case: TestCase, verdict: Verdict, reason: str, text: str) -> None:
    """Say the verdict in JUnit's words; a plain pass says nothing."""
    if verdict in BROKEN:
        kind = Error if verdict is Verdict.ERROR else Failed
        case.result = [_result(kind, verdict, reason, text)]
    elif verdict in _SKIPPED:
        case.result = [_result(Skipped, verdict, reason, text if verdict is Verdict.WAIVED else "")]
    elif verdict is not Verdict.PASS:
        case.system_out = clean(f"{verdict}: {reason}\n{text}".strip())


def _result(kind: type[Error | Failed | Skipped], verdict: Verdict, reason: str, text: str) -> Error | Failed | Skipped:
    result = kind(one_line(f"{verdict}: {reason}" if reason else verdict), str(verdict))
    if text.strip():
        result.text = clean(text.strip("\n"))
    return result


def _story(program: Program) -> list[str]:
    """Tell a program that did not pass: steps, what was seen, what was allowed, how to run it again."""
    lines = [f"{'>' if step.failing else ' '}{step.number:3} {step.text}" for step in steps_of(program)]
    if (failure := program.failure) is not None:
        lines += [f"seen: {failure.seen}", *(f"allowed: {allowed}" for allowed in failure.allowed)]
        lines += [f"suspects: {', '.join(failure.suspects)}"] if failure.suspects else []
    if (trouble := program.trouble) is not None:
        lines += [f"{trouble.kind} of the {trouble.whose}: {trouble.message}"]
        lines += [trouble.evidence] if trouble.evidence else []
    if command := replay_command(program):
        lines += [f"replay, in the folder of the results: {command}"]
    return lines
