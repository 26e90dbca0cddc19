"""Values of the contract in the types of C: what no caller could pass in C is EINVAL."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable, Mapping
from typing import Any

from verbs_adapters.rdma_core.agent.library import Errno
from verbs_adapters.rdma_core.agent.names import ACCESS, NO_SUCH, UNKNOWN


def narrow(value: int, width: int) -> int:
    """A number for a C type of so many value bits; no caller could pass a wider one."""
    if value >> width:
        raise Errno("EINVAL")
    return value


def bits(names: Iterable[str], known: Mapping[str, int]) -> int:
    """Flags as bits."""
    chosen = set(names)
    if not chosen <= known.keys():
        raise Errno("EINVAL")
    return sum(known[name] for name in chosen)


def access_bits(names: Iterable[str]) -> int:
    """Access flags as bits."""
    return bits(names, ACCESS)


def flags_in(number: int, known: Mapping[str, int]) -> list[str]:
    """The flags in a number."""
    return [name for name, bit in known.items() if number & bit]


def enumerator(name: str, known: Mapping[str, int]) -> int:
    """The number of an enumerator; one that the header does not have for UNKNOWN."""
    if name == UNKNOWN:
        return NO_SUCH
    if name not in known:
        raise Errno("EINVAL")
    return known[name]


def name_of(number: int, known: Iterable[str] | Mapping[str, int]) -> str:
    """The enumerator of a number; `known` is a table, or a list that begins with 0."""
    table = known if isinstance(known, Mapping) else {name: i for i, name in enumerate(known)}
    return next((name for name, value in table.items() if value == number), UNKNOWN)


def address_of(pointer: Any) -> int:
    """The number of a pointer, whichever way ctypes gave it."""
    return int(pointer) if isinstance(pointer, int) else c.addressof(pointer.contents)


def put(structure: Any, path: str, value: int) -> None:
    """Set a member, named like `cap.max_send_wr`."""
    *outer, member = path.split(".")
    for name in outer:
        structure = getattr(structure, name)
    narrow(value, 8 * getattr(type(structure), member).size)
    setattr(structure, member, value)


def take(structure: Any, path: str) -> Any:
    """Read a member."""
    for name in path.split("."):
        structure = getattr(structure, name)
    return structure
