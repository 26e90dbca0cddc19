"""Markdown: a summary for a pull request, a mail or a CI page.

The verdict stands first; passing rules are only counted.  Whatever a backend said stands in code spans or
is escaped, so that it can neither format, nor mention anybody (``@name``, ``#123``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from verbs_reports.results import Choice, Program, Results, Waiver
from verbs_reports.summary import CONTEXT, Summary, blamed, facts_of, replay_command, steps_of, summarize
from verbs_reports.text import clean, one_line, plural
from verbs_reports.verdicts import BROKEN, Verdict

# "_" is harmless inside a word.
_ACTIVE: Final = re.compile(r"[&<>@#$*`\[\]~\\]|(?<![^\W_])_|_(?![^\W_])")
# What begins a list, or underlines a heading, when it begins a line.
_OPENING: Final = re.compile(r"^(?:[-+=]|\d(?=\d*[.)]))")
_BAR: Final = "\\|"

SHOWN: Final = 10
"""How many failing programs are told in full."""


def render(results: Results) -> str:
    """Give the summary of the results as GitHub-flavoured Markdown.  Never raises."""
    summary = summarize(results)
    header = results.header
    device = f"{header.device.name} {header.device.version}".strip()
    blocks = [
        f"# {summary.verdict.upper()}: {escape(device)}, {escape(header.api)}, {escape(header.transport)}",
        *(f"> **{escape(alarm)}**" for alarm in summary.alarms),
        *(f"> {_paragraph(notice)}" for notice in summary.notices),
        f"**{summary.headline}.**",
        *_rules(summary),
        *_programs(summary),
        *_waivers(results.waivers),
        *_choices(results.choices),
        *_facts(results),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _rules(summary: Summary) -> list[str]:
    lines = summary.not_pass
    if not lines:
        return []
    cells = [
        (
            f"**{line.verdict}**",
            code(line.rule),
            line.level,
            str(line.fired),
            escape(line.reason or line.says),
        )
        for line in lines
    ]
    return ["## Rules that are not pass", grid(("Verdict", "Rule", "Level", "Fired", "Why"), cells)]


def _programs(summary: Summary) -> list[str]:
    blocks = []
    for program in summary.explained[:SHOWN]:
        rule = blamed(program)
        blocks.append(f"### {program.verdict}: {code(program.name)}" + (f", {code(rule)}" if rule else ""))
        blocks += _story(program)
    if (hidden := len(summary.explained) - SHOWN) > 0:
        blocks.append(f"{plural(hidden, 'more program')} of this kind in the results file.")
    if summary.silent:
        silent = plural(len(summary.silent), "program")
        blocks.append(f"Not told here: {silent} that did not pass, without a failing step.")
    return ["## Programs that show it", *blocks] if blocks else []


def _story(program: Program) -> list[str]:
    failure, trouble = program.failure, program.trouble
    points = []
    if failure is not None:
        points += [f"message: {escape(failure.message)}"] if failure.message else []
        points += [f"seen: {code(failure.seen)}"]
        points += [f"allowed: {code(allowed)}" for allowed in failure.allowed] or ["allowed: nothing"]
        points += ["suspects: " + ", ".join(map(code, failure.suspects))] if failure.suspects else []
    elif program.reason:
        points.append(_paragraph(program.reason))
    if trouble is not None:
        points.append(f"{_paragraph(trouble.kind)} of the {escape(trouble.whose)}: {escape(trouble.message)}")
    if command := replay_command(program):
        points.append(f"replay, in the folder of the results: {code(command)}")
    blocks = ["\n".join(f"- {point}" for point in points)]
    if steps := steps_of(program):
        first = max(0, (failure.step if failure is not None else len(steps)) - CONTEXT - 1)
        lines = [f"(steps 1 to {first} left out)"] if first else []
        lines += [f"{'>' if step.failing else ' '} {step.number:3}  {one_line(step.text)}" for step in steps[first:]]
        blocks.append(_fenced("\n".join(lines)))
    if trouble is not None and trouble.evidence:
        blocks.append(_fenced(clean(trouble.evidence)))
    return blocks


def _waivers(waivers: Iterable[Waiver]) -> list[str]:
    cells = [
        (
            f"**{waiver.verdict}**" if waiver.verdict in BROKEN else waiver.verdict,
            code(waiver.waiver),
            code(waiver.rule),
            code(waiver.program),
            str(waiver.covered),
            escape(". ".join(x.rstrip(".") for x in (waiver.note, waiver.reason, "; ".join(waiver.evidence)) if x)),
        )
        for waiver in waivers
    ]
    if not cells:
        return []
    return ["## Waivers", grid(("Verdict", "Waiver", "Rule", "Program", "Covers", "Why"), cells)]


def _choices(choices: Iterable[Choice]) -> list[str]:
    cells = [
        (
            choice.verdict,
            code(choice.choice),
            ", ".join(map(code, choice.taken)) or "nothing",
            ", ".join(map(code, choice.options)),
            "yes" if choice.stable else "no",
        )
        for choice in choices
    ]
    if not cells:
        return []
    return ["## Choices", grid(("Verdict", "Choice", "Still possible", "Allowed", "Stable"), cells)]


def _facts(results: Results) -> list[str]:
    header = results.header
    cells = [(name, escape(value)) for members in facts_of(results).values() for name, value in members.items()]
    cells += [("capabilities", ", ".join(map(code, header.capabilities)) or "none")]
    cells += [("limits", ", ".join(code(f"{name}={value}") for name, value in header.limits.items()) or "none")]
    return ["## Device and run", grid(("", ""), cells), "Repeat it with", _fenced(clean(header.command))]


def grid(head: tuple[str, ...], rows: Iterable[tuple[str | Verdict, ...]]) -> str:
    """Give a table; nothing without rows."""
    # A bar splits a cell even inside a code span, where GitHub takes the backslash away again.
    cells = [f"| {' | '.join(cell.replace('|', _BAR) for cell in row)} |" for row in rows]
    if not cells:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *cells])


def escape(text: str) -> str:
    """Give text on one line that Markdown shows as it is, inside a line."""
    return _ACTIVE.sub(_entity, one_line(text))


def _paragraph(text: str) -> str:
    """Give text on one line that Markdown shows as it is, also where it begins the line."""
    return _OPENING.sub(_entity, escape(text))


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"


def code(text: str) -> str:
    """Give a code span that holds any text."""
    line = one_line(text)
    if not line:
        return "(empty)"
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
