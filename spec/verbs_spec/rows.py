"""Tables of a rules file: how they are read, and what they stand for.

A row says what holds for some combinations of enumerators.  A table makes defines, so that expressions can look it up,
and a rule of a call with `rows` stands for one rule a row.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from verbs_spec import nodes
from verbs_spec.document import LEVELS, STATUSES, Call, CallRule, Define, Enum, Param, Row, Table
from verbs_spec.errors import SpecError, listed, near
from verbs_spec.markdown import code, prose
from verbs_spec.markdown import table as markdown_table
from verbs_spec.nodes import Entry, slug, text, texts
from verbs_spec.text import Map, Node, Text

_ROW = "says sources level status profile"
_SLOT = re.compile(r"\{(\w+)\}")


def table(name: Text, node: Node, file: str) -> Table:
    """An entry of `tables`."""
    what = f"table {nodes.declared(name, 'the name of a table')}"
    entry = Entry(node, what, required="says keys columns rows")
    keys, columns = (_enums(entry, key) for key in ("keys", "columns"))
    if both := next((key for key in columns if key in keys), None):
        raise SpecError(f"{str(both)!r} is both a key and a column of {what}", both.where)
    rows = tuple(_row(each, name, keys, columns) for each in entry.elements("rows"))
    return Table(name, entry.required("says", text), keys, columns, rows, file)


def check_table(made: Table, enums: Mapping[str, Enum]) -> None:
    """That its words are enumerators, and that no combination of keys has two rows."""
    for owner in (made.keys, made.columns):
        for enum in owner.values():
            _known(enum, tuple(enums), f"table {made.name}", "enum")
    seen: dict[tuple[str, ...], Row] = {}
    for row in made.rows:
        for name, words in (*row.keys.items(), *row.cells.items()):
            enum = made.keys[name] if name in made.keys else made.columns[name]
            for word in words:
                _known(word, enums[enum].values, f"{str(name)!r} of row {row.id}", f"enumerator of {enum}")
        for each in product(*(row.keys.get(key) or enums[enum].values for key, enum in made.keys.items())):
            other = seen.setdefault(tuple(map(str, each)), row)
            if other is not row:
                raise SpecError(f"rows {other.id} and {row.id} are both for {', '.join(each)}", row.id.where)


def defines(made: Table) -> Iterator[Define]:
    """What expressions look a table up with: whether there is a row, and for each column what stands there."""
    params = tuple(Param(key, enum) for key, enum in made.keys.items())

    def body(words: str) -> Text:
        return Text(words, made.name.where, quoted=True)

    own = {str(key): str(key) for key in made.keys}
    there = " or ".join(_matches(row, own) for row in made.rows) or "false"
    yield Define(made.name, params, body(there), made.object, made=True)
    for column in made.columns:
        rows: dict[tuple[Text, ...], list[str]] = {}
        for row in made.rows:
            if row.cells.get(column):
                rows.setdefault(row.cells[column], []).append(_matches(row, own))
        parts = [f"{{{', '.join(words)}}} if {' or '.join(tests)} else " for words, tests in rows.items()]
        name = Text(f"{made.name}_{column}", column.where)
        flags = Text(f"flags {made.columns[column]}", column.where)
        yield Define(name, params, body("".join(parts) + "{}") if parts else body("{}"), made.object, flags, made=True)


def expand(calls: dict[str, Call], tables: Mapping[str, Table], taken: Callable[[Text], None]) -> None:
    """Put one rule a row in the place of every rule with `rows`; `taken` notes their ids."""
    for name, call in calls.items():
        if any(rule.rows is not None for rule in call.rules):
            rules: list[CallRule] = []
            for rule in call.rules:
                made = [rule] if rule.rows is None else list(_rules(rule, rule.rows, tables))
                rules += made
                for each in made if rule.rows is not None else ():
                    taken(each.id)
            calls[name] = replace(call, rules=tuple(rules))


def rendered(made: Table) -> list[str]:
    """A table as it stands, one line a row; for all enumerators where a key says nothing."""
    rows = (
        [
            code(row.id),
            *(", ".join(row.keys.get(key, ("any",))) for key in made.keys),
            *(", ".join(row.cells.get(column, ("-",))) for column in made.columns),
        ]
        for row in made.rows
    )
    heads = ["row", *map(str, (*made.keys, *made.columns))]
    return [f"## Table `{made.name}`\n", f"{prose(made.says)}\n", markdown_table(heads, rows)]


def _rules(rule: CallRule, rows: Text, tables: Mapping[str, Table]) -> Iterator[CallRule]:
    try:
        tree = ast.parse(rows.strip(), mode="eval").body
    except SyntaxError:
        tree = None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
        raise SpecError(f"'rows' of a rule is {str(rows)!r}; its form is: table(expression, ...)", rows.where)
    _known(Text(tree.func.id, rows.where), tuple(tables), "'rows' of a rule", "table")
    made = tables[tree.func.id]
    if len(tree.args) != len(made.keys):
        raise SpecError(
            f"'rows' of a rule gives table {made.name} {len(tree.args)} keys; they are {listed(made.keys)}", rows.where
        )
    source = rows.strip()
    pieces = [ast.get_source_segment(source, each) or "" for each in tree.args]
    args = {str(key): f"({piece})" for key, piece in zip(made.keys, pieces, strict=True)}
    for row in made.rows:
        guard = _matches(row, args)
        when = f"{guard} and ({rule.when.strip()})" if rule.when is not None else guard
        yield replace(
            rule,
            id=row.id,
            when=Text(when, rows.where, quoted=True),
            says=row.says or _told(rule.says, row, made),
            sources=tuple(dict.fromkeys((*row.sources, *rule.sources))),
            level=row.level or rule.level,
            status=row.status or rule.status,
            profile=row.profile or rule.profile,
        )


def _told(says: Text, row: Row, made: Table) -> Text:
    """What the rule says of a row: `{key}` and `{column}` filled in."""

    filled = {str(key): " or ".join(row.keys.get(key) or ("any",)) for key in made.keys}
    filled |= {str(column): ", ".join(row.cells.get(column, ())) or "nothing" for column in made.columns}
    for name in _SLOT.findall(says):
        if name not in filled:
            raise SpecError(
                f"'says' of a rule with 'rows' has '{{{name}}}'; table {made.name} has {listed(filled)}", says.where
            )
    return Text(_SLOT.sub(lambda match: filled[match[1]], says), says.where, quoted=says.quoted)


def _matches(row: Row, args: Mapping[str, str]) -> str:
    """The test of a row's keys, each against its expression in `args`."""
    tests = []
    for key, words in row.keys.items():
        left = args[str(key)]
        tests.append(f"{left} == {words[0]}" if len(words) == 1 else f"{left} in ({', '.join(words)})")
    return "(" + (" and ".join(tests) or "true") + ")"


