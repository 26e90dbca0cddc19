"""The names that expressions may use: enums, records, objects, defines, choices.

Built once from a loaded specification; resolves type texts.  Knows no verb, state or status by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from verbs_reference import types as t
from verbs_reference.types import Type
from verbs_spec.document import Define, Spec
from verbs_spec.errors import SpecError
from verbs_spec.text import Text

_MEMORY = re.compile(r"memory\(\s*(\w+)\s*,\s*(\w+)\s*\)")


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A field of an object: its type, the text of its initial value, and for memory the two bounds' names."""

    type: Type
    init: Text | None
    bounds: tuple[str, str] | None = None


@dataclass(slots=True)
class Vocabulary:
    """Everything that has a name in a specification."""

    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    enum_of: dict[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, Type]] = field(default_factory=dict)
    objects: dict[str, dict[str, FieldInfo]] = field(default_factory=dict)
    defines: dict[str, Define] = field(default_factory=dict)
    choices: dict[str, tuple[tuple[str, ...], bool]] = field(default_factory=dict)

    def resolve(self, text: Text) -> Type:
        """The type that a text names; SpecError at the text's place lists what is known."""
        words = text.split()
        if text in {"nat", "bool", "bytes", "spans"}:
            return Type(text)
        if text in self.enums:
            return Type("enum", text)
        if text in self.records:
            return Type("record", text)
        if len(words) == 2 and words[0] == "ref" and words[1] in self.objects:
            return Type("ref", words[1])
        if len(words) == 2 and words[0] == "flags" and words[1] in self.enums:
            return Type("flags", words[1])
        if len(words) >= 2 and words[0] == "queue":
            inner = text.split(None, 1)[1]
            elem = self.resolve(Text(inner, text.where))
            if elem.tag not in {"queue", "flags", "bytes", "spans"}:
                return Type("queue", "", elem)
        if _MEMORY.fullmatch(text):
            return Type("memory")
        known = ["nat", "bool", "bytes", "spans", *self.enums, *self.records]
        raise SpecError(
            f"{text!r} is not a type: a type is one of {', '.join(known)}, 'flags ENUM', 'queue TYPE', or "
            f"'ref OBJECT' with OBJECT one of {', '.join(self.objects)}",
            text.where,
        )

    def default(self, kind: Type) -> object:
        """The default value of a type."""
        return t.default(kind, self.enums, self.records)

    def optional(self, text: Text) -> tuple[Type, bool]:
        """The type of a parameter or output, and whether it may be absent, which a question mark says."""
        if text.endswith("?"):
            return self.resolve(text.part(0, len(text) - 1)), True
        return self.resolve(text), False

    def output(self, text: Text) -> tuple[Type, bool]:
        """The type of an output, which may be `found OBJECT`, an object that is there; and whether it may be absent."""
        words = text.split()
        return self.optional(Text(f"ref {words[1]}", text.where) if len(words) == 2 and words[0] == "found" else text)


def build(spec: Spec) -> Vocabulary:
    """Collect the names of a specification and resolve the types of records and objects."""
    voc = Vocabulary()
    for enum in spec.enums.values():
        voc.enums[str(enum.name)] = tuple(str(v) for v in enum.values)
        for value in enum.values:
            voc.enum_of[str(value)] = str(enum.name)
    for name in spec.records:
        voc.records[str(name)] = {}
    for name in spec.objects:
        voc.objects[str(name)] = {}
    for name, record in spec.records.items():
        voc.records[str(name)].update({str(f): voc.resolve(decl.type) for f, decl in record.fields.items()})
    for name, kind in spec.objects.items():
        for fname, decl in kind.fields.items():
            bounds = _MEMORY.fullmatch(decl.type)
            voc.objects[str(name)][str(fname)] = FieldInfo(
                voc.resolve(decl.type), decl.init, (bounds[1], bounds[2]) if bounds else None
            )
    voc.defines = {str(n): d for n, d in spec.defines.items()}
    voc.choices = {str(n): (tuple(str(o) for o in c.options), c.stable) for n, c in spec.choices.items()}
    return voc
