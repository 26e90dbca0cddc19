"""What carries the lines: the two sides of a link, and the buffer that cuts bytes into lines.

Theory of operation
-------------------
A *peer* says how an agent is reached (a command, a socket, a serial port) and opens a *link* to it whenever one
is needed; a link that had trouble is ended and never used again.  A link sends bytes and receives lines, each
wait with a deadline.  Nothing here knows what the lines say.
"""

from __future__ import annotations

import enum
from typing import Protocol


class NoLine(enum.Enum):
    """Why there is no line."""

    QUIET = "none has come yet"
    ENDED = "standard output has ended"
    ENDLESS = "it is longer than the longest line allowed"


class Ending(Protocol):
    """How a link ended."""

    @property
    def by_itself(self) -> bool:
        """Whether the other side ended it."""

    def describe(self) -> str:
        """What the other side did, in words that follow its name."""

    def fate(self) -> str:
        """What became of a link that we ended, as half a sentence."""


class Link(Protocol):
    """Lines to and from one agent."""

    @property
    def stderr(self) -> bytes:
        """The end of what the agent has logged, as far as the link carries that."""

    @property
    def unread(self) -> bytes:
        """What was read and nobody has received."""

    def send(self, data: bytes) -> None:
        """Send bytes as far as the other side takes them; the rest goes out during :meth:`receive`."""

    def receive(self, until: float) -> bytes | NoLine:
        """The next line without its newline, waiting for it until the monotonic clock says `until`."""

    def end(self, patience: float = 0.0) -> Ending:
        """End the link; for `patience` seconds the other side may do it itself."""


class Peer(Protocol):
    """How an agent is reached."""

    @property
    def who(self) -> str:
        """The agent, as the subject of a sentence."""

    @property
    def stale(self) -> bool:
        """Whether a new link may carry lines that belong to an earlier one."""

    def __str__(self) -> str:
        """What the user wrote to name it."""

    def open(self, seconds: float) -> Link:
        """Open a link, trying again for so many seconds if the agent may be on its way.

        Raises :class:`~verbs_adapters.contract.AdapterError` if it cannot be opened.
        """


class LineBuffer:
    """Bytes on their way to be lines."""

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._data = bytearray()
        self._scanned = 0  # so many bytes are known to hold no newline

    def __len__(self) -> int:
        return len(self._data)

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    @property
    def full(self) -> bool:
        """Whether there are more bytes than the longest line has."""
        return len(self._data) > self._max_line

    def feed(self, data: bytes) -> None:
        """Append what was read."""
        self._data += data

    def clip(self) -> None:
        """Forget what lies behind the longest line allowed."""
        del self._data[self._max_line :]

    def next(self, *, ended: bool) -> bytes | NoLine:
        """The first line; without one, whether more may come."""
        end = self._data.find(b"\n", self._scanned)
        if end > self._max_line or (end < 0 and self.full):
            return NoLine.ENDLESS
        if end < 0:
            self._scanned = len(self._data)
            return NoLine.ENDED if ended else NoLine.QUIET
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        self._scanned = 0
        return line