def _row(node: Node, of: Text, keys: Mapping[Text, Text], columns: Mapping[Text, Text]) -> Row:
    found = node.get(Text("id", node.where)) if isinstance(node, Map) else None
    what = f"row {found} of table {of}" if isinstance(found, Text) and found else f"a row of table {of}"
    entry = Entry(node, what, required="id", optional=" ".join([*keys, *columns, *_ROW.split()]))
    return Row(
        entry.required("id", slug),
        {key: entry.required(key, _words) for key in keys if key in entry},
        {key: entry.required(key, _words) for key in columns if key in entry},
        entry.optional("says", text),
        entry.optional("sources", texts) or (),
        entry.optional("level", lambda node, what: nodes.word(node, what, LEVELS)),
        entry.optional("status", lambda node, what: nodes.word(node, what, STATUSES)),
        entry.optional("profile", texts) or (),
    )


def _words(node: Node, what: str) -> tuple[Text, ...]:
    return (nodes.name(node, what),) if isinstance(node, Text) else nodes.names(node, what)


def _enums(entry: Entry, key: str) -> dict[Text, Text]:
    return {
        nodes.declared(name, f"a name in {key!r}"): nodes.name(node, f"{key}'s {name}")
        for name, node in entry.items(key)
    }


def _known(word: Text, known: Sequence[str], what: str, kind: str) -> None:
    if word not in known:
        raise SpecError(
            f"{what} names {str(word)!r}, which is no {kind}; known are {listed(known)}{near(word, known)}", word.where
        )
