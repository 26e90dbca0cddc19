"""What is proved of each feature, alone and with those that it goes with (`tox -e proofs`, minutes)."""

from __future__ import annotations

import pytest

from verbs_reference.model import Model
from verbs_reference.proofs import prove
from verbs_spec import load, select
from verbs_spec.profiles import features

PATIENCE = 300.0
"""For one question, on a machine that does other things too."""
WHOLE = load()
BASE = {
    "memory-windows-2": ("memory-windows",),
    "unreliable-connection": ("unreliable-services",),
    "unreliable-datagram": ("unreliable-services",),
}
"""What a feature never goes without."""
TYPES = ("unreliable-connection", "unreliable-datagram", "xrc", "raw-packet")
TOGETHER = [
    ("completion-channels", "resize-cq"),
    ("asynchronous-events", "shared-receive-queues"),
    ("asynchronous-events", "qp-attributes"),
    ("qp-attributes", *TYPES),
    ("memory-windows", "rereg-mr"),
    ("memory-windows", "atomics"),
    ("shared-receive-queues", "immediate-data", "rnr"),
]
"""Features whose rules meet."""
SQE = {
    *(f"possible move/sqe-rts-{kind}" for kind in ("uc", "ud", "others")),
    "possible wr/post-send-stopped",
    "needed wr/post-send-stopped",
}
"""Dead where nothing leads to SQE, a state of unreliable-services alone."""
EVERY_TYPE = {"possible qp/modify-not-judged"}
"""Dead where every type is judged."""
NO_TYPE_2 = {"possible mw/alloc-no-type-2"}
"""Dead where the device has windows of type 2."""
KEYS = {f"inductive unique {field}" for field in ("mr.lkey", "mr.remote", "alias.lkey", "alias.remote")}
"""An old number of a region whose keys were changed may be another region's (docs/proofs.md)."""


def sets() -> list[tuple[str, tuple[str, ...]]]:
    """An API and features under which it has rules that it has not without them."""
    made = []
    for having in [*((each,) for each in features(WHOLE)), *TOGETHER]:
        group = tuple(dict.fromkeys(name for each in having for name in (*BASE.get(each, ()), each)))
        for api in ("linux-user", "linux-kernel"):
            bare, chosen = (select(WHOLE, api, "roce", names).rules for names in ((), group))
            if dict(chosen) != dict(bare):
                made.append((api, group))
    return made


@pytest.mark.parametrize(("api", "group"), sets(), ids=lambda each: each if isinstance(each, str) else "+".join(each))
def test_everything_is_proved_under(api: str, group: tuple[str, ...]) -> None:
    results = list(prove(Model(select(WHOLE, api, "roce", group)), seconds=PATIENCE))
    known = set() if "unreliable-services" in group else SQE
    known |= KEYS if "rereg-mr" in group else set()
    known |= EVERY_TYPE if set(TYPES) <= set(group) else set()
    known |= NO_TYPE_2 if "memory-windows-2" in group else set()
    assert {r.name: r.verdict for r in results if r.verdict != "proved" and r.name not in known} == {}
