"""What to tell when a child did not answer: each trouble in words.

Every message says what happened, whose fault that is held to be, and what to do about it.  The evidence holds
the command, the request, the line that was answered if there was one, and the end of standard error.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from verbs_adapters.contract import Trouble
from verbs_adapters.remote.links import Ending
from verbs_adapters.remote.shapes import clip

Whose = Literal["backend", "glue"]

_HELD = {
    "backend": "This counts against the backend.",
    "glue": "This counts as a fault of the adapter or its set-up, not of the device.",
}
_SLOW = "If the device or the machine is merely slow, allow more time (`-o deadline=SECONDS`)"
_SHOWN = 400  # characters of a line in a message
_KEPT = 4000  # and in the evidence


class Scene(NamedTuple):
    """What is known once a child has been ended over a request."""

    who: str  # the agent as the subject of a sentence
    command: str
    what: str  # the request in words
    request: bytes
    end: Ending
    unread: bytes
    stderr: bytes
    events: tuple[str, ...] = ()  # pushed by the agent and not yet collected


def crash(scene: Scene, whose: Whose) -> Trouble:
    """The child ended, or closed its standard output, which leaves as little to talk to."""
    half = f" in the middle of a line ({_quote(scene.unread)})" if scene.unread else ""
    if scene.end.by_itself:
        happened = f"{scene.who} {scene.end.describe()}{half} before it answered {scene.what}."
    else:
        happened = f"{scene.who} closed its standard output{half} before it answered {scene.what}."
    return _trouble("crash", whose, happened, f"{_last_words(scene)} {_by_hand(scene)}", scene)


def hang(scene: Scene, whose: Whose, seconds: float) -> Trouble:
    """No answer in time; the child was killed."""
    happened = f"No answer to {scene.what} within {seconds:g} s; {scene.end.fate()}."
    todo = f"{_SLOW}; else find out what it waits for. {_last_words(scene)}"
    return _trouble("hang", whose, happened, todo, scene)


def late(scene: Scene, whose: Whose, seconds: float, line: bytes) -> Trouble:
    """An answer, but after the deadline; the child was killed."""
    happened = f"The answer to {scene.what} came after the deadline of {seconds:g} s and was not used."
    return _trouble("late", whose, happened, f"{_SLOW}.", scene, line=line)


def garbage(scene: Scene, problem: str, line: bytes) -> Trouble:
    """A line that is not an answer.  Whoever wrote it, it is not the device."""
    happened = f"No valid answer to {scene.what}: {problem}."
    todo = f"Mend the program behind `{scene.command}`, which wrote: {_quote(line)}"
    return _trouble("garbage", "glue", happened, todo, scene, line=line)


def told(scene: Scene, trouble: Trouble) -> Trouble:
    """A trouble that the agent reported itself, with what is known besides."""
    evidence = f"{trouble.evidence.rstrip()}\n" if trouble.evidence else ""
    return msgspec.structs.replace(trouble, evidence=evidence + _evidence(scene, None))


def _trouble(
    kind: Literal["crash", "hang", "late", "garbage"],
    whose: Whose,
    happened: str,
    todo: str,
    scene: Scene,
    *,
    line: bytes | None = None,
) -> Trouble:
    return Trouble(kind, whose, f"{happened} {_HELD[whose]} {todo}", _evidence(scene, line))


def _evidence(scene: Scene, line: bytes | None) -> str:
    parts = [f"command: {scene.command}", f"request: {clip(_text(scene.request).strip(), _KEPT)}"]
    if line is not None:
        parts.append(f"answer: {clip(_text(line), _KEPT)}")
    parts += [f"event: {event}" for event in scene.events]
    parts.append(f"standard error:\n{_text(scene.stderr)}" if scene.stderr else "standard error: nothing")
    return "\n".join(parts)


def _last_words(scene: Scene) -> str:
    """The last lines of standard error, on one line."""
    lines = _text(scene.stderr[-2000:]).strip().splitlines()
    if not lines:
        return "It wrote nothing to standard error."
    return f"Its standard error ends: {clip(' | '.join(lines[-3:]), _SHOWN)}"


def _by_hand(scene: Scene) -> str:
    if scene.who != "The process":
        return "(Its own log may tell more.)"
    return f"(To see it alone, run `{scene.command}` and give it the requests of the evidence, one a line.)"


def _quote(data: bytes) -> str:
    return clip(repr(_text(data[: 2 * _KEPT])), _SHOWN)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
