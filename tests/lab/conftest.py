"""Tests that boot guests: minutes, root, and packages from the network. `tox -e lab` runs them, nothing else does."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("VERBSPEC_LAB") else ["test_*.py"]
