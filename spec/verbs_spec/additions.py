"""What a file adds to something that another file declares: its section `also`.

So what belongs to one feature stands in one place, and the file that declares a verb need not know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from verbs_spec import entries, nodes
from verbs_spec.document import Call, CallRule, Enum, FieldDecl, Kind, Shape, StepFamily, StepRule
from verbs_spec.errors import SpecError, Where, listed, near
from verbs_spec.nodes import Entry, expression, names
from verbs_spec.text import Node, Text

T = TypeVar("T")
AnyT = TypeVar("AnyT", CallRule, StepRule, Shape)


class Additions:
    """The sections `also` of all files, read but not yet added; each with the file that it stands in."""

    def __init__(self) -> None:
        self._found: list[tuple[Entry, str]] = []

    def note(self, node: Node, file: str) -> None:
        """A file's section."""
        self._found.append((Entry(node, f"'also' of {file}.yaml", optional="enums records objects calls steps"), file))

    def _of(self, kind: str) -> Iterator[tuple[Text, Node, str]]:
        """The entries of a kind in all files."""
        for entry, file in self._found:
            for name, node in entry.items(kind):
                yield name, node, file

    def to_enums(self, enums: dict[str, Enum], taken: Callable[[Text], None]) -> None:
        """More enumerators; `taken` notes each of them."""
        for name, node, _ in self._of("enums"):
            enum = _declared(name, enums, "enum")
            more = names(node, f"what is added to enum {name}")
            for each in more:
                nodes.declared(each, f"an enumerator of {name}")
                taken(each)
            enums[name] = replace(enum, values=(*enum.values, *more))

    def to_kinds(self, section: str, kinds: dict[str, Kind]) -> None:
        """More fields of records or objects."""
        one = section.removesuffix("s")
        what = {"record": "a record", "object": "an object"}[one]
        for name, node, _ in self._of(section):
            kind = _declared(name, kinds, one)
            kinds[name] = replace(kind, fields=_joined(kind.fields, entries.fields(name, node, what), name))

    def to_calls(self, calls: dict[str, Call], taken: Callable[[Text], None]) -> None:
        """More parameters, outputs, shapes and rules; under the profiles of the addition unless they name their own."""
        for name, node, file in self._of("calls"):
            call = _declared(name, calls, "call")
            entry = Entry(
                node, f"what {file}.yaml adds to call {name}", optional="params outputs shapes rules across profile"
            )
            profile = entries.profiles(entry)
            limited: dict[str, tuple[Text, ...]] = {}
            params = _joined(call.params, entries.typed(entry, "params", limited, profile), name)
            outputs = _joined(call.outputs, entries.typed(entry, "outputs", limited, profile), name)
            shapes: dict[str, Shape] = {
                key: _under(entries.shape(key, each, name, params), profile) for key, each in entry.items("shapes")
            }
            rules = tuple(_under(entries.call_rule(each, name, file), profile) for each in entry.elements("rules"))
            _noted(rules, taken)
            calls[name] = replace(
                call,
                params=params,
                outputs=outputs,
                shapes=_joined(call.shapes, shapes, name),
                rules=(*call.rules, *rules),
                across=(*call.across, *(entry.optional("across", names) or ())),
                limited={**call.limited, **limited},
            )

    def to_steps(self, families: dict[str, StepFamily], taken: Callable[[Text], None]) -> None:
        """More names and rules."""
        for name, node, file in self._of("steps"):
            family = _declared(name, families, "family")
            entry = Entry(node, f"what {file}.yaml adds to family {name}", optional="let rules profile")
            profile = entries.profiles(entry)
            rules = tuple(_under(entries.step_rule(each, name, file), profile) for each in entry.elements("rules"))
            _noted(rules, taken)
            let: dict[str, Text] = {
                nodes.name(key, f"a name in 'let' of family {name}"): expression(value, f"{key!r} in 'let' of {name}")
                for key, value in entry.items("let")
            }
            families[name] = replace(family, let=_joined(family.let, let, name), rules=(*family.rules, *rules))


def _declared(name: Text, known: Mapping[str, T], kind: str) -> T:
    if name not in known:
        raise SpecError(
            f"'also' adds to the {kind} {str(name)!r}, which no file declares; known are {listed(known)}"
            f"{near(name, tuple(known))}",
            name.where,
        )
    return known[name]


def _joined(old: Mapping[str, T], new: Mapping[str, T], of: str) -> dict[str, T]:
    for key in new:
        if key in old and not _same(old[key], new[key]):
            where = key.where if isinstance(key, Text) else Where("", 0, 0)
            raise SpecError(f"'also' adds {str(key)!r} to {of}, which has it already", where)
    return {**old, **{key: value for key, value in new.items() if key not in old}}


def _same(old: object, new: object) -> bool:
    """Whether two files add the same: a parameter or output, or a field, of one type."""
    if isinstance(old, FieldDecl) and isinstance(new, FieldDecl):
        return old.type == new.type
    return isinstance(old, Text) and old == new


def _under(part: AnyT, profile: tuple[Text, ...]) -> AnyT:
    """The part, only under these profiles unless it names its own."""
    return part if part.profile or not profile else replace(part, profile=profile)


def _noted(rules: Iterable[CallRule | StepRule], taken: Callable[[Text], None]) -> None:
    for rule in rules:
        if not (isinstance(rule, CallRule) and rule.rows is not None):
            taken(rule.id)
