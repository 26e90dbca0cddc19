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

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from verbs_adapters.contract import VERBS, AdapterError
from verbs_adapters.softhca.access import Sge
from verbs_adapters.softhca.region import ADDRESS_SPACE

Checker = Callable[[Any], bool]


class Refused(Exception):
    """A verb that fails: the errno's name, and NetworkDirect's word where it has a finer one."""

    def __init__(self, errno: str = "EINVAL", finer: str = "") -> None:
        self.errno = errno
        self.finer = finer


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
ALWAYS_POSTED = ("qp", "wr_id", "opcode", "signaled", "fence")
SENT = ("sg_list",)
WRITTEN = ("sg_list", "remote_addr", "rkey")
POSTED_WITH: dict[str, tuple[str, ...]] = {
    "SEND": SENT,
    "SEND_WITH_INV": (*SENT, "invalidate_rkey"),
    "SEND_WITH_IMM": (*SENT, "imm_data"),
    "RDMA_WRITE": WRITTEN,
    "RDMA_WRITE_WITH_IMM": (*WRITTEN, "imm_data"),
    "RDMA_READ": WRITTEN,
    "ATOMIC_CMP_AND_SWP": (*WRITTEN, "compare_add", "swap"),
    "ATOMIC_FETCH_AND_ADD": (*WRITTEN, "compare_add"),
    "LOCAL_INV": ("invalidate_rkey",),
    "REG_MR": ("mr", "key", "access"),
    "FAST_REG_MR": (
        *("key", "access", "list", "page_list_len"),
        *("page_shift", "iova_start", "length"),
    ),
    "BIND_MW": ("mw", "rkey"),
}
"""What each opcode takes, besides :data:`ALWAYS_POSTED`."""

MAY_BE_POSTED: dict[str, tuple[str, ...]] = {"BIND_MW": ("mr", "addr", "length", "access", "key")}
"""What an opcode takes besides, if it is given."""

POSTED_WITH_ANY = ("solicited", "inline", "ah", "remote_qpn", "remote_qkey")
IGNORED_SOMEWHERE = {"modify_qp": frozenset({"peer", "access"})}
"""Parameters that may be left out, because some calls of the verb ignore them."""

Parameters = dict[str, tuple[str, Checker]]


class Shape(NamedTuple):
    """The parameters that a call needs and those that it may have besides, each with its type and check."""

    needed: Parameters
    optional: Parameters


def _shape(params: Mapping[str, str], optional: Collection[str]) -> Shape:
    parts: tuple[Parameters, Parameters] = ({}, {})
    for name, kind in params.items():
        parts[name in optional][name] = (kind, CHECKERS[kind])
    return Shape(*parts)


def _posted(opcode: str) -> Shape:
    params, needed = VERBS["post_send"].params, (*ALWAYS_POSTED, *POSTED_WITH[opcode])
    optional = (*MAY_BE_POSTED.get(opcode, ()), *POSTED_WITH_ANY)
    return _shape({name: params[name] for name in (*needed, *optional)}, optional)


SHAPES = {
    name: _shape(verb.params, verb.optional | IGNORED_SOMEWHERE.get(name, frozenset())) for name, verb in VERBS.items()
}
POST_SHAPES = {opcode: _posted(opcode) for opcode in POSTED_WITH}
ANY_POST = _shape(VERBS["post_send"].params, set(VERBS["post_send"].params) - set(ALWAYS_POSTED))
"""For an opcode that the contract does not name: the verb refuses it."""


def check(verb: str, args: Mapping[str, Any]) -> None:
    """Raise AdapterError unless the arguments are of the contract."""
    shape = SHAPES.get(verb)
    if shape is None:
        raise AdapterError(f"softhca was called with the verb {verb!r}, which the contract does not have")
    if verb == "post_send":
        shape = POST_SHAPES.get(args.get("opcode", ""), ANY_POST)
    for name, (kind, fits) in shape.needed.items():
        if name not in args:
            raise AdapterError(f"{verb} was called without {name} ({kind}); given: {', '.join(args)}")
        if not fits(args[name]):
            raise _wrong_type(verb, name, kind, args)
    if len(shape.needed) != len(args):
        _check_optional(verb, shape, args)


def _check_optional(verb: str, shape: Shape, args: Mapping[str, Any]) -> None:
    for name in args:
        if name in shape.needed:
            continue
        if name not in VERBS[verb].params:
            raise AdapterError(f"{verb} was called with {name!r}, which is not one of its parameters")
        if name not in shape.optional:
            takes = ", ".join(sorted((*shape.needed, *shape.optional)))
            raise AdapterError(f"{verb} was called with {name}, which {args['opcode']} does not use; it takes: {takes}")
        kind, fits = shape.optional[name]
        if not fits(args[name]):
            raise _wrong_type(verb, name, kind, args)


def _wrong_type(verb: str, name: str, kind: str, args: Mapping[str, Any]) -> AdapterError:
    return AdapterError(f"{verb} was called with {name}={args[name]!r}, which is not of type {kind}")


def narrow(value: int, bits: int = 32) -> int:
    """A number for a field of so many bits; wider ones no caller could have passed."""
    if value >> bits:
        raise Refused
    return value


def access_bits(flags: Sequence[str], rights: Mapping[str, int]) -> int:
    """Access flags as bits; ``rights`` are those that the device knows."""
    bits = 0
    for flag in flags:
        bit = rights.get(flag)
        if bit is None:
            raise Refused
        bits |= bit
    return bits


def sge_list(items: Sequence[Mapping[str, int]], max_sge: int) -> tuple[Sge, ...]:
    """A scatter/gather list in the device's form."""
    if len(items) > max_sge:
        raise Refused("EINVAL", "ND_DATA_OVERRUN")
    return tuple(Sge(item["addr"], narrow(item["length"]), narrow(item["lkey"])) for item in items)
