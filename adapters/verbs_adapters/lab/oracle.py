"""The kernel's own table of queue pair transitions, asked for in a guest."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import boot, bridge, host, image

PATIENCE = 600.0
"""Seconds for the guest to boot and answer some ten thousand questions."""

_PROGRAM = Path(__file__).parents[1] / "kverbs" / "qp_table.py"


def qp_table(kernel: str, device: str, notice: host.Notice) -> dict[str, Any]:
    """What ``ib_modify_qp_is_ok`` of a kernel says, as `qp_table.py` in the guest tells it."""
    with tempfile.TemporaryDirectory(prefix="verbspec-lab-") as folder, host.Timed(notice, "asking the kernel"):
        ready = boot.prepare(kernel, image.Wanted("linux-kernel", device, _PROGRAM), Path(folder), notice)
        guest = bridge.start(*ready, {"device": device})
        try:
            line = guest.ask(b"\n", time.monotonic() + PATIENCE)
        except bridge.Over as over:
            raise AdapterError(f"{over.trouble.message}\n{over.trouble.evidence}") from over
        finally:
            guest.end()
    found: dict[str, Any] = json.loads(line)
    return found
