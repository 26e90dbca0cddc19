"""HTML, JUnit and Markdown: the same facts, whatever a device calls itself, byte for byte."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import junitparser
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reports_samples import CRASHED, FAILED_RUN, FAILING, RULES, RUNS, results_of, write

from verbs_reports import html, junit, markdown
from verbs_reports.records import Record
from verbs_reports.results import Results, read
from verbs_reports.text import clean
from verbs_reports.verdicts import Verdict

FORMATS: dict[str, Callable[[Results], str]] = {
    "html": html.render,
    "junit": junit.render,
    "markdown": markdown.render,
}
HOSTILE = (
    "</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'`${7*7}{{7*7}}{% raw %}"
    "| ``` @all #1 **b** [a](http://b) <!-- ]]> \x00\x1b[31m\u202e\n# title\n\n| a |\n```\n"
)


@pytest.fixture(params=RUNS)
def results(request: pytest.FixtureRequest, tmp_path: Path) -> Results:
    return read(write(tmp_path / "results.jsonl", RUNS[request.param]))


@pytest.fixture
def failed(tmp_path: Path) -> Results:
    return read(write(tmp_path / "failed.jsonl", RUNS["failed"]))


@pytest.fixture
def truncated(tmp_path: Path) -> Results:
    return read(write(tmp_path / "truncated.jsonl", RUNS["truncated"]))


class Page(HTMLParser):
    """A page as its tags, its text and its identifiers; refuses tags that do not nest."""

    VOID = frozenset({"meta", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def words(self) -> str:
        """Give the text of the page on one line."""
        return " ".join(" ".join(self.text).split())

    def values(self, name: str) -> list[str]:
        """Give the values of an attribute, in order."""
        return [value for _, key, value in self.attributes if key == name]


def hostile(value: Any, text: str) -> Any:
    """Put a text in every place of a record where any text may stand."""
    fixed = {"record", "verdict", "kind", "level", "format"}
    if isinstance(value, dict):
        free = {"options", "limits", "fired", "possible"}
        changed = {key: item if key in fixed else hostile(item, text) for key, item in value.items()}
        return {
            key: {text + str(number): inner for number, inner in enumerate(item.values())}
            if key in free and isinstance(item, dict)
            else item
            for key, item in changed.items()
        }
    if isinstance(value, list | tuple):
        return [hostile(item, text) for item in value]
    return text if isinstance(value, str) else value


def hostile_run(run: tuple[Record, ...], text: str) -> Results:
    """Give a run in which everything that can be called something is called that."""
    records = []
    for number, record in enumerate(run):
        value = hostile(msgspec.to_builtins(record), text)
        for unique in ("rule", "choice"):
            if unique in value:
                value[unique] = text + str(number)
        records.append(msgspec.convert(value, Record))
    return results_of(tuple(records))


@pytest.mark.parametrize("render", FORMATS.values(), ids=FORMATS)
def test_same_input_same_bytes(render: Callable[[Results], str], results: Results) -> None:
    first = render(results)
    assert render(results) == first
    assert first.endswith("\n")
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", first)


def test_same_bytes_in_another_process(tmp_path: Path) -> None:
    """Nothing depends on the clock or on how a process hashes."""
    path = write(tmp_path / "results.jsonl", FAILED_RUN)
    code = (
        "import sys; from verbs_reports import html, junit, markdown, results; "
        "r = results.read(sys.argv[1]); "
        "sys.stdout.buffer.write((html.render(r) + junit.render(r) + markdown.render(r)).encode())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, path],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed, "TZ": zone},
            check=True,
            capture_output=True,
        ).stdout
        for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"))
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("render", FORMATS.values(), ids=FORMATS)
def test_a_truncated_run_is_loud(render: Callable[[Results], str], truncated: Results, failed: Results) -> None:
    banner = "TRUNCATED: the run did not end; what follows is what it had obtained"
    assert banner in render(truncated)
    assert banner not in render(failed)


@pytest.mark.parametrize("render", FORMATS.values(), ids=FORMATS)
def test_every_format_says_the_facts(render: Callable[[Results], str], failed: Results) -> None:
    text = render(failed)
    for fact in (
        "rdma_rxe",
        "6.18.3-rc1+",
        "linux-user",
        "roce",
        "mr/dereg-with-bound-window",
        "0: the region is gone",
        "EBUSY, and nothing has changed",
        "verbspec replay programs/mr-dereg-with-bound-window.1.yaml",
        "KASAN: slab-use-after-free",
        "waiver 3: fixed in 6.19",
        "--seed 7",
        "max_fast_reg_page_list_len",
    ):
        assert fact in text, fact


# HTML


def test_the_page_is_well_formed_and_needs_nothing_else(results: Results) -> None:
    page = Page(html.render(results))
    assert not page.values("src")
    assert all(target.startswith("#") for target in page.values("href"))
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers))
    assert {target[1:] for target in page.values("href")} <= set(identifiers)
    assert "http" not in "".join(page.text)
    assert page.tags["script"] == page.tags["style"] == 1
    (policy,) = [value for value in page.values("content") if "default-src" in value]
    assert policy.startswith("default-src 'none'")


def test_the_page_shows_each_verdict_as_a_word(failed: Results) -> None:
    page = Page(html.render(failed))
    words = page.words()
    for verdict in {rule.verdict for rule in RULES}:
        assert f" {verdict} " in words
    assert page.values("data-verdict").count("pass") == 5


def test_the_page_marks_the_failing_step(failed: Results) -> None:
    page = html.render(failed)
    (line,) = re.findall(r'<li value="8" class="failing">.*', page)
    assert "dereg_mr(mr0) -&gt; 0" in line
    assert '<li value="9" class="after">' in page
    assert "<summary>steps 1 to 40</summary>" in page


def test_the_page_stops_at_200_programs_and_counts_the_rest(failed: Results) -> None:
    many = tuple(msgspec.structs.replace(FAILING, name=f"many-{number}") for number in range(257))
    silent = tuple(
        msgspec.structs.replace(FAILING, name=f"silent-{number}", verdict=Verdict.INCONCLUSIVE, failure=None)
        for number in range(203)
    )
    text = html.render(msgspec.structs.replace(failed, programs=many + silent))
    page = Page(text)
    assert page.tags["article"] == 200
    assert "57 more programs of this kind" in page.words()
    assert "3 more programs of this kind" in page.words()
    assert "many-199" in text
    assert "many-200" not in text


# JUnit


def parsed(text: str) -> junitparser.JUnitXml:
    return junitparser.JUnitXml.fromstring(text.encode())


def cases_of(text: str, suite: str) -> dict[str, junitparser.TestCase]:
    (found,) = [each for each in parsed(text) if each.name == suite]
    return {str(case.name): case for case in found}


def test_junit_has_a_suite_an_object_and_a_case_a_rule(failed: Results) -> None:
    document = parsed(junit.render(failed))
    names = [suite.name for suite in document]
    assert names == [
        "verbspec.run",
        "pd",
        "mr",
        "mw",
        "qp",
        "cq",
        "srq",
        "verbspec.choices",
        "verbspec.programs",
    ]
    for rule in RULES:
        assert cases_of(junit.render(failed), rule.object)[rule.rule].classname == rule.object
    assert document.tests == 1 + len(RULES) + len(failed.choices) + len(failed.programs)
    # Rules: 2 fail, 1 unexpected-pass, 1 flaky; choices: 1 fail; programs: 2 fail, 1 flaky.
    assert (document.failures, document.errors) == (8, 1)
    # Rules: inconclusive, not-run, waived, unsupported; programs: inconclusive.
    assert document.skipped == 5


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.verdict)
def test_junit_says_each_verdict_in_its_words(rule: Any, failed: Results) -> None:
    kinds = {
        Verdict.ERROR: junitparser.Error,
        Verdict.FAIL: junitparser.Failure,
        Verdict.UNEXPECTED_PASS: junitparser.Failure,
        Verdict.FLAKY: junitparser.Failure,
        Verdict.INCONCLUSIVE: junitparser.Skipped,
        Verdict.NOT_RUN: junitparser.Skipped,
        Verdict.WAIVED: junitparser.Skipped,
        Verdict.UNSUPPORTED: junitparser.Skipped,
    }
    case = cases_of(junit.render(failed), rule.object)[rule.rule]
    if rule.verdict in kinds:
        (result,) = case.result
        assert type(result) is kinds[rule.verdict]
        assert result.type == rule.verdict
        assert rule.reason in result.message
    else:
        assert case.result == []
        assert (case.system_out is None) == (rule.verdict is Verdict.PASS)


def test_junit_tells_the_failing_program(failed: Results) -> None:
    (result,) = cases_of(junit.render(failed), "verbspec.programs")[CRASHED.name].result
    assert "> 61 modify_qp(qp0, ERR)" in result.text
    assert "hang of the backend" in result.text


def test_junit_of_a_truncated_run_is_an_error(truncated: Results) -> None:
    (result,) = cases_of(junit.render(truncated), "verbspec.run")["the run ended"].result
    assert isinstance(result, junitparser.Error)
    assert result.message.startswith("fail: TRUNCATED")


def test_junit_is_never_green_when_the_run_is_not(failed: Results) -> None:
    """A verdict that only the footer knows, or only a choice, is a failure too."""
    assert failed.footer is not None
    footer = msgspec.structs.replace(failed.footer, verdict=Verdict.FAIL)
    bare = msgspec.structs.replace(failed, programs=(), rules=(), choices=(), footer=footer)
    assert parsed(junit.render(bare)).failures == 1
    chosen = msgspec.structs.replace(bare, choices=failed.choices)
    assert cases_of(junit.render(chosen), "verbspec.choices")["local-inv-stale-key"].result
    assert parsed(junit.render(chosen)).failures == 1


def test_junit_tells_a_rule_with_three_of_its_programs(failed: Results) -> None:
    many = tuple(msgspec.structs.replace(FAILING, name=f"many-{number}") for number in range(20))
    text = junit.render(msgspec.structs.replace(failed, programs=many))
    (result,) = cases_of(text, "mr")["mr/dereg-with-bound-window"].result
    assert "program many-2" in result.text
    assert "program many-3" not in result.text
    assert "17 more programs" in result.text
    assert len(cases_of(text, "verbspec.programs")) == 20


# Markdown


def test_markdown_says_the_verdict_first(failed: Results, truncated: Results) -> None:
    assert markdown.render(failed).startswith("# ERROR: rdma_rxe in-kernel 6.18, linux-user, roce\n")
    assert markdown.render(truncated).splitlines()[2].startswith("> **TRUNCATED")


def test_markdown_lists_what_is_not_pass_and_no_more(failed: Results) -> None:
    text = markdown.render(failed)
    table = text.partition("## Rules that are not pass")[2].partition("##")[0]
    assert table.count("\n| **") == sum(rule.verdict is not Verdict.PASS for rule in RULES)
    assert "pd/alloc" not in table


def test_markdown_keeps_long_programs_short(failed: Results) -> None:
    many = tuple(msgspec.structs.replace(CRASHED, name=f"program-{number}") for number in range(15))
    text = markdown.render(msgspec.structs.replace(failed, programs=many))
    assert "5 more programs of this kind" in text
    assert "(steps 1 to 40 left out)" in text


# Whatever a device says


def shape_of(text: str) -> set[tuple[str, str]]:
    """Give the tags that Markdown turns into."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    return {(token.type, token.tag) for token in (*tokens, *inner) if token.type not in {"text", "text_special"}}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text[0] != "/")
