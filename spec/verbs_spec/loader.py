"""Reads the files of a specification into a `Spec`, or says what is wrong and where."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePath

from verbs_spec import entries, profile_entries, questions, rows, sources
from verbs_spec.additions import Additions
from verbs_spec.checks import check
from verbs_spec.document import (
    Call,
    Choice,
    Define,
    Document,
    Enum,
    Ghost,
    Invariant,
    Kind,
    Profile,
    Question,
    Spec,
    StepFamily,
    Table,
    Unspecified,
)
from verbs_spec.errors import SpecError, Where
from verbs_spec.nodes import Entry, text, unique
from verbs_spec.text import Node, Text, read

_SECTIONS = "enums records objects tables define choices calls steps also ghosts invariants unspecified questions"


def load(folder: Path | None = None) -> Spec:
    """Read `rules/*.yaml`, `profiles/*.yaml` and `sources.yaml` of a folder; without one, of this package."""
    root = resources.files("verbs_spec") if folder is None else folder
    registry = root.joinpath(sources.FILE)
    files = {sources.FILE: registry.read_text(encoding="utf-8")} if registry.is_file() else {}
    files |= {
        f"{part}/{each.name}": each.read_text(encoding="utf-8")
        for part in ("rules", "profiles")
        if root.joinpath(part).is_dir()
        for each in root.joinpath(part).iterdir()
        if each.name.endswith(".yaml")
    }
    shown = PurePath(str(root))
    return loads(files, folder=str(shown.relative_to(Path.cwd()) if shown.is_relative_to(Path.cwd()) else shown))


def loads(files: Mapping[str, str], *, folder: str = "") -> Spec:
    """Read files given by name and content: those below `profiles/` are profiles, `sources.yaml` lists the documents
    that may be cited (without it, any may), all others are rules.

    `folder` stands before the names in errors.
    """
    prefix = f"{folder}/" if folder else ""
    if all(_is_profile(file) or file == sources.FILE for file in files):
        raise SpecError("there are no rules; they are looked for in rules/*.yaml", Where(f"{prefix}rules", 1, 1))
    draft = _Draft()
    for file in sorted(files):
        root = read(files[file], prefix + file)
        if file == sources.FILE:
            draft.documents = sources.documents(root)
        elif _is_profile(file):
            draft.add_profile(profile_entries.profile(root, PurePath(file).stem))
        else:
            draft.add_rules(root, PurePath(file).stem)
    return check(draft.spec(digest(files)))


def digest(spec_files: Mapping[str, str]) -> str:
    """What tells two specifications apart: 12 hexadecimal digits over the files' names and contents.

    What documents are called and worth makes no other specification.
    """
    total = hashlib.sha256()
    for pair in sorted(pair for pair in spec_files.items() if pair[0] != sources.FILE):
        for part in pair:
            data = part.encode()
            total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()[:12]


def _is_profile(file: str) -> bool:
    return PurePath(file).parent.name == "profiles"


class _Draft:
    """Gathers the entries of all files, and sees that no name stands twice."""

    def __init__(self) -> None:
        self.summaries: dict[str, Text] = {}
        self.enums: dict[str, Enum] = {}
        self.records: dict[str, Kind] = {}
        self.objects: dict[str, Kind] = {}
        self.tables: dict[str, Table] = {}
        self.defines: dict[str, Define] = {}
        self.choices: dict[str, Choice] = {}
        self.calls: dict[str, Call] = {}
        self.families: dict[str, StepFamily] = {}
        self.ghosts: list[Ghost] = []
        self.invariants: list[Invariant] = []
        self.unspecified: list[Unspecified] = []
        self.questions: list[Question] = []
        self.profiles: dict[str, Profile] = {}
        self.documents: Mapping[str, Document] = {}
        self.additions = Additions()
        self._names: dict[str, Where] = {}
        self._ids: dict[str, Where] = {}
        self._calls: dict[str, Where] = {}
        self._families: dict[str, Where] = {}

    def add_profile(self, profile: Profile) -> None:
        self.profiles[profile.name] = profile

    def add_rules(self, root: Node, stem: str) -> None:
        """Add a rules file, named `stem`.yaml."""
        entry = Entry(root, f"the file {stem}.yaml", required="object summary", optional=_SECTIONS)
        found = entry.required("object", text)
        if found != stem:
            raise SpecError(
                f"object {str(found)!r} stands in the file {stem}.yaml; the two names must be equal",
                found.where,
            )
        if stem in self.summaries:
            raise SpecError(f"object {stem!r} has a file already, at {self.summaries[stem].where.file}", found.where)
        self.summaries[stem] = entry.required("summary", text)
        self._add_declarations(entry, stem)
        self._add_behaviour(entry, stem)
        self._add_remarks(entry, stem)

    def _add_behaviour(self, entry: Entry, stem: str) -> None:
        for name, node in entry.items("calls"):
            unique(name, self._calls, "the call")
            call = self.calls[name] = entries.call(name, node, stem)
            for rule in call.rules:
                if rule.rows is None:
                    unique(rule.id, self._ids, "the id")
        for name, node in entry.items("steps"):
            unique(name, self._families, "the family")
            family = self.families[name] = entries.family(name, node, stem)
            for step in family.rules:
                unique(step.id, self._ids, "the id")
        if "also" in entry:
            self.additions.note(entry.node_of("also"), stem)

    def _add_remarks(self, entry: Entry, stem: str) -> None:
        self.ghosts += (entries.ghost(node, stem) for node in entry.elements("ghosts"))
        for node in entry.elements("invariants"):
            self.invariants.append(entries.invariant(node, stem))
            unique(self.invariants[-1].id, self._ids, "the id")
        for node in entry.elements("unspecified"):
            self.unspecified.append(entries.unspecified(node, stem))
            unique(self.unspecified[-1].id, self._ids, "the id")
        for node in entry.elements("questions"):
            self.questions.append(questions.question(node, stem))
            unique(self.questions[-1].id, self._ids, "the id")

    def _add_declarations(self, entry: Entry, stem: str) -> None:
        for name, node in entry.items("enums"):
            enum = self.enums[name] = entries.enum(name, node, stem)
            for each in (name, *enum.values):
                unique(each, self._names, "the name")
        for name, node in entry.items("records"):
            self.records[name] = Kind(name, entries.fields(name, node, "a record"), stem)
            unique(name, self._names, "the name")
        for name, node in entry.items("objects"):
            self.objects[name] = Kind(name, entries.fields(name, node, "an object"), stem)
            unique(name, self._names, "the name")
        for name, node in entry.items("tables"):
            self.tables[name] = rows.table(name, node, stem)
            for define in rows.defines(self.tables[name]):
                self._add_define(define)
        for signature, node in entry.items("define"):
            self._add_define(entries.define(signature, node, stem))
        for name, node in entry.items("choices"):
            self.choices[name] = entries.choice(name, node, stem)
            unique(name, self._names, "the name")

    def _add_define(self, define: Define) -> None:
        self.defines[define.name] = define
        unique(define.name, self._names, "the name")

    def spec(self, digest: str) -> Spec:
        """All that was read, with what files add to others."""
        self.additions.to_enums(self.enums, lambda each: unique(each, self._names, "the name"))
        self.additions.to_kinds("records", self.records)
        self.additions.to_kinds("objects", self.objects)
        self.additions.to_calls(self.calls, lambda each: unique(each, self._ids, "the id"))
        self.additions.to_steps(self.families, lambda each: unique(each, self._ids, "the id"))
        for table in self.tables.values():
            rows.check_table(table, self.enums)
        rows.expand(self.calls, self.tables, lambda each: unique(each, self._ids, "the id"))
        return Spec(
            summaries=self.summaries,
            enums=self.enums,
            records=self.records,
            objects=self.objects,
            defines=self.defines,
            choices=self.choices,
            calls=self.calls,
            families=self.families,
            ghosts=tuple(self.ghosts),
            invariants=tuple(self.invariants),
            unspecified=tuple(self.unspecified),
            questions=tuple(self.questions),
            profiles=self.profiles,
            digest=digest,
            documents=self.documents,
            tables=self.tables,
        )
