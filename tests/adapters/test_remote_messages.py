"""The messages, their JSON Schema and the shapes of the verbs agree with each other."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbs_adapters.contract import VERBS, Answer, Event, Hello, Trouble
from verbs_adapters.contract.verb import DEVICE
from verbs_adapters.remote import messages
from verbs_adapters.remote.messages import Call, Outcome, Reply
from verbs_adapters.remote.shapes import _IS, _MEANING, wrong_answer, wrong_arguments

SHIPPED = json.loads(
    resources.files("verbs_adapters.remote").joinpath("protocol.schema.json").read_text(encoding="utf-8")
)
REQUEST, REPLY = (
    jsonschema.Draft202012Validator({"$ref": f"#/$defs/{which}", "$defs": SHIPPED["$defs"]})
    for which in ("Request", "Reply")
)

HELLO = Hello(contract="1.0", name="toy", version="1", device="d", api=("linux-user",), transport=("ib",))
TROUBLE = Trouble("crash", "backend", "it ended", "stderr")
REQUESTS: list[messages.Request] = [
    messages.HelloRequest(id=1),
    messages.ResetRequest(id=2, seed=7),
    messages.CallRequest(id=3, verb="alloc_pd", args={}),
    messages.BatchRequest(id=4, calls=[Call(verb="dealloc_pd", args={"pd": 1})]),
    messages.CloseRequest(id=5),
]
REPLIES = [
    Reply(id=1, protocol=messages.PROTOCOL, hello=HELLO),
    Reply(id=2, ok=True),
    Reply(id=3, answer=Answer("0", {"pd": 1, "local_dma_lkey": 2})),
    Reply(id=3, trouble=TROUBLE),
    Reply(id=4, batch=[Outcome(answer=Answer("0")), Outcome(trouble=TROUBLE)]),
    Reply(id=0, event=Event("QP_FATAL", {"qp_num": 17})),
]

# One good value of each type of the contract, and bad ones.
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "handle": (1, [0, -1, 2**64, "1", True, None, 1.0]),
    "handle?": (0, [-1, 2**64, "", None]),
    "nat": (2**64 - 1, [-1, 2**64, False, "7", 1.5, None, []]),
    "bool": (True, [0, 1, "true", None]),
    "text": ("RTS", [5, None, ["RTS"]]),
    "flags": (["LOCAL_WRITE", "REMOTE_READ"], [["A", "A"], [1], "LOCAL_WRITE", None, [[]]]),
    "hex": ("00ff", ["0", "0F", "zz", 5, None, "00\n"]),
    "nats": ([0, 4096], [[-1], 5, ["1"], None, {}]),
    "sges": ([{"addr": 1, "length": 2, "lkey": 3}], [[{"addr": 1, "length": 2}], [5], {}, None]),
    "sg": ([{"addr": 1, "length": 2}], [[{"addr": 1, "length": 2, "lkey": 3}], [{"addr": 1, "length": -2}]]),
}


def test_the_shipped_schema_is_the_one_of_the_structs() -> None:
    assert json.loads(messages.schema_text()) == SHIPPED, (
        "run: python -m verbs_adapters.remote.messages > protocol.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(SHIPPED)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_requests_survive_the_wire_and_fit_the_schema(request_: messages.Request) -> None:
    line = messages.encode(request_)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert messages.decode_request(line) == request_
    REQUEST.validate(json.loads(line))


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.contents()[0])
def test_replies_survive_the_wire_and_fit_the_schema(reply: Reply) -> None:
    line = messages.encode(reply)
    assert messages.decode_reply(line) == reply
    REPLY.validate(json.loads(line))


def _decodes(line: bytes) -> bool:
    try:
        messages.decode_reply(line)
    except msgspec.DecodeError:
        return False
    return True


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.sampled_from(["crash", "glue"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def _bent_replies(draw: st.DrawFn) -> dict[str, Any]:
    """A good reply with one key, at any depth, replaced, removed or added."""
    message: dict[str, Any] = json.loads(messages.encode(draw(st.sampled_from(REPLIES))))
    place = message
    while inner := [value for value in place.values() if isinstance(value, dict) and value]:
        if draw(st.booleans()):
            break
        place = draw(st.sampled_from(inner))
    keys = [*place, *messages.CONTENTS, "protocol", "other"]
    key = draw(st.sampled_from(keys))
    if key in place and draw(st.booleans()):
        del place[key]
    else:
        place[key] = draw(_JSON)
    return message


@given(_bent_replies())
def test_schema_and_structs_accept_the_same_replies(message: dict[str, Any]) -> None:
    assert _decodes(json.dumps(message).encode()) == REPLY.is_valid(message)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"id":1}', "exactly one of the keys"),
        (b'{"id":1,"ok":true,"answer":{"result":"0"}}', "exactly one of the keys"),
        (b'{"id":1,"ok":false}', "told in trouble"),
        (b'{"id":1,"event":{"name":"X"}}', "its id is 0"),
        (b'{"id":1,"protocol":"1.0","ok":true}', "belong together"),
        (b'{"id":-1,"ok":true}', "id"),
        (b'{"id":1,"batch":[{}]}', "exactly one of the keys"),
        (b'{"id":1,"answer":{"result":22}}', "answer.result"),
        (b'{"id":1,"trouble":{"kind":"tired","whose":"glue","message":""}}', "trouble.kind"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said(line: bytes, complaint: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=complaint):
        messages.decode_reply(line)


def test_unknown_keys_are_ignored_for_the_sake_of_later_minor_versions() -> None:
    assert messages.decode_reply(b'{"id":2,"ok":true,"took_ns":5}') == Reply(id=2, ok=True)


def test_each_type_of_the_contract_is_known() -> None:
    used = {kind for verb in VERBS.values() for kind in (*verb.params.values(), *verb.out.values())}
    assert used <= _IS.keys() == _MEANING.keys() == VALUES.keys()


@pytest.mark.parametrize("verb", VERBS)
def test_answers_are_held_against_the_shape_of_their_verb(verb: str) -> None:
    outputs = VERBS[verb].out
    good = {name: VALUES[kind][0] for name, kind in outputs.items()}
    assert wrong_answer(verb, Answer("0", good)) is None
    assert wrong_answer(verb, Answer("EINVAL")) is None
    assert "has no outputs" in str(wrong_answer(verb, Answer("EINVAL", {"x": 1})))
    assert "unknown outputs: zz" in str(wrong_answer(verb, Answer("0", good | {"zz": 1})))
    for name, kind in outputs.items():
        without = {other: value for other, value in good.items() if other != name}
        missing = wrong_answer(verb, Answer("0", without))
        assert (
            (missing is None) if VERBS[verb].sometimes.get(name) == DEVICE else (f"`{name}` is missing" in str(missing))
        )
        for bad in VALUES[kind][1]:
            assert f"`{name}`" in str(wrong_answer(verb, Answer("0", good | {name: bad})))


@pytest.mark.parametrize("verb", VERBS)
def test_what_may_be_absent_is_there_in_the_shape(verb: str) -> None:
    shape = VERBS[verb]
    assert shape.optional <= shape.params.keys()
    assert shape.sometimes.keys() <= shape.out.keys()
    for decides in set(shape.sometimes.values()) - {DEVICE}:
        assert shape.out[decides] == "nat"
        assert decides not in shape.sometimes


@pytest.mark.parametrize("result", ["", "22", "-22", "einval", "OK", "EINVAL ", "EINVAL\n"])
def test_a_result_is_zero_or_an_errno(result: str) -> None:
    assert "neither '0' nor the name of an errno" in str(wrong_answer("alloc_pd", Answer(result)))


def test_an_empty_poll_has_no_other_output() -> None:
    assert wrong_answer("poll_cq", Answer("0", {"n": 0})) is None
    assert "`wr_id` is missing" in str(wrong_answer("poll_cq", Answer("0", {"n": 1})))
    assert "unknown outputs: wr_id" in str(wrong_answer("poll_cq", Answer("0", {"n": 0, "wr_id": 5})))
    assert wrong_answer("poll_cq", Answer("0", {"n": False})) is not None


@pytest.mark.parametrize("verb", VERBS)
def test_arguments_are_held_against_the_shape_of_their_verb(verb: str) -> None:
    params = VERBS[verb].params
    good = {name: VALUES[kind][0] for name, kind in params.items()}
    assert wrong_arguments(verb, good) is None
    assert wrong_arguments(verb, {}) is None
    assert "no parameter `zz`" in str(wrong_arguments(verb, {"zz": 1}))
    for name, kind in params.items():
        for bad in VALUES[kind][1]:
            assert f"`{name}`" in str(wrong_arguments(verb, {name: bad}))


def test_an_unknown_verb_has_no_arguments() -> None:
    assert wrong_arguments("alloc_dragon", {}) == "`alloc_dragon` is not a verb of the contract"
