"""An in-process backend served over a pipe answers as it does without, and its exceptions are told."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest

from verbs_adapters.contract import AdapterError, Answer, Event, Hello, Trouble, Value
from verbs_adapters.remote import messages
from verbs_adapters.remote.messages import Call, Outcome, Reply, Request
from verbs_adapters.remote.serve import main, serve

HELLO = Hello(contract="1.0", name="toy", version="1", device="d", api=("linux-user",), transport=("ib",))


class Toy:
    """A backend in this process that does what the test has put into `does`."""

    def __init__(self, **does: Any) -> None:
        self.does = does
        self.seen: list[object] = []

    def _do(self, what: str, otherwise: Any) -> Any:
        outcome = self.does.get(what, otherwise)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def hello(self) -> Hello:
        hello: Hello = self._do("hello", HELLO)
        return hello

    def reset(self, seed: int) -> Trouble | None:
        self.seen.append(seed)
        trouble: Trouble | None = self._do("reset", None)
        return trouble

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        self.seen.append((verb, args))
        answer: Answer | Trouble = self._do(verb, Answer("0"))
        return answer

    def close(self) -> None:
        self.seen.append("close")
        self._do("close", None)


def _serve(backend: Toy, *requests: Request | bytes) -> list[Reply]:
    """The replies to some requests."""
    lines = [request if isinstance(request, bytes) else messages.encode(request) for request in requests]
    out = io.BytesIO()
    serve(backend, io.BytesIO(b"".join(lines)), out)
    return [messages.decode_reply(line) for line in out.getvalue().splitlines()]


def _trouble(backend: Toy, request: Request | bytes) -> Trouble:
    (reply,) = _serve(backend, request)
    assert isinstance(reply.trouble, Trouble)
    return reply.trouble


def _call(verb: str, **args: Any) -> messages.CallRequest:
    return messages.CallRequest(id=1, verb=verb, args=args)


def test_a_session() -> None:
    toy = Toy(dealloc_pd=Answer("EBUSY"))
    assert _serve(
        toy,
        messages.HelloRequest(id=1),
        messages.ResetRequest(id=2, seed=7),
        messages.CallRequest(id=3, verb="dealloc_pd", args={"pd": 1}),
        messages.CloseRequest(id=4),
        messages.ResetRequest(id=5, seed=8),
    ) == [
        Reply(id=1, protocol=messages.PROTOCOL, hello=HELLO),
        Reply(id=2, ok=True),
        Reply(id=3, answer=Answer("EBUSY")),
        Reply(id=4, ok=True),
    ]
    assert toy.seen == [7, ("dealloc_pd", {"pd": 1}), "close"]


class Teller(Toy):
    """A backend that has an event to tell before each answer."""

    def events(self) -> list[Event]:
        return [Event("QP_FATAL", {"after": self.seen[-1]})]


def test_events_are_told_before_the_answer_to_a_harness_that_knows_them() -> None:
    new = _serve(Teller(), messages.HelloRequest(id=1), messages.ResetRequest(id=2, seed=7))
    assert new[1:] == [Reply(id=0, event=Event("QP_FATAL", {"after": 7})), Reply(id=2, ok=True)]
    old = _serve(Teller(), messages.HelloRequest(id=1, protocol="1.0"), messages.ResetRequest(id=2, seed=7))
    assert old[1:] == [Reply(id=2, ok=True)]


def test_the_end_of_input_closes_the_backend() -> None:
    toy = Toy()
    assert _serve(toy, messages.ResetRequest(id=1, seed=7)) == [Reply(id=1, ok=True)]
    assert toy.seen == [7, "close"]


def test_an_interrupt_closes_the_backend() -> None:
    toy = Toy(reset=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        _serve(toy, messages.ResetRequest(id=1, seed=7))
    assert toy.seen == [7, "close"]


def test_a_batch_stops_at_the_first_trouble_and_not_at_an_errno() -> None:
    toy = Toy(dealloc_pd=Answer("EBUSY"), free_buffer=KeyError("buf"))
    calls = [Call(verb=verb, args={}) for verb in ("settle", "dealloc_pd", "settle", "free_buffer", "destroy_cq")]
    (reply,) = _serve(toy, messages.BatchRequest(id=1, calls=calls))
    assert isinstance(reply.batch, list)
    assert reply.batch[:3] == [
        Outcome(answer=Answer("0")),
        Outcome(answer=Answer("EBUSY")),
        Outcome(answer=Answer("0")),
    ]
    assert len(reply.batch) == 4
    assert isinstance(reply.batch[3].trouble, Trouble)
    assert toy.seen[-2:] == [("free_buffer", {}), "close"]


@pytest.mark.parametrize(
    "request_",
    [
        messages.HelloRequest(id=1),
        messages.ResetRequest(id=1, seed=7),
        _call("settle"),
        messages.CloseRequest(id=1),
    ],
    ids=lambda request: type(request).__name__,
)
def test_an_exception_of_the_backend_is_its_crash(request_: Request) -> None:
    where = {
        "HelloRequest": "hello",
        "ResetRequest": "reset",
        "CallRequest": "settle",
        "CloseRequest": "close",
    }
    toy = Toy(**{where[type(request_).__name__]: ZeroDivisionError("one too few")})
    if isinstance(request_, messages.CloseRequest):
        trouble = _trouble(toy, request_)
    else:
        reply, closed = _serve(toy, request_, messages.CloseRequest(id=2))
        assert closed == Reply(id=2, ok=True)
        assert isinstance(reply.trouble, Trouble)
        trouble = reply.trouble
    assert (trouble.kind, trouble.whose) == ("crash", "backend")
    assert "raised ZeroDivisionError: one too few. This counts against the backend" in trouble.message
    assert trouble.evidence.startswith("Traceback")
    assert "in _do" in trouble.evidence


def test_a_wrong_use_of_the_adapter_is_not_the_devices() -> None:
    trouble = _trouble(Toy(settle=AdapterError("no reset yet")), _call("settle"))
    assert (trouble.kind, trouble.whose, trouble.message) == ("crash", "glue", "no reset yet")


@pytest.mark.parametrize(
    ("line", "number", "complaint"),
    [
        (b"hello\n", 0, "malformed"),
        (b'{"id":9,"op":"call","verb":"x","args":{"a":' + b"[" * 100_000 + b"\n", 0, "recursion"),
        (b'{"id":9,"op":"dance"}\n', 9, "dance"),
        (b'{"id":9,"op":"reset"}\n', 9, "seed"),
        (b'{"id":-9,"op":"close"}\n', 0, "id"),
        (b'{"op":"close"}\n', 0, "id"),
        (
            b'{"id":9,"op":"hello","protocol":"2.3"}\n',
            9,
            "speaks version 2.3 of the protocol, this agent 1.1",
        ),
        (b'{"id":9,"op":"call","verb":"dance","args":{}}\n', 9, "`dance` is not a verb"),
        (b'{"id":9,"op":"call","verb":"dealloc_pd","args":{"pd":0}}\n', 9, "`pd` is 0"),
    ],
)
def test_a_request_that_is_none_is_told(line: bytes, number: int, complaint: str) -> None:
    toy = Toy()
    reply, after = _serve(toy, line, messages.ResetRequest(id=10, seed=1))
    assert after == Reply(id=10, ok=True)
    assert isinstance(reply.trouble, Trouble)
    assert reply.id == number
    assert (reply.trouble.kind, reply.trouble.whose) == ("garbage", "glue")
    assert complaint in reply.trouble.message
    assert toy.seen == [1, "close"]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [("00" * (messages.MAX_LINE // 2), "ask for less at a time"), (object(), "what JSON cannot")],
)
def test_an_answer_that_cannot_be_written_is_told(data: object, complaint: str) -> None:
    trouble = _trouble(Toy(read_buffer=Answer("0", {"data": data})), _call("read_buffer"))
    assert (trouble.kind, trouble.whose) == ("garbage", "glue")
    assert complaint in trouble.message


def test_options_that_are_none_are_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["process", "-o", "deadline"])
    assert "'deadline' is not of the form KEY=VALUE" in capsys.readouterr().err
