"""The agent of kernel verbs, but for four calls, at each of which the guest goes wrong in its own way.

The calls are such as one regression program each makes, and no other program of the test.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from verbs_adapters.kverbs import agent


class Rough(agent.Device):
    """A device with four calls that nobody should make."""

    def modify_qp(self, qp: int, state: str, access: Sequence[str] = (), peer: int = 0) -> None:
        """Have the kernel panic at a state that is none."""
        if state == "UNKNOWN":
            with open("/proc/sysrq-trigger", "w", encoding="ascii") as file:
                file.write("c")
        super().modify_qp(qp, state, access, peer)

    def map_mr_sg(self, mr: int, sg: agent.Elements = (), offset: int = 0, page_size: int = 0) -> agent.Out:
        """Answer never, end, or answer garbage."""
        if page_size & (page_size - 1):
            _, end = os.pipe()
            while True:  # a call of the kernel that does not come back, once the pipe is full
                os.write(end, bytes(65536))
        if page_size < 4096:
            os._exit(3)
        if offset:
            print("this is not JSON", flush=True)
        return super().map_mr_sg(mr, sg, offset, page_size)


agent.main(Rough)
