"""Where ``verbspec`` starts: the command line is imported here, so that Ctrl-C is answered while that lasts too.

SIGTERM, by which time limits of continuous integration end a program, is answered like Ctrl-C: what was judged is
written.
"""

from __future__ import annotations

import signal
import sys

NOTHING_DONE = "interrupted before anything was judged; nothing was written"
INTERRUPTED = 2
"""The exit code of Ctrl-C: what was to be decided is not."""


def main() -> None:
    """Run the command of ``sys.argv``."""
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from verbs_conformance.cli import main as command  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        print(NOTHING_DONE, file=sys.stderr)
        sys.exit(INTERRUPTED)
    command()


if __name__ == "__main__":
    main()
