"""A shell on a guest's console, for a person."""

from __future__ import annotations

import subprocess

from verbs_adapters.lab import host
from verbs_adapters.lab.boot import Boot
from verbs_adapters.lab.machine import command


def run(ready: Boot, device: str) -> int:
    """Boot a guest with its console on this terminal; the emulator's status."""
    words = command(*ready, {"device": device, "shell": "yes"}, {})
    return subprocess.run(words, env=host.environment(), check=False).returncode  # noqa: S603 - all words are ours
