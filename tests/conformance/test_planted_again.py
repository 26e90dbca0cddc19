"""Further sets of faults planted by people who have not seen the specification.

When the second and the third set were planted the programs as they stood missed five of the eleven.  The sweep's
continuations, wider menus and the fixtures ``offset`` and ``failed`` came of it; none of them was made for one fault.
The fourth set was planted then: the programs as they stood caught all five.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import planted_fourth
import planted_second
import planted_third
import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.program import Program
from verbs_conformance.sweep import Sweep

PLANTED = {**planted_second.PLANTED, **planted_third.PLANTED, **planted_fourth.PLANTED}

TRIED = {
    "map-offset-skips-no-page": "sweep/offset/post_recv-*",
    "dma-key-works-remotely": "sweep/continued/post_write-*",
    "invalidate-rkey-from-handle": "sweep/neighbour/post_recv+post_send_with_inv+*",
    "flushed-registration-takes-effect": "sweep/failed/post_reg_mr-*",
    "destroyed-qp-still-answers": "sweep/abroad/post_read-*",
    "short-receive-fails-alone": "sweep/stranger/post_recv-*",
    "registration-takes-byte-only": "reg/foreign*",
    "remote-offset-in-32-bits": "sweep/offset/post_write-*",
    "invalidate-flag-sticks": "sweep/neighbour/post_write-*",
    "flush-starts-one-too-late": "sweep/neighbour/post_write-*",
    "receives-survive-reset": "sweep/neighbour/post_write-*",
    "cq-use-is-a-flag": "sweep/*/create_qp-*",
    "pages-read-from-handle": "regress/map-does-not-move-valid",
    "inv-fence-waits-for-sending-only": "regress/invalidation-waits-for-execution",
    "empty-send-inv-keeps-key": "regress/remote-invalidation-ends-access",
    "qp-rights-only-grow": "sweep/inside/write_buffer-1",
}
"""The programs that are tried here, of the many that find the fault: for the sake of time."""


@cache
def _engine() -> Engine:
    return target.engine("linux-kernel", "roce")


@cache
def _programs() -> tuple[Program, ...]:
    shipped = (p for p in programs.shipped("programs") if p.applies("linux-kernel", "roce") and not p.feature)
    return (*shipped, *Sweep(_engine(), programs.fixtures()).programs())


def _judge() -> Judge:
    backend = SoftHca({})
    return Judge(_engine(), backend, backend.hello(), programs.fixtures())


def test_each_fault_has_programs() -> None:
    assert TRIED.keys() == PLANTED.keys()


@pytest.mark.parametrize("name", TRIED)
def test_planted_fault_is_caught(name: str) -> None:
    tried = [p for p in _programs() if fnmatchcase(p.name, TRIED[name])]
    with PLANTED[name][0]():
        judge = _judge()
        found = next((p for p in tried if judge.run(p, 1).broken), None)

    assert found is not None, PLANTED[name][1]
    assert not _judge().run(found, 1).broken, "the program blames a device without a fault"
