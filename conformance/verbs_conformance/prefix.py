"""What programs that stand on one fixture have in common, judged once.

Theory of operation
-------------------
A session is a function of what the backend answers: two sessions of one engine that run the same steps and get the
same answers ask for the same calls and come to the same belief, names, values, counters and lines.  Most programs
stand on a few fixtures, and a device that starts afresh with the same seed answers a fixture alike each time.  So the
judge keeps for each fixture what was asked and answered the last time it was passed, and the session as it was then.

Nothing is skipped on the device.  For another program on the fixture each kept call is made again, and the answer is
compared with the kept one, whole: result, names, order, types and values of the outputs.  If all are the same, the
program goes on from a copy of the kept session (:meth:`Session.fork`).  At the first answer that differs, or when the
backend does not answer, a session is made from nothing: it is given the answers that have been got already, that one
among them, and goes on with the backend from there.  When it has passed the fixture, it is what is kept.

A fixture in which anything was to be objected to is not passed, and not kept.  What is kept belongs to one judge, and
so to one engine, one greeting of the backend and one set of limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from verbs_adapters.contract import AdapterError, Answer, Backend, Trouble, Value
from verbs_conformance.playback import Recorder
from verbs_conformance.session import Session
from verbs_conformance.step import Step

Asked = tuple[str, Mapping[str, Value]]
Got = Answer | Trouble | AdapterError
"""What became of a call; an adapter may refuse to go on."""


class Resumed(Recorder):
    """A backend that gives what it has answered in this program already, then passes on; it notes calls and answers."""

    def __init__(self, backend: Backend, got: Sequence[Got]) -> None:
        super().__init__(backend)
        self.got = got
        self.asked: list[Asked] = []

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """The answer that is there already, or a new one."""
        place = len(self.asked)
        self.asked.append((verb, args))
        if place >= len(self.got):
            return super().call(verb, args)
        known = self.got[place]
        if isinstance(known, AdapterError):
            raise known
        self.answers.append(known)
        return known


@dataclass(slots=True)
class Kept:
    """A fixture as it was passed the last time."""

    steps: tuple[Step, ...]
    asked: list[Asked]
    answers: list[Answer | Trouble]
    session: Session
    lines: list[str]


@dataclass(slots=True)
class Start:
    """Where a program begins: a session, the steps of the fixture still to be done, and the lines of those done."""

    session: Session
    left: tuple[Step, ...] = ()
    lines: list[str] = field(default_factory=list)


class Prefixes:
    """The fixtures that one judge has passed."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def start(self, name: str, steps: tuple[Step, ...], backend: Backend, fresh: Callable[[], Session]) -> Start:
        """The beginning of a program on a fixture, on a backend that has just been reset."""
        kept = self._kept.get(name)
        got: list[Got] = []
        if kept is not None and kept.steps == steps:
            got = _repeat(kept, backend)
            if len(got) == len(kept.answers) and (not got or same(got[-1], kept.answers[-1])):
                return Start(kept.session.fork(backend), (), list(kept.lines))
        session = fresh()
        if steps:
            session.backend = Resumed(backend, got)
        return Start(session, steps)

    def passed(self, name: str, start: Start, lines: list[str]) -> None:
        """Keep a fixture whose steps are done and all explained, with the lines that tell of them."""
        session, relay = start.session, start.session.backend
        if isinstance(relay, Resumed):
            session.backend = relay.backend
            kept = session.fork(relay.backend)
            self._kept[name] = Kept(start.left, relay.asked, relay.answers, kept, list(lines))


def _repeat(kept: Kept, backend: Backend) -> list[Got]:
    """Make the calls of a fixture again, up to the first that is not answered as it was; what they came to."""
    got: list[Got] = []
    for (verb, args), known in zip(kept.asked, kept.answers, strict=True):
        try:
            answer = backend.call(verb, args)
        except AdapterError as e:
            return [*got, e]
        got.append(answer)
        if not same(answer, known):
            break
    return got


def same(one: object, other: object) -> bool:
    """Whether two values of the contract are told and judged alike: ``True`` is no 1 there, and order counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Answer) and isinstance(other, Answer):
        return one.result == other.result and same(one.out, other.out)
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            k == m and same(v, w) for (k, v), (m, w) in zip(one.items(), other.items(), strict=True)
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
