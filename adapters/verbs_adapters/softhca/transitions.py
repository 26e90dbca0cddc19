"""Which moves a queue pair may make, and what each needs and takes.

Theory of operation
-------------------
The table is that of ``qp_state_table`` in drivers/infiniband/core/verbs.c.  A row holds for some types; a move is
legal for every type if it is for one, with the attributes of its own row or with none.  Every state but RESET may go
to ERR and every state to RESET, with nothing; nothing leaves ERR otherwise, and SQE is entered by a failing send alone.

CUR_STATE is taken by moves from RTR, RTS, SQD and SQE alone.
"""

from __future__ import annotations

from typing import NamedTuple

RC, UC, UD, XRC_SEND, XRC_RECV, RAW_PACKET = TYPES = ("RC", "UC", "UD", "XRC_SEND", "XRC_RECV", "RAW_PACKET")
STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")

_CONNECTED = "RC UC XRC_SEND XRC_RECV"
_RIGHTS = "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE"
_PATH = "AV PATH_MTU DEST_QPN RQ_PSN"
_RETRIES = "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC"
_MOVED = "ALT_PATH ACCESS_FLAGS PKEY_INDEX"
_DRAINED = f"AV {_MOVED} PATH_MIG_STATE"

_ROWS: tuple[tuple[str, str, str, str], ...] = (
    # move, types, required, optional
    ("RESET INIT", _CONNECTED, "PKEY_INDEX PORT ACCESS_FLAGS", ""),
    ("RESET INIT", "UD", "PKEY_INDEX PORT QKEY", ""),
    ("RESET INIT", "RAW_PACKET", "PORT", ""),
    ("INIT INIT", _CONNECTED, "", "PKEY_INDEX PORT ACCESS_FLAGS"),
    ("INIT INIT", "UD", "", "PKEY_INDEX PORT QKEY"),
    ("INIT RTR", "RC XRC_RECV", f"{_PATH} MAX_DEST_RD_ATOMIC MIN_RNR_TIMER", _MOVED),
    ("INIT RTR", "UC XRC_SEND", _PATH, _MOVED),
    ("INIT RTR", "UD", "", "PKEY_INDEX QKEY"),
    ("RTR RTS", "RC", _RETRIES, f"{_RIGHTS} MIN_RNR_TIMER"),
    ("RTR RTS", "UC", "SQ_PSN", _RIGHTS),
    ("RTR RTS", "UD", "SQ_PSN", "CUR_STATE QKEY"),
    ("RTR RTS", "XRC_SEND", _RETRIES, _RIGHTS),
    ("RTR RTS", "XRC_RECV", "TIMEOUT SQ_PSN", f"{_RIGHTS} MIN_RNR_TIMER"),
    ("RTR RTS", "RAW_PACKET", "", "RATE_LIMIT"),
    ("RTS RTS", "RC XRC_RECV", "", f"{_RIGHTS} MIN_RNR_TIMER"),
    ("RTS RTS", "UC XRC_SEND", "", _RIGHTS),
    ("RTS RTS", "UD", "", "CUR_STATE QKEY"),
    ("RTS RTS", "RAW_PACKET", "", "RATE_LIMIT"),
    ("RTS SQD", "RC UC UD XRC_SEND XRC_RECV", "", "EN_SQD_ASYNC_NOTIFY"),
    ("SQD RTS", "RC XRC_RECV", "", f"{_RIGHTS} MIN_RNR_TIMER"),
    ("SQD RTS", "UC XRC_SEND", "", _RIGHTS),
    ("SQD RTS", "UD", "", "CUR_STATE QKEY"),
    (
        "SQD SQD",
        "RC",
        "",
        f"{_DRAINED} PORT TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
    ),
    ("SQD SQD", "UC", "", _DRAINED),
    ("SQD SQD", "UD", "", "PKEY_INDEX QKEY"),
    ("SQD SQD", "XRC_SEND", "", f"{_DRAINED} PORT TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC"),
    ("SQD SQD", "XRC_RECV", "", f"{_DRAINED} PORT TIMEOUT MAX_DEST_RD_ATOMIC MIN_RNR_TIMER"),
    ("SQE RTS", "UC", "", "CUR_STATE ACCESS_FLAGS"),
    ("SQE RTS", "UD", "", "CUR_STATE QKEY"),
)


class Step(NamedTuple):
    """A legal move: the names of the attributes that it needs, and all that it takes."""

    required: frozenset[str]
    taken: frozenset[str]


_PLAIN = Step(frozenset(), frozenset({"STATE"}))


def _table() -> dict[tuple[str, str, str], Step]:
    found: dict[tuple[str, str, str], Step] = {}
    for kind in TYPES:
        for state in STATES:
            found[state, "RESET", kind] = _PLAIN
            if state != "RESET":
                found[state, "ERR", kind] = _PLAIN
        for move, *_ in _ROWS:
            before, after = move.split()
            found[before, after, kind] = _PLAIN
    for move, kinds, needed, more in _ROWS:
        before, after = move.split()
        required = frozenset(needed.split())
        for kind in kinds.split():
            found[before, after, kind] = Step(required, required | frozenset(more.split()) | {"STATE"})
    return found


STEPS = _table()
"""Every legal move, by state, next state and type."""
