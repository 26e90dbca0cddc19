"""One software HCA that pretends to be two: each half numbers its objects, keys and memory from the same beginning.

What two real devices would do by chance, name different things alike, these do always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from verbs_adapters.contract import OK, VERBS, Answer, Hello, Trouble, Value
from verbs_adapters.softhca import SoftHca

SPACING = 1 << 20
"""From one buffer of a half to the next, in its own addresses."""
REACH = 1 << 16
"""So far before a buffer an address is still meant as one of it."""
FIRST_QP_NUMBER = 0x11
NOBODYS_KEY = 0xF00000
"""Indices from here on the device has not given to anybody."""


class Halves:
    """The device, and what each half calls its things."""

    def __init__(self, **options: str) -> None:
        self.device = SoftHca({"api": "linux-user"} | options)
        self.halves = (Half(self, 0), Half(self, 1))


class Half:
    """A backend that is one of two sides."""

    def __init__(self, whole: Halves, side: int) -> None:
        self.whole, self.side = whole, side
        self.dead = False
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._clear()

    def _clear(self) -> None:
        self.handles: list[int] = [0]
        self.buffers: list[int] = []
        self.indices: list[int] = []
        self.numbers: list[int] = []
        self.far: set[int] = set()

    def hello(self) -> Hello:
        """The device under a name of its own."""
        return replace(self.whole.device.hello(), device=f"half{self.side}")

    def reset(self, seed: int) -> Trouble | None:
        """Start again; the device does so with the first half."""
        self._clear()
        return self.whole.device.reset(seed) if self.side == 0 else None

    def close(self) -> None:
        """Close the device with the first half."""
        if self.side == 0:
            self.whole.device.close()

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Pass on in the device's numbers."""
        self.asked.append((verb, args))
        if self.dead:
            return Trouble("crash", "glue", "it was killed")
        given: dict[str, Any] = dict(args)
        if verb == "qp_address":
            return Answer(OK, {"address": f"{self._handle(given['qp']):08x}"})
        given.pop("silent", None)
        remote = given.pop("remote", None)
        inward = {name: self._inward(verb, name, value, given) for name, value in given.items()}
        if remote is not None:
            inward["peer"] = int(remote, 16)
        answer = self.whole.device.call(verb, inward)
        if isinstance(answer, Trouble) or answer.result != OK:
            return answer
        if verb == "modify_qp" and given["state"] == "RTR":
            (self.far.add if remote is not None else self.far.discard)(given["qp"])
        return Answer(OK, {name: self._outward(verb, name, value) for name, value in answer.out.items()})

    # -- numbers ---------------------------------------------------------------------------------

    def _handle(self, own: int) -> int:
        return self.handles[own] if own < len(self.handles) else 9999

    def _inward(self, verb: str, name: str, value: Any, args: Mapping[str, Any]) -> Any:
        if VERBS[verb].params[name].startswith("handle"):
            return self._handle(value)
        if name == "sg_list":
            return [{part: self._part(part, v) for part, v in sge.items()} for sge in value]
        there = self.whole.halves[1 - self.side] if args.get("qp") in self.far else self
        if name in {"rkey", "lkey"}:
            return (there if name == "rkey" else self).key(value)
        if name in {"remote_addr", "addr"}:
            return (there if name == "remote_addr" else self).address(value)
        return value

    def _part(self, name: str, value: int) -> int:
        return {"addr": self.address, "lkey": self.key}.get(name, int)(value)

    def key(self, own: int) -> int:
        """The device's key for an own one."""
        place = (own >> 8) - 1
        known = 0 <= place < len(self.indices)
        return (self.indices[place] if known else NOBODYS_KEY + (place & 0xFFFF)) << 8 | own & 0xFF if own else 0

    def address(self, own: int) -> int:
        """The device's address for an own one."""
        place, offset = divmod(own + REACH, SPACING)
        known = 1 <= place <= len(self.buffers)
        return self.buffers[place - 1] + offset - REACH if known else own

    def _outward(self, verb: str, name: str, value: Any) -> Any:
        if VERBS[verb].out[name] == "handle":
            self.handles.append(value)
            return len(self.handles) - 1
        if name == "addr":
            self.buffers.append(value)
            return len(self.buffers) * SPACING
        if name in {"lkey", "rkey"} and value:
            return self._place(self.indices, value >> 8) << 8 | value & 0xFF
        return FIRST_QP_NUMBER + self._place(self.numbers, value) if name == "qp_num" else value

    @staticmethod
    def _place(known: list[int], value: int) -> int:
        if value not in known:
            known.append(value)
        return known.index(value) + 1
