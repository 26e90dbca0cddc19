"""A backend in a child process or behind a connection, with a deadline on every call.

Theory of operation
-------------------
:class:`RemoteBackend` speaks the protocol of :mod:`verbs_adapters.remote.messages` over one link at a time, mostly
to a child process, and turns whatever may go wrong into a :class:`~verbs_adapters.contract.Trouble`:

==========================================  ========  =======================================================
what happened                               kind      whose
==========================================  ========  =======================================================
the child or the connection ended           crash     ``backend`` (option `blame`)
no answer by the deadline                   hang      ``backend`` (option `blame`)
an answer after the deadline, within grace  late      ``backend`` (option `blame`)
a line that is not an answer                garbage   ``glue``
the agent reported a trouble                as told   as told
==========================================  ========  =======================================================

A child that has never said hello was not set up: its crash, hang or lateness is the glue's.
Every trouble ends the child (or the connection), and the next ``reset`` starts another one.  A message says what
happened, whose fault that is held to be and what to do; the evidence holds the command, the request, and standard
error.

Events that the agent pushes between replies are queued until :meth:`RemoteBackend.events` collects them; those
that nobody has collected when there is a trouble are part of its evidence.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

from verbs_adapters.contract import CONTRACT_VERSION, AdapterError, Answer, Event, Hello, Trouble, UsageError, Value
from verbs_adapters.remote import messages, troubles
from verbs_adapters.remote.child import ChildPeer, End
from verbs_adapters.remote.links import Ending, Link, NoLine, Peer
from verbs_adapters.remote.messages import Reply, Request
from verbs_adapters.remote.replies import Asked, answer_in, decode, event_of, outcomes_of
from verbs_adapters.remote.shapes import clip, of_contract, wrong_answer, wrong_arguments
from verbs_adapters.remote.troubles import Scene, Whose

DEADLINE = 10.0
"""Seconds that a call may take unless an option says otherwise."""

START_DEADLINE = 60.0
"""Seconds from the start of a child to its hello: it may load a driver or log in somewhere first."""

_MISUSED = End(by_itself=True, status=messages.USAGE_STATUS)

GRACE = 1.0
"""Seconds after the deadline in which an answer is late and not a hang (never more than the deadline)."""

MOST_EVENTS = 1000
"""Events that are kept until somebody collects them; of more, the latest."""

_LEAVE = 1.0
"""Seconds that a child gets to end by itself after its standard input or output was closed."""


class RemoteBackend:
    """The contract's ``Backend``, spoken to an agent."""

    def __init__(
        self,
        agent: Sequence[str] | Peer,
        *,
        deadline: float = DEADLINE,
        start_deadline: float = START_DEADLINE,
        grace: float | None = None,
        blame: Whose = "backend",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the agent; it is started or connected to by the first :meth:`hello` or :meth:`reset`.

        `agent` is a command, spoken to on its standard input and output, or another kind of peer.

        `blame` says whose fault a crash, a hang or a late answer is: ``glue`` for an agent that stands
        between us and a device that it would survive.  `env` replaces a command's environment.  The attribute
        `deadline` may be changed at any time, once it is known how slow the machine is.
        """
        self._peer: Peer = ChildPeer(agent, env, messages.MAX_LINE) if isinstance(agent, Sequence) else agent
        self.deadline = deadline
        self._start_deadline = start_deadline
        self._grace = grace
        self._blame: Whose = blame
        self._link: Link | None = None
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._end: Ending | None = None
        self._hello: Hello | None = None
        self._last_id = messages.NO_REQUEST
        self._ready = False
        self._closed = False

    # -- the contract ------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """Say what the backend is, starting it if need be; one that cannot say is an `AdapterError`."""
        self._check_open()
        if self._hello is None:
            trouble = self._start()
            if trouble is not None:
                raise (UsageError if self._end == _MISUSED else AdapterError)(trouble.message)
        assert self._hello is not None
        return self._hello

    def reset(self, seed: int) -> Trouble | None:
        """Start from a fresh device context, in a fresh child if the last one is gone."""
        self._check_open()
        self._ready = False
        if self._link is None:
            trouble = self._start()
            if trouble is not None:
                return trouble
        asked = self._asked(messages.ResetRequest(id=self._next_id(), seed=seed), "reset")
        reply = self._ask(asked, self.deadline, expected="ok")
        if isinstance(reply, Trouble):
            return reply
        self._ready = True
        return None

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Perform one verb."""
        self._check_call(verb, args)
        if self._is_too_new(verb, args):
            return Answer("EOPNOTSUPP")
        asked = self._asked(messages.CallRequest(id=self._next_id(), verb=verb, args=dict(args)), verb)
        reply = self._ask(asked, self.deadline, expected="answer")
        if isinstance(reply, Trouble):
            return reply
        assert isinstance(reply.answer, Answer)
        wrong = wrong_answer(verb, reply.answer)
        return reply.answer if wrong is None else self._garbage(asked, wrong, reply)

    def close(self) -> None:
        """Ask the child to end, and end it.  Closing twice is allowed."""
        self._closed = True
        link, self._link = self._link, None
        if link is None:
            return
        try:
            link.send(messages.encode(messages.CloseRequest(id=self._next_id())))
        finally:
            link.end(self.deadline)

    # -- beyond the contract -----------------------------------------------------------------------

    def batch(self, calls: Sequence[tuple[str, Mapping[str, Value]]]) -> list[Answer | Trouble]:
        """Perform verbs one after the other in one round trip; the first trouble ends the list.

        The deadline is that of all calls together.  If the child crashes or hangs, the answers given
        before are lost with it and the list holds only the trouble.
        """
        for verb, args in calls:
            self._check_call(verb, args)
        if not calls:
            return []
        if any(self._is_too_new(verb, args) for verb, args in calls):
            return self._one_by_one(calls)
        request = messages.BatchRequest(
            id=self._next_id(), calls=[messages.Call(verb=verb, args=dict(args)) for verb, args in calls]
        )
        asked = self._asked(request, f"batch of {len(calls)} calls, the first {calls[0][0]}")
        reply = self._ask(asked, self.deadline * len(calls), expected="batch")
        if isinstance(reply, Trouble):
            return [reply]
        assert isinstance(reply.batch, list)
        outcomes = outcomes_of([verb for verb, _ in calls], reply.batch)
        if isinstance(outcomes, str):
            return [self._garbage(asked, outcomes, reply)]
        return [self._told(asked, outcome) if isinstance(outcome, Trouble) else outcome for outcome in outcomes]

    def _one_by_one(self, calls: Sequence[tuple[str, Mapping[str, Value]]]) -> list[Answer | Trouble]:
        outcomes: list[Answer | Trouble] = []
        for verb, args in calls:
            outcomes.append(self.call(verb, args))
            if isinstance(outcomes[-1], Trouble):
                break
        return outcomes

    def events(self) -> list[Event]:
        """What the agent has pushed since the last time, in order."""
        taken = list(self._events)
        self._events.clear()
        return taken

    # -- one child ---------------------------------------------------------------------------------

    def _start(self) -> Trouble | None:
        """Start or connect to the agent and let it introduce itself."""
        self._link = self._peer.open(0.0 if self._hello is None else self._start_deadline)
        asked = self._asked(messages.HelloRequest(id=self._next_id()), "hello")
        reply = self._ask(asked, self._start_deadline, expected="hello")
        if isinstance(reply, Trouble):
            return reply
        assert isinstance(reply.hello, Hello)
        wrong = self._wrong_hello(str(reply.protocol), reply.hello)
        if wrong is not None:
            return self._garbage(asked, wrong, reply)
        self._hello = reply.hello
        return None

    def _wrong_hello(self, protocol: str, hello: Hello) -> str | None:
        """What keeps us from working with a backend that says this of itself, or None."""
        for what, theirs, ours in (
            ("protocol", protocol, messages.PROTOCOL),
            ("contract", hello.contract, CONTRACT_VERSION),
        ):
            if messages.major(theirs) != messages.major(ours):
                return (
                    f"it speaks version {clip(theirs)} of the {what} and this verbspec version {ours}; "
                    "install versions of the two that share the number before the dot"
                )
        if self._hello is not None and hello != self._hello:
            return f"it now introduces itself as {hello} and did so before as {self._hello}"
        return None

    def _ask(self, asked: Asked, seconds: float, expected: str) -> Reply | Trouble:
        """Send a request and wait for its reply, which has the key `expected`."""
        line, late = self._converse(asked, seconds)
        if isinstance(line, NoLine):
            return self._silence(asked, seconds, line)
        reply = decode(asked, line, expected)
        if isinstance(reply, str):
            return self._garbage(asked, reply, line)
        if isinstance(reply.trouble, Trouble):
            return self._told(asked, reply.trouble)
        if late:
            return troubles.late(self._scene(asked), self._fault(), seconds, line)
        return reply

    def _converse(self, asked: Asked, seconds: float) -> tuple[bytes | NoLine, bool]:
        """The line that comes back, or why none does; and whether the deadline had passed."""
        link = self._link
        assert link is not None
        try:
            link.send(asked.line)
            line = self._receive(link, asked, time.monotonic() + seconds)
            late = line is NoLine.QUIET
            if late:
                grace = min(seconds, GRACE) if self._grace is None else self._grace
                line = self._receive(link, asked, time.monotonic() + grace)
        except BaseException:  # Ctrl-C: a request is on its way, so this link is of no more use
            self._drop()
            raise
        return line, late

    def _receive(self, link: Link, asked: Asked, until: float) -> bytes | NoLine:
        """The next line that is meant as an answer; events are queued, and what an old link left is skipped."""
        while True:
            line = link.receive(until)
            if isinstance(line, NoLine):
                return line
            event = event_of(line)
            if event is not None:
                self._events.append(event)
            elif not (self._peer.stale and asked.opening):
                return line
            elif (answer := answer_in(line, asked.id)) is not None:
                return answer

    def _silence(self, asked: Asked, seconds: float, why: NoLine) -> Trouble:
        if why is NoLine.ENDLESS:
            scene = self._scene(asked)
            return troubles.garbage(scene, f"the line is longer than {messages.MAX_LINE} bytes", scene.unread)
        scene = self._scene(asked, _LEAVE if why is NoLine.ENDED else 0.0)
        if why is NoLine.ENDED or scene.end.by_itself:
            return troubles.crash(scene, self._fault())
        return troubles.hang(scene, self._fault(), seconds)

    def _garbage(self, asked: Asked, problem: str, answer: Reply | bytes) -> Trouble:
        line = messages.encode(answer).rstrip() if isinstance(answer, Reply) else answer
        return troubles.garbage(self._scene(asked), problem, line)

    def _told(self, asked: Asked, trouble: Trouble) -> Trouble:
        return troubles.told(self._scene(asked, _LEAVE), trouble)

    def _fault(self) -> Whose:
        """Whose fault it is that the child does not answer: a child that never said hello was not set up."""
        return "glue" if self._hello is None else self._blame

    def _scene(self, asked: Asked, patience: float = 0.0) -> Scene:
        """End the child over a request and gather what is known."""
        link = self._link
        assert link is not None
        end = self._drop(patience)
        what = f"request {asked.id} ({asked.what})"
        events = tuple(messages.show(event) for event in self._events)
        return Scene(self._peer.who, str(self._peer), what, asked.line, end, link.unread, link.stderr, events)

    def _drop(self, patience: float = 0.0) -> Ending:
        """End the link; only a reset starts another one."""
        link, self._link = self._link, None
        self._ready = False
        assert link is not None
        self._end = link.end(patience)
        return self._end

    # -- small things ------------------------------------------------------------------------------

    def _next_id(self) -> int:
        """Ids go on over all children, so that no answer is ever taken for that to another request."""
        self._last_id += 1
        return self._last_id

    def _asked(self, request: Request, what: str) -> Asked:
        """A request as it goes out."""
        try:
            line = messages.encode(request)
        except TypeError as error:
            raise AdapterError(f"`{what}` has an argument that JSON cannot hold: {error}") from error
        if len(line) > messages.MAX_LINE:
            raise AdapterError(
                f"`{what}` makes a request of {len(line)} bytes, and a line has at most {messages.MAX_LINE}; "
                "make it several calls"
            )
        return Asked(request.id, what, line, isinstance(request, messages.HelloRequest))

    def _check_open(self) -> None:
        if self._closed:
            raise AdapterError("this backend was closed; create another one")

    def _check_call(self, verb: str, args: Mapping[str, Value]) -> None:
        self._check_open()
        if not self._ready:
            raise AdapterError(f"`{verb}` was called without a context; call reset first, and after each trouble")
        wrong = wrong_arguments(verb, args)
        if wrong is not None:
            raise AdapterError(f"this call is not of the contract: {wrong}")

    def _is_too_new(self, verb: str, args: Mapping[str, Value]) -> bool:
        """Whether a call has parameters that the agent's version of the contract does not; they are never sent."""
        return self._hello is not None and of_contract(args, verb) > messages.minor(self._hello.contract)
