"""The words of each API: what a failed verb answers, and what the completions of NetworkDirect say.

Theory of operation
-------------------
Inside, a verb that fails has an errno (:class:`~verbs_adapters.softhca.arguments.Refused`).  Outside it has the word
of the API: of NetworkDirect (``IND2*.md``, by method), of WinVerbs (``wvstatus.h``), or the errno itself.  Where
NetworkDirect has a finer word than the errno, whoever refuses names it.

The statuses of NetworkDirect's completions are those of the table in ``IND2CompletionQueue.md`` (ND2_RESULT): a request
that the peer refused is ND_REMOTE_ERROR or, for want of access, ND_ACCESS_VIOLATION, as its own test
``ndinvalidreadwrite`` expects.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.capabilities import NETWORKDIRECT, WINVERBS

ND_WORDS = {
    "EINVAL": "ND_INVALID_PARAMETER",
    "ENOMEM": "ND_INSUFFICIENT_RESOURCES",
    "EFAULT": "ND_ACCESS_VIOLATION",
    "EBUSY": "ND_DEVICE_BUSY",
    "ENOTCONN": "ND_CONNECTION_INVALID",
    "EISCONN": "ND_CONNECTION_ACTIVE",
    "EINPROGRESS": "ND_PENDING",
    "ECANCELED": "ND_CANCELED",
    "EOVERFLOW": "ND_BUFFER_OVERFLOW",
}
WV_WORDS = {
    "EINVAL": "WV_INVALID_PARAMETER",
    "ENOMEM": "WV_INSUFFICIENT_RESOURCES",
    "EFAULT": "WV_ACCESS_VIOLATION",
    "EBUSY": "E_ACCESSDENIED",
    "ENOENT": "WV_NOT_FOUND",
    "EINPROGRESS": "WV_PENDING",
    "ECANCELED": "WV_CANCELLED",
    "EOVERFLOW": "STATUS_UNEXPECTED_IO_ERROR",
}
WORDS = {NETWORKDIRECT: ND_WORDS, WINVERBS: WV_WORDS}

ND_STATUSES = {
    "SUCCESS": "SUCCESS",
    "WR_FLUSH_ERR": "ND_CANCELED",
    "LOC_LEN_ERR": "ND_BUFFER_OVERFLOW",
    "LOC_PROT_ERR": "ND_ACCESS_VIOLATION",
    "LOC_QP_OP_ERR": "ND_INVALID_DEVICE_REQUEST",
    "MW_BIND_ERR": "ND_INVALID_DEVICE_REQUEST",
    "REM_ACCESS_ERR": "ND_ACCESS_VIOLATION",
    "REM_INV_REQ_ERR": "ND_REMOTE_ERROR",
    "REM_OP_ERR": "ND_REMOTE_ERROR",
    "RETRY_EXC_ERR": "ND_IO_TIMEOUT",
    "RNR_RETRY_EXC_ERR": "ND_IO_TIMEOUT",
}


def word(api: str, refusal: Refused) -> str:
    """What a verb of an API answers when it fails."""
    words = WORDS.get(api)
    if words is None:
        return refusal.errno
    if refusal.finer and api == NETWORKDIRECT:
        return refusal.finer
    return words[refusal.errno]


def told(out: dict[str, Any]) -> dict[str, Any]:
    """A completion in the words of NetworkDirect."""
    if "status" in out:
        out["status"] = ND_STATUSES[out["status"]]
    return out
