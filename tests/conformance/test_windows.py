"""Windows and changed regions: a device as the specification describes it passes their programs, a defective one fails.

The device is the model itself, made from files in which one formula stands otherwise.
"""

from __future__ import annotations

from functools import cache

import pytest
from defective import texts

from verbs_conformance import program as programs
from verbs_conformance.build import limits
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.machine import Stateful
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_conformance.run import Run, Settings
from verbs_conformance.shapes import harmless, shapes
from verbs_conformance.sweep import Sweep
from verbs_conformance.target import engine
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec import loads
from verbs_spec.profiles import select

FEATURES = ("memory-windows", "memory-windows-2", "rereg-mr")
MINE = tuple(
    p
    for p in programs.shipped("programs")
    if p.kind == "regression" and p.feature and set(p.feature) <= set(FEATURES) and p.applies("linux-user", "roce")
)
BY_NAME = {p.name: p for p in MINE}


@cache
def real() -> Engine:
    return engine("linux-user", "roce", FEATURES)


def judge(model: Model) -> Judge:
    """Judges the model as a device, by the specification as it is."""
    fixtures = programs.fixtures()
    backend = ReferenceBackend(model, limits(real(), fixtures))
    return Judge(real(), backend, backend.hello(), fixtures)


def defective(file: str, old: str, new: str) -> Model:
    """The model with one text of one file replaced."""
    text = texts()[file]
    assert text.count(old) == 1, (old, text.count(old))
    return Model(select(loads({**texts(), file: text.replace(old, new)}), "linux-user", "roce", FEATURES))


def test_the_model_passes() -> None:
    device = judge(real().model)
    found = {p.name: device.run(p, 1).verdict for p in MINE}
    assert {name: verdict for name, verdict in found.items() if verdict is not Verdict.PASS} == {}


@pytest.mark.parametrize(
    ("file", "old", "new", "found_by"),
    [
        (
            "rules/mw.yaml",
            "addr >= window_from(n) and addr + length <= window_from(n) + n.length",
            "addr + length <= window_from(n) + n.length + 4 and addr + 4 >= window_from(n)",
            ["regress/window-one-byte-before", "regress/window-one-byte-behind"],
        ),
        (
            "rules/mw.yaml",
            "right in q.access and right in n.access",
            "right in q.access",
            ["regress/window-grants-what-it-has-not"],
        ),
        (
            "rules/mw.yaml",
            "slice(n.places, addr - window_from(n), length)",
            "slice(n.places, addr - n.addr, length)",
            ["regress/typed-zero-based"],
        ),
        (
            "rules/mw.yaml",
            "(n.type == TYPE_1 or (n.qp == q and",
            "(n.type == TYPE_1 or (true and",
            ["regress/typed-window-on-another-queue-pair"],
        ),
        (
            "rules/mw.yaml",
            "any(n.mr == mr and attached(n) for n in mw) and choice(dereg_bound) == REFUSE",
            "any(n.mr == mr and attached(n) and n.type == TYPE_2 for n in mw) and choice(dereg_bound) == REFUSE",
            ["regress/mixed-windows"],
        ),
        (
            "rules/mw_bind.yaml",
            '"w.length == 0 or covers(w.mr, w.iova_start, w.length)"',
            '"true"',
            ["regress/window-begins-before-region", "regress/typed-zero-based-too-long"],
        ),
        (
            "rules/mw_bind.yaml",
            "w.mw.pd == q.pd and (w.length == 0 or w.mr.pd == q.pd)",
            "w.mw.pd == q.pd",
            ["regress/typed-region-of-another-domain"],
        ),
        (
            "rules/mw_type_2.yaml",
            "alive(n) and n.type == TYPE_2 and n.key == key and tied(n) and serves(n, q)",
            "alive(n) and n.key == key and tied(n)",
            [
                "regress/typed-invalidated-by-another-queue-pair",
                "regress/typed-invalidated-from-the-wrong-side",
                "regress/type-1-invalidated",
            ],
        ),
        (
            "profiles/memory-windows-2.yaml",
            "w.mw.type == TYPE_1 or not w.mw.bound or lost(w.mw)",
            "true",
            ["regress/typed-bound-again", "regress/typed-bound-again-same-key"],
        ),
        (
            "rules/rereg.yaml",
            "            mr.places = span(addr, length)\n",
            "",
            ["regress/rereg-moves-the-bounds"],
        ),
        (
            "rules/rereg.yaml",
            "            mr.pd.users -= 1\n",
            "",
            ["regress/rereg-moves-one-use"],
        ),
    ],
)
def test_a_defect_is_found(file: str, old: str, new: str, found_by: list[str]) -> None:
    device = judge(defective(file, old, new))
    for name in found_by:
        assert any(device.run(BY_NAME[name], seed).verdict is Verdict.FAIL for seed in range(3)), name


def test_what_crashes_kernels_is_run_only_when_asked_for() -> None:
    perilous = {p.name for p in MINE if p.peril}
    assert "regress/never-bound-window-invalidated" in perilous
    fixtures = programs.fixtures()
    backend = ReferenceBackend(real().model, limits(real(), fixtures))

    def made(*, asked: bool) -> list[str]:
        settings = Settings("linux-user", "roce", select=("regress/*inv*",), perilous=asked, rounds=2)
        job = Run(real(), backend, backend.hello(), settings)
        return [p.name for p, _ in job.written()]

    assert not perilous & set(made(asked=False))
    names = made(asked=True)
    assert perilous & set(names)
    assert all(n in perilous for n in names[-len(perilous & set(names)) :]), "they come last"
    assert len(names) == len(made(asked=False)) + len(perilous & set(names)), "and once"


def test_no_generated_program_makes_a_call_that_crashes_kernels() -> None:
    model = real().model
    left_out = {s.name for s in shapes(model)} - {s.name for s in harmless(model)}
    assert {"post_inv_window", "post_send_inv_window"} <= left_out
    fixtures = programs.fixtures()
    drawn = (Sweep(real(), fixtures).shapes, Stateful(judge(model), 1, 0.1).shapes)
    assert all({s.name for s in each} == {s.name for s in harmless(model)} for each in drawn)
