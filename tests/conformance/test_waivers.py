"""Waivers: what they cover and what they must not, and that one which is out of date fails the run."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from cli import verbspec
from test_bad_input import WAIVER, WAIVERS

from verbs_adapters.contract import Hello
from verbs_conformance import target
from verbs_conformance.waivers import load
from verbs_reports.results import Program, Results, Waiver, read, schema
from verbs_reports.verdicts import Verdict

ANY_DOMAIN = """
  - waiver: any-domain
    rule: inv/foreign
    for: {backend: softhca}
    program: regress/foreign-invalidation
    instead:
      do: |
        start(q, w)
        if alive(v) and v.key == w.inv:
          v.state = INVALID
          finish(w, SUCCESS)
        else:
          fail_local(q, w, MEM_MGT_ERR)
    reason: LOCAL_INV does not compare the protection domain.
    evidence: ["the fault inv-ignores-pd"]
"""

FLUSHED = """
  - waiver: flushed
    rule: sq/complete-failed
    for: {backend: softhca}
    program: reg/foreign
    instead:
      do: |
        pop(q.out)
        q.flushing = true
        push(q.send_cq.q, cqe(qp=q, epoch=q.epoch, send=true, seq=w.seq, id=w.id, status=WR_FLUSH_ERR,
                              opcode=reported(w.opcode), byte_len=0, flags={}, inv=0))
    reason: The send that failed says WR_FLUSH_ERR.
    evidence: ["the fault first-error-is-flush"]
"""

WRITE = (
    "post_send(qp=qp0, opcode=RDMA_WRITE, wr_id=2, sg_list=[sge(addr=buf0.addr, length=64, "
    "lkey=qp0.pd.local_dma_lkey)], remote_addr=mr0.map_iova, rkey=tag(mr0.first, 1), signaled=true)"
)
BOTH = f"""
program: needs-both
api: [linux-kernel]
fixture: abroad
steps: |
  post_send(qp=qp0, opcode=LOCAL_INV, wr_id=1, invalidate_rkey=tag(mr0.first, 1))
  settle()
  {WRITE}
  settle()
  drain(cq=cq0)
"""
BEHIND = """
program: behind
api: [linux-kernel]
fixture: abroad
steps: |
  post_send(qp=qp0, opcode=LOCAL_INV, wr_id=1, invalidate_rkey=tag(mr0.first, 1), signaled=true)
  settle()
  drain(cq=cq0)
  post_recv(qp=qp1, wr_id=2, sg_list=[sge(addr=buf1.addr, length=64, lkey=qp1.pd.local_dma_lkey)])
  post_send(qp=qp0, opcode=SEND, wr_id=3, sg_list=[sge(addr=buf0.addr, length=64, lkey=qp0.pd.local_dma_lkey)])
  settle()
  drain(cq=cq1)
"""
PD_FAULT, BOTH_FAULTS = "fault=inv-ignores-pd", "fault=inv-ignores-pd,first-error-is-flush"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a file of these waivers."""

    def made(*waivers: str) -> str:
        path = tmp_path / "waivers.yaml"
        path.write_text("waivers:" + "".join(waivers), encoding="utf-8")
        return str(path)

    return made


def run(folder: Path, *args: str) -> tuple[int, str, Results]:
    out = folder / "out"
    ended = verbspec("run", "softhca", *args, "--budget", "0s", "--out", str(out))
    return ended.code, ended.text, read(out / "results.jsonl")


def programs(results: Results) -> dict[str, Program]:
    return {p.name: p for p in results.programs}


def waivers(results: Results) -> dict[str, Waiver]:
    return {w.waiver: w for w in results.waivers}


SELECT = ("--select", "regress/foreign-invalidation")


def test_a_waived_deviation_does_not_fail_the_run_and_is_shown_everywhere(write: Any, tmp_path: Path) -> None:
    code, text, found = run(tmp_path, "-o", PD_FAULT, *SELECT, "--waivers", write(ANY_DOMAIN))

    assert code == 0, text
    assert [r.verdict for r in found.rules] == [Verdict.WAIVED]
    assert found.rules[0].rule == "inv/foreign"
    shown = programs(found)["regress/foreign-invalidation"]
    assert shown.verdict is Verdict.WAIVED
    assert shown.failure is not None
    assert shown.waivers == {"any-domain": "inv/foreign"}
    assert "inv/foreign" not in shown.fired, "what is waived has not held"
    waiver = waivers(found)["any-domain"]
    assert (waiver.verdict, waiver.covered) == (Verdict.WAIVED, 1)
    assert waiver.evidence == ("the fault inv-ignores-pd",)
    assert found.footer is not None
    assert found.footer.verdict is Verdict.WAIVED
    assert "any-domain" in text
    for name in ("report.html", "junit.xml", "summary.md"):
        page = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "any-domain" in page, name
        assert "does not compare the protection domain" in page, name


