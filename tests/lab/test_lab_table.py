"""The kernel's table of transitions, asked for anew, is the one that is on record."""

from __future__ import annotations

from pathlib import Path

import pytest
import slices
import yaml

from verbs_adapters.lab import oracle
from verbs_adapters.lab.adapter import tell

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"

pytestmark = pytest.mark.skipif(not slices.EVERYTHING, reason="one more guest: tox -e lab-all")


@pytest.mark.parametrize("kernel", ["6.1", "6.12", "7.2"])
def test_the_table_of_the_kernel_is_the_published_one(kernel: str) -> None:
    published = yaml.safe_load((PUBLISHED / f"qp-table-{kernel}.yaml").read_text(encoding="utf-8"))

    found = oracle.qp_table(kernel, "rxe", tell)

    assert found["transitions"] == published["transitions"]
    connected = {(row["from"], row["to"]): row for row in found["transitions"] if row["type"] == "RC"}
    assert connected["INIT", "RTR"]["required"] == [
        "AV",
        "PATH_MTU",
        "RQ_PSN",
        "MIN_RNR_TIMER",
        "MAX_DEST_RD_ATOMIC",
        "DEST_QPN",
    ]
    assert ("RESET", "RTS") not in connected
