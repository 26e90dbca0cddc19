"""Parameters that only some devices have, and outputs that name an object which is there."""

import pytest

from verbs_reference.belief import Action, Belief, Refused
from verbs_reference.model import Model
from verbs_reference.pending import Analysis
from verbs_spec import loads
from verbs_spec.profiles import select

SPEC = """
object: box
summary: Boxes that hold marks.
objects:
  box: {marks: nat, big: bool}
calls:
  make:
    params: {big: {type: bool, profile: [sizes]}}
    outputs: {box: ref box}
    rules: [{id: box/make, sources: [man], says: S., returns: ["0"], do: "box = new(box, big=big, marks=1)"}]
  find:
    outputs: {n: nat, box: found box}
    rules:
      - id: box/none
        sources: [man]
        says: S.
        when: "not any(b.marks > 0 for b in box)"
        returns: ["0"]
        outputs: "n == 0"
      - id: box/found
        sources: [man]
        says: S.
        when: "any(b.marks > 0 for b in box)"
        returns: ["0"]
        outputs: "n == 1 and alive(box) and box.marks > 0"
        do: "box.marks -= 1"
  spoil:
    params: {box: ref box}
    rules:
      - {id: box/keep, sources: [man], says: S., returns: ["0"]}
      - {id: box/spoil, sources: [man], says: S., cause: "box.marks > 0", undefined: "{box}"}
"""
PROFILES = {
    f"profiles/{name}.yaml": f"profile: {name}\nkind: {kind}\nsummary: S.\n"
    for name, kind in (("user", "api"), ("ib", "transport"), ("sizes", "feature"))
}


def model(*features: str) -> Model:
    return Model(select(loads({"rules/box.yaml": SPEC, **PROFILES}), "user", "ib", features))


@pytest.fixture
def belief() -> Belief:
    """Two boxes, 1 and 2."""
    machine = model()
    made = Belief(machine, Analysis(machine))
    assert all(made.observe(Action("make", (), "0", (number,))) is None for number in (1, 2))
    return made


def test_what_a_device_lacks_has_its_default() -> None:
    assert list(model("sizes").calls["make"].params) == ["big"]
    assert list(model().calls["make"].params) == []
    store = model().store()
    effect = model().calls["make"].successes[0].effect
    assert effect is not None
    effect(store, 1)
    assert store.objects[1][2:] == [1, False]


def test_what_was_found_is_there_and_is_taken(belief: Belief) -> None:
    assert belief.observe(Action("find", (), "0", (1, 2))) is None
    assert isinstance(belief.observe(Action("find", (), "0", (1, 2))), Refused)


def test_nothing_is_found_only_where_nothing_is(belief: Belief) -> None:
    assert isinstance(belief.observe(Action("find", (), "0", (0, 0))), Refused)
    assert isinstance(belief.observe(Action("find", (), "0", (1, 0))), Refused)


def test_a_search_is_judged_if_it_finds_what_is_judged(belief: Belief) -> None:
    belief.taint({1})
    assert belief.observe(Action("find", (), "0", (1, 1))) is None
    assert belief.observe(Action("find", (), "0", (0, 0))) is None
    assert belief.observe(Action("find", (), "0", (1, 2))) is None
    assert isinstance(belief.observe(Action("find", (), "0", (1, 2))), Refused)
