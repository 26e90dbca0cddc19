"""Diff: two runs of the same programs, before and after a change of the device, side by side.

A rule or a program is *worse* if the exit code that it alone would give is: from fine (also ``waived``, ``choice``,
``deviation``) to undecided, from there to broken, and from there to ``error``.  *Better* is the other way round.
Another verdict that gives the same exit code is a change and no more.  A program has several runs, one a schedule: its
verdict is the worst of them.  One that fails before and after, but with another answer, is *otherwise*.

What is only in one of the two files is *gone* or *new*.  That is no regression by itself (another selection runs other
programs) but a new one that is broken is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from verbs_reports.markdown import code, escape, grid
from verbs_reports.results import Program, Results
from verbs_reports.summary import blamed
from verbs_reports.text import plural
from verbs_reports.verdicts import BROKEN, UNDECIDED, Verdict

Way = Literal["worse", "better", "changed", "otherwise", "new", "gone"]

ORDER: Final[tuple[Way, ...]] = ("worse", "new", "otherwise", "changed", "gone", "better")
"""The changes in the order in which they are told."""

HEAD: Final = ("change", "what", "before", "after", "detail")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, program or choice that is not as before."""

    way: Way
    kind: Literal["rule", "program", "choice"]
    name: str
    before: str
    after: str
    detail: str = ""
    regression: bool = False

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a table with the columns of ``HEAD``."""
        return self.way, f"{self.kind} {self.name}", self.before or "-", self.after or "-", self.detail


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What differs; ``facts`` names what else differs between the two runs."""

    changes: tuple[Change, ...]
    facts: tuple[str, ...]
    same: int

    @property
    def regressions(self) -> int:
        """How many changes are for the worse."""
        return sum(change.regression for change in self.changes)

    @property
    def headline(self) -> str:
        """The outcome in one line."""
        rest = len(self.changes) - self.regressions
        return f"{plural(self.regressions, 'regression')}, {plural(rest, 'other change')}, {self.same} as before"


def diff(before: Results, after: Results) -> Diff:
    """Compare two runs.  Never raises."""
    rules = [{r.rule: (r.verdict, "", r.reason) for r in x.rules} for x in (before, after)]
    programs = [_programs(x) for x in (before, after)]
    changes = [*_changes("rule", *rules), *_changes("program", *programs), *_choices(before, after)]
    changes.sort(key=lambda c: (ORDER.index(c.way), c.kind != "rule", c.kind != "program"))
    both = [x[0].keys() & x[1].keys() for x in (rules, programs)]
    told = sum(c.kind != "choice" and c.way not in {"new", "gone"} for c in changes)
    facts = tuple(_facts(before, after))
    return Diff(changes=tuple(changes), facts=facts, same=sum(map(len, both)) - told)


def render(found: Diff) -> str:
    """Give the differences as GitHub-flavoured Markdown."""
    blocks = [f"# {'REGRESSION' if found.regressions else 'NO REGRESSION'}", f"**{found.headline}.**"]
    blocks += [f"> {escape(fact)}" for fact in found.facts]
    rows = [
        (
            f"**{c.way}**" if c.regression else c.way,
            f"{c.kind} {code(c.name)}",
            c.before or "-",
            c.after or "-",
            escape(c.detail),
        )
        for c in found.changes
    ]
    return "\n\n".join([*blocks, *([grid(HEAD, rows)] if rows else [])]) + "\n"


# What is compared of a rule or a program: verdict, answer at the failing step, words for the reader.
_Told = tuple[Verdict, str, str]


def _programs(results: Results) -> dict[str, _Told]:
    """Each program by name, with the worst of its runs."""
    worst: dict[str, Program] = {}
    for program in results.programs:
        old = worst.setdefault(program.name, program)
        if program.verdict.severity > old.verdict.severity:
            worst[program.name] = program
    return {name: (p.verdict, _answer(p), _detail(p)) for name, p in worst.items() if p.kind != "stateful"} | {
        name: (p.verdict, "", _detail(p)) for name, p in worst.items() if p.kind == "stateful"
    }


