#!/usr/bin/env python3
"""Asks the kernel for its table of queue pair transitions: one line of JSON for each line on standard input.

Theory of operation
-------------------
``ib_modify_qp_is_ok`` says whether a mask of attributes suits a transition.  It does if the mask holds all attributes
that the transition requires and none but these, the optional ones, and the state.  So from any one mask that suits,
leaving out and putting in each attribute in turn gives both sets exactly; the masks to begin with are guesses, and a
transition for which none suits is one that does not exist.  For every type and pair of states this asks for

* each guess, each bit of the mask alone, and no attribute at all,
* of those that exist: the required attributes, these less each one, and these with each other bit.

Each answer must agree with the two sets; one that does not means that the kernel judges masks in some other way.

Bits that the kernel has no name for, or keeps for others, are asked too, as ``BIT_n``.  Numbers that are no type and no
state are not: the kernel looks up its table without asking whether they are in it.
"""

from __future__ import annotations

import json
import os
import sys

from verbs_adapters.kverbs import agent

TYPES = {
    "SMI": 0,
    "GSI": 1,
    "RC": 2,
    "UC": 3,
    "UD": 4,
    "RAW_IPV6": 5,
    "RAW_ETHERTYPE": 6,
    "RAW_PACKET": 8,
    "XRC_INI": 9,
    "XRC_TGT": 10,
}
STATES = tuple(state for state in agent.STATES if state != "UNKNOWN")
ATTRIBUTES = (
    "STATE CUR_STATE EN_SQD_ASYNC_NOTIFY ACCESS_FLAGS PKEY_INDEX PORT QKEY AV PATH_MTU TIMEOUT RETRY_CNT RNR_RETRY "
    "RQ_PSN MAX_QP_RD_ATOMIC ALT_PATH MIN_RNR_TIMER SQ_PSN MAX_DEST_RD_ATOMIC PATH_MIG_STATE CAP DEST_QPN "
    "BIT_21 BIT_22 BIT_23 BIT_24 RATE_LIMIT BIT_26 BIT_27 BIT_28 BIT_29 BIT_30"
)
"""By their place in the mask; the kernel keeps 21 to 24 for itself, and bit 31 is the sign."""
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

        def ok(mask: int) -> bool:
            return self.ok(before, after, kind, mask)

        state = BITS["STATE"]
        alone = [0, *BITS.values()]
        answers = {mask: ok(mask) for mask in (*alone, *(mask_of(names) | state for names in GUESSES))}
        mask = next((mask for mask, suits in answers.items() if suits), None)
        if mask is None:
            return None
        required = sum(bit for bit in BITS.values() if mask & bit and not ok(mask & ~bit))
        others = [bit for bit in BITS.values() if not required & bit]
        answers |= {required | bit: ok(required | bit) for bit in (0, *others)}
        answers |= {required & ~bit | state: ok(required & ~bit | state) for bit in BITS.values() if required & bit}
        optional = sum(bit for bit in others if answers[required | bit])
        for mask, suits in answers.items():
            if suits != (mask & required == required and not mask & ~(required | optional)):
                raise AssertionError(
                    f"{names_of(mask)} {'suits' if suits else 'does not suit'} a transition that requires "
                    f"{names_of(required)} and allows {names_of(optional)}"
                )
        return {"required": names_of(required), "optional": names_of(optional & ~state)}


def table(oracle: Oracle) -> dict[str, object]:
    """All transitions, by type and the two states; a pair that is not among them does not exist for that type."""
    rows = []
    for kind, number in TYPES.items():
        for i, before in enumerate(STATES):
            for j, after in enumerate(STATES):
                row = oracle.row(i, j, number)
                if row is not None:
                    rows.append({"type": kind, "from": before, "to": after, **row})
    return {
        "kernel": os.uname().release,
        "asked": oracle.asked,
        "types": list(TYPES),
        "states": list(STATES),
        "attributes": list(BITS),
        "transitions": rows,
    }


def main() -> None:
    """Answer each line with the table."""
    device = agent.Device(sys.argv[sys.argv.index("--device") + 1])
    for _ in sys.stdin:
        print(json.dumps(table(Oracle(device)), separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
