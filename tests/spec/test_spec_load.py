"""Good specifications: what the loader makes of them."""

import pickle
from pathlib import Path

import pytest

from verbs_spec import SpecError, Where, digest, load, loads
from verbs_spec.document import CallRule, Spec, StepRule

SAMPLE = Path(__file__).parent / "sample"


@pytest.fixture(scope="module")
def sample() -> Spec:
    return load(SAMPLE)


def test_declarations(sample: Spec) -> None:
    assert list(sample.summaries) == ["mr", "qp"]
    assert sample.enums["mr_state"].values == ("INVALID", "VALID")
    assert list(sample.records["wr"].fields) == ["mr", "sig"]
    fields = sample.objects["mr"].fields
    assert (fields["mem"].type, fields["mem"].init) == ("memory(addr, length)", None)
    assert (fields["length"].type, fields["length"].init) == ("nat", "4096")
    assert [(each.name, each.type) for each in sample.defines["usable"].params] == [
        ("m", "ref mr"),
        ("a", "flags access"),
    ]
    assert sample.choices["bound"].stable
    assert sample.unspecified[0].id == "mr/dereg-twice"
    assert sample.ghosts[0].at == ("reg/done", "reg/refused")
    assert sample.invariants[0].each
    assert sample.invariants[0].each.kind == "qp"


def test_rules(sample: Spec) -> None:
    assert list(sample.rules) == [
        "mr/dereg-bound",
        "mr/dereg",
        "mr/alloc",
        "mr/alloc-iwarp",
        "reg/done",
        "reg/refused",
        "drop/dead",
    ]
    bound, refused = sample.rules["mr/dereg-bound"], sample.rules["reg/refused"]
    assert isinstance(bound, CallRule)
    assert (bound.call, bound.level, bound.status, bound.object) == ("dereg_mr", "must", "draft", "mr")
    assert (bound.returns, bound.prefer, bound.choice) == (("EBUSY", "EINVAL"), ("EBUSY",), "bound")
    assert isinstance(refused, StepRule)
    assert (refused.family, refused.level, refused.status) == ("sq/exec", "should", "disputed")
    shapes = sample.calls["dereg_mr"].shapes
    assert shapes["dereg"].menus == {"mr": ("each mr",)}
    assert shapes["twice"].profile == ("linux-user",)
    assert shapes["twice"].menus == {"mr": ("_other", "null"), "_other": ("each mr",)}
    assert [each.name for each in sample.families.values() if each.optional] == ["sq/drop"]
    family = sample.families["sq/exec"]
    assert (family.each.name, family.each.kind, family.let) == ("q", "qp", {"m": "w.mr"})
    assert family.take
    assert (family.take.name, family.take.queue) == ("w", "q.sq")


def test_parts_of_a_text_know_their_place(sample: Spec) -> None:
    param = sample.defines["usable"].params[1]
    line = (SAMPLE / "rules/mr.yaml").read_text().split("\n")[param.type.where.line - 1]
    assert line[param.type.where.column - 1 :].startswith("flags access")
    assert sample.families["sq/exec"].each.kind.where.column == len("    for: q in ") + 1


def test_nothing_is_lost_in_pickling(sample: Spec) -> None:
    again: Spec = pickle.loads(pickle.dumps(sample))
    assert again == sample
    assert again.rules["mr/dereg"].where == sample.rules["mr/dereg"].where


def test_digest_tells_names_and_contents() -> None:
    files = {"rules/a.yaml": "x", "rules/b.yaml": "y"}
    assert digest(files) == digest(dict(reversed(files.items())))
    others = [
        {**files, "rules/b.yaml": "z"},
        {"rules/a.yaml": "xy"},
        {"rules/ax.yaml": "", "rules/b.yaml": "y"},
    ]
    assert len({digest(each) for each in (files, *others)}) == 4
    assert len(digest(files)) == 12


def test_files_that_are_not_yaml_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/mr.yaml").write_text("object: mr\nsummary: S.\n")
    (tmp_path / "rules/README.md").write_text("# x")
    assert list(load(tmp_path).summaries) == ["mr"]


def test_a_folder_without_rules(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there are no rules") as caught:
        load(tmp_path)
    assert caught.value.where == Where(f"{tmp_path}/rules", 1, 1)


def test_errors_name_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s/rules").mkdir(parents=True)
    (tmp_path / "s/rules/mr.yaml").write_text("object: mr\n")
    monkeypatch.chdir(tmp_path)
    for folder in (Path("s"), tmp_path / "s"):
        with pytest.raises(SpecError) as caught:
            load(folder)
        assert str(caught.value.where) == "s/rules/mr.yaml:1:1"


def test_long_lists_are_cut_to_what_is_near() -> None:
    rule = "{id: %s, sources: [man], says: S., cause: a, returns: [EIO]}"
    good = '{id: mr/ok, sources: [man], says: S., returns: ["0"]}'
    rules = ", ".join([good, *(rule % f"{kind}/case-{n}" for kind in ("mr", "qp") for n in range(20))])
    ghost = "{at: [qp/case-x], do: a = 1}"
    text = f"object: mr\nsummary: S.\ncalls: {{c: {{rules: [{rules}]}}}}\nghosts: [{ghost}]\n"
    with pytest.raises(SpecError) as caught:
        loads({"rules/mr.yaml": text})
    assert "known are qp/case-0, qp/case-1" in caught.value.message
    assert "... (41 in all); did you mean 'qp/case-9'" in caught.value.message
    assert "mr/ok" not in caught.value.message
