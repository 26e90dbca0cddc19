"""Readers of entries: from the nodes of a file to the parts of a specification.

What one entry may look like by itself is checked here; how entries must fit together, in verbs_spec.checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

from verbs_spec import nodes
from verbs_spec.document import (
    LEVELS,
    STATUSES,
    Binder,
    Call,
    CallRule,
    Choice,
    Define,
    Enum,
    FieldDecl,
    Ghost,
    Invariant,
    Level,
    Param,
    Shape,
    Status,
    StepFamily,
    StepRule,
    Take,
    Unspecified,
)
from verbs_spec.errors import SpecError, listed
from verbs_spec.nodes import Entry, expression, mapping, sequence, slug, text, texts
from verbs_spec.text import Map, Node, Text

_COMMON = "level status profile"
_SIGNATURE = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PARAM = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*(.*\S)\s*", re.DOTALL)


def enum(name: Text, node: Node, file: str) -> Enum:
    """An entry of `enums`."""
    nodes.declared(name, "an enum's name")
    values = tuple(nodes.declared(each, f"an enumerator of {name}") for each in texts(node, f"enum {name}"))
    return Enum(name, values, file)


def fields(name: Text, node: Node, what: str) -> dict[str, FieldDecl]:
    """The fields of an entry of `objects` or `records`."""
    nodes.declared(name, f"{what}'s name")
    return {
        key: _field(key, value, f"field {key} of {name}")
        for key, value in nodes.mapping(node, f"{what} {name}").items()
    }


def define(signature: Text, node: Node, file: str) -> Define:
    """An entry of `define`."""
    match = _SIGNATURE.fullmatch(signature)
    if not match:
        raise SpecError(f"the define {str(signature)!r}; its form is: name(parameter: type, ...)", signature.where)
    name = nodes.declared(signature.part(*match.span(1)), "a define's name")
    params: list[Param] = []
    start = match.start(2)
    for piece in match[2].split(",") if match[2].strip() else []:
        found = _PARAM.fullmatch(piece)
        if not found:
            place = signature.part(start, start + len(piece)).where
            raise SpecError(f"the parameter {piece.strip()!r} of {name}; its form is: name: type", place)
        param = Param(*(signature.part(start + found.start(i), start + found.end(i)) for i in (1, 2)))
        if any(param.name == each.name for each in params):
            raise SpecError(f"the parameter {str(param.name)!r} of {name} stands twice", param.name.where)
        params.append(param)
        start += len(piece) + 1
    return Define(name, tuple(params), expression(node, f"the body of {name}"), file)


def choice(name: Text, node: Node, file: str) -> Choice:
    """An entry of `choices`."""
    entry = Entry(
        node, f"choice {nodes.declared(name, 'the name of a choice')}", required="options stable says sources"
    )
    options = entry.required("options", nodes.names)
    if len(options) == 1:
        raise SpecError(
            f"choice {name} has one option, {options[0]}; where nothing is open write a rule",
            options[0].where,
        )
    return Choice(
        name,
        options,
        entry.required("stable", nodes.boolean),
        entry.required("says", text),
        entry.required("sources", texts),
        file,
    )


def call(name: Text, node: Node, file: str) -> Call:
    """An entry of `calls`."""
    nodes.name(name, "a call's name")
    entry = Entry(node, f"call {name}", required="rules", optional="params outputs profile shapes across gone")
    limited: dict[str, tuple[Text, ...]] = {}
    params = typed(entry, "params", limited)
    outputs = typed(entry, "outputs", limited)
    for key in outputs.keys() & params.keys():
        raise SpecError(f"{key!r} is both a parameter and an output of call {name}", outputs[key].where)
    shapes: dict[str, Shape] = {key: shape(key, node, name, params) for key, node in entry.items("shapes")}
    rules = tuple(call_rule(each, name, file) for each in entry.elements("rules"))
    across, gone = (_parameters(entry, key, name, params) for key in ("across", "gone"))
    return Call(name, params, outputs, shapes, profiles(entry), rules, file, across, gone, limited)


def _parameters(entry: Entry, key: str, call: Text, params: Mapping[str, Text]) -> tuple[Text, ...]:
    """A list of some of a call's parameters."""
    found = entry.optional(key, nodes.names) or ()
    for each in found:
        if each not in params:
            raise SpecError(
                f"{str(each)!r} in {key!r} of call {call} is no parameter; the parameters are {listed(params)}",
                each.where,
            )
    return tuple(found)


def family(name: Text, node: Node, file: str) -> StepFamily:
    """An entry of `steps`."""
    slug(name, "the name of a family of steps")
    entry = Entry(node, f"family {name}", required="for rules", optional="take let domain optional profile")
    return StepFamily(
        name,
        entry.required("for", _binder),
        entry.optional("take", _take),
        {
            nodes.name(key, f"a name in 'let' of family {name}"): expression(
                value, f"{key!r} in 'let' of family {name}"
            )
            for key, value in entry.items("let")
        },
        entry.optional("domain", expression),
        entry.optional("optional", nodes.boolean) or False,
        profiles(entry),
        tuple(step_rule(each, name, file) for each in entry.elements("rules")),
        file,
    )


def ghost(node: Node, file: str) -> Ghost:
    """An element of `ghosts`."""
    entry = Entry(node, "a ghost", required="at do")
    return Ghost(entry.required("at", nodes.slugs), entry.required("do", expression), file)


