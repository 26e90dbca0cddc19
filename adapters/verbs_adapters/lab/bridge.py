"""Stands between the harness and an agent in a guest: boots the guest, carries lines, watches the kernel.

Theory of operation
-------------------
To the harness this process is the agent: it speaks the remote protocol on standard input and output, and the remote
client starts, ends and restarts it like any other.  So a guest lives as long as this process, and a crash ends in a
fresh guest by the client's own rules.

Requests go to the guest as they come and answers come back as they are: what is garbage is the client's to say.  Before
an answer is passed on the console is read, so that trouble which a call caused is told with that call:

========================================  ======  =========================================================
what is seen while a request waits        kind    whose
========================================  ======  =========================================================
the kernel reports trouble                crash   ``backend``; the console is the evidence
the machine ends without a report         crash   ``glue``: somebody ended it
the agent ends                            crash   ``glue``
no answer, and the warden does not answer  hang   ``backend``: the guest hangs as a whole
no answer, and the agent is in the kernel  hang   ``backend``; the stack is the evidence
no answer, and the agent is not           hang    ``glue``
========================================  ======  =========================================================
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

from verbs_adapters.contract import Trouble
from verbs_adapters.lab import host
from verbs_adapters.lab.console import Console
from verbs_adapters.lab.machine import command
from verbs_adapters.remote.messages import MAX_LINE, Reply, encode

WARDEN_PATIENCE = 5.0
"""Seconds that a guest gets to say how its agent is doing."""

LAST_WORDS = 2.0
"""Seconds that a kernel in trouble gets to finish its report."""

_CHUNK = 1 << 16
_IOCTL, _WRITE = "16", "1"
_IN_KERNEL = {_IOCTL, _WRITE}
"""System calls by which an agent asks something of a driver (x86-64)."""


class Over(Exception):
    """The guest is of no more use."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class Bridge:
    """One guest and the requests to it."""

    def __init__(self, words: list[str], agent: socket.socket, warden: socket.socket, guest_ends: list[int]) -> None:
        """Start the emulator; `guest_ends` are its ends of the sockets."""
        self.console = Console()
        self.requests = bytearray()
        self.answers = bytearray()
        self.notes = bytearray()
        self.asked: int | None = None
        self.until = 0.0
        self.agent, self.warden = agent, warden
        self.process = subprocess.Popen(  # noqa: S603 - all words are ours
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=guest_ends,
            env=host.environment(),
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout.fileno()
        for descriptor in guest_ends:
            os.close(descriptor)
        self.selector = selectors.DefaultSelector()
        self.stdin_open = True
        self.selector.register(self.output, selectors.EVENT_READ, "console")
        self.selector.register(agent, selectors.EVENT_READ, "agent")
        self.selector.register(warden, selectors.EVENT_READ, "warden")
        os.set_blocking(self.output, False)

    # -- the loop ----------------------------------------------------------------------------------

    def serve(self, deadline: float, boot_deadline: float) -> None:
        """Carry requests and answers until the harness closes its end; `Over` when the guest is of no more use."""
        os.set_blocking(0, False)
        self.selector.register(0, selectors.EVENT_READ, "harness")
        booted = False
        boot_until = time.monotonic() + boot_deadline
        while self.stdin_open or self.asked is not None:
            line = self._take(self.requests) if self.asked is None else None
            if line is not None:
                self.asked = _id_of(line)
                self.until = time.monotonic() + (deadline if booted else boot_deadline) * _calls_in(line)
                self.agent.sendall(line)
            self._wait(self.until if self.asked is not None else boot_until if not booted else None)
            self._check()
            if self._pass_on():
                booted = True
            elif len(self.answers) > MAX_LINE + 1:  # the client says what is wrong with that
                _write(bytes(self.answers))
                self.answers.clear()
            elif not booted and time.monotonic() > boot_until:
                said = self.console.text.strip().splitlines()[-3:] or ["nothing"]
                what = f"the guest did not come up within {boot_deadline:g} s; its console ends: {' | '.join(said)}"
                raise Over(self._trouble("hang", "glue", what))
            elif self.asked is not None and time.monotonic() > self.until:
                raise Over(self._hang(deadline))

    def _pass_on(self) -> bool:
        """Give the harness all lines that have come (an event and an answer may come in one piece); whether any had."""
        answer = self._take(self.answers)
        if answer is None:
            return False
        while answer is not None:
            if not _is_event(answer):
                self.asked = None
            _write(answer)
            answer = self._take(self.answers)
        return True

    def ask(self, line: bytes, until: float) -> bytes:
        """One line to whatever runs in the agent's place, and the line that it answers."""
        self.agent.sendall(line)
        while True:
            answer = self._take(self.answers)
            if answer is not None:
                return answer
            if time.monotonic() > until:
                raise Over(self._trouble("hang", "glue", "the guest does not answer"))
            self._wait(until)
            self._check()

    def _wait(self, until: float | None) -> None:
        """Take what comes, waiting for something at most until then."""
        left = None if until is None else max(0.0, until - time.monotonic())
        for key, _ in self.selector.select(left):
            if key.data == "harness":
                data = os.read(0, _CHUNK)
                self.requests += data
                if not data:
                    self.stdin_open = False
                    self.selector.unregister(0)
            elif key.data == "console":
                self._read_console()
            elif key.data == "agent":
                self._receive(self.agent, self.answers)
            else:
                self._receive(self.warden, self.notes)

    def _receive(self, end: socket.socket, into: bytearray) -> None:
        try:
            data = end.recv(_CHUNK)
        except ConnectionError:
            data = b""
        into += data
        if not data:
            self.selector.unregister(end)

    def _read_console(self) -> None:
        """Take what the guest has printed."""
        try:
            data = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return
        self.console.feed(data)
        if not data and self.output in self.selector.get_map():
            self.selector.unregister(self.output)

    @staticmethod
    def _take(lines: bytearray) -> bytes | None:
        """The first whole line, taken out."""
        end = lines.find(b"\n")
        if end < 0:
            return None
        line = bytes(lines[: end + 1])
        del lines[: end + 1]
        return line

    # -- trouble -----------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise if something is wrong that no answer mends."""
        self._read_console()
        if self.console.trouble:
            self._hear_out()
            what = f"the guest's kernel reported: {self.console.trouble}"
            raise Over(self._trouble("crash", "backend", what))
        if self._gone():
            said = self.console.text.strip().splitlines()[-3:] or ["nothing"]
            reason = self.console.complaint or (
                f"the emulator ended with status {self.process.returncode}; the console ends: {' | '.join(said)}"
            )
            raise Over(self._trouble("crash", "glue", f"the guest is gone: {reason}"))
        if self.console.complaint:
            raise Over(self._trouble("crash", "glue", self.console.complaint))
        note = self._take(self.notes)
        status = json.loads(note).get("status") if note is not None else None
        if status is not None:
            self._hear_out()
            raise Over(self._trouble("crash", "glue", f"the agent in the guest ended with status {status}"))

    def _gone(self) -> bool:
        """Whether the machine has ended; its console ends with it."""
        if self.output in self.selector.get_map():
            return False
        try:
            self.process.wait(WARDEN_PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _hear_out(self) -> None:
        """Let the console finish what it is saying."""
        until = time.monotonic() + LAST_WORDS
        while time.monotonic() < until and self.output in self.selector.get_map():
            self._wait(until)

    def _hang(self, deadline: float) -> Trouble:
        """No answer came: ask the guest why."""
        self.notes.clear()
        what = f"no answer within {deadline:g} s"
        self.warden.sendall(b"agent\n")
        until = time.monotonic() + WARDEN_PATIENCE
        while b"\n" not in self.notes and time.monotonic() < until and not self.console.trouble:
            if self.output not in self.selector.get_map():
                break
            self._wait(until)
        note = self._take(self.notes)  # before _check, which takes notes as news
        self._check()
        if note is None:
            return self._trouble("hang", "backend", f"{what}, and the guest as a whole does not answer any more")
        tasks: list[dict[str, Any]] = json.loads(note).get("tasks", [])
        stuck = [t for t in tasks if t["state"] == "D" or t["syscall"] in _IN_KERNEL]
        stacks = "\n".join(f"task {t['pid']}, state {t['state']}:\n{t['stack']}" for t in tasks)
        if stuck:
            return self._trouble("hang", "backend", f"{what}: the agent's call does not come back", stacks)
        return self._trouble("hang", "glue", f"{what}: the agent is busy with itself, not with the kernel", stacks)

    def _trouble(
        self, kind: Literal["crash", "hang"], whose: Literal["backend", "glue"], what: str, more: str = ""
    ) -> Trouble:
        held = {
            "backend": "This counts against the driver. The evidence has the guest's console.",
            "glue": "This counts as a fault of the lab, not of the driver. The evidence has the guest's console.",
        }
        evidence = f"{more}\nconsole:\n{self.console.text}" if more else f"console:\n{self.console.text}"
        return Trouble(kind, whose, f"{what}. {held[whose]}", evidence)

    def refuse(self, trouble: Trouble) -> None:
        """Tell the trouble as the answer to the request that waits, or to the next one."""
        os.set_blocking(0, True)
        while self.asked is None:
            line = self._take(self.requests)
            if line is not None:
                self.asked = _id_of(line)
                break
            data = os.read(0, _CHUNK)
            if not data:
                return
            self.requests += data
        _write(encode(Reply(id=self.asked, trouble=trouble)))

    def end(self) -> None:
        """End the guest."""
        self.process.kill()
        self.process.wait()
        self.selector.close()
        for end in (self.agent, self.warden, self.process.stdout):
            assert end is not None
            end.close()


def _id_of(line: bytes) -> int:
    return int(json.loads(line)["id"])


def _calls_in(line: bytes) -> int:
    """How many calls a request makes, each of which may take the deadline."""
    return max(1, len(json.loads(line).get("calls", ())))


def _is_event(line: bytes) -> bool:
    """Whether a line answers nothing; whatever is not clearly an event is the client's to judge."""
    try:
        return "event" in json.loads(line)
    except (ValueError, TypeError):
        return False


def _write(line: bytes) -> None:
    os.set_blocking(1, True)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def start(vmlinuz: Path, initrd: Path, accelerator: str, options: dict[str, str]) -> Bridge:
    """Start a guest."""
    agent, agent_end = socket.socketpair()
    warden, warden_end = socket.socketpair()
    ends = {"agent": agent_end.detach(), "warden": warden_end.detach()}
    return Bridge(command(vmlinuz, initrd, accelerator, options, ends), agent, warden, list(ends.values()))


def main() -> int:
    """Serve one guest over standard input and output."""
    parser = argparse.ArgumentParser(prog="python -m verbs_adapters.lab.bridge", description=main.__doc__)
    parser.add_argument("--kernel", type=Path, required=True)
    parser.add_argument("--initrd", type=Path, required=True)
    parser.add_argument("--accelerator", required=True)
    parser.add_argument("--deadline", type=float, required=True)
    parser.add_argument("--boot-deadline", type=float, required=True)
    parser.add_argument("--option", action="append", default=[])
    given = parser.parse_args()
    options = dict(pair.split("=", 1) for pair in given.option)
    bridge = start(given.kernel, given.initrd, given.accelerator, options)
    try:
        bridge.serve(given.deadline, given.boot_deadline)
    except Over as over:
        bridge.refuse(over.trouble)
    finally:
        bridge.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
