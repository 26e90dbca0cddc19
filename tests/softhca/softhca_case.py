"""What a scenario for a fault of softhca is, and the outcomes that many of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from softhca_rig import Rig


class Case(NamedTuple):
    """What to do, what a correct device makes of it, and how the rig is set up."""

    scenario: Callable[[Rig], Any]
    right: Any
    rig: dict[str, Any] = {}  # noqa: RUF012 - never written


GOOD = [(1, "SUCCESS")]
NO_ACCESS = [(1, "REM_ACCESS_ERR")]
BAD_OP = [(100, "LOC_QP_OP_ERR")]
OFF = {"connect": False}
