"""The specification as Markdown tables, for people who know verbs and have nothing else.

`python -m verbs_spec.tables FOLDER` writes them; with `--check` it says where the folder's tables differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from verbs_spec import index_page, rows
from verbs_spec.document import (
    Binder,
    Call,
    CallRule,
    Delta,
    FieldDecl,
    Invariant,
    Rule,
    Shape,
    Spec,
    StepFamily,
    StepRule,
)
from verbs_spec.loader import load
from verbs_spec.markdown import code as _code
from verbs_spec.markdown import codes as _codes
from verbs_spec.markdown import lines as _lines
from verbs_spec.markdown import prose as _prose
from verbs_spec.markdown import section as _section
from verbs_spec.markdown import table as _table
from verbs_spec.sources import cited

INDEX = "README.md"
OTHERS = frozenset({"cells.md", "facts.md"})
"""Pages of the folder that `verbspec spec build` makes, from what the rules mean and what shows them."""
_MADE = "<!-- Made from the rules by verbs_spec.tables; do not edit. -->\n"


def render(spec: Spec) -> dict[str, str]:
    """The pages by file name: one an object, and an index that says how to read them."""
    pages = {f"{name}.md": _page(spec, name) for name in sorted(spec.summaries)}
    return {INDEX: f"{_MADE}\n{index_page.page(spec)}", **pages}


def write(spec: Spec, folder: Path) -> None:
    """Write the pages, and remove those of objects that are no more."""
    pages = render(spec)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.md"):
        if path.name not in pages and path.name not in OTHERS:
            path.unlink()
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")


def drift(spec: Spec, folder: Path) -> list[str]:
    """Where the folder differs from the pages: one line for each file, none if it does not."""
    pages = render(spec)
    found = []
    for name, page in pages.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{path}: is missing")
            continue
        old, new = path.read_text(encoding="utf-8").split("\n"), page.split("\n")
        if old != new:
            same = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), -1)
            line = same if same >= 0 else min(len(old), len(new))
            found.append(f"{path}:{line + 1}: differs from the rules")
    found += [
        f"{path}: belongs to no object"
        for path in sorted(folder.glob("*.md"))
        if path.name not in pages.keys() | OTHERS
    ]
    return found


def main() -> int:
    """Write or check the tables of the package's own specification."""
    parser = argparse.ArgumentParser(prog="python -m verbs_spec.tables", description="Make the tables of the rules.")
    parser.add_argument("--check", action="store_true", help="write nothing; say where the tables differ")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    spec = load()
    if not given.check:
        write(spec, given.folder)
        return 0
    found = drift(spec, given.folder)
    for line in found:
        print(line)
    if found:
        print(f"make them anew: python -m verbs_spec.tables {given.folder}")
    return 1 if found else 0


