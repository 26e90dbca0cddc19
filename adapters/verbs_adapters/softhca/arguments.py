"""Arguments of verb calls: are they of the contract, and what do their enumerators mean?

Theory of operation
-------------------
Two kinds of wrong argument exist.  One that the contract does not know (a missing parameter, a text where a
number belongs) is a mistake of whoever drives the adapter, and raises
:class:`~verbs_adapters.contract.AdapterError`.  One that a driver would see and refuse (an unknown state, a
number too wide for its field) is answered ``EINVAL`` by the verb; :class:`Refused` carries that.

The shapes come from :data:`verbs_adapters.contract.VERBS`, prepared once, because this runs on every call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verbs_adapters.contract import VERBS, AdapterError
from verbs_adapters.softhca.access import Sge
from verbs_adapters.softhca.region import ACCESS_BITS, ADDRESS_SPACE

Checker = Callable[[Any], bool]


class Refused(Exception):
    """A verb that fails; the errno's name."""

    def __init__(self, errno: str = "EINVAL") -> None:
        self.errno = errno


def _is_nat(value: Any) -> bool:
    return type(value) is int and 0 <= value < ADDRESS_SPACE


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_flags(value: Any) -> bool:
    return _is_list(value) and all(isinstance(flag, str) for flag in value) and len(set(value)) == len(value)


def _is_hex(value: Any) -> bool:
    if not isinstance(value, str) or value != value.lower():
        return False
    try:
        return len(bytes.fromhex(value)) * 2 == len(value)
    except ValueError:
        return False


def _records(names: frozenset[str]) -> Checker:
    def check(value: Any) -> bool:
        return _is_list(value) and all(
            isinstance(item, Mapping) and item.keys() == names and all(map(_is_nat, item.values())) for item in value
        )

    return check


CHECKERS: dict[str, Checker] = {
    "handle": _is_nat,
    "handle?": _is_nat,
    "nat": _is_nat,
    "bool": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "flags": _is_flags,
    "hex": _is_hex,
    "nats": lambda value: _is_list(value) and all(map(_is_nat, value)),
    "sges": _records(frozenset({"addr", "length", "lkey"})),
    "sg": _records(frozenset({"addr", "length"})),
}
SHAPES = {
    name: tuple((param, kind, CHECKERS[kind]) for param, kind in verb.params.items() if param not in verb.optional)
    for name, verb in VERBS.items()
}
ALWAYS_POSTED = ("qp", "wr_id", "opcode", "signaled", "fence")
POSTED_WITH: dict[str, tuple[str, ...]] = {
    "SEND": ("sg_list",),
    "SEND_WITH_INV": ("sg_list", "invalidate_rkey"),
    "RDMA_WRITE": ("sg_list", "remote_addr", "rkey"),
    "RDMA_READ": ("sg_list", "remote_addr", "rkey"),
    "LOCAL_INV": ("invalidate_rkey",),
    "REG_MR": ("mr", "key", "access"),
    "FAST_REG_MR": (
        *("key", "access", "list", "page_list_len"),
        *("page_shift", "iova_start", "length"),
    ),
}
POST_NAMES = {opcode: frozenset((*ALWAYS_POSTED, *names)) for opcode, names in POSTED_WITH.items()}
IGNORED_SOMEWHERE = {"modify_qp": frozenset({"peer", "access"})}
"""Parameters that may be left out, because some calls of the verb ignore them."""

LACKING = {name: verb.optional for name, verb in VERBS.items() if verb.optional}
"""Parameters that may be absent from every call, and that mean something that this device does not have."""


def lacks(verb: str, args: Mapping[str, Any]) -> bool:
    """Whether a call asks for something that this device does not have."""
    return verb in LACKING and not LACKING[verb].isdisjoint(args)


def check(verb: str, args: Mapping[str, Any]) -> None:
    """Raise AdapterError unless the arguments are of the contract."""
    shape = SHAPES.get(verb)
    if shape is None:
        raise AdapterError(f"softhca was called with the verb {verb!r}, which the contract does not have")
    expected = POST_NAMES.get(args.get("opcode", "")) if verb == "post_send" else None
    seen = 0
    for name, kind, fits in shape:
        if name not in args:
            if _needed(verb, name, expected):
                raise AdapterError(f"{verb} was called without {name} ({kind}); given: {', '.join(args)}")
            continue
        seen += 1
        if expected is not None and name not in expected:
            raise AdapterError(
                f"{verb} was called with {name}, which {args['opcode']} does not use; "
                f"it takes: {', '.join(sorted(expected))}"
            )
        if not fits(args[name]):
            raise AdapterError(f"{verb} was called with {name}={args[name]!r}, which is not of type {kind}")
    if seen != len(args):
        extra = sorted(set(args) - {name for name, _, _ in shape})
        raise AdapterError(f"{verb} was called with {extra[0]!r}, which is not one of its parameters")


def _needed(verb: str, name: str, expected: frozenset[str] | None) -> bool:
    if verb == "post_send":
        return name in (ALWAYS_POSTED if expected is None else expected)
    return name not in IGNORED_SOMEWHERE.get(verb, ())


def narrow(value: int, bits: int = 32) -> int:
    """A number for a field of so many bits; wider ones no caller could have passed."""
    if value >> bits:
        raise Refused
    return value


def access_bits(flags: Sequence[str]) -> int:
    """Access flags as bits."""
    bits = 0
    for flag in flags:
        bit = ACCESS_BITS.get(flag)
        if bit is None:
            raise Refused
        bits |= bit
    return bits


def sge_list(items: Sequence[Mapping[str, int]], max_sge: int) -> tuple[Sge, ...]:
    """A scatter/gather list in the device's form."""
    if len(items) > max_sge:
        raise Refused
    return tuple(Sge(item["addr"], narrow(item["length"]), narrow(item["lkey"])) for item in items)
