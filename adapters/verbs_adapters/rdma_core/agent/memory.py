"""Memory of the consumer."""

from __future__ import annotations

import ctypes as c
import mmap
from typing import Any

from verbs_adapters.rdma_core.agent.library import Errno, errno_name, succeed


class Buffer:
    """Memory with an unmapped page behind it.

    The guard is a mapping of an empty file, where there are no pages to be had: PROT_NONE is not enough, since a
    registration for reading may pin pages that the process itself cannot read (FOLL_FORCE in ib_umem_get).
    """

    ALIGN = 1 << 16

    def __init__(self, libc: Any, length: int, empty_file: int) -> None:
        self._libc = libc
        if not 0 < length < 1 << 46:
            raise Errno("EINVAL" if length == 0 else "ENOMEM")
        self.length = length
        used = -(-length // mmap.PAGESIZE) * mmap.PAGESIZE
        self._reserved = used + self.ALIGN + mmap.PAGESIZE
        shared, private, fixed, anonymous = 0x01, 0x02, 0x10, 0x20
        both = mmap.PROT_READ | mmap.PROT_WRITE
        self._start: int = libc.mmap(None, self._reserved, 0, shared, empty_file, 0)
        if self._start == c.c_void_p(-1).value:
            raise Errno(errno_name(c.get_errno()))
        self.addr = -(-self._start // self.ALIGN) * self.ALIGN
        if libc.mmap(self.addr, used, both, private | fixed | anonymous, -1, 0) != self.addr:
            number = c.get_errno()
            self.free()
            raise Errno(errno_name(number))

    def free(self) -> None:
        """Give it back."""
        succeed(self._libc.munmap(self._start, self._reserved))

    def place(self, offset: int, length: int) -> int:
        """The address of a part of it."""
        if offset + length > self.length:
            raise Errno("EINVAL")
        return int(self.addr + offset)


def load_libc() -> Any:
    """The C library with the prototypes of what buffers need."""
    libc = c.CDLL(None, use_errno=True)
    libc.mmap.restype = c.c_void_p
    libc.mmap.argtypes = (c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long)
    libc.munmap.argtypes = (c.c_void_p, c.c_size_t)
    return libc
