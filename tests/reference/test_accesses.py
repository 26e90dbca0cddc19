"""What an effect touches is told by the rule's own names, whatever names the effect gives."""

from __future__ import annotations

import pytest
from trees import VOC, A, B

from verbs_reference import nodes as n
from verbs_reference.accesses import effects
from verbs_reference.model import Model
from verbs_reference.parse import Parser
from verbs_reference.showing import show
from verbs_spec.errors import Where
from verbs_spec.loader import load
from verbs_spec.profiles import features, select
from verbs_spec.text import Text


def written(body: str) -> list[str]:
    """The fields, and lives, that an effect writes."""
    stmts = Parser(VOC).statements(Text(body, Where("", 1, 1)), {"va": n.Var(A, "va"), "vr": n.Var(B, "vr")})
    return [f"{show(a.obj)}.{a.field}" if a.field else show(a.obj) for a in effects(stmts) if a.writes]


@pytest.mark.parametrize(
    ("body", "touched"),
    [
        ("x = new(a, r=va.r)\ndelete(x.r)", ["va.r"]),
        ("x = new(a, r=va.r)\nva.r = null\nx.r.n = 1", ["va.r", "va.r.n"]),
        ("x = new(a, r=va.r)\ny = new(a, r=x.r)\ny.r.n = 1", ["va.r.n"]),
        ("x = va.s\nx.n = 1", ["va.s.n"]),
        ("x = va.r\ny = new(a, r=x)\ny.r.n = 1", ["va.r.n"]),
    ],
)
def test_what_an_own_name_stands_for_is_touched(body: str, touched: list[str]) -> None:
    assert written(body) == touched


def test_a_field_that_is_assigned_later_may_hold_either() -> None:
    *_, text = written("x = new(a, r=va)\nx.r = vr.r\nx.r.n = 1")
    assert {"va", "vr.r"} <= set(text.replace("(", " ").replace(")", " ").split())


@pytest.mark.parametrize("api", ["linux-kernel", "linux-kernel-2008", "linux-user", "winverbs", "networkdirect"])
def test_every_call_of_the_specification_tells_what_it_touches(api: str) -> None:
    spec = load()
    model = Model(select(spec, api, "roce", features(spec)))
    for code in model.calls.values():
        for case in code.cases:
            made = {s.name for s in n.flat(case.body) if isinstance(s, n.New)}
            known = {*code.params, *code.outputs, *made}
            for access in effects(case.body):
                names = n.free_names(access.obj) - {over.var for over in access.bound}
                assert names <= known, (case.id, show(access.obj))
                assert isinstance(access.obj, n.Var) or not names & made, (case.id, show(access.obj))
