"""The shape of a verb: what it takes and what it gives.

Theory of operation
-------------------
Shapes are there so that values can be checked where they cross; what a correct device answers is the specification's.
Two things of a verb may be absent:

* an *optional* parameter: the verb then does what it did before the contract had it, or takes the adapter's usual
  value, as its sentence says;
* an output that is there *sometimes*.  Mostly another output decides (`n`, whether something was found at all).
"""

from __future__ import annotations

import msgspec


class Verb(msgspec.Struct, frozen=True):
    """The shape of one verb: parameter and output types by name, and one sentence.

    Types: ``handle`` (an object), ``handle?`` (0 for none), ``nat`` (0 to 2**64-1), ``bool``, ``text``
    (an enumerator), ``flags`` (a list of enumerators without repeats), ``hex`` (bytes), ``nats``,
    ``sges`` (a list of ``{"addr", "length", "lkey"}``), ``sg`` (a list of ``{"addr", "length"}``).

    ``optional`` names the parameters that may be absent in every call.  ``sometimes`` names the outputs that are not
    always there, each with the output that decides: it is there exactly if that one is not 0; :data:`DEVICE` stands
    for what `doc` says.
    """

    params: dict[str, str]
    out: dict[str, str]
    doc: str
    optional: frozenset[str] = frozenset()
    sometimes: dict[str, str] = {}


DEVICE = ""
"""No single output decides whether another is there."""


def named(kind: str, names: str) -> dict[str, str]:
    """Some parameters or outputs of one type."""
    return dict.fromkeys(names.split(), kind)