def test_without_the_waiver_the_same_run_fails(tmp_path: Path) -> None:
    code, text, found = run(tmp_path, "-o", PD_FAULT, *SELECT)

    assert code == 1, text
    assert found.waivers == ()


def test_a_deviation_that_is_gone_fails_the_run(write: Any, tmp_path: Path) -> None:
    file = write(ANY_DOMAIN)

    code, text, found = run(tmp_path, *SELECT, "--waivers", file)

    assert code == 1, text
    assert waivers(found)["any-domain"].verdict is Verdict.UNEXPECTED_PASS
    assert [r.verdict for r in found.rules] == [Verdict.UNEXPECTED_PASS]
    assert "the deviation is gone" in text
    assert f"remove the waiver at {file}:2:13" in text


def _with_programs(*others: str) -> str:
    programs = ["regress/foreign-invalidation", *others]
    return ANY_DOMAIN.replace("program: regress/foreign-invalidation", f"program: [{', '.join(programs)}]")


def test_each_program_of_a_waiver_must_show_it(write: Any, tmp_path: Path) -> None:
    (tmp_path / "behind.yaml").write_text(BEHIND, encoding="utf-8")
    whole, more = write(_with_programs("behind.yaml")), ("-o", PD_FAULT, "--select", "inv/foreign")

    code, text, found = run(tmp_path, *more, "--waivers", whole)
    too_many, told, gone = run(tmp_path, *more, "--waivers", write(_with_programs("behind.yaml", "reg/foreign")))

    assert code == 0, text
    assert programs(found)["behind"].verdict is Verdict.WAIVED
    assert waivers(found)["any-domain"].program == "regress/foreign-invalidation, behind"
    assert too_many == 1, told
    assert waivers(gone)["any-domain"].verdict is Verdict.UNEXPECTED_PASS
    assert "the deviation is gone: reg/foreign passes" in told
    assert "remove the program from the waiver" in told


def test_a_waivers_own_program_runs_where_only_its_rule_is_selected(write: Any, tmp_path: Path) -> None:
    code, text, found = run(tmp_path, "-o", PD_FAULT, "--select", "inv/foreign", "--waivers", write(ANY_DOMAIN))

    assert code == 0, text
    assert programs(found)["regress/foreign-invalidation"].verdict is Verdict.WAIVED


def test_a_waiver_for_another_backend_excuses_nothing(write: Any, tmp_path: Path) -> None:
    file = write(ANY_DOMAIN.replace("backend: softhca", 'device: "rxe*"'))

    code, text, found = run(tmp_path, "-o", PD_FAULT, *SELECT, "--waivers", file)

    assert code == 1, text
    assert found.waivers == ()
    assert "1 waiver not for this backend" in text


def test_another_defect_of_the_same_rule_is_not_covered(write: Any, tmp_path: Path) -> None:
    """The waiver says what the device does; a device that does something else fails, though the rule is suspected."""
    code, text, found = run(
        tmp_path, "-o", "fault=first-error-is-flush", "--select", "inv/foreign", "--waivers", write(ANY_DOMAIN)
    )

    assert code == 1, text
    assert Verdict.FAIL in {p.verdict for p in found.programs}
    assert Verdict.WAIVED not in {p.verdict for p in found.programs}


def test_what_fails_behind_a_waived_deviation_still_fails(write: Any, tmp_path: Path) -> None:
    program = tmp_path / "behind.yaml"
    program.write_text(BEHIND, encoding="utf-8")
    file = write(ANY_DOMAIN)

    alone = verbspec("replay", str(program), "softhca", "-o", PD_FAULT, "--waivers", file)
    with_more = verbspec("replay", str(program), "softhca", "-o", PD_FAULT + ",byte-len-zero", "--waivers", file)

    assert alone.code == 0, alone.text
    assert "waived: any-domain" in alone.text
    assert with_more.code == 1, with_more.text
    assert "byte_len" in with_more.text
    assert "behind what any-domain covers" in with_more.text


def test_two_deviations_that_show_in_one_answer_are_found_together(write: Any, tmp_path: Path) -> None:
    """No answer tells of the first deviation; only with both is the answer to the write explained."""
    program = tmp_path / "both.yaml"
    program.write_text(BOTH, encoding="utf-8")

    ended = verbspec("replay", str(program), "softhca", "-o", BOTH_FAULTS, "--waivers", write(ANY_DOMAIN, FLUSHED))
    one = verbspec("replay", str(program), "softhca", "-o", BOTH_FAULTS, "--waivers", write(ANY_DOMAIN))

    assert ended.code == 0, ended.text
    assert "any-domain" in ended.text
    assert "flushed" in ended.text
    assert one.code == 1, one.text


