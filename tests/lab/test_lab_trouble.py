"""A guest that goes wrong ends one program with the right verdict, and the next one has a fresh guest."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import slices

from verbs_adapters import registry
from verbs_adapters.contract import Answer, Backend, Trouble
from verbs_adapters.remote.client import RemoteBackend

AGENT = Path(__file__).parent / "agents" / "moody_guest.py"
DEADLINE = 6.0

TROUBLES: list[tuple[str, dict[str, int], str, str, str]] = [
    ("create_cq", {"cqe": 1}, "crash", "backend", "Kernel panic - not syncing: sysrq triggered crash"),
    ("free_buffer", {"buf": 1}, "hang", "glue", "busy with itself"),
    ("settle", {}, "garbage", "glue", "not JSON"),
]
if slices.EVERYTHING:
    TROUBLES += [
        ("destroy_cq", {"cq": 1}, "crash", "backend", "BUG: KASAN: slab-use-after-free"),
        ("alloc_buffer", {"length": 1}, "hang", "backend", "the agent's call does not come back"),
        ("dealloc_pd", {"pd": 1}, "crash", "glue", "ended with status 3"),
    ]


@pytest.fixture(scope="module")
def moody() -> Iterator[Backend]:
    """A guest with the moody agent in it."""
    backend = registry.create("lab", {"agent": str(AGENT), "deadline": f"{DEADLINE:g}"})
    backend.hello()
    yield backend
    backend.close()


def works(backend: Backend) -> bool:
    """Whether a fresh guest answers."""
    assert backend.reset(1) is None
    answer = backend.call("alloc_pd", {})
    return isinstance(answer, Answer) and answer.result == "0"


@pytest.mark.parametrize(("verb", "args", "kind", "whose", "said"), TROUBLES, ids=[t[0] for t in TROUBLES])
def test_trouble_is_noticed_in_seconds_and_the_next_guest_is_fresh(
    moody: Backend, verb: str, args: dict[str, int], kind: str, whose: str, said: str
) -> None:
    assert works(moody)
    began = time.monotonic()

    trouble = moody.call(verb, args)

    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == (kind, whose)
    assert said in trouble.message
    assert time.monotonic() - began < 3 * DEADLINE + 5
    if whose == "backend":
        assert "console:" in trouble.evidence
    assert works(moody)


def test_a_machine_that_somebody_ends_is_no_fault_of_the_device(moody: Backend) -> None:
    assert works(moody)
    assert isinstance(moody, RemoteBackend)
    for pid in slices.descendants(os.getpid()):
        if slices.is_guest(pid):
            os.kill(pid, signal.SIGKILL)

    trouble = moody.call("alloc_pd", {})

    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == ("crash", "glue")
    assert "the guest is gone" in trouble.message
    assert works(moody)


@pytest.mark.skipif(not slices.EVERYTHING, reason="half a minute of nothing: tox -e lab-all")
def test_a_guest_that_the_host_held_up_is_not_in_trouble(moody: Backend) -> None:
    """Longer than the 20 seconds after which a kernel calls it a stall."""
    assert works(moody)
    guests = [pid for pid in slices.descendants(os.getpid()) if slices.is_guest(pid)]
    assert guests
    for pid in guests:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(25)
    for pid in guests:
        os.kill(pid, signal.SIGCONT)

    for _ in range(5):  # a stall is told within a few ticks
        assert works(moody)
