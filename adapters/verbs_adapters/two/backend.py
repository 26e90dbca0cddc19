"""Two backends behind one `Backend`: what the suite makes on the second device goes to the second side.

Theory of operation
-------------------
Each object belongs to the side of the device that it was made for: `alloc_pd`, `create_cq` and `alloc_buffer` name it
(`hca`), everything else names objects.  A call that names objects of both sides no library could make; it is answered
EINVAL, and the suite makes none (the rules call it the consumer's error).  The exception is `modify_qp` with a `peer`
on the other side: the two agents exchange the addresses of their queue pairs, which are opaque to us.

`settle` is for both sides: the path between them is walked in both directions, then each waits until its own device is
silent, and all that is repeated while a queue pair has lost its peer meanwhile.  A side cannot know whether a peer on
the other one still answers; so it is told which do not, and waits for the retries there.

A trouble says on which side it was.  The next `reset` resets both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from verbs_adapters.contract import (
    OK,
    AdapterError,
    Answer,
    Backend,
    Event,
    EventSource,
    Hello,
    OtherDevice,
    Trouble,
    Value,
)
from verbs_adapters.two import numbers
from verbs_adapters.two.path import Ended, Lost, Path
from verbs_adapters.two.translation import Mixed, Translation

ANSWERING = frozenset({"RTR", "RTS", "SQD", "SQE"})
"""States in which a queue pair answers its peer."""

LOOKS = frozenset({"poll_cq", "query_qp", "read_buffer", "write_buffer", "alloc_buffer", "alloc_pd", "create_cq"})
"""Verbs that give no device anything to do."""

MOST_PASSES = 8
"""Queue pairs go to ERR one after the other; so often at most is silence waited for anew."""


class TwoSides:
    """The contract's ``Backend`` over two others."""

    def __init__(self, first: Backend, second: Backend) -> None:
        """Take two backends that can connect queue pairs to each other's (`qp_address`)."""
        self._sides = (first, second)
        self._hello: Hello | None = None
        self._names = ["the first side", "the second side"]
        self._forget()

    def _forget(self) -> None:
        self._numbers = Translation()
        self._peers: dict[int, int] = {}
        """For each queue pair its peer, as far as that is on the other side."""
        self._senders: set[int] = set()
        """Queue pairs to which a send was posted since they were created."""
        self._path: Path | None = None
        self._lost = False
        self._busy = False

    # -- the contract ------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """Both devices as one backend; an `AdapterError` if they cannot be judged together."""
        if self._hello is None:
            one, other = (side.hello() for side in self._sides)
            self._names = [f"the first side ({one.device})", f"the second side ({other.device})"]
            self._hello = _joined(one, other)
            self._try_path(one, other)
        return self._hello

    def reset(self, seed: int) -> Trouble | None:
        """A fresh device context on each side."""
        self._forget()
        for number, side in enumerate(self._sides):
            trouble = side.reset(seed)
            if trouble is not None:
                return self._told(number, trouble)
        return None

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Perform one verb on the side that it is for."""
        try:
            if verb == "settle":
                return self._settle()
            side = self._numbers.side(verb, args)
        except Mixed:
            return Answer("EINVAL")
        except Ended as ended:
            return self._told(ended.side, ended.trouble)
        self._busy = self._busy or verb not in LOOKS
        return self._perform(side, verb, args)

    def close(self) -> None:
        """Close both."""
        try:
            self._sides[0].close()
        finally:
            self._sides[1].close()

    def events(self) -> list[Event]:
        """What the agents have told, each event with its side."""
        found = []
        for name, side in zip(self._names, self._sides, strict=True):
            if isinstance(side, EventSource):
                found += [Event(event.name, {**event.data, "side": name}) for event in side.events()]
        return found

    # -- one call ----------------------------------------------------------------------------------

    def _perform(self, side: int, verb: str, args: Mapping[str, Any]) -> Answer | Trouble:
        handle = args.get("qp", 0)
        peer_side = numbers.real_handle(self._peers[handle])[0] if handle in self._peers else side
        inward = self._numbers.inward(verb, args, side, peer_side)
        stranger = 0
        if verb == "modify_qp" and args.get("peer") and numbers.real_handle(args["peer"])[0] != side:
            del inward["peer"]
            if args.get("state") == "RTR" or "mask" in args:
                stranger = args["peer"]
                address = self._sides[1 - side].call("qp_address", {"qp": numbers.real_handle(stranger)[1]})
                if isinstance(address, Trouble):
                    return self._told(1 - side, address)
                if address.result != OK:
                    return Answer(address.result)
                inward["remote"] = address.out["address"]
        answer = self._sides[side].call(verb, inward)
        if isinstance(answer, Trouble):
            return self._told(side, answer)
        if answer.result != OK:
            return answer
        if verb == "destroy_qp" or (verb == "modify_qp" and args.get("state") == "RTR"):
            self._peers.pop(handle, None)
        if verb == "post_send":
            self._senders.add(handle)
        if stranger:
            self._peers[handle] = stranger
        return Answer(OK, self._numbers.outward(verb, answer.out, side, peer_side))

    def _told(self, side: int, trouble: Trouble) -> Trouble:
        return replace(trouble, message=f"on {self._names[side]}: {trouble.message}")

    # -- silence -----------------------------------------------------------------------------------

    def _settle(self) -> Answer:
        """Wait until neither side has anything left to do."""
        if not self._busy:
            return Answer(OK)
        after = self._silent()
        for _ in range(MOST_PASSES):
            before = after
            self._walk()
            for side, handles in enumerate(before):
                answer = self._sides[side].call("settle", {"silent": handles})
                if isinstance(answer, Trouble):
                    raise Ended(side, answer)
            after = self._silent()
            if after == before:
                break
        self._busy = False
        return Answer(OK)

    def _silent(self) -> list[list[int]]:
        """For each side its queue pairs that may be sending to a peer on the other side that does not answer."""
        found: list[list[int]] = [[], []]
        for handle, peer in self._peers.items():
            if handle not in self._senders:
                continue
            there, real = numbers.real_handle(peer)
            answer = self._sides[there].call("query_qp", {"qp": real})
            if isinstance(answer, Trouble):
                raise Ended(there, answer)
            if answer.out.get("state") not in ANSWERING:
                side, own = numbers.real_handle(handle)
                found[side].append(own)
        return found

    def _walk(self) -> None:
        """Let a message go each way; if that is not possible any more, the sides' own waiting must do."""
        if self._lost:
            return
        try:
            self._path = self._path or Path(self._sides)
            self._path.walk()
        except Lost:
            self._lost = True

    def _try_path(self, one: Hello, other: Hello) -> None:
        trouble = self.reset(0)
        if trouble is not None:
            raise AdapterError(trouble.message)
        try:
            Path(self._sides).walk()
        except Ended as ended:
            raise AdapterError(self._told(ended.side, ended.trouble).message) from ended
        except Lost as lost:
            raise AdapterError(
                f"a queue pair of {one.device} and one of {other.device} cannot talk to each other ({lost}). Are the "
                "two devices on one network, and are `port`, `gid_index`, `peer_port` and `peer_gid_index` right?"
            ) from lost


def _joined(one: Hello, other: Hello) -> Hello:
    """What two backends are together."""
    api, transport = (
        tuple(word for word in ours if word in theirs)
        for ours, theirs in ((one.api, other.api), (one.transport, other.transport))
    )
    if not api or not transport:
        raise AdapterError(
            f"{one.device} ({', '.join(one.api)}; {', '.join(one.transport)}) and {other.device} "
            f"({', '.join(other.api)}; {', '.join(other.transport)}) have no profile in common, so no queue pair "
            "of one can be connected to one of the other. Choose two devices of one kind."
        )
    return replace(
        one,
        version=_both(one.version, other.version),
        device=f"{one.device} and {other.device}",
        capabilities=(*(word for word in one.capabilities if word in other.capabilities), "TWO_DEVICES"),
        firmware=_both(one.firmware, other.firmware),
        kernel=_both(one.kernel, other.kernel),
        api=api,
        transport=transport,
        others=(OtherDevice(device=other.device, capabilities=other.capabilities, limits=other.limits),),
    )


def _both(one: str, other: str) -> str:
    return one if one == other else f"{one} and {other}"
