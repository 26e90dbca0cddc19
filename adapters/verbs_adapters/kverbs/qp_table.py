#!/usr/bin/env python3
"""Asks the kernel for its table of queue pair transitions: one line of JSON for each line on standard input.

Theory of operation
-------------------
``ib_modify_qp_is_ok`` says whether a mask of attributes suits a transition.  It does if the mask holds all attributes
that the transition requires and none but these, the optional ones, and the state.  So from any one mask that suits,
leaving out and putting in each attribute in turn gives both sets exactly; the masks to begin with are guesses, and a
transition for which none suits is one that does not exist.  For each transition this asks for

* each guess, and each attribute alone, and no attribute at all,
* the required attributes less each one,
* the required attributes and each other one.
"""

from __future__ import annotations

import json
import os
import sys

from verbs_adapters.kverbs import agent

TYPES = {"SMI": 0, "GSI": 1, "RC": 2, "UC": 3, "UD": 4, "RAW_PACKET": 8, "XRC_INI": 9, "XRC_TGT": 10}
ATTRIBUTES = (
    "STATE CUR_STATE EN_SQD_ASYNC_NOTIFY ACCESS_FLAGS PKEY_INDEX PORT QKEY AV PATH_MTU TIMEOUT RETRY_CNT RNR_RETRY "
    "RQ_PSN MAX_QP_RD_ATOMIC ALT_PATH MIN_RNR_TIMER SQ_PSN MAX_DEST_RD_ATOMIC PATH_MIG_STATE CAP DEST_QPN"
)
BITS = {name: 1 << number for number, name in enumerate(ATTRIBUTES.split())}

GUESSES = (
    "",
    "PORT",
    "SQ_PSN",
    "PKEY_INDEX QKEY",
    "PKEY_INDEX PORT QKEY",
    "PKEY_INDEX PORT ACCESS_FLAGS",
    "AV PATH_MTU DEST_QPN RQ_PSN",
    "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
    "TIMEOUT SQ_PSN",
    "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC",
)


def mask_of(names: str) -> int:
    """The mask of attributes by name."""
    return sum(BITS[name] for name in names.split())


def names_of(mask: int) -> list[str]:
    """The names of a mask's attributes."""
    return [name for name, bit in BITS.items() if mask & bit]


class Oracle:
    """The kernel's answer, and how often it was asked."""

    def __init__(self, device: agent.Device) -> None:
        self.device = device
        self.asked = 0

    def ok(self, before: int, after: int, kind: int, mask: int) -> bool:
        """Whether a mask suits a transition."""
        self.asked += 1
        return bool(self.device.ioctl("modify_qp_is_ok", before, after, kind, mask)[0])

    def row(self, before: int, after: int, kind: int) -> dict[str, object] | None:
        """What a transition takes; None if there is no such transition."""
        state = BITS["STATE"]
        singles = [bit for bit in BITS.values() if self.ok(before, after, kind, bit)]
        guesses = [mask_of(names) | state for names in GUESSES]
        suiting = [mask for mask in guesses if self.ok(before, after, kind, mask)] + singles
        if not suiting:
            return None
        mask = suiting[0]
        required = sum(b for b in BITS.values() if mask & b and not self.ok(before, after, kind, mask & ~b))
        optional = sum(b for b in BITS.values() if not required & b and self.ok(before, after, kind, required | b))
        for bit in (b for b in BITS.values() if required & b):
            if self.ok(before, after, kind, (required | state) & ~bit):
                raise AssertionError("an attribute is required and is not")
        return {"required": names_of(required), "optional": names_of(optional & ~state)}


def table(oracle: Oracle) -> dict[str, object]:
    """All transitions, by type and the two states."""
    rows = []
    for kind, number in TYPES.items():
        for i, before in enumerate(agent.STATES):
            for j, after in enumerate(agent.STATES):
                row = oracle.row(i, j, number)
                if row is not None:
                    rows.append({"type": kind, "from": before, "to": after, **row})
    return {"kernel": os.uname().release, "asked": oracle.asked, "transitions": rows}


def main() -> None:
    """Answer each line with the table."""
    device = agent.Device(sys.argv[sys.argv.index("--device") + 1])
    for _ in sys.stdin:
        print(json.dumps(table(Oracle(device)), separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