def _page(spec: Spec, name: str) -> str:
    parts = [_MADE, f"# {name}\n", f"{_prose(spec.summaries[name])}\n", f"[How to read this]({INDEX})\n"]
    parts += _declarations(spec, name)
    for call in spec.calls.values():
        if call.object == name:
            parts += _call(spec, call)
        elif added := [rule for rule in call.rules if rule.object == name]:
            parts += [_heading(f"Call `{call.name}`, more", call.object), _call_rules(spec, added)]
    for family in spec.families.values():
        if family.object == name:
            parts += _family(spec, family)
        elif more := [rule for rule in family.rules if rule.object == name]:
            parts += [_heading(f"Steps `{family.name}`, more", family.object), _step_rules(spec, more)]
    parts += _section(
        "Under profiles",
        ["rule", "profile", "replaces", "by", "why", "sources"],
        (
            [
                _code(each.rule),
                _code(each.profile),
                each.field,
                _value(each),
                _prose(each.says),
                cited(spec, each.sources),
            ]
            for profile in spec.profiles.values()
            for each in profile.deltas
            if each.rule in spec.rules and spec.rules[each.rule].object == name
        ),
    )
    parts += _section(
        "Defines under profiles",
        ["define", "profile", "stands for", "why", "sources"],
        (
            [_code(each.define), _code(each.profile), _code(each.body), _prose(each.says), cited(spec, each.sources)]
            for profile in spec.profiles.values()
            for each in profile.defines
            if each.define in spec.defines and spec.defines[each.define].object == name
        ),
    )
    parts += _section(
        "Invariants",
        ["id", "for each", "holds", "in words"],
        (
            [_code(each.id), _binder(each.each), _code(each.holds), _lines([_prose(each.says), *_only(each)])]
            for each in spec.invariants
            if each.object == name
        ),
    )
    parts += _section(
        "Ghosts",
        ["at", "effect"],
        ([_codes(each.at), _code(each.do)] for each in spec.ghosts if each.object == name),
    )
    parts += _section(
        "Unspecified",
        ["id", "what", "why", "sources"],
        (
            [_code(each.id), _prose(each.says), _prose(each.reason), cited(spec, each.sources)]
            for each in spec.unspecified
            if each.object == name
        ),
    )
    parts += _section(
        "Questions",
        ["`verbspec explain`", "answered by"],
        (
            [_lines(_prose(ask) for ask in each.asks), _lines(_code(str(answer)) for answer in each.answers)]
            for each in spec.questions
            if each.object == name
        ),
    )
    return "\n".join(parts)


def _declarations(spec: Spec, name: str) -> list[str]:
    parts = []
    for kind in spec.objects.values():
        if kind.object == name:
            parts += [f"## Object `{kind.name}`\n", _fields(kind.fields)]
    for record in spec.records.values():
        if record.object == name:
            parts += [f"## Record `{record.name}`\n", _fields(record.fields)]
    for table in spec.tables.values():
        if table.object == name:
            parts += rows.rendered(table)
    parts += _section(
        "Enums",
        ["enum", "enumerators"],
        ([_code(each.name), _codes(each.values)] for each in spec.enums.values() if each.object == name),
    )
    parts += _section(
        "Choices",
        ["choice", "options", "stable", "what is open", "sources"],
        (
            [
                _code(each.name),
                _codes(each.options),
                "yes" if each.stable else "no",
                _prose(each.says),
                cited(spec, each.sources),
            ]
            for each in spec.choices.values()
            if each.object == name
        ),
    )
    parts += _section(
        "Defines",
        ["define", "stands for"],
        (
            [_code(f"{each.name}({', '.join(f'{p.name}: {p.type}' for p in each.params)})"), _code(each.body)]
            for each in spec.defines.values()
            if each.object == name and not each.made
        ),
    )
    return parts


def _fields(fields: Mapping[str, FieldDecl]) -> str:
    return _table(
        ["field", "type", "initially", "meaning"],
        ([_code(each.name), _code(each.type), _code(each.init), _prose(each.doc)] for each in fields.values()),
    )


def _call(spec: Spec, call: Call) -> list[str]:
    params = ", ".join(f"{name}: {type_}" for name, type_ in call.params.items())
    limited = (f"{_code(name)} only under {_codes(profiles)}" for name, profiles in call.limited.items())
    parts = [f"## Call `{call.name}({params})`\n"]
    if call.outputs:
        parts.append(f"Gives {_codes(f'{name}: {type_}' for name, type_ in call.outputs.items())}.\n")
    if call.profile:
        parts.append(f"Only under {_codes(call.profile)}.\n")
    if call.limited:
        parts.append(f"Not everywhere: {'; '.join(limited)}.\n")
    if call.shapes:
        shown = ([_shape(shape), _menus(shape)] for shape in call.shapes.values())
        parts.append(_table(["tested as", "with one of, the usual one first"], shown))
    parts.append(_call_rules(spec, [rule for rule in call.rules if rule.object == call.object]))
    return [*parts, *_elsewhere(call)]


