"""HTML: results as one page that needs nothing else: no network, no fonts, no other file.

The template, the style and the script are package data in ``templates/``.  The page works without its
script, which only filters; a content security policy with the digests of the two lets nothing else run,
whatever a device calls itself.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from verbs_reports.results import Program, Results
from verbs_reports.summary import CONTEXT, blamed, facts_of, replay_command, steps_of, summarize
from verbs_reports.text import clean, plural
from verbs_reports.verdicts import BROKEN, Verdict

SHOWN: Final = 200
"""How many programs are told in full; the others are counted."""

SYMBOLS: Final = {
    Verdict.ERROR: "!",
    Verdict.FAIL: "✕",
    Verdict.UNEXPECTED_PASS: "↑",
    Verdict.FLAKY: "≈",
    Verdict.CONSUMER_ERROR: "?",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_RUN: "○",
    Verdict.DEVIATION: "△",
    Verdict.WAIVED: "-",
    Verdict.UNSUPPORTED: "-",
    Verdict.CHOICE: "◆",
    Verdict.PASS: "✓",
}


def render(results: Results) -> str:
    """Give the results as one self-contained HTML page.  Never raises."""
    summary = summarize(results)
    numbers = {line.rule: number for number, line in enumerate(summary.rules, 1)}
    shown = summary.explained[:SHOWN]
    told: dict[str, list[tuple[int, Program]]] = {}
    for number, program in enumerate(shown, 1):
        told.setdefault(blamed(program), []).append((number, program))
    style, script = _source("report.css"), _source("report.js")
    page: str = _ENVIRONMENT.get_template("report.html.j2").render(
        results=results,
        header=results.header,
        summary=summary,
        facts=facts_of(results),
        numbers=numbers,
        shown=shown,
        hidden=len(summary.explained) - len(shown),
        told=told,
        silent=summary.silent[:SHOWN],
        silent_hidden=max(0, len(summary.silent) - SHOWN),
        style=style,
        script=script,
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}",
    )
    return page


def _shown_text(value: Any) -> Any:
    """Clean whatever text a template writes; markup made by the template itself is left alone."""
    return clean(value) if type(value) is str else value


def _source(name: str) -> str:
    """Give one of the files that the page holds verbatim, with line ends that its digest can rely on."""
    source = _LOADER.get_source(_ENVIRONMENT, name)[0]
    return source.replace("\r\n", "\n")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


_LOADER: Final = PackageLoader("verbs_reports", "templates")
_ENVIRONMENT: Final = Environment(
    loader=_LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown_text,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_ENVIRONMENT.globals |= {
    "blamed": blamed,
    "broken": BROKEN,
    "context": CONTEXT,
    "plural": plural,
    "replay_command": replay_command,
    "steps_of": steps_of,
    "symbols": SYMBOLS,
}
