"""Results: a run as a file and as a value; the writer and the reader.

One file a run, JSON lines, one record a line: ``header``, then ``program``, ``rule``, ``choice`` and
``waiver`` in any order, ``footer`` last.  The records are those of :mod:`verbs_reports.records`, offered here too.

No footer means that the run did not end.  That is a fact about the run, not a fault of the file, so it
is no exception: :attr:`Results.truncated` says so, and so does every report.  A last line that is half
written is the same case.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from verbs_reports.records import (
    FORMAT,
    KINDS,
    Adapter,
    Choice,
    Device,
    Failure,
    Footer,
    Header,
    Program,
    Record,
    Rule,
    Trouble,
    Waiver,
    schema,
)
from verbs_reports.verdicts import UNDECIDED, Verdict, worst

__all__ = [
    "FORMAT",
    "Adapter",
    "Choice",
    "Device",
    "Failure",
    "Footer",
    "Header",
    "Program",
    "Record",
    "Results",
    "ResultsError",
    "Rule",
    "Trouble",
    "Waiver",
    "Writer",
    "read",
    "schema",
]


class ResultsError(Exception):
    """A results file cannot be written or read.  Says where, what is wrong, what to do, whose fault."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A results file as a value.

    ``truncated``: there is no footer.  ``half_line``: the last line was half written and is dropped.
    """

    header: Header
    programs: tuple[Program, ...] = ()
    rules: tuple[Rule, ...] = ()
    choices: tuple[Choice, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    footer: Footer | None = None
    half_line: bool = False

    @property
    def truncated(self) -> bool:
        """Whether the run did not end."""
        return self.footer is None

    @property
    def verdict(self) -> Verdict:
        """The worst of the footer, the rules, the choices and the waivers.

        A truncated run is at best ``inconclusive``; as it has perhaps no rule records, its programs
        count too.
        """
        found = [rule.verdict for rule in self.rules] + [choice.verdict for choice in self.choices]
        found += [waiver.verdict for waiver in self.waivers]
        if self.footer is not None:
            return worst([self.footer.verdict, *found])
        found += [program.verdict for program in self.programs if program.verdict not in UNDECIDED]
        return worst([Verdict.INCONCLUSIVE, *found])


class Writer:
    """Writes a results file, a record at a time, so that a killed run loses no earlier record.

    Opening it replaces ``path``, makes its folder when missing, and writes ``header`` at once.  Use it
    as a context manager.  Leaving it adds no footer: only a run that ended has one, and only the caller
    knows that.  Every method raises :class:`ResultsError` when the disk or the record is at fault.
    """

    def __init__(self, path: str | PathLike[str], header: Header) -> None:
        self.path: Final = Path(path)
        self._last: str | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self.write(header)
        except BaseException:
            self.close()
            raise

    def write(self, record: Record) -> None:
        """Append one record and hand it to the operating system.

        Raises :class:`ResultsError` for a record that :func:`read` would refuse, for a second header,
        for anything after the footer, and when the disk refuses.
        """
        kind = _kind(record)
        if kind == "header" and self._last is not None:
            raise ResultsError(f"{self.path}: a second header; one file holds one run. {_OURS}")
        if self._last == "footer":
            raise ResultsError(f"{self.path}: a {kind} record after the footer, which ends the file. {_OURS}")
        try:
            line = msgspec.json.encode(record)
            msgspec.json.decode(line, type=type(record))
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise ResultsError(f"{self.path}: a {kind} record does not fit the format: {error}. {_OURS}") from error
        try:
            self._file.write(line + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error
        self._last = kind

    def close(self) -> None:
        """Close the file; doing it twice is harmless.  Raises :class:`ResultsError` if the disk refuses."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _unwritable(self, error: OSError) -> ResultsError:
        return ResultsError(
            f"{self.path}: cannot be written: {error.strerror or error}. "
            "Make room or choose another folder for the results. Nobody's bug: the file system refuses."
        )