def _call_rules(spec: Spec, rules: Iterable[CallRule]) -> str:
    ways = sorted(rules, key=lambda rule: rule.cause is not None)
    lines = []
    for group in (list(found) for _, found in groupby(ways, key=lambda rule: rule.rows or rule.id)):
        rule = group[0]
        line = [_rule(rule), _condition(rule), _outcome(rule), _code(rule.do), *_reasons(spec, rule)]
        if len(group) > 1:
            line[:2] = [f"the {len(group)} rows of a table, as {line[0]}", f"when: the row for {_code(rule.rows)}"]
            line[4] = "What the row says."
        lines.append(line)
    return _table(["rule", "condition", "returns", "effect", "in words", "sources"], lines)


def _elsewhere(part: Call | StepFamily) -> list[str]:
    """Where more of its rules stand."""
    pages = dict.fromkeys(rule.object for rule in part.rules if rule.object != part.object)
    return [f"More in {', '.join(f'[{each}]({each}.md)' for each in pages)}.\n"] if pages else []


def _only(part: Rule | Invariant | Shape) -> list[str]:
    """Under which profiles it is there, if not under all."""
    return [f"only {_codes(part.profile)}"] if part.profile else []


def _heading(words: str, page: str) -> str:
    return f"## {words}\n\nBegun in [{page}]({page}.md).\n"


def _shape(shape: Shape) -> str:
    return _lines([_code(shape.name), *_only(shape), *([f"never drawn: {_prose(shape.peril)}"] if shape.peril else [])])


def _menus(shape: Shape) -> str:
    return _lines(f"{name}: {_codes(menu)}" for name, menu in shape.menus.items())


def _family(spec: Spec, family: StepFamily) -> list[str]:
    about = [f"For each {_binder(family.each)}"]
    if family.take:
        about.append(f"takes {_code(f'{family.take.name} = {family.take.queue}')}")
    if family.let:
        about.append(f"with {_codes(f'{name} = {value}' for name, value in family.let.items())}")
    if family.domain:
        about.append(f"within {_code(family.domain)}")
    if family.optional:
        about.append("may run but need not")
    if family.profile:
        about.append(f"only under {_codes(family.profile)}")
    table = _step_rules(spec, [rule for rule in family.rules if rule.object == family.object])
    return [f"## Steps `{family.name}`\n", f"{', '.join(about)}.\n", table, *_elsewhere(family)]


def _step_rules(spec: Spec, rules: Iterable[StepRule]) -> str:
    rows = ([_rule(rule), _condition(rule), _code(rule.do), *_reasons(spec, rule)] for rule in rules)
    return _table(["rule", "condition", "effect", "in words", "sources"], rows)


def _rule(rule: Rule) -> str:
    status = "" if rule.status == "draft" else f", {rule.status}"
    return _lines([_code(rule.id), f"{rule.level}{status}", *_only(rule)])


def _condition(rule: CallRule | StepRule) -> str:
    if isinstance(rule, CallRule) and rule.cause is not None:
        parts = [f"cause: {_code(rule.cause)}"]
    elif rule.when is not None:
        parts = [f"when: {_code(rule.when)}"]
    else:
        parts = ["no cause holds" if isinstance(rule, CallRule) else "always"]
    if isinstance(rule, CallRule) and rule.choice is not None:
        parts.append(f"choice: {_code(rule.choice)}")
    return _lines(parts)


def _outcome(rule: CallRule) -> str:
    if rule.undefined is not None:
        return f"undefined: {_code(rule.undefined)}"
    parts = [_codes(rule.returns)]
    if rule.prefer:
        parts.append(f"prefers {_codes(rule.prefer)}")
    if rule.outputs is not None:
        parts.append(f"outputs: {_code(rule.outputs)}")
    return _lines(parts)


def _reasons(spec: Spec, rule: Rule) -> list[str]:
    return [_prose(rule.says), cited(spec, rule.sources)]


def _value(delta: Delta) -> str:
    if delta.value is None:
        return "nothing"
    return _code(delta.value) if isinstance(delta.value, str) else _codes(delta.value)


def _binder(binder: Binder | None) -> str:
    return _code(f"{binder.name} in {binder.kind}") if binder else ""


if __name__ == "__main__":
    sys.exit(main())
