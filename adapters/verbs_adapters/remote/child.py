"""A child process that is spoken to in lines, with a deadline on every line.

Theory of operation
-------------------
The child is the leader of a session of its own: Ctrl-C at the terminal does not reach it, and
:meth:`Child.end` reaches all it has started.  Its three pipes do not block; one selector waits for whichever
is ready, so that a child that floods one pipe or does not read another stalls nobody, without threads.
That the child has ended is an event like the others where the system has pidfds (Linux 5.3); elsewhere
the end of its standard output stands for it.

Children still alive when the interpreter exits are ended then.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from verbs_adapters.contract import AdapterError
from verbs_adapters.remote.links import LineBuffer, NoLine

KEPT_STDERR = 1 << 16
"""The last bytes of standard error that are kept."""

KILL_PATIENCE = 5.0
"""Seconds until a killed process that does not go away is given up; it is stuck in the kernel then."""

_CHUNK = 1 << 16


class End(NamedTuple):
    """How a child ended: by itself or killed by us, and its status as `subprocess` gives it.

    The status is None if the child cannot even be killed.
    """

    by_itself: bool
    status: int | None

    def describe(self) -> str:
        """The end in words."""
        if self.status is None:
            return "cannot be killed (it is stuck in the kernel)"
        if self.status >= 0:
            return f"exited with status {self.status}"
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-self.status).name}"
        return f"was killed by signal {-self.status}"

    def fate(self) -> str:
        """What became of a child that did not answer."""
        return "it was killed" if self.status is not None else f"it {self.describe()}"


class Child:
    """One child process.  Raises `OSError` if it cannot be started."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None, max_line: int) -> None:
        """Start `argv` (found on PATH); lines without their newline are at most `max_line` bytes long."""
        self._unsent = bytearray()
        self._stalled = False  # the pipe was full, and the selector watches for room in it
        self._received = LineBuffer(max_line)
        self._stderr = bytearray()
        self._stdout_ended = False
        self._ended = False
        self._end: End | None = None
        self._process = subprocess.Popen(  # noqa: S603 - running the user's command is what this is for
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            start_new_session=True,
        )
        _living.add(self)
        self._selector = selectors.DefaultSelector()
        self._pidfd: int | None = None
        self._stdin, self._stdout, self._errors = (
            _unblocked(pipe) for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._selector.register(self._stdout, selectors.EVENT_READ, self._read_stdout)
        self._selector.register(self._errors, selectors.EVENT_READ, self._read_stderr)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # before Linux 5.3
                self._pidfd = os.pidfd_open(self._process.pid)
                self._selector.register(self._pidfd, selectors.EVENT_READ, self._note_end)

    @property
    def pid(self) -> int:
        """The process id, which is also the id of the child's session and process group."""
        return self._process.pid

    @property
    def stderr(self) -> bytes:
        """The end of what the child has written to standard error."""
        return bytes(self._stderr)

    @property
    def unread(self) -> bytes:
        """What the child has written to standard output and nobody has received."""
        return bytes(self._received)

    def send(self, data: bytes) -> None:
        """Send bytes as far as the pipe takes them; the rest goes out during :meth:`receive`."""
        self._unsent += data
        self._write()

    def receive(self, until: float) -> bytes | NoLine:
        """The next line without its newline, waiting for it until the monotonic clock says `until`."""
        while True:
            line = self._next_line()
            if line is not NoLine.QUIET:
                return line
            left = until - time.monotonic()
            self._wait(left)
            if left <= 0:  # that was a last look; a child that drips bytes does not get more time
                return self._next_line()

    def _next_line(self) -> bytes | NoLine:
        """The first line of what has been read; quiet if there is none yet."""
        return self._received.next(ended=self._stdout_ended)

    def end(self, patience: float = 0.0) -> End:
        """End the child and everything in its process group, leaving nothing behind.

        Its standard input is closed at once; for `patience` seconds it may end by itself.
        """
        if self._end is not None:
            return self._end
        by_itself = False
        try:
            self._close_stdin()
            by_itself = self._ends_within(patience)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # even if the leader has ended: the group may live on
            self._ends_within(KILL_PATIENCE)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0)
            self._end = End(by_itself, self._process.returncode)
            self._release()
        return self._end

    # -- what the selector calls -------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Handle what is ready, waiting at most so long for it."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            handle: Callable[[], object] = key.data
            handle()

    def _read_stdout(self) -> bool:
        """Take what is there; whether there was anything."""
        if self._stdout_ended:  # noticed by _note_end in the same round
            return False
        data = _read(self._stdout)
        if data is not None:
            self._received.feed(data)
        if data == b"":
            self._end_stdout()
        return bool(data)

    def _end_stdout(self) -> None:
        self._stdout_ended = True
        self._selector.unregister(self._stdout)

    def _read_stderr(self) -> bool:
        data = _read(self._errors)
        if data is not None:
            self._stderr += data
            del self._stderr[:-KEPT_STDERR]
        if data == b"":
            self._selector.unregister(self._errors)
        return bool(data)

    def _note_end(self) -> None:
        """The child has ended.  Somebody who inherited its pipes may hold them open; that counts no more."""
        assert self._pidfd is not None
        self._selector.unregister(self._pidfd)
        self._ended = True
        while not self._received.full and self._read_stdout():
            pass
        if not self._stdout_ended:
            self._end_stdout()

    def _write(self) -> None:
        """Write what the pipe takes, and ask to be called again if that is not all."""
        while self._unsent:
            try:
                sent = os.write(self._stdin.fileno(), self._unsent)
            except BlockingIOError:
                break
            except BrokenPipeError:  # it has ended or will not listen: receiving tells which
                self._unsent.clear()
                break
            del self._unsent[:sent]
        if bool(self._unsent) != self._stalled:
            self._stalled = not self._stalled
            if self._stalled:
                self._selector.register(self._stdin, selectors.EVENT_WRITE, self._write)
            else:
                self._selector.unregister(self._stdin)

    # -- the end -----------------------------------------------------------------------------------

    def _ends_within(self, seconds: float) -> bool:
        """Whether the child ends in that time.  Its output is read meanwhile, lest it wait for that."""
        if self._pidfd is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                self._ended = True
            return self._ended
        until = time.monotonic() + seconds
        while not self._ended:
            left = until - time.monotonic()
            self._wait(left)
            if self._received.full:  # nobody will ask for all that
                self._received.clip()
            if left <= 0:
                break
        return self._ended

    def _close_stdin(self) -> None:
        self._unsent.clear()
        if self._stalled:
            self._stalled = False
            self._selector.unregister(self._stdin)
        self._stdin.close()

    def _release(self) -> None:
        """Read what is left of standard error and give back all that belongs to the child."""
        for _ in range(2 * KEPT_STDERR // _CHUNK):  # a bound: whoever holds the pipe may never stop writing
            if not self._read_stderr_left():
                break
        self._selector.close()
        for pipe in (self._stdout, self._errors):
            pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        _living.discard(self)

    def _read_stderr_left(self) -> bool:
        return self._errors in self._selector.get_map() and self._read_stderr()


def _unblocked(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    return pipe


def _read(pipe: IO[bytes]) -> bytes | None:
    """What can be read now: ``b""`` at the end, None if nothing is there yet."""
    try:
        return os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return None


class ChildPeer:
    """An agent that is a command to run."""

    who = "The process"
    stale = False

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        max_line: int,
        *,
        preamble: bytes = b"",
        shown: str = "",
    ) -> None:
        """Describe the child; `preamble` is sent before the first line, `shown` names it instead of its command."""
        if not argv:
            raise AdapterError("the command of a remote backend is empty; give the program and its arguments")
        self._argv = tuple(argv)
        self._env = env
        self._max_line = max_line
        self._preamble = preamble
        self._shown = shown

    def __str__(self) -> str:
        return self._shown or shlex.join(self._argv)

    def open(self, seconds: float) -> Child:  # noqa: ARG002 - a command can be run or not, at once
        """Start the child."""
        try:
            child = Child(self._argv, self._env, self._max_line)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AdapterError(
                f"cannot start `{self}`: {reason}. Check that the program exists, is executable and is on PATH."
            ) from error
        child.send(self._preamble)
        return child


_living: set[Child] = set()
_owner = os.getpid()


@atexit.register
def _end_all() -> None:
    """End the children of an interpreter that was interrupted before it could close its backends."""
    if os.getpid() == _owner:  # a fork of ours has the set, but the children are not its own
        for child in tuple(_living):
            child.end()
