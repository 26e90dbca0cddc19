"""What it takes to load and to check the specification: from nothing, and when nothing has changed since.

Run it as a script; it prints one line a figure.  The time to start Python and to import is told apart.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

START = time.process_time()
from verbs_conformance import upkeep  # noqa: E402 - what importing takes is a figure
from verbs_conformance.kept import Kept  # noqa: E402
from verbs_spec import facts, loader, slugs  # noqa: E402

IMPORT = time.process_time() - START


def seconds(work: Callable[[], object]) -> float:
    """The processor's time that a piece of work takes."""
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        work()
    return time.process_time() - start


def main() -> int:
    """Print the figures."""
    tables = Path(__file__).parents[1] / "spec" / "tables"
    spec = loader.load()
    with TemporaryDirectory() as folder:
        kept = Kept(Path(folder))
        rows = [
            ("import", IMPORT),
            ("load the rules", seconds(loader.load)),
            ("load facts and ids", seconds(lambda: (facts.load(), slugs.load()))),
            ("check from nothing", seconds(lambda: upkeep.check(tables, kept))),
            ("check again", seconds(lambda: upkeep.check(tables, kept))),
        ]
    print(f"{len(spec.rules)} rules, {len(facts.load().facts)} facts")
    for what, taken in rows:
        print(f"{taken:6.2f} s  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
