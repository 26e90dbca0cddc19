"""Serve a backend over standard input and output: ``python -m verbs_adapters.remote.serve ADAPTER``.

So an in-process backend runs in a process of its own, where it may crash or hang without taking the run
with it, and an adapter written in Python becomes an agent for another host (``ssh host python3 -m ...``).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, TypeVar

import msgspec

from verbs_adapters.contract import AdapterError, Answer, Backend, EventSource, Trouble, UsageError, Value
from verbs_adapters.remote import messages
from verbs_adapters.remote.messages import Outcome, Reply, Request
from verbs_adapters.remote.shapes import clip, wrong_arguments

T = TypeVar("T")


def serve(backend: Backend, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer requests until `close` or the end of input; the backend is closed in any case."""
    told = False
    with contextlib.ExitStack() as at_end:
        at_end.callback(backend.close)
        for line in iter(stdin.readline, b""):
            if not line.strip():
                continue  # the start of a conversation over a line that may hold half of another one
            request = _read(line)
            if isinstance(request, messages.CloseRequest):
                at_end.pop_all()  # closed here, so that what goes wrong can be told
                _write(stdout, _done(request.id, _guarded(backend.close)))
                return
            reply = request if isinstance(request, Reply) else _reply(backend, request)
            if isinstance(request, messages.HelloRequest):
                told = messages.minor(request.protocol) >= 1  # before 1.1 there were no events
            elif told and isinstance(backend, EventSource):
                for event in backend.events():
                    _write(stdout, Reply(id=messages.NO_REQUEST, event=event))
            _write(stdout, reply)


class _AnyRequest(msgspec.Struct):
    """What can be read of a request that cannot be understood."""

    id: int


def _read(line: bytes) -> Request | Reply:
    """The request that a line holds, or the reply that tells why it holds none."""
    try:
        return messages.decode_request(line)
    except (msgspec.DecodeError, RecursionError) as error:
        number = messages.NO_REQUEST
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            number = max(number, msgspec.json.decode(line, type=_AnyRequest).id)
        return Reply(id=number, trouble=_misunderstood(f"a request is not of the protocol: {error}"))


def _reply(backend: Backend, request: Request) -> Reply:
    match request:
        case messages.HelloRequest(protocol=protocol):
            if messages.major(protocol) != messages.major(messages.PROTOCOL):
                versions = f"version {clip(protocol)} of the protocol, this agent {messages.PROTOCOL}"
                return Reply(id=request.id, trouble=_misunderstood(f"the harness speaks {versions}"))
            hello = _guarded(backend.hello)
            if isinstance(hello, Trouble):
                return Reply(id=request.id, trouble=hello)
            return Reply(id=request.id, protocol=messages.PROTOCOL, hello=hello)
        case messages.ResetRequest(seed=seed):
            return _done(request.id, _guarded(lambda: backend.reset(seed)))
        case messages.CallRequest(verb=verb, args=args):
            outcome = _perform(backend, verb, args)
            return Reply(id=request.id, answer=outcome.answer, trouble=outcome.trouble)
        case messages.BatchRequest(calls=calls):
            return Reply(id=request.id, batch=_perform_all(backend, calls))
        case messages.CloseRequest():
            raise AssertionError("the caller closes")


def _perform_all(backend: Backend, calls: Sequence[messages.Call]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for call in calls:
        outcomes.append(_perform(backend, call.verb, call.args))
        if isinstance(outcomes[-1].trouble, Trouble):
            break
    return outcomes


def _perform(backend: Backend, verb: str, args: Mapping[str, Value]) -> Outcome:
    wrong = wrong_arguments(verb, args)
    if wrong is not None:
        return Outcome(trouble=_misunderstood(f"a call is not of the contract: {wrong}"))
    answer = _guarded(lambda: backend.call(verb, args))
    if isinstance(answer, Answer):
        return Outcome(answer=answer)
    return Outcome(trouble=answer)


def _done(number: int, trouble: Trouble | None) -> Reply:
    return Reply(id=number, ok=True) if trouble is None else Reply(id=number, trouble=trouble)


def _guarded(act: Callable[[], T]) -> T | Trouble:
    """What the backend returns; what it raises, as a trouble."""
    try:
        return act()
    except AdapterError as error:
        return Trouble("crash", "glue", str(error), traceback.format_exc())
    except Exception as error:
        happened = f"the backend raised {type(error).__name__}: {clip(str(error))}"
        todo = "This counts against the backend. The evidence has the traceback."
        return Trouble("crash", "backend", f"{happened}. {todo}", traceback.format_exc())


def _misunderstood(wrong: str) -> Trouble:
    held = "This counts as a fault of the harness or the adapter, not of the device."
    return Trouble("garbage", "glue", f"{wrong}. {held} Check that both ends are of the same version.")


def _write(stdout: BinaryIO, reply: Reply) -> None:
    """Write one reply, or the trouble that it cannot be written."""
    try:
        line = messages.encode(reply)
        problem = f"is {len(line)} bytes long, and a line has at most {messages.MAX_LINE}; ask for less at a time"
    except TypeError as error:
        line = b""
        problem = f"holds what JSON cannot ({error}); mend the backend's adapter"
    if not 0 < len(line) <= messages.MAX_LINE:
        held = "This counts as a fault of the adapter, not of the device."
        line = messages.encode(Reply(id=reply.id, trouble=Trouble("garbage", "glue", f"{held} The answer {problem}.")))
    stdout.write(line)
    stdout.flush()


# -- as a program ------------------------------------------------------------------------------------


def _take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone.

    Whatever else the backend or its libraries print goes to standard error, and what they read is empty.
    """
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return stdin, stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a registered adapter; exit status 4 if its name or options are wrong, 3 if it cannot be set up."""
    from verbs_adapters import registry  # noqa: PLC0415 - it imports every adapter; an agent needs its own alone

    parser = argparse.ArgumentParser(
        prog="python -m verbs_adapters.remote.serve",
        description="Serve a backend over standard input and output.",
    )
    parser.add_argument("adapter", help=f"one of: {', '.join(registry.names())}")
    parser.add_argument("-o", dest="options", metavar="KEY=VALUE", action="append", default=[], type=_option)
    parsed = parser.parse_args(arguments)
    stdin, stdout = _take_stdio()
    try:
        backend = registry.create(parsed.adapter, dict(parsed.options))
    except AdapterError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return messages.USAGE_STATUS if isinstance(error, UsageError) else 3
    with contextlib.suppress(BrokenPipeError):  # nobody is interested any more
        serve(backend, stdin, stdout)
    return 0


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return key, value


if __name__ == "__main__":
    sys.exit(main())
