"""The results file: what is written is read back, and whatever is no results file is refused by line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from reports_samples import FAILED_RUN, FAILING, HEADER, PASSED_RUN, RUNS, TRUNCATED_RUN, write

from verbs_reports.results import Choice, Footer, Header, Program, Results, ResultsError, Rule, Writer, read
from verbs_reports.verdicts import Verdict


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def lines_of(run: str, path: Path) -> list[bytes]:
    """Write a sample and give its lines, to be damaged."""
    return write(path, RUNS[run]).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_what_is_written_is_read_back(run: tuple[Any, ...], path: Path) -> None:
    results = read(write(path, run))
    footers = [record for record in run if isinstance(record, Footer)]
    assert results == Results(
        header=HEADER,
        programs=tuple(record for record in run if isinstance(record, Program)),
        rules=tuple(record for record in run if isinstance(record, Rule)),
        choices=tuple(record for record in run if isinstance(record, Choice)),
        footer=footers[0] if footers else None,
    )


def test_each_record_is_on_disk_before_the_next(path: Path) -> None:
    """A killed process loses no earlier record, and its file reads as truncated at every moment."""
    with Writer(path, HEADER) as writer:
        assert read(path).truncated
        for number, record in enumerate(PASSED_RUN[1:], 2):
            writer.write(record)
            assert len(path.read_bytes().splitlines()) == number
    assert not read(path).truncated


def test_leaving_the_writer_early_leaves_a_truncated_file(path: Path) -> None:
    def interrupted() -> None:
        with Writer(path, HEADER) as writer:
            writer.write(FAILING)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    results = read(path)
    assert results.truncated
    assert results.programs == (FAILING,)


def test_the_writer_makes_its_folder_and_replaces_an_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "results.jsonl"
    write(path, FAILED_RUN)
    assert read(write(path, PASSED_RUN)).verdict is Verdict.PASS


def test_the_writer_refuses_what_the_reader_would(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        with pytest.raises(ResultsError, match=r"second header.*bug in verbspec"):
            writer.write(HEADER)
        wrong = Program(name="p", kind="directed", verdict="green", calls=1, fixture="none")  # type: ignore[arg-type]
        with pytest.raises(ResultsError, match=r"program record does not fit.*green.*bug in verbspec"):
            writer.write(wrong)
        with pytest.raises(ResultsError, match="does not fit"):
            writer.write(msgspec.structs.replace(FAILING, reason="half a character: \ud800"))
        writer.write(PASSED_RUN[-1])
        with pytest.raises(ResultsError, match="after the footer"):
            writer.write(FAILING)
    assert read(path).verdict is Verdict.PASS


def test_the_writer_says_when_the_disk_refuses(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"cannot be written: .*Nobody's bug"):
        Writer(tmp_path, HEADER)


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"none\.jsonl: cannot be read"):
        read(tmp_path / "none.jsonl")


def _change(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda line: json.dumps(json.loads(line) | fields).encode() + b"\n"


DAMAGE: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "empty": (lambda _: [], r":1: empty.*run it again"),
    "blank": (lambda _: [b"\n", b" \n"], r":1: empty"),
    "not-json": (lambda lines: [lines[0], b"Traceback\n", *lines[1:]], r":2: not JSON .*right file\?.*bug"),
    "half-line-in-the-middle": (lambda lines: [lines[0], lines[1][:30] + b"\n", *lines[2:]], r":2: not JSON"),
    "half-header": (lambda lines: [lines[0][:50]], r":1: not JSON"),
    "too-deep": (lambda lines: [lines[0], b'{"record": ' + b"[" * 200_000 + b"\n"], r":2: not JSON"),
    "not-utf-8": (
        lambda lines: [lines[0], lines[1].replace(b"pd", b"\xff\xfe")],
        r":2: (not JSON|in a program)",
    ),
    "no-object": (lambda _: [b"[1, 2]\n"], r":1: no record: .*field 'record'"),
    "no-record": (lambda _: [b'{"a": 1}\n'], r":1: no record"),
    "unknown-record": (
        lambda lines: [lines[0], b'{"record": "progam"}\n'],
        r":2: unknown record 'progam'\. Known: choice, footer, header, program, rule, waiver\.",
    ),
    "record-no-text": (lambda lines: [lines[0], b'{"record": []}\n'], r":2: unknown record \[\]"),
    "record-before-header": (lambda lines: lines[1:], r":1: a program record before the header"),
    "two-headers": (lambda lines: [lines[0], *lines], r":2: a second header.*Split it"),
    "two-runs": (lambda lines: lines + lines, r":9: something stands after the footer.*Two runs"),
    "after-the-footer": (lambda lines: [*lines, lines[1]], r":9: something stands after the footer"),
    "half-after-the-footer": (lambda lines: [*lines, b'{"rec'], r":9: something stands after the footer"),
    "unknown-field": (
        lambda lines: [lines[0], _change(colour="red")(lines[1])],
        r":2: in a program record: .*unknown field `colour`.*bug",
    ),
    "wrong-type": (
        lambda lines: [lines[0], _change(calls="many")(lines[1])],
        r":2: in a program record: Expected `int`, got `str` - at `\$\.calls`",
    ),
    "wrong-verdict": (lambda lines: [lines[0], _change(verdict="green")(lines[1])], r":2: .*'green'"),
    "negative": (lambda lines: [lines[0], _change(calls=-1)(lines[1])], r":2: .*>= 0"),
    "missing-field": (lambda lines: [lines[0], b'{"record": "program"}\n'], r":2: .*missing required field"),
    "newer-format": (
        lambda lines: [_change(format=2, planet="Mars")(lines[0])],
        r":1: written in format 2; this verbspec reads format 1\. Use .*Nobody's bug",
    ),
    "older-format": (lambda lines: [_change(format=0)(lines[0])], r":1: in a header record"),
    "rule-twice": (
        lambda lines: [lines[0], lines[2], lines[2]],
        r":3: a second record of the rule 'pd/alloc'",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_no_results_file_is_refused(
    damage: Callable[[list[bytes]], list[bytes]], message: str, path: Path
) -> None:
    path.write_bytes(b"".join(damage(lines_of("passed", path))))
    with pytest.raises(ResultsError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:")


def test_no_footer_is_a_fact_not_an_error(path: Path) -> None:
    results = read(write(path, TRUNCATED_RUN))
    assert results.truncated
    assert not results.half_line


def test_a_run_cut_at_any_byte_after_its_header_is_read(path: Path) -> None:
    """Wherever a process is killed, the whole lines survive and no half line is taken for a record."""
    data = write(path, PASSED_RUN).read_bytes()
    lines = data.splitlines(keepends=True)
    cut = path.with_name("cut.jsonl")
    ends = [sum(map(len, lines[:number])) for number in range(1, len(lines) + 1)]
    for end in range(ends[0], len(data)):
        cut.write_bytes(data[:end])
        results = read(cut)
        # A line is whole also without the line feed that ends it.
        whole = sum(line_end - 1 <= end for line_end in ends)
        assert 1 + len(results.programs) + len(results.rules) + (results.footer is not None) == whole
        assert results.truncated == (whole < len(lines))
        assert results.half_line == (end not in ends and end + 1 not in ends)


def test_a_truncated_run_is_never_better_than_inconclusive(path: Path) -> None:
    assert read(write(path, PASSED_RUN[:-1])).verdict is Verdict.INCONCLUSIVE
    assert read(write(path, TRUNCATED_RUN)).verdict is Verdict.FAIL


def test_a_mild_footer_does_not_hide_a_worse_record(path: Path) -> None:
    mild = PASSED_RUN[-1]
    assert isinstance(mild, Footer)
    assert read(write(path, (*FAILED_RUN[:-1], mild))).verdict is Verdict.ERROR


def test_the_header_is_the_first_record(path: Path) -> None:
    write(path, PASSED_RUN)
    first = json.loads(path.read_bytes().splitlines()[0])
    assert first["record"] == "header"
    assert first["format"] == 1
    assert isinstance(HEADER, Header)
