"""Atomic operations: what they make of eight bytes.

Theory of operation
-------------------
The number is in the host's order, which is little-endian here, and counts modulo 2**64.  The micro-steps of the engine
are whole, so nothing comes between loading the old number and storing the new one.
"""

from __future__ import annotations

from verbs_adapters.softhca.queue import Wqe

ATOMIC_BYTES = 8
WRAP = 1 << 8 * ATOMIC_BYTES


def changed(wqe: Wqe, old: bytes) -> bytes:
    """What an atomic leaves of these eight bytes."""
    number = int.from_bytes(old, "little")
    if wqe.opcode == "ATOMIC_FETCH_AND_ADD":
        number = (number + wqe.compare_add) % WRAP
    elif number == wqe.compare_add:
        number = wqe.swap
    return number.to_bytes(ATOMIC_BYTES, "little")
