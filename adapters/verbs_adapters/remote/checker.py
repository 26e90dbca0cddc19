"""Does an agent keep to docs/adapter-protocol.md?  Each promise of that page is a check.

Theory of operation
-------------------
Each check has a conversation with a fresh agent, so that one that breaks in one check is whole in the next.  A check
returns a note, or raises :class:`Broken` with what was promised and what was seen.  Whether the device is right is
not asked here: any errno will do, and a verb that the agent lacks is EOPNOTSUPP.  For every verb of the contract the
usual call is made, with handles from the agent's own answers, in an order in which they can succeed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from verbs_adapters.contract import CONTRACT_VERSION, OF_SEVERAL, OK, VERBS, Answer, Hello, Trouble, Verb
from verbs_adapters.remote import messages
from verbs_adapters.remote.conversation import LEAVE, Broken, Conversation, Gone, Silent, check_answer
from verbs_adapters.remote.links import Peer

NOBODY = 2**63 - 25
"""A handle that no agent has given."""


class Finding(NamedTuple):
    """What a check found: whether the agent passed, in a few words, and on failure the conversation."""

    name: str
    passed: bool
    note: str
    heard: tuple[str, ...] = ()
    log: bytes = b""


class Unusable(Exception):
    """The agent does not come to the point where it could be checked."""


Check = Callable[[Conversation], str]


class Checker:
    """The checks of one agent."""

    def __init__(self, peer: Peer, deadline: float, start_deadline: float) -> None:
        """Say how it is reached and how long it may take."""
        self._peer = peer
        self._deadline = deadline
        self._start_deadline = start_deadline
        self._child = peer.who == "The process"
        self._hello: Hello | None = None

    def run(self) -> Iterator[Finding]:
        """All checks, one finding each (one for each verb); Unusable if there is no hello at all."""
        yield self._first()
        for name, check in self._checks():
            yield self._one(name, check)
        yield from self._verbs()

    def _open(self) -> Conversation:
        return Conversation(self._peer, self._deadline, self._start_deadline)

    def _first(self) -> Finding:
        conversation = self._open()
        try:
            note = self._introduction(conversation)
        except Gone as gone:
            conversation.end()
            log = conversation.log.decode("utf-8", "backslashreplace").strip()
            raise Unusable(
                f"no hello: {gone}." + (f" Its standard error ends:\n{log[-2000:]}" if log else "")
            ) from gone
        except Broken as broken:
            return self._finding("hello", conversation, str(broken))
        conversation.end()
        return Finding("hello", True, note)

    def _one(self, name: str, check: Check) -> Finding:
        conversation = self._open()
        try:
            conversation.hello()
            conversation.reset()
            note = check(conversation)
            conversation.quiet()
        except Broken as broken:
            return self._finding(name, conversation, str(broken))
        finally:
            conversation.end()
        return Finding(name, True, note)

    @staticmethod
    def _finding(name: str, conversation: Conversation, said: str) -> Finding:
        conversation.end()
        return Finding(name, False, said, tuple(conversation.heard[-8:]), conversation.log[-1000:])

    def _checks(self) -> Iterator[tuple[str, Check]]:
        yield "hello again", self._introduction_again
        yield "ids", _ids
        yield "unknown keys", _unknown_keys
        yield "pieces", _pieces
        yield "empty line", _empty_line
        yield "reset", _resets
        yield "batch", _batch
        yield "batch and trouble", _batch_and_trouble
        yield "unknown verb", _unknown_verb
        yield "dead handles", _dead_handles
        yield "optional parameters", self._optional_parameters
        for name, args in (("missing argument", {}), ("wrong argument", {"buf": 1, "offset": "0", "length": None})):
            yield name, _refuses(_call("read_buffer", args))
        for name, line in NO_REQUESTS:
            yield name, _refuses(line)
        yield "close", self._close
        if self._child:
            yield "end of input", self._end_of_input(b"")
            yield "half a line", self._end_of_input(b'{"op":"call","id":99,"verb":"settle","ar')

    # -- hello ---------------------------------------------------------------------------------------

    def _introduction(self, conversation: Conversation) -> str:
        conversation.quiet()
        protocol, hello = conversation.hello()
        for what, theirs, ours in (
            ("protocol", protocol, messages.PROTOCOL),
            ("contract", hello.contract, CONTRACT_VERSION),
        ):
            if messages.major(theirs) != messages.major(ours):
                raise Broken(f"it speaks version {theirs} of the {what}, this verbspec {ours}")
        if not hello.api or not hello.transport:
            raise Broken("`api` and `transport` of the hello name at least one profile each")
        self._hello = hello
        return f"{hello.name} {hello.version}, {hello.device}, {'/'.join(hello.api)}, {'/'.join(hello.transport)}"

    def _introduction_again(self, conversation: Conversation) -> str:
        conversation.end()
        other = self._open()
        try:
            _, hello = other.hello()
        finally:
            other.end()
        if self._hello is not None and hello != self._hello:
            raise Broken(f"a second agent introduces itself otherwise: {hello}")
        return "a second agent says the same"

    def _optional_parameters(self, conversation: Conversation) -> str:
        if self._hello is None or messages.minor(self._hello.contract) < 1:
            return "the agent's contract has none"
        tried = 0
        for verb, shape in VERBS.items():
            for name in shape.optional - OF_SEVERAL:
                conversation.answer(verb, arguments(verb, {}) | {name: LEAST[shape.params[name]]})
                tried += 1
        return f"{tried} are answered"

    # -- ends ----------------------------------------------------------------------------------------

    def _close(self, conversation: Conversation) -> str:
        if conversation.ask("close").ok is not True:
            raise Broken("`close` is not answered by `ok`")
        conversation.quiet()
        return self._ended(conversation, "`close`")

    def _end_of_input(self, line: bytes) -> Check:
        def check(conversation: Conversation) -> str:
            if line:
                conversation.say(line, end=b"")
            return self._ended(conversation, "the end of its input")

        return check

    def _ended(self, conversation: Conversation, why: str) -> str:
        if not self._child:
            return "the connection can be closed"
        ending = conversation.end(LEAVE)
        if not ending.by_itself:
            raise Broken(f"it does not end within {LEAVE:g} s after {why}")
        if not ending.describe().endswith("status 0"):
            raise Broken(f"after {why} it {ending.describe()}; 0 is due")
        conversation.quiet()
        return "it ends by itself"

    # -- the verbs -----------------------------------------------------------------------------------

    def _verbs(self) -> Iterator[Finding]:
        conversation = self._open()
        begun = False
        handles: dict[str, int] = {}
        for verb in in_order():
            try:
                if not begun:
                    conversation.hello()
                    conversation.reset()
                    begun = True
                answer = conversation.answer(verb, arguments(verb, handles))
            except Broken as broken:
                yield self._finding(f"verb {verb}", conversation, str(broken))
                conversation, begun, handles = self._open(), False, {}
                continue
            handles |= {name: answer.out[name] for name in made_by(VERBS[verb]) if answer.out}
            yield Finding(f"verb {verb}", True, answer.result)
        conversation.end()


# -- checks that need nothing of the checker -----------------------------------------------------------


def _ids(conversation: Conversation) -> str:
    for number in (2**31, 2**53 + 1, 2**63 - 1):
        reply = conversation.ask("call", number=number, verb="settle", args={})
        if reply.id != number:
            raise Broken(f"the id {number} came back as {reply.id}; ids go up to 2**63-1")
    return "up to 2**63-1"


def _unknown_keys(conversation: Conversation) -> str:
    conversation.hello(color="red", more={"x": [1]})
    conversation.reset(color="red")
    conversation.outcome("settle", {}, color="red")
    return "are ignored"


def _pieces(conversation: Conversation) -> str:
    number = conversation.next_number()
    line = msgspec.json.encode({"op": "call", "id": number, "verb": "settle", "args": {}})
    conversation.say(line[:10], end=b"")
    with contextlib.suppress(Gone):
        conversation.hear(0.1)
        raise Broken("it answers before the line has ended")
    conversation.say(line[10:])
    conversation.reply(LEAVE, number)
    return "a request may come in pieces"


def _empty_line(conversation: Conversation) -> str:
    conversation.say(b"")
    conversation.outcome("settle", {})
    return "is ignored"


def _resets(conversation: Conversation) -> str:
    for seed in (0, 2**63 - 1, 0):
        conversation.reset(seed)
        conversation.outcome("alloc_pd", {})
    return "any number of times, with any seed"


def _batch(conversation: Conversation) -> str:
    verbs = ["settle", "dealloc_pd", "settle"]
    calls: list[Any] = [{"verb": "settle", "args": {}}, {"verb": "dealloc_pd", "args": {"pd": NOBODY}}]
    reply = conversation.ask("batch", calls=[*calls, calls[0]])
    if not isinstance(reply.batch, list):
        raise Broken(f"a batch is answered by `{reply.contents()[0]}`")
    stopped = bool(reply.batch) and isinstance(reply.batch[-1].trouble, Trouble)
    if len(reply.batch) != len(verbs) and not stopped:
        raise Broken(f"{len(reply.batch)} outcomes for {len(verbs)} calls; an errno does not stop a batch")
    for verb, outcome in zip(verbs, reply.batch, strict=False):
        if isinstance(outcome.answer, Answer):
            check_answer(verb, outcome.answer)
    if conversation.ask("batch", calls=[]).batch != []:
        raise Broken("a batch of no calls has no outcomes")
    return "an outcome for each call"


def _batch_and_trouble(conversation: Conversation) -> str:
    calls: list[dict[str, Any]] = [{"verb": verb, "args": {}} for verb in ("settle", "no_such_verb", "settle")]
    reply = conversation.ask("batch", calls=calls)
    if isinstance(reply.trouble, Trouble):
        return "is refused"
    if not isinstance(reply.batch, list):
        raise Broken(f"a batch is answered by `{reply.contents()[0]}`")
    troubles = [isinstance(outcome.trouble, Trouble) for outcome in reply.batch]
    due = troubles.index(True) + 1 if True in troubles else len(calls)
    if len(troubles) != due:
        raise Broken(
            f"{len(troubles)} outcomes where {due} are due: a batch goes on to the first trouble or to the end"
        )
    return "stops there" if True in troubles else "an errno does not stop it"


def _unknown_verb(conversation: Conversation) -> str:
    reply = conversation.ask("call", verb="no_such_verb", args={})
    if isinstance(reply.answer, Answer):
        if reply.answer.result == OK:
            raise Broken("a verb that does not exist succeeds")
        return reply.answer.result
    return _fault_of_glue(reply.trouble)


def _dead_handles(conversation: Conversation) -> str:
    tried = 0
    for verb, shape in VERBS.items():
        needed = [name for name, kind in shape.params.items() if kind == "handle"]
        if not needed:
            continue
        tried += 1
        outcome = conversation.outcome(verb, arguments(verb, {}))
        if isinstance(outcome, Answer) and outcome.result == OK:
            raise Broken(f"`{verb}` succeeds with {needed[0]}={NOBODY}, which names nothing")
    return f"{tried} verbs refuse them"


NO_REQUESTS: list[tuple[str, bytes]] = [
    ("not JSON", b"foo"),
    ("not an object", b"[1, 2]"),
    ("not UTF-8", b'{"op":"call","id":90,"verb":"\xff\xfe","args":{}}'),
    ("cut short", b'{"op":"call","id":90,"verb":"settle","ar'),
    ("deep nesting", b"[" * 100_000),
    ("too long", b'{"op":"call","id":90,"verb":"' + b"x" * messages.MAX_LINE + b'","args":{}}'),
    ("no id", b'{"op":"reset","seed":1}'),
    ("no op", b'{"id":90}'),
    ("unknown op", b'{"op":"dance","id":90}'),
    ("wrong seed", b'{"op":"reset","id":90,"seed":"x"}'),
]
"""Lines that are no requests; where the id can be read it is 90."""


def _call(verb: str, args: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"op": "call", "id": 90, "verb": verb, "args": args})


def _refuses(line: bytes) -> Check:
    """The line is refused, and the agent goes on, or ends."""

    def check(conversation: Conversation) -> str:
        conversation.say(line)
        try:
            reply = conversation.reply(LEAVE, 90)
        except Silent as silent:
            raise Broken(f"{silent}; a trouble is due") from silent
        except Gone:
            return "it ends (allowed; better is a trouble and going on)"
        if isinstance(reply.answer, Answer) and reply.answer.result != OK:
            note = reply.answer.result
        else:
            note = _fault_of_glue(reply.trouble)
        try:
            conversation.outcome("settle", {})
        except Silent as silent:
            raise Broken(f"after it has refused a line: {silent}") from silent
        except Gone:
            return f"{note}, and ends"
        return f"{note}, and goes on"

    return check


def _fault_of_glue(trouble: Any) -> str:
    if not isinstance(trouble, Trouble):
        raise Broken("it is taken for a request")
    if trouble.whose != "glue":
        raise Broken(f"the trouble is held to be the {trouble.whose}'s; it is the glue's")
    return "a trouble"


# -- the usual calls -----------------------------------------------------------------------------------

USUAL: dict[str, Any] = {
    "length": 4096,
    "cqe": 8,
    "max_send_wr": 4,
    "max_recv_wr": 4,
    "max_num_sg": 2,
    "max_page_list_len": 2,
    "page_size": 4096,
    "page_shift": 12,
    "page_list_len": 1,
    "data": "00ff",
    "state": "INIT",
    "opcode": "SEND",
    "access": ["LOCAL_WRITE"],
    "type": "TYPE_1",
    "max_wr": 4,
    "mask": ["LIMIT"],
}
"""Arguments by their name; the others are the least of their type."""

LEAST: dict[str, Any] = {
    "nat": 0,
    "bool": False,
    "text": "RESET",
    "hex": "",
    "handle": NOBODY,
    "handle?": 0,
    "flags": [],
    "nats": [],
    "sges": [],
    "sg": [],
}
KINDS = {"peer": "qp"}
"""What a handle names, where its parameter's name does not end with it."""
ENDS = ("destroy", "free", "dealloc", "dereg")


