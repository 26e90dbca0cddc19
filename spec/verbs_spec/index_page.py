"""The page that leads to all others: how to read them, profiles, documents and names."""

from __future__ import annotations

from collections.abc import Mapping

from verbs_spec.document import Spec
from verbs_spec.guide import GUIDE
from verbs_spec.markdown import code, codes, prose, section, table
from verbs_spec.sources import cited


def page(spec: Spec) -> str:
    """The page."""
    parts = ["# The rules\n", GUIDE]
    parts.append("## Pages\n")
    rules = spec.rules.values()
    parts.append(
        table(
            ["object", "rules", "what it is"],
            (
                [f"[{name}]({name}.md)", str(sum(rule.object == name for rule in rules)), prose(summary)]
                for name, summary in sorted(spec.summaries.items())
            ),
        )
    )
    if spec.profiles:
        parts.append("## Profiles\n")
        parts.append(
            table(
                ["profile", "kind", "replaces", "what it is"],
                (
                    [
                        code(name),
                        each.kind,
                        codes(sorted({d.rule for d in each.deltas} | {d.define for d in each.defines})),
                        prose(each.summary),
                    ]
                    for name, each in sorted(spec.profiles.items())
                ),
            )
        )
    parts += section(
        "Features that no device of a transport has",
        ["transport", "features", "why", "sources"],
        (
            [code(name), codes(each.features), prose(each.says), cited(spec, each.sources)]
            for name, profile in sorted(spec.profiles.items())
            for each in profile.lacks
        ),
    )
    parts += section(
        "Documents",
        ["cited as", "quality", "what it is", "version", "licence"],
        (
            [
                codes(each.cited) + (f"<br>with {codes(each.saying)}" if each.saying else ""),
                each.quality,
                prose(each.title),
                prose(each.pinned),
                prose(each.licence),
            ]
            for each in spec.documents.values()
        ),
    )
    parts.append("## Names\n")
    kinds: list[tuple[str, Mapping[str, object]]] = [
        ("call", spec.calls),
        ("steps", spec.families),
        ("object", spec.objects),
        ("record", spec.records),
        ("enum", spec.enums),
        ("table", spec.tables),
        ("define", {name: each for name, each in spec.defines.items() if not each.made}),
        ("choice", spec.choices),
    ]
    names = sorted(
        (name, kind, str(getattr(each, "object", ""))) for kind, all_ in kinds for name, each in all_.items()
    )
    parts.append(table(["name", "is a", "page"], ([code(n), kind, f"[{page}]({page}.md)"] for n, kind, page in names)))
    return "\n".join(parts)
