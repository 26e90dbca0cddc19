"""Options of adapters, ``-o KEY=VALUE``: text in, values out, or an error that says what is known."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

from verbs_adapters.contract import UsageError
from verbs_adapters.remote.troubles import Whose


def check_known(adapter: str, options: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse an option that the adapter does not have."""
    for key in options:
        if key not in known:
            raise UsageError.unknown(f"the adapter `{adapter}`", "option", key, known)


def seconds(options: Mapping[str, str], key: str, default: float) -> float:
    """A time."""
    text = options.get(key)
    if text is None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (0 < found < math.inf):
        raise UsageError(f"`{key}={text}` is not a time: give a positive number of seconds, like `{key}=2.5`")
    return found


def number(options: Mapping[str, str], key: str, most: int) -> int | None:
    """A number from 0 on, None if it is not given."""
    text = options.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise UsageError(f"`{key}={text}` is not a number from 0 to {most}")
    return int(text)


def words(options: Mapping[str, str], key: str) -> list[str]:
    """A command, split as a shell would."""
    try:
        return shlex.split(options.get(key, ""))
    except ValueError as error:
        raise UsageError(f"`{key}` cannot be split into words as a shell would: {error}") from error


_WHOSE: dict[str, Whose] = {"backend": "backend", "glue": "glue"}


def whose(options: Mapping[str, str], default: Whose) -> Whose:
    """Who is to blame if no answer comes."""
    text = options.get("blame", default)
    if text not in _WHOSE:
        raise UsageError.unknown("the option `blame`", "value", text, _WHOSE)
    return _WHOSE[text]