def read(path: str | PathLike[str]) -> Results:
    """Read a results file.

    Raises :class:`ResultsError` when it is not one.  A missing footer and a half-written last line are
    not errors; see :class:`Results`.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ResultsError(
            f"{path}: cannot be read: {error.strerror or error}. Name the results file that `verbspec run` wrote."
        ) from error
    reader = _Reader(str(path))
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            reader.take(number, line, last=number == len(lines))
    return reader.results()


class _Reader:
    """Takes the lines of a file in order and knows which may come next."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: Header | None = None
        self.programs: list[Program] = []
        self.rules: dict[str, Rule] = {}
        self.choices: dict[str, Choice] = {}
        self.waivers: dict[str, Waiver] = {}
        self.footer: Footer | None = None
        self.half_line = False

    def take(self, number: int, line: bytes, *, last: bool) -> None:
        """Read one line; ``last`` says that no line feed follows it."""
        where = f"{self.path}:{number}"
        if self.footer is not None:
            raise ResultsError(
                f"{where}: something stands after the footer, which ends a results file. "
                f"Two runs in one file? Keep one file a run. {_THEIRS}"
            )
        try:
            record = _DECODER.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            # A prefix of a JSON object is never JSON, so a line that is whole is never taken for half.
            if last and self.header is not None and line.startswith(b"{") and not _is_json(line):
                self.half_line = True
                return
            raise ResultsError(f"{where}: {_explain(line, error)}") from error
        self._place(where, record)

    def _place(self, where: str, record: Record) -> None:
        if isinstance(record, Header):
            if self.header is not None:
                raise ResultsError(
                    f"{where}: a second header. Two runs in one file? Split it before this line. {_THEIRS}"
                )
            self.header = record
        elif self.header is None:
            raise ResultsError(
                f"{where}: a {_kind(record)} record before the header, which must be the first line. "
                f"Is the beginning of the file missing? {_THEIRS}"
            )
        elif isinstance(record, Program):
            self.programs.append(record)
        elif isinstance(record, Rule):
            self._once(where, "rule", record.rule, self.rules)
            self.rules[record.rule] = record
        elif isinstance(record, Choice):
            self._once(where, "choice", record.choice, self.choices)
            self.choices[record.choice] = record
        elif isinstance(record, Waiver):
            self._once(where, "waiver", record.waiver, self.waivers)
            self.waivers[record.waiver] = record
        else:
            self.footer = record

    def _once(self, where: str, kind: str, name: str, known: dict[str, Any]) -> None:
        if name in known:
            raise ResultsError(f"{where}: a second record of the {kind} {name!r}; there is one a run. {_THEIRS}")

    def results(self) -> Results:
        if self.header is None:
            raise ResultsError(
                f"{self.path}:1: empty, there is not even a header. "
                "The run was stopped before it began, or this is not a results file: run it again."
            )
        return Results(
            header=self.header,
            programs=tuple(self.programs),
            rules=tuple(self.rules.values()),
            choices=tuple(self.choices.values()),
            waivers=tuple(self.waivers.values()),
            footer=self.footer,
            half_line=self.half_line,
        )


_DECODER: Final = msgspec.json.Decoder(Record)
_OURS: Final = "This is a bug in verbspec: please report it."
_THEIRS: Final = "If verbspec wrote this file, it is a bug in verbspec; if another tool did, it is that tool's."


def _kind(record: Record) -> str:
    return str(record.__struct_config__.tag)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _explain(line: bytes, error: Exception) -> str:
    """Say what is wrong with a line that is no record."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return (
            f"not JSON ({error}). A results file is JSON lines, as `verbspec run` writes them: "
            f"is this the right file? {_THEIRS}"
        )
    if not isinstance(value, dict) or "record" not in value:
        return f"no record: a line is a JSON object with a field 'record'. Is this the right file? {_THEIRS}"
    kind = value["record"]
    if not isinstance(kind, str) or kind not in KINDS:
        return f"unknown record {kind!r}. Known: {', '.join(KINDS)}. {_THEIRS}"
    written = value.get("format", FORMAT)
    if kind == "header" and isinstance(written, int) and written > FORMAT:
        return (
            f"written in format {written}; this verbspec reads format {FORMAT}. "
            "Use the verbspec that wrote it, or a newer one. Nobody's bug."
        )
    return f"in a {kind} record: {error}. Correct it or run again. {_THEIRS}"