def invariant(node: Node, file: str) -> Invariant:
    """An element of `invariants`."""
    entry = Entry(node, _named("invariant", node), required="id holds says", optional="for profile")
    return Invariant(
        entry.required("id", slug),
        entry.required("holds", expression),
        entry.required("says", text),
        entry.optional("for", _binder),
        file,
        profiles(entry),
    )


def unspecified(node: Node, file: str) -> Unspecified:
    """An element of `unspecified`."""
    entry = Entry(node, _named("unspecified", node), required="id says reason sources")
    return Unspecified(
        entry.required("id", slug),
        entry.required("says", text),
        entry.required("reason", text),
        entry.required("sources", texts),
        file,
    )


def shape(name: Text, node: Node, call: str, params: Mapping[str, Text]) -> Shape:
    """An entry of `shapes`."""
    what = f"shape {nodes.name(name, f'the name of a shape of {call}')} of call {call}"
    found = mapping(node, what)
    menus: dict[str, tuple[Text, ...]] = {}
    only: tuple[Text, ...] = ()
    peril: Text | None = None
    for key, value in found.items():
        if key == "profile":
            only = texts(value, f"'profile' of {what}")
        elif key == "peril":
            peril = text(value, f"'peril' of {what}")
        elif key in params or key.startswith("_"):
            menu = f"{str(key)!r} of {what}"
            menus[key] = tuple(expression(each, f"an element of {menu}") for each in sequence(value, menu))
        else:
            raise SpecError(
                f"{what} gives a menu for {str(key)!r}; the parameters of {call} are {listed(params)}, and a "
                "name of its own begins with '_'",
                key.where,
            )
    return Shape(name, only, menus, peril)


def call_rule(node: Node, call: Text, file: str) -> CallRule:
    """A rule of a call."""
    of_rows = isinstance(node, Map) and "rows" in node  # then the rows have ids
    entry = Entry(
        node,
        _named("rule", node),
        required="rows sources says" if of_rows else "id sources says",
        optional=f"{_COMMON} when cause returns prefer outputs do undefined choice",
    )
    if of_rows and "cause" in entry:
        raise SpecError("a rule with 'rows' has a 'cause'; it stands for ways to succeed", entry.key("cause").where)
    return CallRule(
        call=call,
        when=entry.optional("when", expression),
        cause=entry.optional("cause", expression),
        returns=entry.optional("returns", nodes.results) or (),
        prefer=entry.optional("prefer", nodes.results) or (),
        outputs=entry.optional("outputs", expression),
        do=entry.optional("do", expression),
        undefined=entry.optional("undefined", expression),
        choice=entry.optional("choice", nodes.name),
        rows=entry.optional("rows", expression),
        **_common(entry, file),
    )


def step_rule(node: Node, family: Text, file: str) -> StepRule:
    """A rule of a family of steps."""
    entry = Entry(node, _named("rule", node), required="id sources says", optional=f"{_COMMON} when do")
    return StepRule(
        family=family,
        when=entry.optional("when", expression),
        do=entry.optional("do", expression),
        **_common(entry, file),
    )


class _Common(TypedDict):
    id: Text
    level: Level
    status: Status
    sources: tuple[Text, ...]
    says: Text
    profile: tuple[Text, ...]
    object: str


def _common(entry: Entry, file: str) -> _Common:
    return {
        "id": entry.required("id", slug) if "id" in entry else Text("a rule with rows", entry.where),
        "level": entry.optional("level", lambda node, what: nodes.word(node, what, LEVELS)) or "must",
        "status": entry.optional("status", lambda node, what: nodes.word(node, what, STATUSES)) or "draft",
        "sources": entry.required("sources", texts),
        "says": entry.required("says", text),
        "profile": profiles(entry),
        "object": file,
    }


def _field(name: Text, node: Node, what: str) -> FieldDecl:
    nodes.name(name, what)
    if isinstance(node, Map):
        entry = Entry(node, what, required="type", optional="init doc across")
        init = entry.optional("init", expression)
        across = entry.optional("across", nodes.boolean) or False
        return FieldDecl(name, entry.required("type", text), init, entry.optional("doc", text), across)
    return FieldDecl(name, text(node, f"the type of {what}"))


def typed(
    entry: Entry, key: str, limited: dict[str, tuple[Text, ...]], common: tuple[Text, ...] = ()
) -> dict[str, Text]:
    """Names with types; `limited` gets the profiles of those that not all have, `common` where none are named."""
    found: dict[str, Text] = {}
    for each, node in entry.items(key):
        name = nodes.name(each, f"a name in {key!r} of {entry.what}")
        if isinstance(node, Map):
            own = Entry(node, f"{str(each)!r} in {key!r} of {entry.what}", required="type profile")
            found[name] = own.required("type", text)
            limited[name] = own.required("profile", texts)
        else:
            found[name] = text(node, f"the type of {str(each)!r}")
            if common:
                limited[name] = common
    return found


def profiles(entry: Entry) -> tuple[Text, ...]:
    """The profiles without which an entry is left out."""
    return entry.optional("profile", texts) or ()


def _binder(node: Node, what: str) -> Binder:
    return Binder(*nodes.matched(node, what, nodes.BINDER, "name in object"))


def _take(node: Node, what: str) -> Take:
    return Take(*nodes.matched(node, what, nodes.TAKE, "name = queue"))


def _named(what: str, node: Node) -> str:
    """What errors call a rule: with its id, if it has one."""
    found = node.get(Text("id", node.where)) if isinstance(node, Map) else None
    return f"{what} {found}" if isinstance(found, Text) and found else f"a {what} without id"