def test_without_instead_only_the_own_program_is_covered(write: Any, tmp_path: Path) -> None:
    program = BEHIND.strip().replace("\n", "\n      ")
    own = ANY_DOMAIN.partition("    instead")[0] + "    reason: words\n    evidence: [words]\n"
    own = own.replace("program: regress/foreign-invalidation", f"program:\n      {program}")

    code, text, found = run(tmp_path, "-o", PD_FAULT, "--select", "inv/foreign", *SELECT, "--waivers", write(own))

    assert code == 1, text
    assert programs(found)["behind"].verdict is Verdict.WAIVED
    assert programs(found)["regress/foreign-invalidation"].verdict is Verdict.FAIL
    assert waivers(found)["any-domain"].verdict is Verdict.WAIVED


def test_without_instead_the_rule_must_be_a_suspect(write: Any, tmp_path: Path) -> None:
    other = ANY_DOMAIN.partition("    instead")[0].replace("inv/foreign\n", "buf/alloc\n")
    file = write(other + "    reason: words\n    evidence: [words]\n")

    code, text, found = run(tmp_path, "-o", PD_FAULT, *SELECT, "--waivers", file)

    assert code == 1, text
    assert waivers(found)["any-domain"].verdict is Verdict.FAIL
    assert "fails in another way than the waiver says" in text


def test_two_waivers_that_say_otherwise_of_one_rule_are_refused(write: Any, tmp_path: Path) -> None:
    again = ANY_DOMAIN.replace("any-domain", "again").replace("backend: softhca", "api: linux-kernel")

    ended = verbspec("run", "softhca", "--waivers", write(ANY_DOMAIN, again), "--out", str(tmp_path / "out"))

    assert ended.code == 4, ended.text
    assert "any-domain and again both apply to softhca" in ended.text


@pytest.mark.parametrize(
    ("wanted", "kernel", "applies"),
    [
        ("6.1", "6.1.0-57-amd64", True),
        ("6.1", "6.12.118+deb13-amd64", False),
        ("6.1", "6.1", True),
        ("6.1", "", False),
        ("[5.10, 6.12]", "6.12.118+deb13-amd64", True),
        ('"*-rt"', "6.1.0-rt", True),
    ],
)
def test_a_version_stands_for_what_goes_on_from_it(write: Any, wanted: str, kernel: str, applies: bool) -> None:
    (waiver,) = load(Path(write(ANY_DOMAIN.replace("backend: softhca", f"kernel: {wanted}"))), target.load())
    hello = Hello(
        contract="1", name="x", version="1", device="rxe0", kernel=kernel, api=("linux-kernel",), transport=("roce",)
    )

    assert waiver.applies(hello, "linux-kernel", "roce") is applies


def test_check_lists_the_waivers_of_a_file_that_is_right(write: Any) -> None:
    ended = verbspec("waivers", "check", write(ANY_DOMAIN))

    assert ended.code == 0, ended.text
    assert "any-domain" in ended.text
    assert "nothing wrong" in ended.text


def _schema() -> Any:
    text = resources.files("verbs_conformance").joinpath("schema/waivers.schema.json").read_text(encoding="utf-8")
    return json.loads(text)


def test_the_schema_takes_what_is_right() -> None:
    published = Path(__file__).parents[2] / "reports/published/waivers/rxe.yaml"

    for text in (WAIVER, "waivers:" + ANY_DOMAIN + FLUSHED, published.read_text(encoding="utf-8")):
        jsonschema.validate(yaml.load(text, yaml.BaseLoader), _schema())


FORM = ("unknown key", "must be", "lacks", "lower-case", "a pattern", "empty list", "would be excused")
"""What errors of form say; the others, and which fields a rule has, are beyond a schema."""


@pytest.mark.parametrize(
    "text", [t for t, words in WAIVERS if "returns" not in t and any(f in w for w in words for f in FORM)]
)
def test_the_schema_refuses_what_has_another_form(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.load(text, yaml.BaseLoader), _schema())


def test_results_with_waivers_fit_the_schema_of_results(write: Any, tmp_path: Path) -> None:
    _, _, found = run(tmp_path, "-o", PD_FAULT, *SELECT, "--waivers", write(ANY_DOMAIN))

    for line in (tmp_path / "out/results.jsonl").read_text(encoding="utf-8").splitlines():
        jsonschema.validate(msgspec.json.decode(line), schema())
    assert found.waivers
