"""Arguments and outputs of verbs in two sides' numbers.

What a parameter or output of the type `nat` means is told by its name; a test holds that every such name of the
contract is either here or known to mean the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from verbs_adapters.contract import VERBS
from verbs_adapters.two import numbers
from verbs_adapters.two.numbers import Keys, QpNumbers

ADDRESSES = frozenset({"addr", "iova", "iova_start", "remote_addr"})
KEYS = frozenset({"key", "lkey", "rkey", "invalidate_rkey", "local_dma_lkey"})
QP_NUMBERS = frozenset({"qp_num", "dest_qp_num", "remote_qpn", "src_qp"})
LISTS = frozenset({"sges", "sg"})
"""Types that are lists of records with addresses and keys."""

AT_PEER = frozenset({"remote_addr", "rkey", "invalidate_rkey"})
"""Parameters of a work request that name what is at the other end."""
PEER_ITSELF = "dest_qp_num"
"""What names the other end itself, as parameter and as output."""
OWN_KEYS = frozenset({"LOCAL_INV", "BIND_MW"})
"""Work requests whose keys are nevertheless the sender's."""

ELSEWHERE = {"modify_qp": "peer"}
"""Parameters that may name an object of the other side."""


class Mixed(Exception):
    """A call that names objects of both sides."""


class Translation:
    """The numbers of one device context of each side."""

    def __init__(self) -> None:
        self._keys = Keys()
        self._qp_numbers = QpNumbers()

    def side(self, verb: str, args: Mapping[str, Any]) -> int:
        """The side that a call is for; `Mixed` if its objects are not of one side."""
        hca = args.get("hca", 1)
        if hca not in (1, 2):
            raise Mixed(f"there is no device {hca}")
        sides = {hca - 1} if "hca" in args else set()
        for name, kind in VERBS[verb].params.items():
            if kind.startswith("handle") and args.get(name) and name != ELSEWHERE.get(verb):
                sides.add(numbers.real_handle(args[name])[0])
        if len(sides) > 1:
            raise Mixed(f"{verb} names objects of both devices")
        return min(sides, default=numbers.FIRST)

    def inward(self, verb: str, args: Mapping[str, Any], side: int, peer_side: int) -> dict[str, Any]:
        """Arguments as a side takes them; `peer_side` is where the peer of the queue pair is."""
        params = VERBS[verb].params
        far = {PEER_ITSELF}
        if "opcode" in args and args["opcode"] not in OWN_KEYS:
            far |= AT_PEER
        return {
            name: self._argument(params.get(name, ""), name, value, peer_side if name in far else side)
            for name, value in args.items()
            if name != "hca"
        }

    def _argument(self, kind: str, name: str, value: Any, side: int) -> Any:
        if kind.startswith("handle"):
            return numbers.real_handle(value)[1]
        if kind in LISTS:
            return [{part: self._real(part, each, side) for part, each in item.items()} for item in value]
        if kind == "nats" and name == "pages":
            return [numbers.real_address(side, page) for page in value]
        return self._real(name, value, side)

    def _real(self, name: str, value: Any, side: int) -> Any:
        return self._one(name, value, side, numbers.real_address, self._keys.real, self._qp_numbers.real)

    def outward(self, verb: str, out: Mapping[str, Any], side: int, peer_side: int) -> dict[str, Any]:
        """Outputs as the suite sees them."""
        kinds = VERBS[verb].out
        return {
            name: numbers.outer_handle(side, value)
            if kinds.get(name, "").startswith("handle")
            else self._outer(name, value, peer_side if name == PEER_ITSELF else side)
            for name, value in out.items()
        }

    def _outer(self, name: str, value: Any, side: int) -> Any:
        return self._one(name, value, side, numbers.outer_address, self._keys.outer, self._qp_numbers.outer)

    @staticmethod
    def _one(
        name: str,
        value: Any,
        side: int,
        address: Callable[[int, int], int],
        key: Callable[[int, int], int],
        qp_number: Callable[[int, int], int],
    ) -> Any:
        if name in ADDRESSES:
            return address(side, value)
        if name in KEYS:
            return key(side, value)
        return qp_number(side, value) if name in QP_NUMBERS else value
