"""Runs the command line in this process."""

from __future__ import annotations

from dataclasses import dataclass

from click.testing import CliRunner

from verbs_conformance.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, and everything that it printed."""

    code: int
    text: str


def verbspec(*args: str) -> Ended:
    """Run a command; a traceback is a failure of the test."""
    result = CliRunner().invoke(main, list(args), prog_name="verbspec")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output, result.output
    return Ended(result.exit_code, result.output)
