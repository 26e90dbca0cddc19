"""Agents at the other end of a socket or a serial port.

Theory of operation
-------------------
:class:`Stream` sends and receives on one file descriptor that does not block.  A socket is closed after a trouble
and connected anew for the next ``reset``; the agent sees the end of its input and must take another connection.
A serial port has no end that the agent could see, and may hold what was written before we opened it: so its peer
is *stale*, a link begins with an empty line that ends any half line, and the client skips whatever comes before
the answer to its ``hello``.  A terminal is set to raw mode, so that no byte is changed, echoed or held back; any
other character device (a virtio port, a pty's master) is used as it is.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import termios
import time
import tty
from collections.abc import Callable
from typing import NamedTuple

from verbs_adapters.contract import AdapterError, UsageError
from verbs_adapters.remote.links import LineBuffer, NoLine

FORMS = "unix:/PATH, tcp:HOST:PORT, serial:/dev/NAME"
"""What may be connected to."""

RETRY = 0.1
"""Seconds between two attempts to connect to an agent that may be on its way."""

_CHUNK = 1 << 16


class Closed(NamedTuple):
    """How a connection ended."""

    by_itself: bool

    def describe(self) -> str:
        """What the agent did."""
        return "closed the connection"

    def fate(self) -> str:
        """What we did."""
        return "the connection was closed"


class Stream:
    """One connection."""

    stderr = b""

    def __init__(self, descriptor: int, max_line: int, close: Callable[[], None]) -> None:
        """Take over a descriptor; `close` gives it back."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._close = close
        self._unsent = bytearray()
        self._received = LineBuffer(max_line)
        self._ended = False
        self._end: Closed | None = None

    @property
    def unread(self) -> bytes:
        """What was read and nobody has received."""
        return bytes(self._received)

    def send(self, data: bytes) -> None:
        """Send bytes as far as the other side takes them; the rest goes out during :meth:`receive`."""
        self._unsent += data
        self._write()

    def receive(self, until: float) -> bytes | NoLine:
        """The next line without its newline, waiting for it until the monotonic clock says `until`."""
        while True:
            line = self._received.next(ended=self._ended)
            if line is not NoLine.QUIET:
                return line
            left = until - time.monotonic()
            self._wait(left)
            if left <= 0:
                return self._received.next(ended=self._ended)

    def end(self, patience: float = 0.0) -> Closed:
        """Close the connection; for `patience` seconds a line or the end may come first."""
        if self._end is None:
            by_itself = self._ended
            try:
                if patience > 0:
                    by_itself = self.receive(time.monotonic() + patience) is NoLine.ENDED
            finally:
                self._close()
                self._end = Closed(by_itself)
        return self._end

    def _wait(self, seconds: float) -> None:
        writing = [self._descriptor] if self._unsent and not self._ended else []
        readable, writable, _ = select.select([self._descriptor], writing, [], max(0.0, seconds))
        if writable:
            self._write()
        if readable:
            self._read()

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # reset by the peer, or the other side of the pty is gone
            data = b""
        self._received.feed(data)
        self._ended = self._ended or not data

    def _write(self) -> None:
        while self._unsent:
            try:
                sent = os.write(self._descriptor, self._unsent)
            except BlockingIOError:
                return
            except OSError:  # it will not listen: receiving tells why
                self._unsent.clear()
                return
            del self._unsent[:sent]


class SocketPeer:
    """An agent that listens on a Unix or TCP socket."""

    stale = False

    def __init__(self, address: str, family: socket.AddressFamily, place: str | tuple[str, int], max_line: int) -> None:
        """Name the place to connect to."""
        self._address = address
        self._family = family
        self._place = place
        self._max_line = max_line

    @property
    def who(self) -> str:
        """The agent."""
        return f"The agent at {self._address}"

    def __str__(self) -> str:
        return self._address

    def open(self, seconds: float) -> Stream:
        """Connect; where nobody listens yet, try again for so many seconds."""
        until = time.monotonic() + seconds
        while True:
            try:
                made = self._connect(max(1.0, until - time.monotonic()))
            except OSError as error:
                if isinstance(error, ConnectionRefusedError | FileNotFoundError) and time.monotonic() < until:
                    time.sleep(RETRY)
                    continue
                raise AdapterError(
                    f"cannot connect to {self._address}: {error.strerror or error}. Start the agent there first; it "
                    "must listen, and take a new connection after the last one has ended."
                ) from error
            return Stream(made.fileno(), self._max_line, made.close)

    def _connect(self, seconds: float) -> socket.socket:
        if isinstance(self._place, tuple):
            made = socket.create_connection(self._place, seconds)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        made = socket.socket(self._family)
        try:
            made.settimeout(seconds)
            made.connect(self._place)
        except BaseException:
            made.close()
            raise
        return made


class SerialPeer:
    """An agent at the other end of a serial port or another character device."""

    stale = True

    def __init__(self, path: str, max_line: int) -> None:
        """Name the device."""
        self._path = path
        self._max_line = max_line

    @property
    def who(self) -> str:
        """The agent."""
        return f"The agent at {self}"

    def __str__(self) -> str:
        return f"serial:{self._path}"

    def open(self, seconds: float) -> Stream:  # noqa: ARG002 - a device is there or not
        """Open the device, a terminal in raw mode."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise AdapterError(
                f"cannot open {self._path}: {error.strerror}. Check the name, and that you may read and write it."
            ) from error
        with contextlib.suppress(termios.error):  # not a terminal
            tty.setraw(descriptor, termios.TCSANOW)
            termios.tcflush(descriptor, termios.TCIFLUSH)
        stream = Stream(descriptor, self._max_line, lambda: os.close(descriptor))
        stream.send(b"\n")
        return stream


def peer(address: str, max_line: int) -> SocketPeer | SerialPeer:
    """The agent at an address; UsageError if it is none."""
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return SocketPeer(address, socket.AF_UNIX, rest, max_line)
    if kind == "serial" and rest:
        return SerialPeer(rest, max_line)
    host, _, port = rest.rpartition(":")
    if kind == "tcp" and host and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16:
        return SocketPeer(address, socket.AF_INET, (host.strip("[]"), int(port)), max_line)
    raise UsageError(f"`{address}` is no address of an agent; known forms: {FORMS}")
