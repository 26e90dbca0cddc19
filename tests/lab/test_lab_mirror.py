"""Where no guest can be built the command says so and fails: a check without its subject has not passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_mirror_that_is_not_there_is_named(tmp_path: Path) -> None:
    mirror = "http://127.0.0.1:9/debian"  # the port that discards; nothing listens there
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "VERBSPEC_LAB_MIRROR": mirror}
    command = [sys.executable, "-m", "verbs_conformance.cli", "run", "lab", "--out", str(tmp_path / "out")]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 3
    assert f"fetching the package index of bookworm from {mirror} failed" in done.stderr
    assert "Nothing was judged" in done.stderr
    assert not (tmp_path / "out").exists()
