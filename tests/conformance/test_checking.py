"""The check of the specification: what it keeps, and that programs fire their rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from verbs_conformance import checking
from verbs_conformance import program as programs
from verbs_conformance.checking import Subject, runs
from verbs_conformance.kept import CODE, Kept, Meaning, key
from verbs_conformance.unwitnessed import reasons
from verbs_spec import facts, load, loads, slugs
from verbs_spec.profiles import select

API = "linux-user"
RULES = """object: mr
summary: A region.
calls:
  dereg_mr:
    rules:
      - {id: mr/dereg, sources: [man], says: It goes., returns: ["0"]}
"""


def meaning(text: str) -> str:
    return Meaning().of(loads({"rules/mr.yaml": text}))


def test_words_and_places_change_no_meaning() -> None:
    same = RULES.replace("It goes.", "It ends.").replace("A region.", "Memory.").replace("[man]", "[a book]")
    assert meaning(f"# moved down\n{same}") == meaning(RULES)
    for old, new in (
        ('"0"', "EINVAL"),
        ("mr/dereg,", "mr/go,"),
        ('["0"]', '["0"], do: "x = 1"'),
        ("mr/dereg,", "mr/dereg, level: may,"),
    ):
        assert meaning(RULES.replace(old, new)) != meaning(RULES), new


def test_a_profile_changes_the_meaning() -> None:
    spec = load()
    known = Meaning()
    found = {known.of(select(spec, API, t)) for t in ("ib", "roce", "iwarp")}
    assert len(found) == 3
    assert known.of(select(spec, API, "roce")) in found


def test_kept_until_something_changes(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "checks")
    name = key("runs", "a", "bc")
    assert kept.get(name) is None
    kept.put(name, ["x"])
    assert kept.get(name) == ["x"]
    assert name != key("runs", "ab", "c")
    (tmp_path / "checks" / name).write_text("torn")
    assert kept.get(name) is None
    Kept(tmp_path / "checks" / name).put(name, True)  # a file where the folder should be: nothing is kept


def test_the_code_that_checks_is_all_code_that_checking_imports() -> None:
    """What is kept is made again when the code changes that made it."""
    package = Path(checking.__file__).parent

    def imported(module: str) -> set[str]:
        tree = ast.parse((package / f"{module}.py").read_text(encoding="utf-8"))
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
        found = {a.name for n in nodes if n.module == package.name for a in n.names}
        return found | {str(n.module).split(".")[1] for n in nodes if str(n.module).startswith(f"{package.name}.")}

    seen: set[str] = set()
    todo = {"checking"}
    while todo:
        seen |= todo
        todo = {other for module in todo for other in imported(module)} - seen
    assert set(CODE[package.name]) == seen


@pytest.fixture(scope="module")
def subject() -> Subject:
    shipped = tuple(p for p in programs.shipped("programs") if p.target.startswith("buf/") and API in p.api)
    spared = {r for r in load().rules if not r.startswith("buf/")} | set(reasons())
    return Subject(load(), facts.load(), slugs.load(), shipped, programs.fixtures(), tuple(spared), only=(API,))


def test_a_program_that_does_not_fire_its_rule_is_found_each_time(subject: Subject, tmp_path: Path) -> None:
    other = next(p for p in subject.programs if p.target == "buf/write-beyond")
    wrong = [*subject.programs, replace(other, target="buf/read-beyond", kind="regression")]
    for _ in range(2):  # what is wrong is not kept
        found = list(runs(replace(subject, programs=tuple(wrong), kept=Kept(tmp_path))))
        assert found == [
            "program buf/write-beyond does not fire its rule buf/read-beyond under linux-user on the model; mend the "
            "rule, or search the program anew with 'verbspec spec build --only'"
        ]


def test_a_searched_program_says_what_its_rule_says(subject: Subject, tmp_path: Path) -> None:
    """Also where all is kept: that the rule says something else by now changes no meaning."""
    kept = Kept(tmp_path)
    assert list(runs(replace(subject, kept=kept))) == []
    old = replace(subject.programs[0], kind="directed", says="What the rule said once.")
    assert list(runs(replace(subject, programs=(old, *subject.programs[1:]), kept=kept))) == [
        f"program {old.name} does not say what its rule says under linux-user; "
        f"run 'verbspec spec build --only {old.target}'"
    ]


def test_what_is_right_is_run_once(subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path)
    assert list(runs(replace(subject, kept=kept))) == []

    def run(*_: object) -> Iterator[str]:
        yield "run again"

    monkeypatch.setattr(checking, "_run", run)
    assert list(runs(replace(subject, kept=kept))) == []
    assert list(runs(replace(subject, programs=subject.programs[:-1], kept=kept))) != []
