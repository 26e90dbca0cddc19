"""Malformed inputs, one a row: a label, the file mr.yaml (or files by name), the error it must give."""

from collections.abc import Mapping
from textwrap import indent

import pytest
import yaml

from verbs_spec import SpecError, loads

HEAD = "object: mr\nsummary: A region.\n"  # two lines, so that what follows begins on line 3
IB = "profile: ib\nkind: transport\nsummary: InfiniBand.\n"
USER = "profile: linux-user\nkind: api\nsummary: libibverbs.\n"

OK = '{id: mr/ok, sources: [man], says: It works., returns: ["0"]}'
STEP = "{id: reg/done, sources: [man], says: It is done., do: pop(q.sq)}"
FAMILY = f"objects:\n  qp: {{sq: nat}}\nsteps:\n  sq/exec:\n    for: q in qp\n    rules: [{STEP}]\n"
COMMON = "{id: mr/x, sources: [man], says: S., "


def doc(text: str) -> str:
    """A rules file with the heads it must have; the text begins on line 3."""
    return HEAD + text


def call(rule: str) -> str:
    """A rules file with one call; the given rule begins on line 6, column 9, and a good one follows it."""
    first = indent(rule, " " * 8).lstrip()
    return doc(f"calls:\n  dereg_mr:\n    rules:\n      - {first}\n      - {OK}\n")


def rule(text: str) -> str:
    """The same, with the keys that every rule must have; what is given begins on line 9."""
    return call(f"id: mr/x\nsources: [man]\nsays: S.\n{text}")


def redefinition(*texts: str) -> Mapping[str, str]:
    """A rules file with the define f, and a profile with these redefinitions, the first on line 5."""
    rows = "".join(f"  - {{{text}, says: S., sources: [man]}}\n" for text in texts)
    rules = doc(f'define: {{"f(a: nat)": "a"}}\ncalls:\n  a: {{rules: [{OK}]}}\n')
    return {"rules/mr.yaml": rules, "profiles/ib.yaml": f"{IB}defines:\n{rows}"}


def delta(*texts: str) -> Mapping[str, str]:
    """A rules file, and a profile with these deltas, the first on line 5."""
    rows = "".join(f"  - {{{text}, says: S., sources: [man]}}\n" for text in texts)
    rules = doc(f"calls:\n  a: {{rules: [{OK}]}}\n{FAMILY}")
    return {"rules/mr.yaml": rules, "profiles/ib.yaml": f"{IB}deltas:\n{rows}"}


def question(text: str) -> str:
    """A rules file with one call and one question; what is given begins on line 6, column 6."""
    return doc(f"calls:\n  a: {{rules: [{OK}]}}\nquestions:\n  - {{{text}}}\n")