def made_by(shape: Verb) -> list[str]:
    """The outputs of a verb that are new objects: handles that are there in every answer."""
    return [name for name, kind in shape.out.items() if kind == "handle" and name not in shape.sometimes]


def in_order() -> list[str]:
    """The verbs: first those that make objects, last, in reverse, those that end them."""
    makers = [verb for verb, shape in VERBS.items() if any(made_by(shape))]
    ends = [verb for verb in VERBS if verb.startswith(ENDS)]
    others = [verb for verb in VERBS if verb not in makers and verb not in ends]
    return [*makers, *others, *reversed(ends)]


def arguments(verb: str, handles: dict[str, int]) -> dict[str, Any]:
    """The usual arguments of a verb, without those that may be absent: an agent may be older than they are."""
    made = {}
    for name, kind in VERBS[verb].params.items():
        if name in VERBS[verb].optional:
            continue
        if kind == "handle":
            kind_of = KINDS.get(name, name.rpartition("_")[2])
            made[name] = handles.get(name) or handles.get(kind_of) or NOBODY
        else:
            made[name] = USUAL.get(name, LEAST[kind])
    if verb == "post_send":
        used = ("qp", "wr_id", "opcode", "signaled", "fence", "sg_list")
        made = {name: made[name] for name in used}
    if verb == "read_buffer":
        made["length"] = 2
    return made
