"""Facts and the rules that state them, ids that were released."""

import pytest

from verbs_spec import SpecError, facts, load, loads, slugs

RULES = """object: mr
summary: A region.
calls:
  dereg_mr:
    rules:
      - {id: mr/dereg, sources: [man], says: It goes., returns: ["0"]}
      - {id: mr/bound, sources: [man], says: It stays., cause: "true", returns: [EBUSY]}
"""
SPEC = loads({"rules/mr.yaml": RULES})


def listed(*rows: str) -> facts.Facts:
    text = "".join(f"  - {{{row}}}\n" for row in rows)
    return facts.loads({"facts/mr.yaml": f"summary: On regions.\nfacts:\n{text}"})


GOOD = (
    "id: R4, mark: V, says: A bound region stays., rules: [mr/bound]",
    "id: R5, mark: V, says: Windows., rules: [mr/dereg], reason: no more is known",
    "id: R6, mark: H, says: Later., awaits: [windows]",
)


def test_facts_name_rules() -> None:
    known = listed(*GOOD)
    assert [f.id for f in known.of("mr/bound")] == ["R4"]
    assert facts.wrong(SPEC, known) == []
    assert facts.wrong(SPEC, listed("id: R4, mark: V, says: S., rules: [mr/bond]")) == [
        "facts/mr.yaml:3:41: fact R4 names 'mr/bond', which is no rule, invariant, choice or open question; did you "
        "mean 'mr/bound'?"
    ]


def test_a_fact_that_awaits_what_is_there() -> None:
    profile = "profile: windows\nkind: feature\nsummary: Windows."
    spec = loads({"rules/mr.yaml": RULES, "profiles/windows.yaml": profile})
    assert facts.overdue(SPEC, listed(*GOOD)) == []
    assert facts.overdue(spec, listed(*GOOD)) == [
        "facts/mr.yaml:5:46: fact R6 awaits windows, which is there; name the rules that state it, or a reason"
    ]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("id: R4, mark: V, says: S.", "fact R4 has neither 'rules' nor 'reason' nor 'awaits'; it must name what"),
        ("id: R4, mark: X, says: S., reason: r", "'mark' of a fact is 'X'; it may be V, C, R, H, S"),
        ("id: R 4, mark: V, says: S., reason: r", "'id' of a fact is 'R 4'; it has letters, digits, dashes and points"),
    ],
)
def test_a_malformed_fact(row: str, error: str) -> None:
    with pytest.raises(SpecError) as caught:
        listed(row)
    assert error in str(caught.value)


def test_a_fact_stands_once() -> None:
    with pytest.raises(SpecError, match=r"the fact 'R4' is there already, at facts/mr.yaml:3:10"):
        listed(GOOD[0], GOOD[0])


OLD = """released:
  "1":
    dereg_mr succeeds: [mr/dereg]
    dereg_mr fails: [mr/bound]
withdrawn:
  - {id: mr/free, release: "0", why: it was a mistake}
"""


def test_released_ids_stay() -> None:
    known = slugs.loads(OLD)
    assert slugs.wrong(SPEC, known) == []
    gone = loads({"rules/mr.yaml": RULES.replace("mr/bound", "mr/free")})
    assert slugs.wrong(gone, known) == [
        "slugs.yaml:4:22: the id mr/bound was released in 1 and is no more; bring it back, or move it to 'withdrawn' "
        "and say why",
        "rules/mr.yaml:7:14: the id mr/free was withdrawn after 0 (it was a mistake) and is used again; an id is never "
        "used again: choose another",
    ]
    moved = loads(
        {"rules/mr.yaml": RULES.replace("mr/bound", "mr/x").replace("mr/dereg", "mr/bound").replace("/x", "/dereg")}
    )
    assert slugs.wrong(moved, known)[0] == (
        "rules/mr.yaml:7:14: the id mr/dereg was released in 1 for another rule (dereg_mr succeeds) and stands now for "
        "dereg_mr fails; an id is never used again: choose another"
    )


def test_a_release_lists_what_is_new() -> None:
    known = slugs.loads(OLD.replace("    dereg_mr fails: [mr/bound]\n", ""))
    again = slugs.loads(slugs.render(SPEC, known, "2"))
    assert again.released["mr/bound"].release == "2"
    assert again.withdrawn["mr/free"].why == "it was a mistake"
    assert slugs.wrong(SPEC, again) == []
    with pytest.raises(SpecError, match="release 2 is listed already"):
        slugs.render(SPEC, again, "2")


def test_of_the_specification() -> None:
    spec, known = load(), facts.load()
    assert facts.wrong(spec, known) == []
    assert slugs.wrong(spec, slugs.load()) == []
    assert {f.mark for f in known.facts.values()} == set(facts.MARKS)
