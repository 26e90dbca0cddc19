"""The messages of the remote protocol, one JSON object a line.

Theory of operation
-------------------
The harness asks, the agent answers: one reply to each request, in order, with the request's ``id``.
A request says what it is in ``op``; a reply holds, besides ``id``, exactly one of the keys ``hello``,
``answer``, ``trouble``, ``batch``, ``ok``.  A line with the key ``event`` answers nothing (its ``id`` is 0) and
may come before any reply but the first.  Unknown keys are ignored, so that a minor version may add some;
a change that an older peer would misread raises the major number of :data:`PROTOCOL`.

``docs/adapter-protocol.md`` describes the protocol to those who write an agent in another language, and
``protocol.schema.json`` beside this file is :func:`schema` written down.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from verbs_adapters.contract import Answer, Event, Hello, Trouble

USAGE_STATUS = 4
"""The exit status of an agent whose own name or options are wrong, before its first reply."""

PROTOCOL = "1.1"
"""The version of the protocol.  It is about framing; the contract has a version of its own."""

MAX_LINE = 1 << 20
"""The most bytes of a line, its newline not counted."""

NO_REQUEST = 0
"""The id of a reply to a request whose own id could not be read; no request has it."""

CONTENTS = ("hello", "answer", "trouble", "batch", "ok", "event")
"""The keys of which a reply holds exactly one."""

Id = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class HelloRequest(Struct, frozen=True, kw_only=True, tag_field="op", tag="hello"):
    """Who are you?  Always the first request; ``protocol`` is the version that the harness speaks."""

    id: Id
    protocol: str = PROTOCOL


class ResetRequest(Struct, frozen=True, kw_only=True, tag_field="op", tag="reset"):
    """Start from a fresh device context."""

    id: Id
    seed: int


class Call(Struct, frozen=True, kw_only=True):
    """One verb with its arguments by name."""

    verb: str
    args: dict[str, Any]


class CallRequest(Struct, frozen=True, kw_only=True, tag_field="op", tag="call"):
    """Perform one verb."""

    id: Id
    verb: str
    args: dict[str, Any]


class BatchRequest(Struct, frozen=True, kw_only=True, tag_field="op", tag="batch"):
    """Perform verbs one after the other, up to the first that is not answered."""

    id: Id
    calls: list[Call]


class CloseRequest(Struct, frozen=True, kw_only=True, tag_field="op", tag="close"):
    """Give everything back and end."""

    id: Id


Request = HelloRequest | ResetRequest | CallRequest | BatchRequest | CloseRequest


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one call of a batch: exactly one of ``answer`` and ``trouble``."""

    answer: Answer | UnsetType = UNSET
    trouble: Trouble | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Hold the rule that a schema of types cannot."""
        if (self.answer is UNSET) == (self.trouble is UNSET):
            raise ValueError("exactly one of the keys answer, trouble is expected")


class Reply(Struct, frozen=True, kw_only=True):
    """The reply to the request ``id``: exactly one key of ``hello`` (then also ``protocol``), ``answer``,
    ``trouble``, ``batch``, ``ok``; or, with ``id`` 0, an ``event``, which answers nothing."""

    id: Id
    protocol: str | UnsetType = UNSET
    hello: Hello | UnsetType = UNSET
    answer: Answer | UnsetType = UNSET
    trouble: Trouble | UnsetType = UNSET
    batch: list[Outcome] | UnsetType = UNSET
    ok: bool | UnsetType = UNSET
    event: Event | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Hold the rules that a schema of types cannot."""
        if len(self.contents()) != 1:
            raise ValueError(f"exactly one of the keys {', '.join(CONTENTS)} is expected")
        if (self.hello is UNSET) != (self.protocol is UNSET):
            raise ValueError("the keys hello and protocol belong together")
        if self.ok is False:
            raise ValueError("ok is always true: what went wrong is told in trouble")
        if self.event is not UNSET and self.id != NO_REQUEST:
            raise ValueError("an event answers no request, so its id is 0")

    def contents(self) -> list[str]:
        """The keys that say what kind of reply this is; one in every reply that was decoded."""
        return [key for key in CONTENTS if getattr(self, key) is not UNSET]


_encoder = msgspec.json.Encoder()
decode_request = msgspec.json.Decoder(Request).decode
decode_reply = msgspec.json.Decoder(Reply).decode
"""Decoders of one line; both raise :class:`msgspec.DecodeError`, or `RecursionError` on absurd nesting."""


def encode(message: Request | Reply) -> bytes:
    """One line, with its newline."""
    return _encoder.encode(message) + b"\n"


def show(event: Event) -> str:
    """An event for people."""
    return f"{event.name} {msgspec.json.encode(event.data).decode()}" if event.data else event.name


def minor(version: str) -> int:
    """The number after the dot, which tells what a peer may be sent; 0 if it cannot be read."""
    number = version.partition(".")[2]
    return int(number) if number.isascii() and number.isdigit() else 0


def major(version: str) -> str:
    """The part of a version that two peers must share."""
    return version.partition(".")[0]


def schema() -> dict[str, Any]:
    """The JSON Schema of one line in either direction: ``$defs/Request`` and ``$defs/Reply``."""
    (requests, _), defs = msgspec.json.schema_components([Request, Reply])
    # A discriminator is OpenAPI's, not JSON Schema's; the tags are constants of the members anyway.
    defs["Request"] = {"title": "Request", "anyOf": requests["anyOf"]}
    one_of = [{"required": [key]} for key in CONTENTS]
    defs["Reply"] |= {"oneOf": one_of, "dependentRequired": {"hello": ["protocol"], "protocol": ["hello"]}}
    defs["Reply"]["properties"]["ok"] = {"const": True}
    defs["Reply"] |= {"dependentSchemas": {"event": {"properties": {"id": {"const": NO_REQUEST}}}}}
    defs["Outcome"]["oneOf"] = [{"required": ["answer"]}, {"required": ["trouble"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"verbspec remote protocol {PROTOCOL}: one line",
        "anyOf": [{"$ref": "#/$defs/Request"}, {"$ref": "#/$defs/Reply"}],
        "$defs": dict(sorted(defs.items())),
    }


def schema_text() -> str:
    """What ``protocol.schema.json`` holds."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"


if __name__ == "__main__":  # python -m verbs_adapters.remote.messages > .../protocol.schema.json
    print(schema_text(), end="")
