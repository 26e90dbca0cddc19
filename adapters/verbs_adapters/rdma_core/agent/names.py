"""Names and numbers of <infiniband/verbs.h>."""

from __future__ import annotations


def words(table: str) -> list[str]:
    """The words of a table."""
    return table.split()


STATES = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
UNKNOWN, NO_SUCH = "UNKNOWN", 1000
NO_SUCH_FLAG = 1 << 18
"""The contract's name for an enumerator that the header does not have, and the number that is passed for it."""

STATUSES = words(
    """
    SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR
    LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR
    LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR INV_EEC_STATE_ERR FATAL_ERR
    RESP_TIMEOUT_ERR GENERAL_ERR TM_ERR TM_RNDV_INCOMPLETE
    """
)
OPCODES = {
    "RDMA_WRITE": 0,
    "RDMA_WRITE_WITH_IMM": 1,
    "SEND": 2,
    "SEND_WITH_IMM": 3,
    "RDMA_READ": 4,
    "ATOMIC_CMP_AND_SWP": 5,
    "ATOMIC_FETCH_AND_ADD": 6,
    "LOCAL_INV": 7,
    "BIND_MW": 8,
    "SEND_WITH_INV": 9,
}
ATOMICS = ("ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD")
WC_OPCODES = {
    0: "SEND",
    1: "RDMA_WRITE",
    2: "RDMA_READ",
    3: "COMP_SWAP",
    4: "FETCH_ADD",
    5: "BIND_MW",
    6: "LOCAL_INV",
    128: "RECV",
    129: "RECV_RDMA_WITH_IMM",
}
ACCESS = {
    "LOCAL_WRITE": 1 << 0,
    "REMOTE_WRITE": 1 << 1,
    "REMOTE_READ": 1 << 2,
    "REMOTE_ATOMIC": 1 << 3,
    "MW_BIND": 1 << 4,
    "ZERO_BASED": 1 << 5,
    "ON_DEMAND": 1 << 6,
    "HUGETLB": 1 << 7,
}
REG_FLAGS = {**ACCESS, "RELAXED_ORDERING": 1 << 20, "UNKNOWN_HINT": 1 << 28, "UNKNOWN_FLAG": NO_SUCH_FLAG}
"""What a registration may ask for; the names of bits that the header does not have are the contract's."""
REREG = {"CHANGE_TRANSLATION": 1, "CHANGE_PD": 2, "CHANGE_ACCESS": 4}
MW_TYPES = {"TYPE_1": 1, "TYPE_2": 2}
SEND_FLAGS = {"fence": 1, "signaled": 2, "solicited": 4, "inline": 8}
SIGNALED = SEND_FLAGS["signaled"]
WC_GRH, WC_WITH_IMM, WC_WITH_INV, WC_RECEIVED = 1, 2, 8, 128
QP_TYPES = {"RC": 2, "UC": 3, "UD": 4}
SRQ_ATTR = {"MAX_WR": 1, "LIMIT": 2}
MTUS = {f"MTU_{128 << number}": number for number in range(1, 6)}
MIGRATIONS = {"MIGRATED": 0, "REARM": 1, "ARMED": 2}
PORT_STATES = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"]
LINK_LAYERS = ["UNSPECIFIED", "INFINIBAND", "ETHERNET"]
LINK_ETHERNET = LINK_LAYERS.index("ETHERNET")
PORT_ACTIVE = PORT_STATES.index("ACTIVE")
ATOMIC_CAPS = ["NONE", "HCA", "GLOB"]
TRANSPORT_IWARP = 1
DEVICE_FLAGS = {
    "SRQ_RESIZE": 1 << 13,
    "MEM_WINDOW": 1 << 17,
    "MEM_WINDOW_TYPE_2A": 1 << 23,
    "MEM_WINDOW_TYPE_2B": 1 << 24,
}
"""Those flags of a device that are capabilities of the contract."""

EVENTS = words(
    """
    CQ_ERR QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG PATH_MIG_ERR DEVICE_FATAL
    PORT_ACTIVE PORT_ERR LID_CHANGE PKEY_CHANGE SM_CHANGE SRQ_ERR SRQ_LIMIT_REACHED QP_LAST_WQE_REACHED
    CLIENT_REREGISTER GID_CHANGE WQ_FATAL
    """
)
QP_EVENTS = [name for name in EVENTS if name.startswith(("QP_", "COMM_", "SQ_", "PATH_"))]
SRQ_EVENTS = [name for name in EVENTS if name.startswith("SRQ_")]
CQ_EVENTS = ["CQ_ERR"]
PORT_EVENTS = [name for name in EVENTS if name.startswith(("PORT_", "LID_", "PKEY_", "SM_", "CLIENT_", "GID_"))]

ATTR = {  # enum ibv_qp_attr_mask
    "STATE": 1 << 0,
    "CUR_STATE": 1 << 1,
    "EN_SQD_ASYNC_NOTIFY": 1 << 2,
    "ACCESS_FLAGS": 1 << 3,
    "PKEY_INDEX": 1 << 4,
    "PORT": 1 << 5,
    "QKEY": 1 << 6,
    "AV": 1 << 7,
    "PATH_MTU": 1 << 8,
    "TIMEOUT": 1 << 9,
    "RETRY_CNT": 1 << 10,
    "RNR_RETRY": 1 << 11,
    "RQ_PSN": 1 << 12,
    "MAX_QP_RD_ATOMIC": 1 << 13,
    "ALT_PATH": 1 << 14,
    "MIN_RNR_TIMER": 1 << 15,
    "SQ_PSN": 1 << 16,
    "MAX_DEST_RD_ATOMIC": 1 << 17,
    "PATH_MIG_STATE": 1 << 18,
    "CAP": 1 << 19,
    "DEST_QPN": 1 << 20,
    "RATE_LIMIT": 1 << 25,
}
NO_ATTR = 1 << 30
"""Passed for the name UNKNOWN: a bit that the header does not have."""

REQUIRED: dict[str, dict[str, tuple[str, ...]]] = {
    "RC": {
        "INIT": ("PKEY_INDEX", "PORT", "ACCESS_FLAGS"),
        "RTR": ("AV", "PATH_MTU", "DEST_QPN", "RQ_PSN", "MAX_DEST_RD_ATOMIC", "MIN_RNR_TIMER"),
        "RTS": ("SQ_PSN", "TIMEOUT", "RETRY_CNT", "RNR_RETRY", "MAX_QP_RD_ATOMIC"),
    },
    "UC": {
        "INIT": ("PKEY_INDEX", "PORT", "ACCESS_FLAGS"),
        "RTR": ("AV", "PATH_MTU", "DEST_QPN", "RQ_PSN"),
        "RTS": ("SQ_PSN",),
    },
    "UD": {
        "INIT": ("PKEY_INDEX", "PORT", "QKEY"),
        "RTR": (),
        "RTS": ("SQ_PSN",),
    },
}
"""What a step to each state requires, by the type of the queue pair."""

QKEY = 0x1E5
"""The usual Q_Key; its highest bit is not set, which would stand for the sender's own (IBTA 3.5.3)."""

TIMEOUT, RETRIES = 15, 5
"""Local ACK timeout (4.096 us * 2**15 = 134 ms) and retry count, which is not 7: soft-RoCE never gives up then."""

RNR_RETRIES_ENDLESS = 7

RETRIES_END = 4 * (RETRIES + 1) * 4.096e-6 * 2**TIMEOUT
"""Seconds after which retries must have ended: a timer may take up to four times its value (IBTA 9.7.6.1.3)."""
