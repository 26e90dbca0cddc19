"""Verbs of the Windows APIs, NetworkDirect and WinVerbs: overlapped requests and what they are for.

A method that takes an OVERLAPPED structure makes a request.  ``pending`` says whether the method returned "pending"
(``ND_PENDING``, ``WV_IO_PENDING``); if it returned success the request is done and the structure is not used.  The
handle ``request`` stands for the structure in both cases, so that the outcome can be asked for in one way.

Results are the API's own status words, success is ``"0"`` all the same.  Statuses of completions are NetworkDirect's
words (``ND_CANCELED``), but ``SUCCESS`` for ``ND_SUCCESS``; those of WinVerbs have the names of their Linux
counterparts (``WR_FLUSH_ERR`` for ``WvWcFlushed``).  A work request's `signaled` is the opposite of NetworkDirect's
silent success, `fence` its read fence.

Objects of WinVerbs are counted references.  For a verb that destroys one the adapter releases its reference; if others
hold the object, which is what Release returns, it takes the reference again and says ``E_ACCESSDENIED``.
"""

from __future__ import annotations

from verbs_adapters.contract.verb import Verb, named

_REQUEST = {"request": "handle", "pending": "bool"}
_KEYS = {"lkey": "nat", "rkey": "nat"}
_BUFFER = {"addr": "nat", "length": "nat", "access": "flags"}

OVERLAPPED: dict[str, Verb] = {
    # -- requests ----------------------------------------------------------------------------------
    "get_overlapped_result": Verb(
        {"request": "handle"},
        {},
        "Ask for the outcome of a notification or deregistration, without waiting: ND_PENDING while there is none.",
    ),
    "get_registration": Verb(
        {"request": "handle"},
        {"mr": "handle", **_KEYS},
        "Ask for the outcome of a registration, without waiting, and for the keys that it has given: "
        "GetOverlappedResult, then GetLocalToken and GetRemoteToken in NetworkDirect, WV_MEMORY_KEYS in WinVerbs. "
        "Asked with success once.",
    ),
    "cancel_overlapped_requests": Verb(
        {"cq": "handle?", "region": "handle?"},
        {},
        "CancelOverlappedRequests of the one of the two that is not 0 or absent.",
        optional=frozenset({"cq", "region"}),
    ),
    "notify_cq": Verb(
        {"cq": "handle", "type": "text"},
        dict(_REQUEST),
        "Ask for a notification. `type` is ERRORS, ANY (WvCqNextCompletion) or SOLICITED.",
    ),
    # -- regions of NetworkDirect --------------------------------------------------------------------
    "create_memory_region": Verb({"pd": "handle"}, {"region": "handle"}, "A region object without a registration."),
    "register_memory_region": Verb(
        {"region": "handle", **_BUFFER},
        {**_REQUEST, **_KEYS},
        "Register. `access`: LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ for the flags ALLOW_...; the sink of reads is set "
        "with LOCAL_WRITE where the transport needs it. The keys are what the tokens are when the method has returned.",
    ),
    "deregister_memory_region": Verb({"region": "handle"}, dict(_REQUEST), "Deregister."),
    "release_memory_region": Verb({"region": "handle"}, {}, "Release a region object."),
    # -- windows of NetworkDirect --------------------------------------------------------------------
    "create_memory_window": Verb({"pd": "handle"}, {"mw": "handle"}, "A window that is not bound."),
    "release_memory_window": Verb({"mw": "handle"}, {}, "Release a window."),
    "bind_memory_window": Verb(
        {
            "qp": "handle",
            "wr_id": "nat",
            "mr": "handle",
            "mw": "handle",
            **_BUFFER,
            "signaled": "bool",
            "fence": "bool",
        },
        {"rkey": "nat"},
        "Bind to [addr, addr + length) of the region whose registration is `mr`. `access`: REMOTE_WRITE, REMOTE_READ. "
        "`rkey` is what GetRemoteToken says when the method has returned.",
    ),
    "invalidate_memory_window": Verb(
        {**named("handle", "qp mw"), "wr_id": "nat", **named("bool", "signaled fence")}, {}, "Invalidate."
    ),
    # -- memory of WinVerbs ----------------------------------------------------------------------------
    "register_memory": Verb(
        {"pd": "handle", **_BUFFER},
        dict(_REQUEST),
        "RegisterMemory. The handle `mr` of get_registration stands for the local key.",
    ),
    "deregister_memory": Verb({"mr": "handle"}, dict(_REQUEST), "DeregisterMemory of the local key."),
    # -- connections of NetworkDirect ----------------------------------------------------------------
    "connect_qp": Verb(
        {"qp": "handle", "peer": "handle"},
        {},
        "Connect two queue pairs: Bind, Listen, Connect, Accept and CompleteConnect with fresh connectors, waiting for "
        "each to complete. The result is that of the first that fails.",
    ),
    "disconnect_qp": Verb(
        {"qp": "handle"}, {}, "Disconnect, and wait for it; ND_CONNECTION_INVALID where there is no connector."
    ),
    "flush_qp": Verb({"qp": "handle"}, {}, "Flush."),
}
