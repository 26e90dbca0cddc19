"""The supervisor: it starts a worker for each reset, and answers for one that cannot."""

from __future__ import annotations

import argparse
import contextlib
import ctypes as c
import os
import select
import signal
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from verbs_adapters.rdma_core.agent.device import devices
from verbs_adapters.rdma_core.agent.library import Unusable, load_library
from verbs_adapters.rdma_core.agent.wire import Marker, Wire, trouble
from verbs_adapters.rdma_core.agent.worker import DONE, HANDED_OVER, Worker

GLANCE = 0.25
"""Seconds between two looks at what the worker is doing."""


class Supervisor:
    """Starts a worker for each reset, and answers for one that cannot."""

    def __init__(self, wire: Wire, options: argparse.Namespace) -> None:
        self._wire, self._options = wire, options
        self._marker = Marker()

    def run(self) -> None:
        """Go on until the conversation is over."""
        with contextlib.suppress(Unusable):  # told by the first worker; here it only warms up
            devices(load_library())
        while True:
            ours, theirs = os.pipe()
            self._marker.clear()
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                self._work(theirs)
            os.close(theirs)
            status = self._watch(pid, ours)
            os.close(ours)
            if status == DONE:
                return

    def _work(self, sink: int) -> NoReturn:
        """The life of the worker."""
        status = 1
        try:
            c.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            status = Worker(self._wire, self._marker, self._options).run()
            if status == HANDED_OVER:
                view = memoryview(bytes(self._wire.pending))
                while view:
                    view = view[os.write(sink, view) :]
        except BrokenPipeError:
            status = DONE
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _watch(self, pid: int, source: int) -> int:
        """Wait for the worker's end; answer for it if it cannot.  The worker's status."""
        taken = bytearray()
        poll = select.poll()
        poll.register(source, select.POLLIN)
        seen, since = self._marker.read(), time.monotonic()
        while True:
            if poll.poll(GLANCE * 1000):
                data = os.read(source, 1 << 16)
                if not data:
                    break
                taken += data
                continue
            now = self._marker.read()
            if now != seen:
                seen, since = now, time.monotonic()
            elif now[0] >= 0 and time.monotonic() - since > self._options.deadline:
                return self._hung(pid, now[0], now[2])
        number, _, what = self._marker.read()
        _, status = os.waitpid(pid, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        if code in (DONE, HANDED_OVER):
            self._wire.pending[:] = taken
            return code
        self._wire.pending.clear()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        whose = "backend" if code < 0 else "glue"
        said = f"the process that made the calls {how} during `{what}`: the library or the driver is at fault"
        self._tell(number, trouble("crash", whose, said if what else f"the process that makes the calls {how}"))
        return code

    def _hung(self, pid: int, number: int, what: str) -> int:
        """A call does not return: gather what can be known, and kill the worker."""
        evidence = []
        for name in ("wchan", "syscall", "stack", "status"):
            with contextlib.suppress(OSError):
                text = (Path("/proc") / str(pid) / name).read_text(encoding="utf-8", errors="replace")
                evidence.append(f"/proc/PID/{name}: {text[:2000].strip()}")
        os.kill(pid, signal.SIGKILL)
        stuck = not self._gone(pid, 3.0)
        self._wire.pending.clear()
        said = f"`{what}` did not return within {self._options.deadline:g} s"
        if stuck:
            said += "; the process cannot be killed, it is stuck in the kernel"
        self._tell(number, trouble("hang", "backend", said, "\n".join(evidence)))
        return 1

    @staticmethod
    def _gone(pid: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
            time.sleep(0.02)
        return False

    def _tell(self, number: int, what: Mapping[str, str]) -> None:
        self._wire.write({"id": max(number, 0), "trouble": what})


def take_stdio() -> Wire:
    """Standard input and output for the protocol alone; what a library prints goes to standard error."""
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Wire(source, sink)


def main() -> None:
    """Serve until the input ends or the harness closes."""
    parser = argparse.ArgumentParser(description="Verbs calls for verbspec, on standard input and output.")
    parser.add_argument("--device", default="", help="the RDMA device; may be left out if there is only one")
    parser.add_argument("--port", type=int, default=1)
    parser.add_argument("--gid-index", type=int, default=None, help="found if left out")
    patience = float(os.environ.get("VERBSPEC_DEADLINE", "8"))
    parser.add_argument("--deadline", type=float, default=patience, help="seconds that one call may take")
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds that settle waits; measured if left out")
    options = parser.parse_args()
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more
        Supervisor(take_stdio(), options).run()
