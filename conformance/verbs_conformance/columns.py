"""Tables on standard output: fitted to a terminal; elsewhere one row a line, whole, for grep and for files."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

CLOSED_PIPE = 141
"""What a shell says of a program that SIGPIPE ended."""


class Terminal(Console):
    """Standard output.  When whoever reads it has gone the program ends, but not with 1: that is for a backend."""

    def on_broken_pipe(self) -> None:
        """End as SIGPIPE would."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(CLOSED_PIPE) from None


def table(
    console: Console, head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] | None = None
) -> None:
    """Print rows under a head; ``styles`` has one for each row."""
    if console.is_terminal:
        made = Table(*head, box=None, pad_edge=False)
        for i, row in enumerate(rows):
            made.add_row(*(Text(cell) for cell in row), style=styles[i] if styles is not None else None)
        console.print(made)
        return
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(line.rstrip(), markup=False, soft_wrap=True)