ROWS: list[tuple[str, str | Mapping[str, str], str]] = [
    # YAML
    ("empty file", "", "rules/mr.yaml:1:1: the file is empty"),
    ("a comment only", "# nothing\n", "rules/mr.yaml:1:1: the file is empty"),
    ("not a mapping", "- object\n", "rules/mr.yaml:1:1: the file mr.yaml is a list; it must be a mapping"),
    (
        "duplicate key",
        doc("enums: {}\nrecords: {}\nenums: {}"),
        "rules/mr.yaml:5:1: the key 'enums' stands twice in one mapping, first at rules/mr.yaml:3:1",
    ),
    (
        "duplicate key in flow",
        doc('define: {"a()": "1", "a()": "2"}'),
        "rules/mr.yaml:3:22: the key 'a()' stands twice in one mapping, first at rules/mr.yaml:3:10",
    ),
    (
        "anchor",
        doc("records: &all {}"),
        "rules/mr.yaml:3:10: an anchor (&all); a rule must be readable where it stands: leave it out",
    ),
    (
        "alias",
        doc("enums: {}\nrecords: *all"),
        "rules/mr.yaml:4:10: an alias (*all); a rule must be readable where it stands: write it out",
    ),
    (
        "tag",
        doc("enums: {a: [!!str X]}"),
        "rules/mr.yaml:3:13: a tag (tag:yaml.org,2002:str); every scalar is text: leave it out",
    ),
    (
        "merge key",
        doc("objects:\n  mr:\n    <<: {a: nat}"),
        "rules/mr.yaml:5:5: a merge key (<<); a rule must be readable where it stands: write it out",
    ),
    (
        "two documents",
        doc("---\nobject: qp"),
        "rules/mr.yaml:3:1: a second document begins; a file holds one",
    ),
    (
        "a list as key",
        doc("define:\n  [a, b]: x"),
        "rules/mr.yaml:4:3: a list as a key; a key is text (an expression must be quoted)",
    ),
    (
        "open flow",
        doc("enums: {a: [X"),
        "rules/mr.yaml:3:14: not YAML: while parsing a flow sequence expected ',' or ']', but got "
        "'<stream end>' (an expression must be quoted or be a block scalar)",
    ),
    (
        "open quote",
        doc('define: {"a(): "1"'),
        "rules/mr.yaml:3:17: not YAML: while parsing a flow mapping expected ',' or '}', but got "
        "'<scalar>' (an expression must be quoted or be a block scalar)",
    ),
    (
        "half quoted expression",
        call("id: mr/x\ncause: 'a' == b"),
        "rules/mr.yaml:7:20: not YAML: while parsing a block mapping expected <block end>, but found "
        "'<scalar>' (an expression must be quoted or be a block scalar)",
    ),
    (
        "colon in plain text",
        doc("define:\n  ok(m: ref mr): x"),
        "rules/mr.yaml:4:16: not YAML: mapping values are not allowed here (an expression must be "
        "quoted or be a block scalar)",
    ),
    (
        "tab",
        doc("enums:\n\ta: [X]"),
        "rules/mr.yaml:4:1: not YAML: while scanning for the next token found character '\\t' that "
        "cannot start any token (an expression must be quoted or be a block scalar)",
    ),
    (
        "control character",
        doc("enums: {a: [X\x01]}"),
        "rules/mr.yaml:3:14: not YAML: the character U+0001 is not allowed",
    ),
    # Keys and kinds of node
    (
        "unknown key of the file",
        doc("enum: {}"),
        "rules/mr.yaml:3:1: unknown key 'enum' in the file mr.yaml; the keys are object, summary, "
        "enums, records, objects, tables, define, choices, calls, steps, also, ghosts, invariants, unspecified, "
        "questions; did you mean 'enums'?",
    ),
    (
        "unknown key of a rule",
        rule("retruns: [EINVAL]"),
        "rules/mr.yaml:9:9: unknown key 'retruns' in rule mr/x; the keys are id, sources, says, "
        "level, status, profile, when, cause, returns, prefer, outputs, do, undefined, choice; did "
        "you mean 'returns'?",
    ),
    (
        "missing object",
        "summary: S.\n",
        "rules/mr.yaml:1:1: the file mr.yaml lacks object; it must have object, summary",
    ),
    (
        "missing keys of a rule",
        call("id: mr/x\nreturns: [EINVAL]"),
        "rules/mr.yaml:6:9: rule mr/x lacks sources, says; it must have id, sources, says",
    ),
    (
        "a rule without id",
        call("says: S."),
        "rules/mr.yaml:6:9: a rule without id lacks id, sources; it must have id, sources, says",
    ),
    (
        "list instead of text",
        "object: [mr]\nsummary: S.\n",
        "rules/mr.yaml:1:9: 'object' of the file mr.yaml is a list; it must be text",
    ),
    (
        "text instead of a mapping",
        doc("enums: none"),
        "rules/mr.yaml:3:8: 'enums' of the file mr.yaml is the text 'none'; it must be a mapping",
    ),
    (
        "text instead of a list",
        call("id: mr/x\nsources: man\nsays: S.\nreturns: [EINVAL]"),
        "rules/mr.yaml:7:18: 'sources' of rule mr/x is the text 'man'; it must be a list",
    ),
    (
        "empty value",
        "object: mr\nsummary:\n",
        "rules/mr.yaml:2:9: 'summary' of the file mr.yaml is empty; it must be text",
    ),
    (
        "empty list",
        call("id: mr/x\nsources: []\nsays: S.\nreturns: [EINVAL]"),
        "rules/mr.yaml:7:18: 'sources' of rule mr/x is an empty list; it must name at least one",
    ),
    (
        "twice in a list",
        rule("returns: [EINVAL, EBUSY, EINVAL]"),
        "rules/mr.yaml:9:34: 'returns' of rule mr/x names 'EINVAL' twice",
    ),
    # Expressions that YAML would take apart
    (
        "comma in plain expression",
        rule("cause: any(m, n)"),
        "rules/mr.yaml:9:16: 'cause' of rule mr/x is not quoted and contains ',', where YAML may end "
        "it early: quote it, or write it as a block scalar",
    ),
    (
        "braces",
        rule("cause: x\nundefined: {mr, qp}"),
        "rules/mr.yaml:10:20: 'undefined' of rule mr/x is a mapping; it must be an expression: quote "
        "it, or write it as a block scalar",
    ),
    (
        "brackets",
        rule("cause: [m for m in mr]"),
        "rules/mr.yaml:9:16: 'cause' of rule mr/x is a list; it must be an expression: quote it, or "
        "write it as a block scalar",
    ),
    (
        "hash",
        rule("cause: m.a#b == 1"),
        "rules/mr.yaml:9:16: 'cause' of rule mr/x is not quoted and contains '#', where YAML may end "
        "it early: quote it, or write it as a block scalar",
    ),
    (
        "flow cut at a comma",
        doc(f"calls:\n  c:\n    rules: [{COMMON}cause: any(a, b), returns: [EIO]}}]"),
        "rules/mr.yaml:5:64: unknown key 'b)' in rule mr/x; the keys are id, sources, says, level, "
        "status, profile, when, cause, returns, prefer, outputs, do, undefined, choice (if it is the "
        "rest of an expression cut at a comma: quote it, or write it as a block scalar)",
    ),
    (
        "flow cut in let",
        doc(FAMILY.replace("    rules", "    let: {m: lookup(a, index(b))}\n    rules")),
        "rules/mr.yaml:8:24: a name in 'let' of family sq/exec is 'index(b))'; a name has letters, "
        "digits and underscores (an expression must be quoted)",
    ),
    (
        "empty expression",
        rule("cause: ''"),
        "rules/mr.yaml:9:16: 'cause' of rule mr/x is empty; it must be an expression",
    ),
    # Words, names, ids
    (
        "level",
        call("id: mr/x\nlevel: Must\nsources: [man]\nsays: S.\nreturns: [EIO]"),
        "rules/mr.yaml:7:16: 'level' of rule mr/x is 'Must'; it may be must, should, may; did you mean 'must'?",
    ),
    (
        "status",
        call("id: mr/x\nstatus: done\nsources: [man]\nsays: S.\nreturns: [EIO]"),
        "rules/mr.yaml:7:17: 'status' of rule mr/x is 'done'; it may be draft, reviewed, disputed",
    ),
    (
        "stable",
        doc("choices:\n  c: {options: [a, b], stable: yes, says: S., sources: [man]}"),
        "rules/mr.yaml:4:32: 'stable' of choice c is 'yes'; it may be true, false",
    ),
    (
        "one option",
        doc("choices:\n  c: {options: [a], stable: true, says: S., sources: [man]}"),
        "rules/mr.yaml:4:17: choice c has one option, a; where nothing is open write a rule",
    ),
    (
        "id in upper case",
        call("id: MR/x\nsources: [man]\nsays: S.\nreturns: [EIO]"),
        "rules/mr.yaml:6:13: 'id' of rule MR/x is 'MR/x'; an id is object/case, in lower-case "
        "letters, digits and dashes",
    ),
    (
        "id with underscore",
        call("id: mr/a_b\nsources: [man]\nsays: S.\nreturns: [EIO]"),
        "rules/mr.yaml:6:13: 'id' of rule mr/a_b is 'mr/a_b'; an id is object/case, in lower-case "
        "letters, digits and dashes",
    ),
    (
        "id without object",
        call("id: x\nsources: [man]\nsays: S.\nreturns: [EIO]"),
        "rules/mr.yaml:6:13: 'id' of rule x is 'x'; an id is object/case, in lower-case letters, digits and dashes",
    ),
    (
        "family's name",
        doc("steps:\n  exec: {for: q in qp, rules: []}"),
        "rules/mr.yaml:4:3: the name of a family of steps is 'exec'; an id is object/case, in "
        "lower-case letters, digits and dashes",
    ),
    (
        "field's name",
        doc("objects:\n  mr: {a-b: nat}"),
        "rules/mr.yaml:4:8: field a-b of mr is 'a-b'; a name has letters, digits and underscores (an "
        "expression must be quoted)",
    ),
    (
        "reserved name",
        doc("objects:\n  queue: {a: nat}"),
        "rules/mr.yaml:4:3: an object's name is 'queue', a word of the expression language; choose another",
    ),
    (
        "errno",
        rule("returns: [EINVALID]"),
        "rules/mr.yaml:9:19: 'returns' of rule mr/x names 'EINVALID'; a call returns 0 or the name of "
        "an errno; did you mean 'EINVAL' or 'ENAVAIL'?",
    ),
    (
        "negative errno",
        rule("returns: ['-1']"),
        "rules/mr.yaml:9:19: 'returns' of rule mr/x names '-1'; a call returns 0 or the name of an errno",
    ),
    (
        "signature",
        doc('define:\n  "ok m": x'),
        "rules/mr.yaml:4:3: the define 'ok m'; its form is: name(parameter: type, ...)",
    ),
    (
        "parameter without type",
        doc('define:\n  "ok(m: ref mr, n)": x'),
        "rules/mr.yaml:4:18: the parameter 'n' of ok; its form is: name: type",
    ),
    (
        "parameter twice",
        doc('define:\n  "ok(m: nat, m: nat)": x'),
        "rules/mr.yaml:4:15: the parameter 'm' of ok stands twice",
    ),
    (
        "binder",
        doc(FAMILY.replace("q in qp", "each q of qp")),
        "rules/mr.yaml:7:10: 'for' of family sq/exec is 'each q of qp'; its form is: name in object",
    ),
    (
        "take",
        doc(FAMILY.replace("    rules", "    take: q.sq\n    rules")),
        "rules/mr.yaml:8:11: 'take' of family sq/exec is 'q.sq'; its form is: name = queue",
    ),
    # Within a call, a family
    (
        "no success",
        doc(f"calls:\n  c:\n    rules: [{COMMON}cause: a, returns: [EIO]}}]"),
        "rules/mr.yaml:4:3: call c has no rule without 'cause'; one must say how it succeeds",
    ),
    (
        "undefined and returns",
        rule("cause: a\nreturns: [EIO]\nundefined: b"),
        "rules/mr.yaml:6:13: rule mr/x has both 'undefined' and 'returns'; where the consumer broke "
        "its duty no result is judged: keep one",
    ),
    (
        "neither",
        rule("cause: a"),
        "rules/mr.yaml:6:13: rule mr/x has neither 'returns' nor 'undefined'; it must have one of them",
    ),
    (
        "cause and when",
        rule("cause: a\nwhen: b\nreturns: [EIO]"),
        "rules/mr.yaml:6:13: rule mr/x has both 'cause' and 'when'; 'cause' makes it a failure, "
        "'when' one of several successes: keep one",
    ),
    (
        "undefined without cause",
        rule("undefined: b"),
        "rules/mr.yaml:6:13: rule mr/x has 'undefined' without 'cause'; the cause must say what the consumer did",
    ),
    (
        "choice without when",
        rule("choice: c\nreturns: ['0']"),
        "rules/mr.yaml:6:13: rule mr/x has 'choice' without 'cause' or 'when'; one of them must say "
        "which option it is for",
    ),
    (
        "prefer",
        rule("cause: a\nreturns: [EIO]\nprefer: [EINVAL]"),
        "rules/mr.yaml:11:18: rule mr/x prefers EINVAL, which it does not return; it returns EIO",
    ),
    (
        "two successes",
        rule("returns: ['0']\nwhen: a"),
        "rules/mr.yaml:11:14: call dereg_mr has several rules without 'cause', and mr/ok has no "
        "'when'; each must say when it applies",
    ),
    (
        "output and parameter",
        doc(f"calls:\n  c:\n    params: {{a: nat}}\n    outputs: {{a: nat}}\n    rules: [{OK}]"),
        "rules/mr.yaml:6:18: 'a' is both a parameter and an output of call c",
    ),
    (
        "across what is no parameter",
        doc(f"calls:\n  c:\n    params: {{a: nat}}\n    across: [a, b]\n    rules: [{OK}]"),
        "rules/mr.yaml:6:17: 'b' in 'across' of call c is no parameter; the parameters are a",
    ),
    (
        "gone what is no parameter",
        doc(f"calls:\n  c:\n    params: {{a: nat}}\n    gone: [a, b]\n    rules: [{OK}]"),
        "rules/mr.yaml:6:15: 'b' in 'gone' of call c is no parameter; the parameters are a",
    ),
    (
        "a field that is across a word",
        doc("objects:\n  qp: {peer: {type: ref qp, across: far}}"),
        "rules/mr.yaml:4:37: 'across' of field peer of qp is 'far'; it may be true, false",
    ),
    (
        "shape of an unknown parameter",
        doc(f"calls:\n  c:\n    params: {{a: nat}}\n    shapes: {{s: {{b: ['1']}}}}\n    rules: [{OK}]"),
        "rules/mr.yaml:6:18: shape s of call c gives a menu for 'b'; the parameters of c are a, and a name "
        "of its own begins with '_'",
    ),
    (
        "shape without a list",
        doc(f"calls:\n  c:\n    params: {{a: nat}}\n    shapes: {{s: {{a: '1'}}}}\n    rules: [{OK}]"),
        "rules/mr.yaml:6:21: 'a' of shape s of call c is the text '1'; it must be a list",
    ),
    (
        "shape with an empty list",
        doc(f"calls:\n  c:\n    params: {{a: nat}}\n    shapes: {{s: {{a: []}}}}\n    rules: [{OK}]"),
        "rules/mr.yaml:6:14: shape s of call c gives 'a' an empty list; it must have a value",
    ),
    (
        "unknown profile of a shape",
        doc(f"calls:\n  c:\n    shapes: {{s: {{profile: [x]}}}}\n    rules: [{OK}]"),
        "rules/mr.yaml:5:28: 'profile' of shape s of call c names the profile 'x', which nothing declares; "
        "known are (none)",
    ),
    (
        "family without rules",
        doc("objects: {qp: {a: nat}}\nsteps:\n  sq/exec: {for: q in qp, rules: []}"),
        "rules/mr.yaml:5:3: family sq/exec has no rules; it must have at least one",
    ),
    (
        "two cases without when",
        doc(FAMILY.replace(STEP, f"{STEP}, {STEP.replace('done', 'not')}")),
        "rules/mr.yaml:8:18: family sq/exec has several rules, and reg/done has no 'when'; each must "
        "say when it applies",
    ),
    # Between entries and files
    (
        "file's name",
        "object: qp\nsummary: S.\n",
        "rules/mr.yaml:1:9: object 'qp' stands in the file mr.yaml; the two names must be equal",
    ),
    (
        "id twice in a file",
        call("id: mr/ok\nsources: [man]\nsays: S.\ncause: a\nreturns: [EIO]"),
        "rules/mr.yaml:11:14: the id 'mr/ok' is there already, at rules/mr.yaml:6:13",
    ),
    (
        "id twice in two files",
        {
            "rules/mr.yaml": doc(f"calls:\n  a: {{rules: [{OK}]}}"),
            "rules/qp.yaml": doc(f"calls:\n  b: {{rules: [{OK}]}}").replace("object: mr", "object: qp"),
        },
        "rules/qp.yaml:4:20: the id 'mr/ok' is there already, at rules/mr.yaml:4:20",
    ),
    (
        "object in two files",
        {"rules/mr.yaml": HEAD, "rules/more/mr.yaml": HEAD},
        "rules/mr.yaml:1:9: object 'mr' has a file already, at rules/more/mr.yaml",
    ),
    (
        "call twice",
        {
            "rules/mr.yaml": doc(f"calls:\n  a: {{rules: [{OK}]}}"),
            "rules/qp.yaml": doc(f"calls:\n  a: {{rules: [{OK}]}}").replace("object: mr", "object: qp"),
        },
        "rules/qp.yaml:4:3: the call 'a' is there already, at rules/mr.yaml:4:3",
    ),
    (
        "enumerator in two enums",
        doc("enums:\n  a: [X, Y]\n  b: [Z, Y]"),
        "rules/mr.yaml:5:10: the name 'Y' is there already, at rules/mr.yaml:4:10",
    ),
    (
        "enum and record of one name",
        doc("enums:\n  a: [X]\nrecords:\n  a: {f: nat}"),
        "rules/mr.yaml:6:3: the name 'a' is there already, at rules/mr.yaml:4:3",
    ),
    (
        "two defines of one name",
        doc('define:\n  "f(a: nat)": "a"\n  "f()": "1"'),
        "rules/mr.yaml:5:4: the name 'f' is there already, at rules/mr.yaml:4:4",
    ),
    (
        "unknown object in for",
        doc(FAMILY.replace("q in qp", "q in q_pair")),
        "rules/mr.yaml:7:15: 'for' of family sq/exec names the object 'q_pair', which nothing declares; known are qp",
    ),
    (
        "unknown object of an invariant",
        doc("invariants:\n  - {id: mr/i, holds: a, says: S., for: m in mw}"),
        "rules/mr.yaml:4:46: 'for' of invariant mr/i names the object 'mw', which nothing declares; known are (none)",
    ),
    (
        "unknown rule of a ghost",
        doc(FAMILY + "ghosts:\n  - {at: [reg/don], do: a = 1}"),
        "rules/mr.yaml:10:11: 'at' of a ghost names the rule 'reg/don', which nothing declares; known "
        "are reg/done; did you mean 'reg/done'?",
    ),
    (
        "unknown choice",
        rule("cause: a\nchoice: bound\nreturns: [EIO]"),
        "rules/mr.yaml:10:17: 'choice' of rule mr/x names the choice 'bound', which nothing declares; known are (none)",
    ),
    (
        "unknown profile of a rule",
        {
            "rules/mr.yaml": rule("profile: [linux]\ncause: a\nreturns: [EIO]"),
            "profiles/linux-user.yaml": USER,
            "profiles/ib.yaml": IB,
        },
        "rules/mr.yaml:9:19: 'profile' of rule mr/x names the profile 'linux', which nothing "
        "declares; known are ib, linux-user; did you mean 'linux-user'?",
    ),
    (
        "no rules",
        {"profiles/ib.yaml": IB},
        "rules:1:1: there are no rules; they are looked for in rules/*.yaml",
    ),
    # Profiles
    (
        "profile's file",
        {"rules/mr.yaml": HEAD, "profiles/roce.yaml": IB},
        "profiles/roce.yaml:1:10: profile 'ib' stands in the file roce.yaml; the two names must be equal",
    ),
    (
        "profile's kind",
        {"rules/mr.yaml": HEAD, "profiles/ib.yaml": IB.replace("transport", "fabric")},
        "profiles/ib.yaml:2:7: 'kind' of profile ib is 'fabric'; it may be api, transport, feature",
    ),
    (
        "what only a feature has",
        {"rules/mr.yaml": HEAD, "profiles/ib.yaml": f"{IB}status: draft\n"},
        "profiles/ib.yaml:1:1: profile ib is of kind transport, and only a feature has 'status': leave it out",
    ),
    (
        "delta of an unknown rule",
        delta("rule: mr/okay, field: returns, value: [EIO]"),
        "profiles/ib.yaml:5:12: a delta of profile ib names the rule 'mr/okay', which nothing "
        "declares; known are mr/ok, reg/done; did you mean 'mr/ok'?",
    ),
    (
        "delta of an unknown field",
        delta("rule: mr/ok, field: says, value: S."),
        "profiles/ib.yaml:5:26: 'field' of a delta of profile ib is 'says'; it may be level, when, "
        "cause, returns, prefer, outputs, do, undefined, choice",
    ),
    (
        "delta of a field of calls",
        delta("rule: reg/done, field: returns, value: [EIO]"),
        "profiles/ib.yaml:5:29: a delta of profile ib replaces 'returns' of reg/done, a rule of a "
        "step; such a rule has level, when, do",
    ),
    (
        "delta with a wrong value",
        delta("rule: mr/ok, field: returns, value: EIO"),
        "profiles/ib.yaml:5:42: 'value' of a delta of profile ib is the text 'EIO'; it must be a list",
    ),
    (
        "delta that takes the level",
        delta("rule: mr/ok, field: level, value: null"),
        "profiles/ib.yaml:5:26: a delta of profile ib takes 'level' away; every rule has one",
    ),
    (
        "delta twice",
        delta("rule: mr/ok, field: do, value: a = 1", "rule: mr/ok, field: do, value: null"),
        "profiles/ib.yaml:6:12: profile ib replaces 'do' of mr/ok twice, first at profiles/ib.yaml:5:12",
    ),
    (
        "redefinition of an unknown define",
        redefinition("define: ff, value: a"),
        "profiles/ib.yaml:5:14: a redefinition of profile ib names the define 'ff', which nothing declares; "
        "known are f; did you mean 'f'?",
    ),
    (
        "redefinition without a source",
        {**redefinition(), "profiles/ib.yaml": f"{IB}defines:\n  - {{define: f, value: a, says: S.}}\n"},
        "profiles/ib.yaml:5:5: a redefinition of profile ib lacks sources; it must have define, value, sources, says",
    ),
    (
        "redefinition twice",
        redefinition("define: f, value: a", "define: f, value: a + 2"),
        "profiles/ib.yaml:6:14: profile ib redefines f twice, first at profiles/ib.yaml:5:14",
    ),
    (
        "question about nothing",
        question('id: mr/q, asks: ["what is it"], answers: [mr/ok]'),
        "rules/mr.yaml:6:23: 'what is it' of question mr/q has no word but common ones; say what it is about",
    ),
    (
        "question without answers",
        question("id: mr/q, asks: [why], answers: []"),
        "rules/mr.yaml:6:5: question mr/q has no answers; name a rule, a choice or a find that answers it",
    ),
    (
        "question answered by nothing",
        question("id: mr/q, asks: [why], answers: [mr/okk]"),
        "rules/mr.yaml:6:39: an answer of question mr/q is 'mr/okk', which nothing declares; did you mean 'mr/ok'?",
    ),
    (
        "question asked twice",
        question("id: mr/q, asks: [why mr, what is the MR why], answers: [mr/ok]"),
        "rules/mr.yaml:6:31: question mr/q asks 'what is the MR why', which is asked already, at rules/mr.yaml:6:23",
    ),
    (
        "find of nothing",
        question("id: mr/q, asks: [why], answers: [{}]"),
        "rules/mr.yaml:6:39: a find of question mr/q is empty; it must have one of "
        "verb, returns, mentions, object, from, to",
    ),
    (
        "find of an unknown verb",
        question("id: mr/q, asks: [why], answers: [{verb: b}]"),
        "rules/mr.yaml:6:46: 'verb' of a find of question mr/q is 'b', which nothing declares",
    ),
    (
        "find of half a transition",
        question("id: mr/q, asks: [why], answers: [{from: A}]"),
        "rules/mr.yaml:6:39: a find of question mr/q has one of 'from' and 'to'; a transition has both",
    ),
    (
        "slot of another key",
        question("id: mr/q, asks: ['why {verb}'], answers: [{verb: '{returns}'}]"),
        "rules/mr.yaml:6:55: 'verb' of a find of question mr/q is '{returns}'; its slot is '{verb}'",
    ),
    (
        "slot that nothing uses",
        question("id: mr/q, asks: ['why {verb}'], answers: [mr/ok]"),
        "rules/mr.yaml:6:23: 'why {verb}' of question mr/q has the slot '{verb}', which no find uses; the slots are "
        "(none)",
    ),
    (
        "slot that is not asked for",
        question("id: mr/q, asks: [why], answers: [{verb: '{verb}'}]"),
        "rules/mr.yaml:6:46: a find of question mr/q uses the slot '{verb}', which 'why' does not have",
    ),
]


@pytest.mark.parametrize(("label", "files", "error"), ROWS, ids=[label for label, _, _ in ROWS])
@pytest.mark.parametrize("parser", ["libyaml", "python"])
def test_malformed(
    label: str, files: str | Mapping[str, str], error: str, parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parser == "python":
        monkeypatch.delattr(yaml, "CLoader", raising=False)
    with pytest.raises(SpecError) as caught:
        loads({"rules/mr.yaml": files} if isinstance(files, str) else files)
    assert str(caught.value) == error, label


def test_labels_differ() -> None:
    assert len({label for label, _, _ in ROWS}) == len(ROWS)
