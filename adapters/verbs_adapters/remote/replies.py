"""What a line that came back is worth: the reply that is due, an event, or a complaint in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from verbs_adapters.contract import Answer, Event, Trouble
from verbs_adapters.remote import messages
from verbs_adapters.remote.messages import Outcome, Reply
from verbs_adapters.remote.shapes import wrong_answer


class Asked(NamedTuple):
    """A request that was sent."""

    id: int
    what: str
    line: bytes
    opening: bool = False  # the hello of a new link


_STARTS = 1000
"""So many opening braces of a line are tried."""


class _Numbered(msgspec.Struct):
    """What there is to a line that answers a certain request, whatever else is wrong with it."""

    id: int


def answers(line: bytes, number: int) -> bool:
    """Whether a line is meant as the answer to this request."""
    try:
        return msgspec.json.decode(line, type=_Numbered).id == number
    except (msgspec.DecodeError, RecursionError):
        return False


def answer_in(line: bytes, number: int) -> bytes | None:
    """The answer to a request at the end of a line that may begin with the half of another one."""
    start = line.find(b"{")
    for _ in range(_STARTS):
        if start < 0 or answers(line[start:], number):
            return line[start:] if start >= 0 else None
        start = line.find(b"{", start + 1)
    return None


def event_of(line: bytes) -> Event | None:
    """The event that a line holds; whatever else it may be is decided later."""
    if b'"event"' not in line:
        return None
    try:
        event = messages.decode_reply(line).event
    except (msgspec.DecodeError, RecursionError):
        return None
    return event if isinstance(event, Event) else None


def decode(asked: Asked, line: bytes, expected: str) -> Reply | str:
    """The reply that a line holds, or what is wrong with it."""
    try:
        reply = messages.decode_reply(line)
    except msgspec.ValidationError as error:
        return f"the line is JSON but not a reply of the protocol: {error}"
    except (msgspec.DecodeError, RecursionError) as error:
        return f"the line is not JSON ({error}); logs belong on standard error, not on standard output"
    (key,) = reply.contents()
    if key == "trouble" and reply.id == messages.NO_REQUEST:
        return reply  # the agent could not even read which request it was
    if reply.id != asked.id:
        past = "answered already" if 0 < reply.id < asked.id else "never made"
        return f"the reply has the id {reply.id}, of a request {past}, where {asked.id} is due"
    if key not in (expected, "trouble"):
        return f"the reply has the key `{key}` where `{expected}` is due"
    return reply


def outcomes_of(verbs: Sequence[str], batch: Sequence[Outcome]) -> list[Answer | Trouble] | str:
    """What became of the calls of a batch, or what is wrong with the list."""
    outcomes: list[Answer | Trouble] = []
    for number, (verb, outcome) in enumerate(zip(verbs, batch, strict=False), 1):
        if isinstance(outcome.answer, Answer):
            wrong = wrong_answer(verb, outcome.answer)
            if wrong is not None:
                return f"of call {number} ({verb}), {wrong}"
            outcomes.append(outcome.answer)
        elif isinstance(outcome.trouble, Trouble):
            outcomes.append(outcome.trouble)
            break
    stopped = bool(outcomes) and isinstance(outcomes[-1], Trouble)
    if len(batch) != (len(outcomes) if stopped else len(verbs)):
        return f"{len(batch)} outcomes for {len(verbs)} calls; it goes on to the first trouble or to the end"
    return outcomes
