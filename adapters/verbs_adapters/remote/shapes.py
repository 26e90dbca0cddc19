"""Whether values have the shapes that the contract gives them.

The types are those of :class:`~verbs_adapters.contract.Verb`.  Nothing here knows what a correct device
answers: only whether an answer can be an answer to that verb at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from verbs_adapters.contract import OK, VERBS, Answer
from verbs_adapters.contract.verb import DEVICE

_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_FAILURE = re.compile(r"E[A-Z0-9]+|[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_MAX_NAT = 2**64 - 1


def _is_nat(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_NAT


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_flags(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _list_of(*keys: str) -> Callable[[object], bool]:
    """A predicate: a list of objects that have exactly these keys, each a nat."""

    def is_list(value: object) -> bool:
        return isinstance(value, (list, tuple)) and all(
            isinstance(element, Mapping) and element.keys() == set(keys) and all(map(_is_nat, element.values()))
            for element in value
        )

    return is_list


_IS: dict[str, Callable[[object], bool]] = {
    "handle": lambda value: _is_nat(value) and value != 0,
    "handle?": _is_nat,
    "nat": _is_nat,
    "bool": lambda value: type(value) is bool,
    "text": _is_text,
    "flags": _is_flags,
    "hex": lambda value: type(value) is str and _HEX.fullmatch(value) is not None,
    "nats": lambda value: isinstance(value, (list, tuple)) and all(map(_is_nat, value)),
    "sges": _list_of("addr", "length", "lkey"),
    "sg": _list_of("addr", "length"),
}
"""Each type of the contract, with its test."""

_MEANING = {
    "handle": "an integer from 1 to 2**64-1",
    "handle?": "an integer from 0 to 2**64-1",
    "nat": "an integer from 0 to 2**64-1",
    "bool": "true or false",
    "text": "a string",
    "flags": "a list of strings without repeats",
    "hex": "a string of lower-case hexadecimal digits, two for each byte",
    "nats": "a list of integers from 0 to 2**64-1",
    "sges": "a list of objects with the integers addr, length and lkey",
    "sg": "a list of objects with the integers addr and length",
}


def _wrong_value(what: str, name: str, kind: str, value: object) -> str:
    return f"{what} `{name}` is {clip(repr(value))} where the contract has {_MEANING[kind]} ({kind})"


def clip(text: str, size: int = 200) -> str:
    """`text`, its middle left out if it is long."""
    if len(text) <= size:
        return text
    return f"{text[: size // 2]} ...({len(text)} characters)... {text[-size // 4 :]}"


def wrong_arguments(verb: str, args: Mapping[str, Any]) -> str | None:
    """What keeps `args` from being arguments of `verb`, or None.

    An argument may be absent: it is optional, or a work request of this opcode does not need it.
    """
    shape = VERBS.get(verb)
    if shape is None:
        return f"`{verb}` is not a verb of the contract"
    for name, value in args.items():
        kind = shape.params.get(name)
        if kind is None:
            return f"`{verb}` has no parameter `{name}`; it has: {', '.join(shape.params) or 'none'}"
        if not _IS[kind](value):
            return _wrong_value(f"of `{verb}` the argument", name, kind, value)
    return None


def of_contract(args: Mapping[str, Any], verb: str) -> int:
    """The minor version of the contract that a call needs: optional parameters came with 1.1."""
    return 0 if VERBS[verb].optional.isdisjoint(args) else 1


def wrong_answer(verb: str, answer: Answer) -> str | None:
    """What keeps `answer` from being an answer to `verb`, or None."""
    if answer.result == OK:
        return _wrong_outputs(verb, answer.out)
    if not _FAILURE.fullmatch(answer.result):
        return f"the result is {clip(repr(answer.result))}, neither '0' nor the name of an errno or of an API's status"
    if answer.out:
        return f"a call that failed ({answer.result}) has no outputs, here: {', '.join(answer.out)}"
    return None


def _wrong_outputs(verb: str, out: Mapping[str, Any]) -> str | None:
    shape = VERBS[verb]
    absent = {name for name, decides in shape.sometimes.items() if decides and out.get(decides) == 0}
    expected = {name: kind for name, kind in shape.out.items() if name not in absent}
    for name, kind in expected.items():
        if name not in out:
            if shape.sometimes.get(name) == DEVICE:
                continue
            return f"the output `{name}` is missing; `{verb}` has the outputs: {', '.join(expected)}"
        if not _IS[kind](out[name]):
            return _wrong_value("the output", name, kind, out[name])
    if extra := out.keys() - expected.keys():
        return f"unknown outputs: {', '.join(sorted(extra))}; `{verb}` has: {', '.join(expected) or 'none'}"
    return None