def _answer(program: Program) -> str:
    """What tells two failures of one program apart: where it was refused, and with which names in the answer."""
    if program.failure is not None:
        return f"{program.failure.step} {program.failure.action} {_status(program)}"
    return program.trouble.kind if program.trouble is not None else ""


def _status(program: Program) -> str:
    """The words of an answer that are names: results and statuses, which no run chooses anew as it does numbers."""
    seen = program.failure.seen if program.failure is not None else ""
    return " ".join(part for part in seen.replace("=", " ").replace(",", " ").split() if part.isupper())


def _detail(program: Program) -> str:
    if program.failure is not None:
        rule = blamed(program)
        return f"{rule + ': ' if rule else ''}step {program.failure.step}, seen {program.failure.seen}"
    if program.trouble is not None:
        return f"{program.trouble.kind}: {program.trouble.message}"
    return program.reason


def _changes(kind: Literal["rule", "program"], before: dict[str, _Told], after: dict[str, _Told]) -> Iterable[Change]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            told = new or old
            assert told is not None
            broken = new is not None and new[0] in BROKEN
            if kind == "program" and not broken and told[0] not in BROKEN:
                continue  # which programs there are is not news
            yield Change(
                way="gone" if new is None else "new",
                kind=kind,
                name=name,
                before=str(old[0]) if old else "",
                after=str(new[0]) if new else "",
                detail=told[2],
                regression=broken,
            )
        elif old[:2] != new[:2]:
            way = _way(old, new)
            yield Change(
                way=way,
                kind=kind,
                name=name,
                before=str(old[0]),
                after=str(new[0]),
                detail=old[2] if way == "better" and not new[2] else new[2],
                regression=way == "worse",
            )


def _way(old: _Told, new: _Told) -> Way:
    if old[0] is new[0]:
        return "otherwise"
    weights = _weight(old[0]), _weight(new[0])
    return "changed" if weights[0] == weights[1] else "worse" if weights[0] < weights[1] else "better"


def _weight(verdict: Verdict) -> int:
    if verdict is Verdict.ERROR:
        return 3
    return 2 if verdict in BROKEN else 1 if verdict in UNDECIDED else 0


def _choices(before: Results, after: Results) -> Iterable[Change]:
    old = {c.choice: c for c in before.choices}
    for new in after.choices:
        was = old.get(new.choice)
        if was is not None and was.taken != new.taken and was.taken and new.taken:
            yield Change(
                way="changed",
                kind="choice",
                name=new.choice,
                before=" or ".join(was.taken),
                after=" or ".join(new.taken),
                detail="what the device does where the sources leave it open",
            )


def _facts(before: Results, after: Results) -> Iterable[str]:
    one, two = before.header, after.header
    pairs: Sequence[tuple[str, str, str]] = (
        ("specification", one.spec, two.spec),
        ("API", one.api, two.api),
        ("transport", one.transport, two.transport),
        ("seed", str(one.seed), str(two.seed)),
        ("backend", f"{one.device.name} {one.device.version}", f"{two.device.name} {two.device.version}"),
        ("device", one.device.device, two.device.device),
        ("firmware", one.device.firmware, two.device.firmware),
        ("kernel", one.device.kernel, two.device.kernel),
        ("options", _options(one.adapter.options), _options(two.adapter.options)),
    )
    for name, a, b in pairs:
        if a != b:
            yield f"{name}: {a or 'none'} before, {b or 'none'} after"
    for which, results in (("before", before), ("after", after)):
        if results.truncated:
            yield f"The run {which} is TRUNCATED: what it has not judged is missing here."


def _options(options: dict[str, str]) -> str:
    return " ".join(f"{k}={v}" for k, v in options.items())
