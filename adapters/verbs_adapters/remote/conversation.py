"""One conversation with an agent that is being checked: everything said is kept, nothing is taken on trust.

Unlike :mod:`verbs_adapters.remote.client`, which wants answers, this wants to see what an agent does: it can send
what is no request, and says exactly which promise of docs/adapter-protocol.md a line breaks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from verbs_adapters.contract import Answer, Hello, Trouble
from verbs_adapters.remote import messages
from verbs_adapters.remote.links import Ending, NoLine, Peer
from verbs_adapters.remote.messages import Reply
from verbs_adapters.remote.replies import answer_in
from verbs_adapters.remote.shapes import clip, wrong_answer

SHOWN = 300
"""Characters of a line that are shown."""

LEAVE = 5.0
"""Seconds in which an agent that was told to close, or whose input has ended, must have ended."""


class Broken(Exception):
    """The agent breaks a promise; the text says which, and what was seen instead."""


class Gone(Broken):
    """The agent has ended."""


class Silent(Gone):
    """The agent says nothing."""


class Conversation:
    """A link to a fresh agent."""

    def __init__(self, peer: Peer, deadline: float, start_deadline: float) -> None:
        """Open the link; AdapterError if that is impossible."""
        self._peer = peer
        self._deadline = deadline
        self._start_deadline = start_deadline
        self._link = peer.open(0.0)
        self._number = 0
        self._ending: Ending | None = None
        self.heard: list[str] = []

    # -- what is said --------------------------------------------------------------------------------

    def say(self, line: bytes, *, end: bytes = b"\n") -> None:
        """Send a line, whatever it is."""
        self.heard.append(f"> {_text(line)}")
        self._link.send(line + end)

    def hear(self, seconds: float) -> bytes:
        """The next line; Gone if there is none."""
        until = time.monotonic() + seconds
        line = self._link.receive(until)
        if line is NoLine.QUIET:
            raise Silent(f"no answer within {seconds:g} s")
        if line is NoLine.ENDLESS:
            raise Broken(f"a line is longer than {messages.MAX_LINE} bytes")
        if line is NoLine.ENDED:
            said = f"it {self.end(LEAVE).describe()}"
            unread = self._link.unread
            raise Gone(f"{said} in the middle of the line {_text(unread)}" if unread else f"{said} without an answer")
        assert isinstance(line, bytes)
        self.heard.append(f"< {_text(line)}")
        return line

    def reply(self, seconds: float, number: int) -> Reply:
        """The next line, which must be a reply to this request (or to none that could be read)."""
        while True:
            line = self.hear(seconds)
            try:
                reply = messages.decode_reply(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise Broken(f"a line is not a reply of the protocol: {error}") from error
            if reply.contents() != ["event"]:
                break
        if reply.id != number and not (reply.id == messages.NO_REQUEST and isinstance(reply.trouble, Trouble)):
            raise Broken(f"a reply has the id {reply.id} where {number} is due")
        return reply

    def next_number(self) -> int:
        """The id of the next request."""
        self._number += 1
        return self._number

    def ask(self, op: str, /, seconds: float | None = None, number: int | None = None, **keys: Any) -> Reply:
        """A request and its reply."""
        number = self.next_number() if number is None else number
        self.say(msgspec.json.encode({"op": op, "id": number, **keys}))
        return self.reply(self._deadline if seconds is None else seconds, number)

    # -- requests whose replies must be good ---------------------------------------------------------

    def hello(self, **more: Any) -> tuple[str, Hello]:
        """The agent's protocol and hello."""
        number = self.next_number()
        self.say(msgspec.json.encode({"op": "hello", "id": number, "protocol": messages.PROTOCOL, **more}))
        if self._peer.stale:
            self._skip(number)
            return self._introduced
        return self._told(self.reply(self._start_deadline, number))

    def _skip(self, number: int) -> None:
        until = time.monotonic() + self._start_deadline
        while (answer := answer_in(self.hear(until - time.monotonic()), number)) is None:
            pass
        self._introduced = self._told(messages.decode_reply(answer))

    @staticmethod
    def _told(reply: Reply) -> tuple[str, Hello]:
        if isinstance(reply.trouble, Trouble):
            raise Gone(f"it tells a trouble: {reply.trouble.message}")
        if not isinstance(reply.hello, Hello):
            raise Broken(f"the reply to a hello has the key `{reply.contents()[0]}`")
        return str(reply.protocol), reply.hello

    def reset(self, seed: int = 1, **more: Any) -> None:
        """A fresh context."""
        reply = self.ask("reset", seed=seed, **more)
        if reply.ok is not True:
            raise Broken(f"a reset with the seed {seed} is not answered by `ok`: {_content(reply)}")

    def outcome(self, verb: str, args: Mapping[str, Any], **more: Any) -> Answer | Trouble:
        """What a call gives: an answer that the verb can have, or a trouble."""
        reply = self.ask("call", verb=verb, args=args, **more)
        if isinstance(reply.trouble, Trouble):
            return reply.trouble
        if not isinstance(reply.answer, Answer):
            raise Broken(f"a call is answered by {_content(reply)}")
        check_answer(verb, reply.answer)
        return reply.answer

    def answer(self, verb: str, args: Mapping[str, Any], **more: Any) -> Answer:
        """What a call gives, which must be an answer."""
        outcome = self.outcome(verb, args, **more)
        if isinstance(outcome, Trouble):
            raise Broken(f"`{verb}` is answered by a trouble: {outcome.message}")
        return outcome

    # -- the end -------------------------------------------------------------------------------------

    def quiet(self) -> None:
        """Nothing may have come that nobody asked for."""
        line = self._link.receive(time.monotonic())
        if isinstance(line, bytes):
            self.heard.append(f"< {_text(line)}")
            raise Broken("it writes a line that nobody asked for")

    def end(self, patience: float = 0.0) -> Ending:
        """End the conversation."""
        if self._ending is None:
            self._ending = self._link.end(patience)
        return self._ending

    @property
    def log(self) -> bytes:
        """The end of what the agent wrote to standard error, once it has ended."""
        return self._link.stderr


def check_answer(verb: str, answer: Answer) -> None:
    """Hold an answer against the shape of its verb."""
    wrong = wrong_answer(verb, answer)
    if wrong is not None:
        raise Broken(f"`{verb}`: {wrong}")


def _content(reply: Reply) -> str:
    return clip(messages.encode(reply).decode().strip(), SHOWN)


def _text(line: bytes) -> str:
    return clip(line[: 4 * SHOWN].decode("utf-8", "backslashreplace"), SHOWN) + (
        f" ({len(line)} bytes)" if len(line) > 4 * SHOWN else ""
    )
