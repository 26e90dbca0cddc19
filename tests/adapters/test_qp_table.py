"""The questions to a kernel's table of transitions, and the published answers."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from verbs_adapters.kverbs.qp_table import BITS, STATES, TYPES, Oracle, mask_of, table

PUBLISHED = Path(__file__).parents[2] / "reports/published"
KERNELS = ("6.1", "6.12", "7.2")


class Kernel:
    """A table of transitions that is asked as the kernel's is."""

    def __init__(self, rows: dict[tuple[int, int, int], tuple[str, str]], *, odd: int = -1) -> None:
        self.rows = rows
        self.odd = odd
        self.asked: set[tuple[int, int, int, int]] = set()

    def ioctl(self, verb: str, before: int, after: int, kind: int, mask: int) -> tuple[int, ...]:
        assert verb == "modify_qp_is_ok"
        self.asked.add((before, after, kind, mask))
        if (before, after, kind) not in self.rows:
            return (0,)
        required, optional = map(mask_of, self.rows[before, after, kind])
        suits = mask & required == required and not mask & ~(required | optional | BITS["STATE"])
        return (int(suits != (mask == self.odd)),)


RESET, INIT, RC = STATES.index("RESET"), STATES.index("INIT"), TYPES["RC"]
NEEDED, ALLOWED = "ACCESS_FLAGS PKEY_INDEX PORT", "QKEY RATE_LIMIT BIT_30"


def oracle(kernel: Any) -> Oracle:
    return Oracle(kernel)


def test_both_sets_of_a_transition_are_found_whatever_they_are() -> None:
    kernel = Kernel({(RESET, INIT, RC): (NEEDED, ALLOWED)})

    row = oracle(kernel).row(RESET, INIT, RC)

    assert row == {"required": NEEDED.split(), "optional": ALLOWED.split()}


def test_every_bit_alone_and_every_required_mask_less_one_is_asked() -> None:
    kernel = Kernel({(RESET, INIT, RC): (NEEDED, ALLOWED)})

    found: Any = table(oracle(kernel))

    every = set(product(range(len(STATES)), range(len(STATES)), TYPES.values()))
    assert len(every) == 490
    assert {(a, b, kind, bit) for a, b, kind in every for bit in BITS.values()} <= kernel.asked
    short = [mask_of(NEEDED) & ~mask_of(name) for name in NEEDED.split()]
    for mask in (mask_of(NEEDED), *short):
        assert {m & ~BITS["STATE"] for *_, m in kernel.asked} >= {mask}
    assert [(r["type"], r["from"], r["to"]) for r in found["transitions"]] == [("RC", "RESET", "INIT")]


@pytest.mark.parametrize("odd", [BITS["CAP"], mask_of(NEEDED) & ~BITS["PORT"] | BITS["STATE"]])
def test_an_answer_that_does_not_fit_the_others_is_told(odd: int) -> None:
    with pytest.raises(AssertionError, match="a transition that requires"):
        oracle(Kernel({(RESET, INIT, RC): (NEEDED, ALLOWED)}, odd=odd)).row(RESET, INIT, RC)


def published(kernel: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PUBLISHED / f"qp-table-{kernel}.yaml").read_text(encoding="utf-8"))
    return found


def transitions(kernel: str) -> dict[tuple[str, str, str], tuple[list[str], list[str]]]:
    rows = published(kernel)["transitions"]
    return {(r["type"], r["from"], r["to"]): (r["required"], r["optional"]) for r in rows}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_published_tables_were_asked_everything(kernel: str) -> None:
    found = published(kernel)

    assert found["kernel"].startswith(f"{kernel}.")
    assert (found["types"], found["states"], found["attributes"]) == (list(TYPES), list(STATES), list(BITS))
    assert found["asked"] == published(KERNELS[0])["asked"]


def test_the_published_tables_differ_in_one_attribute() -> None:
    old, middle, new = (transitions(kernel) for kernel in KERNELS)

    assert old == middle
    assert old.keys() == new.keys()
    for key, (required, optional) in new.items():
        assert "RATE_LIMIT" in optional
        assert required == old[key][0]
        assert set(optional) - {"RATE_LIMIT"} == set(old[key][1]) - {"RATE_LIMIT"}
    limited = [key for key, (_, optional) in old.items() if "RATE_LIMIT" in optional]
    assert limited == [("RAW_PACKET", "RTR", "RTS"), ("RAW_PACKET", "RTS", "RTS")]
