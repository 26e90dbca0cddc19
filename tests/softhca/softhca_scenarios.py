"""For each fault of softhca, what a consumer does to see it, and what a correct device answers."""

from __future__ import annotations

import softhca_scenarios_access
import softhca_scenarios_completions
import softhca_scenarios_objects
import softhca_scenarios_queues
import softhca_scenarios_registration
import softhca_scenarios_transport
import softhca_scenarios_windows
from softhca_case import Case

CASES: dict[str, Case] = {
    **softhca_scenarios_access.CASES,
    **softhca_scenarios_registration.CASES,
    **softhca_scenarios_objects.CASES,
    **softhca_scenarios_completions.CASES,
    **softhca_scenarios_queues.CASES,
    **softhca_scenarios_windows.CASES,
    **softhca_scenarios_transport.CASES,
}
"""By fault."""
