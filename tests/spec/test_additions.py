"""What a file adds to things of other files."""

import re

import pytest

from verbs_spec import SpecError, loads, select
from verbs_spec.document import CallRule, Spec
from verbs_spec.tables import render

BASE = """\
object: mr
summary: A region.
enums: {op: [SEND]}
objects:
  wr: {op: op}
calls:
  post:
    params: {a: nat}
    shapes: {one: {a: ["1"]}}
    rules: [{id: mr/ok, sources: [man], says: It works., when: a == 1, returns: ["0"]}]
steps:
  mr/run:
    for: w in wr
    rules: [{id: mr/ran, sources: [man], says: It ran., when: w.op == SEND, do: delete(w)}]
"""
MORE = """\
object: mw
summary: A window.
also:
  enums: {op: [BIND]}
  objects:
    wr: {mw: nat}
  calls:
    post:
      profile: [windows]
      params: {b: nat}
      shapes: {two: {a: ["2"], b: ["3"]}, three: {profile: [kernel], a: ["1"]}}
      rules:
        - {id: mw/ok, sources: [man], says: It works., when: a == 2, returns: ["0"]}
        - {id: mw/no, profile: [kernel], sources: [man], says: Not so., cause: a == 9, returns: [EINVAL]}
  steps:
    mr/run:
      let: {k: w.mw}
      rules: [{id: mw/ran, sources: [man], says: It ran., when: w.op == BIND, do: delete(w)}]
"""
PROFILES = {
    "profiles/windows.yaml": "profile: windows\nkind: feature\nsummary: Windows.\n",
    "profiles/kernel.yaml": "profile: kernel\nkind: api\nsummary: The kernel.\n",
    "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: InfiniBand.\n",
}


def quoted(text: str) -> str:
    return re.sub(r"(when|cause|do|k): ([^,}]+[^,} ])", r'\1: "\2"', text)


def whole(more: str = MORE, base_file: str = "mr") -> Spec:
    """The two files; by the other name the added one is read first."""
    base = quoted(BASE).replace("object: mr", f"object: {base_file}")
    return loads({f"rules/{base_file}.yaml": base, "rules/mw.yaml": quoted(more), **PROFILES})


@pytest.mark.parametrize("base_file", ["mr", "zz"])
def test_what_is_added_is_as_if_it_stood_there(base_file: str) -> None:
    spec = whole(base_file=base_file)
    assert spec.enums["op"].values == ("SEND", "BIND")
    assert list(spec.objects["wr"].fields) == ["op", "mw"]
    call, family = spec.calls["post"], spec.families["mr/run"]
    assert list(call.params) == ["a", "b"]
    assert {name: shape.profile for name, shape in call.shapes.items()} == {
        "one": (),
        "two": ("windows",),
        "three": ("kernel",),
    }
    assert {rule.id: (rule.profile, rule.object) for rule in call.rules} == {
        "mr/ok": ((), base_file),
        "mw/ok": (("windows",), "mw"),
        "mw/no": (("kernel",), "mw"),
    }
    assert (list(family.let), [rule.id for rule in family.rules]) == (["k"], ["mr/ran", "mw/ran"])
    assert isinstance(spec.rules["mw/ok"], CallRule)
    without = select(spec, "kernel", "ib").calls["post"]
    assert ([rule.id for rule in without.rules], list(without.shapes)) == (["mr/ok", "mw/no"], ["one", "three"])
    assert (list(without.params), without.absent) == (["a"], {"b": "nat"})
    assert list(select(spec, "kernel", "ib", ("windows",)).calls["post"].params) == ["a", "b"]


def test_the_tables_show_it_where_it_stands() -> None:
    pages = render(whole())
    assert "mw/ok" not in pages["mr.md"]
    assert "More in [mw](mw.md)" in pages["mr.md"]
    assert "## Call `post`, more" in pages["mw.md"]
    assert all(f"`{rule}`" in pages["mw.md"] for rule in ("mw/ok", "mw/no", "mw/ran"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "post:",
            "posts:",
            "rules/mw.yaml:8:5: 'also' adds to the call 'posts', which no file declares; known are post",
        ),
        ("{mw: nat}", "{op: nat}", "rules/mw.yaml:6:10: 'also' adds 'op' to wr, which has it already"),
        ("[BIND]", "[SEND]", "rules/mw.yaml:4:16: the name 'SEND' is there already, at rules/mr.yaml:3:14"),
        ("id: mw/ok", "id: mr/ok", "rules/mw.yaml:13:16: the id 'mr/ok' is there already, at rules/mr.yaml:10:18"),
        ("two: {a", "one: {a", "rules/mw.yaml:11:16: 'also' adds 'one' to post, which has it already"),
        ("let:", "lets:", "rules/mw.yaml:17:7: unknown key 'lets' in what mw.yaml adds to family mr/run; the keys are"),
    ],
)
def test_what_cannot_be_added(old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        whole(MORE.replace(old, new))
