"""Ids that were released, `slugs.yaml`: an id is never taken away without a word and never used for another rule.

An id stands under what it was a rule of and in which part: how a call succeeds, how it fails, or a family of steps. A
rule that moves to another part is another rule. `verbspec spec build --release NAME` adds the ids that are new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePath

from verbs_spec.document import CallRule, Spec, StepRule
from verbs_spec.errors import SpecError, Where
from verbs_spec.nodes import Entry, mapping, slug, slugs, text, unique
from verbs_spec.text import Node, Text, read

FILE = "slugs.yaml"
_HEAD = """\
# Ids of releases, by what each is a rule of. Made by `verbspec spec build --release NAME`; an id that is no more is
# moved to `withdrawn` by hand: {id, release (the last that had it), why}.
"""


@dataclass(frozen=True)
class Released:
    """An id, what it is an id of, and the release in which it was first."""

    id: Text
    part: str
    release: str


@dataclass(frozen=True)
class Withdrawn:
    """An id that is no more: the last release that had it, and why it went."""

    id: Text
    release: str
    why: str


@dataclass(frozen=True)
class Slugs:
    """The file."""

    released: Mapping[str, Released]
    withdrawn: Mapping[str, Withdrawn]


def load(folder: Path | None = None) -> Slugs:
    """The ids of a folder, or of this package; none if there is no such file."""
    root = resources.files("verbs_spec") if folder is None else folder
    file = root.joinpath(FILE)
    if not file.is_file():
        return Slugs({}, {})
    shown = PurePath(str(file))
    return loads(file.read_text(encoding="utf-8"), str(shown.name))


def loads(content: str, file: str = FILE) -> Slugs:
    """The ids of a file's text."""
    entry = Entry(read(content, file), f"the file {FILE}", required="released", optional="withdrawn")
    places: dict[str, Where] = {}
    released: dict[str, Released] = {}
    for release, parts in entry.items("released"):
        for part, node in mapping(parts, f"release {release}").items():
            for each in slugs(node, f"{str(part)!r} of release {release}"):
                unique(each, places, "the id")
                released[each] = Released(each, str(part), str(release))
    withdrawn: dict[str, Withdrawn] = {}
    for node in entry.elements("withdrawn"):
        gone = _withdrawn(node)
        unique(gone.id, places, "the id")
        withdrawn[gone.id] = gone
    return Slugs(released, withdrawn)


def wrong(spec: Spec, known: Slugs) -> list[str]:
    """One line for each released id that is no more, that stands elsewhere, or that was withdrawn and is back."""
    now = parts(spec)
    found = []
    for old in known.released.values():
        if old.id not in now:
            found.append(
                f"{old.id.where}: the id {old.id} was released in {old.release} and is no more; bring it back, or move "
                "it to 'withdrawn' and say why"
            )
        elif now[old.id][0] != old.part:
            part, where = now[old.id]
            found.append(
                f"{where}: the id {old.id} was released in {old.release} for another rule ({old.part}) and stands now "
                f"for {part}; an id is never used again: choose another"
            )
    found += [
        f"{now[gone.id][1]}: the id {gone.id} was withdrawn after {gone.release} ({gone.why}) and is used again; an id "
        "is never used again: choose another"
        for gone in known.withdrawn.values()
        if gone.id in now
    ]
    return found


def render(spec: Spec, known: Slugs, release: str) -> str:
    """The file with the ids that are new, under this release."""
    if any(each.release == release for each in known.released.values()):
        raise SpecError(f"release {release} is listed already", Where(FILE, 1, 1))
    groups: dict[str, dict[str, list[str]]] = {}
    for old in known.released.values():
        groups.setdefault(old.release, {}).setdefault(old.part, []).append(str(old.id))
    for name, (part, _) in parts(spec).items():
        if name not in known.released:
            groups.setdefault(release, {}).setdefault(part, []).append(name)
    lines = [_HEAD + "released:"]
    for name, group in groups.items():
        lines.append(f'  "{name}":')
        for part, ids in group.items():
            lines.append(f"    {part}:")
            lines += [f"      - {each}" for each in ids]
    if known.withdrawn:
        lines.append("withdrawn:")
        lines += [f'  - {{id: {g.id}, release: "{g.release}", why: "{g.why}"}}' for g in known.withdrawn.values()]
    return "\n".join(lines) + "\n"


def parts(spec: Spec) -> dict[str, tuple[str, Where]]:
    """What each id of a specification is an id of, and where it stands."""
    found: dict[str, tuple[str, Where]] = {str(r.id): (_part(r), r.where) for r in spec.rules.values()}
    found |= {str(i.id): ("invariants", i.id.where) for i in spec.invariants}
    return found | {str(u.id): ("unspecified", u.id.where) for u in spec.unspecified}


def _part(rule: CallRule | StepRule) -> str:
    if isinstance(rule, StepRule):
        return f"steps {rule.family}"
    return f"{rule.call} {'succeeds' if rule.cause is None else 'fails'}"


def _withdrawn(node: Node) -> Withdrawn:
    entry = Entry(node, "an id that was withdrawn", required="id release why")
    return Withdrawn(entry.required("id", slug), str(entry.required("release", text)), str(entry.required("why", text)))
