"""softhca over the remote protocol that fails in one way at its N-th call: `saboteur.py KIND N [KEY=VALUE...]`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping

from verbs_adapters.contract import Answer, Hello, Trouble, Value
from verbs_adapters.remote.serve import serve
from verbs_adapters.softhca import SoftHca


class Saboteur:
    """A good backend until its N-th call, counted over all programs."""

    def __init__(self, kind: str, at: int, options: Mapping[str, str]) -> None:
        self.kind = kind
        self.left = at
        self.device = SoftHca(options)

    def hello(self) -> Hello:
        """As the device."""
        return self.device.hello()

    def reset(self, seed: int) -> Trouble | None:
        """As the device."""
        return self.device.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """As the device, but for the N-th."""
        self.left -= 1
        if self.left == 0:
            self.fail()
        return self.device.call(verb, args)

    def fail(self) -> None:
        """Fail in the way that was asked for."""
        if self.kind == "dies":
            os._exit(3)
        elif self.kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == "hangs":
            while True:
                signal.pause()
        elif self.kind == "late":
            time.sleep(0.35)  # longer than the deadline that the tests give, shorter than deadline and grace
        elif self.kind == "garbage":
            print("MEMORY DUMP 0xdeadbeef", flush=True)
        elif self.kind == "raises":
            raise RuntimeError("index out of range in qp table")

    def close(self) -> None:
        """Nothing to do."""


def main() -> None:
    """Serve until the harness closes our standard input."""
    kind, at, *pairs = sys.argv[1:]
    serve(Saboteur(kind, int(at), dict(p.split("=", 1) for p in pairs)), sys.stdin.buffer, sys.stdout.buffer)


main()
