"""A requester on one soft-RoCE device and a responder on another, in one guest: user verbs, an agent for each.

What the driver does wrong with one device it does wrong with two; nothing else may fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import slices
import two_devices

from verbs_conformance.run import Run, Settings
from verbs_conformance.target import engine
from verbs_reports.results import Results, read

API, TRANSPORT = "linux-user", "roce"
ALL = tuple(word for word in slices.NO_SWEEP if word != "--select")
SOME = (
    *("sq/*", "rq/*", "send/*", "write/*", "read/*", "rdma/*", "cq/poll-*"),
    *("regress/user-queue-pair-forbids-*", "regress/user-behind-a-failure", "regress/user-key-after-dereg"),
)
"""What is judged in minutes; each of the driver's differences but two shows in it."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One run of the directed and regression programs, or of some of them."""
    out = tmp_path_factory.mktemp("two")
    return run(out)


def run(out: Path) -> Results:
    backend = two_devices.backend(out)
    try:
        select = ALL if slices.EVERYTHING else SOME
        settings = Settings(API, TRANSPORT, budget=0, rounds=1, select=select, out=out, adapter="two soft-RoCE devices")
        Run(engine(API, TRANSPORT), backend, backend.hello(), settings).execute()
    finally:
        backend.close()
    return read(out / "results.jsonl")


def test_two_devices_are_judged(results: Results) -> None:
    assert results.footer is not None
    assert results.header.devices == 2
    assert results.header.device.device == "rxe0 and rxe1"
    assert [p.trouble.message for p in results.programs if p.trouble is not None] == []


def test_most_programs_run_on_both(results: Results) -> None:
    both = {p.name for p in results.programs if not p.alone}
    objects = {name.split("/")[0] for name in both}

    assert len(both) > (150 if slices.EVERYTHING else 20)
    assert {"sq", "send", "write", "read", "rdma", "regress"} <= objects


def test_the_driver_differs_as_it_does_with_one_device(results: Results) -> None:
    differences = slices.known("rxe_6_1_user")
    failing = {p.name for p in results.programs if p.verdict in {"fail", "error", "inconclusive"}}
    may = slices.known("rxe_6_1_two")
    explained = {program for programs in (*differences.values(), *may.values()) for program in programs}

    assert failing - explained == set()
    ran = {p.name for p in results.programs}
    for difference, programs in differences.items():
        assert failing & set(programs) or not ran & set(programs), f"{difference} does not show"


def test_messages_between_the_two_are_judged(results: Results) -> None:
    fired = {rule for p in results.programs if not p.alone for rule in p.fired}

    assert {"send/done", "write/done", "read/done", "rdma/refused", "sq/flush", "rq/flushed"} <= fired
