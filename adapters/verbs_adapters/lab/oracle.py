"""Questions to a guest's kernel that no verb asks: a program that runs there in the agent's place answers once."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import boot, bridge, host, image

PATIENCE = 600.0
"""Seconds for the guest to boot and answer."""

_QP_TABLE = Path(__file__).parents[1] / "kverbs" / "qp_table.py"


def ask(kernel: str, device: str, program: Path, notice: host.Notice) -> dict[str, Any]:
    """What a program that may use the kernel verbs agent as a library answers to one line, as JSON."""
    with tempfile.TemporaryDirectory(prefix="verbspec-lab-") as folder, host.Timed(notice, "asking the kernel"):
        ready = boot.prepare(kernel, image.Wanted("linux-kernel", device, program), Path(folder), notice)
        guest = bridge.start(*ready, {"device": device})
        try:
            line = guest.ask(b"\n", time.monotonic() + PATIENCE)
        except bridge.Over as over:
            raise AdapterError(f"{over.trouble.message}\n{over.trouble.evidence}") from over
        finally:
            guest.end()
    found: dict[str, Any] = json.loads(line)
    return found


def qp_table(kernel: str, device: str, notice: host.Notice) -> dict[str, Any]:
    """The kernel's own table of queue pair transitions: what ``ib_modify_qp_is_ok`` says."""
    return ask(kernel, device, _QP_TABLE, notice)
