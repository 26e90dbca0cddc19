"""libibverbs, as C programs call it: prototypes, and errnos as they came."""

from __future__ import annotations

import ctypes as c
import errno
from typing import Any

from verbs_adapters.rdma_core.agent.layout import (
    AhAttr,
    AsyncEvent,
    Channel,
    Cq,
    DeviceAttr,
    Mr,
    Pd,
    PortAttr,
    Qp,
    QpAttr,
    QpInitAttr,
    SrqAttr,
    SrqInitAttr,
)

_LIBRARY: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ibv_get_device_list": (c.c_void_p, (c.POINTER(c.c_int),)),
    "ibv_free_device_list": (None, (c.c_void_p,)),
    "ibv_get_device_name": (c.c_char_p, (c.c_void_p,)),
    "ibv_open_device": (c.c_void_p, (c.c_void_p,)),
    "ibv_query_device": (c.c_int, (c.c_void_p, c.POINTER(DeviceAttr))),
    "ibv_query_port": (c.c_int, (c.c_void_p, c.c_uint8, c.POINTER(PortAttr))),
    "ibv_query_gid": (c.c_int, (c.c_void_p, c.c_uint8, c.c_int, c.c_void_p)),
    "ibv_alloc_pd": (c.POINTER(Pd), (c.c_void_p,)),
    "ibv_dealloc_pd": (c.c_int, (c.c_void_p,)),
    "ibv_reg_mr": (c.POINTER(Mr), (c.c_void_p, c.c_void_p, c.c_size_t, c.c_int)),
    "ibv_rereg_mr": (c.c_int, (c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.c_size_t, c.c_int)),
    "ibv_dereg_mr": (c.c_int, (c.c_void_p,)),
    "ibv_create_cq": (c.POINTER(Cq), (c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.c_int)),
    "ibv_resize_cq": (c.c_int, (c.c_void_p, c.c_int)),
    "ibv_destroy_cq": (c.c_int, (c.c_void_p,)),
    "ibv_create_comp_channel": (c.POINTER(Channel), (c.c_void_p,)),
    "ibv_destroy_comp_channel": (c.c_int, (c.c_void_p,)),
    "ibv_get_cq_event": (c.c_int, (c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(c.c_void_p))),
    "ibv_ack_cq_events": (None, (c.c_void_p, c.c_uint)),
    "ibv_create_srq": (c.c_void_p, (c.c_void_p, c.POINTER(SrqInitAttr))),
    "ibv_modify_srq": (c.c_int, (c.c_void_p, c.POINTER(SrqAttr), c.c_int)),
    "ibv_query_srq": (c.c_int, (c.c_void_p, c.POINTER(SrqAttr))),
    "ibv_destroy_srq": (c.c_int, (c.c_void_p,)),
    "ibv_create_ah": (c.c_void_p, (c.c_void_p, c.POINTER(AhAttr))),
    "ibv_destroy_ah": (c.c_int, (c.c_void_p,)),
    "ibv_create_qp": (c.POINTER(Qp), (c.c_void_p, c.POINTER(QpInitAttr))),
    "ibv_destroy_qp": (c.c_int, (c.c_void_p,)),
    "ibv_modify_qp": (c.c_int, (c.c_void_p, c.POINTER(QpAttr), c.c_int)),
    "ibv_query_qp": (c.c_int, (c.c_void_p, c.POINTER(QpAttr), c.c_int, c.POINTER(QpInitAttr))),
    "ibv_get_async_event": (c.c_int, (c.c_void_p, c.POINTER(AsyncEvent))),
    "ibv_ack_async_event": (None, (c.POINTER(AsyncEvent),)),
}
"""What is called in libibverbs: results and parameters."""


class Unusable(Exception):
    """The device cannot be used as asked; the text says why and what to do."""


class Misunderstood(Exception):
    """A request that is not of the protocol or of the contract."""


class Errno(Exception):
    """A verb that failed; the errno's name."""


def errno_name(number: int) -> str:
    """The name of an errno, as in the contract."""
    preferred = {errno.EOPNOTSUPP: "EOPNOTSUPP", errno.EAGAIN: "EAGAIN", errno.EDEADLK: "EDEADLK"}
    return preferred.get(number) or errno.errorcode.get(number) or f"E{number}"


def succeed(result: int) -> None:
    """Raise what an int-valued verb failed with: it returns the errno, or -1 and sets it."""
    if result:
        raise Errno(errno_name(result if result > 0 else c.get_errno() or -result))


def made(pointer: Any) -> Any:
    """The object that a verb made; a null pointer is a failure whose reason is in errno."""
    if not pointer:
        raise Errno(errno_name(c.get_errno() or errno.EIO))
    return pointer


def load_library() -> Any:
    """Load libibverbs with its prototypes."""
    try:
        library = c.CDLL("libibverbs.so.1", use_errno=True)
    except OSError as error:
        raise Unusable(
            f"libibverbs cannot be loaded on this machine ({error}). Install it with the provider of the device: "
            "the packages libibverbs1 and ibverbs-providers (Debian, Ubuntu), libibverbs (Fedora, RHEL), or "
            "name another machine with `-o agent='ssh HOST'`."
        ) from error
    for name, (result, parameters) in _LIBRARY.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library