"""Any text that JSON can hold; a rule without an object before its slash would be an object of its own."""


@settings(max_examples=25, deadline=None)
@given(text=TEXTS)
@example(text=HOSTILE)
@example(text="__0__")
@example(text="-")
@example(text="12) a")
@pytest.mark.parametrize("run", RUNS)
def test_no_text_changes_the_shape_of_a_report(run: str, text: str) -> None:
    """Any text anywhere gives the same kind of report as a harmless text."""
    plain = text if not text.strip() else "x/x" if "/" in text else "x"
    results, harmless = hostile_run(RUNS[run], text), hostile_run(RUNS[run], plain)
    page = Page(html.render(results))
    assert page.tags["script"] == page.tags["style"] == 1
    assert page.tags == Page(html.render(harmless)).tags
    document = parsed(junit.render(results))
    assert document.tests == parsed(junit.render(harmless)).tests
    assert shape_of(markdown.render(results)) == shape_of(markdown.render(harmless))


def test_a_hostile_name_is_shown_as_it_is() -> None:
    results = hostile_run(FAILED_RUN, HOSTILE)
    shown = " ".join(clean(HOSTILE).split())
    assert "\\x00\\x1b[31m\\u202e" in shown
    assert shown in Page(html.render(results)).words()
    assert shown in str(parsed(junit.render(results)).name)
    assert all(character not in html.render(results) for character in "\x00\x1b\u202e")


def test_clean_shows_what_cannot_be_shown() -> None:
    assert clean("a\x00b\x1b[1m\u202ec\td\r\ne\rf") == "a\\x00b\\x1b[1m\\u202ec\td\ne\nf"
    assert clean("Größe 4 µs → ok 日本") == "Größe 4 µs → ok 日本"
