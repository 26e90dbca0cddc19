"""Two agents, each on a libibverbs that is ours: what is told of the two sides, and what comes of one that dies.

That library carries no messages from one process to another; real ones are for the lab.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rdma_core_rig import do, fake_library

from verbs_adapters import registry
from verbs_adapters.contract import AdapterError, Answer, Trouble, UsageError
from verbs_adapters.rdma_core import adapter
from verbs_adapters.remote.child import Child
from verbs_adapters.remote.client import RemoteBackend
from verbs_adapters.two import path
from verbs_adapters.two.backend import TwoSides

FIRST, SECOND = "on the first side: ", "on the second side: "


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_library(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def two(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoSides]:
    """Two devices of this machine, both reset."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("FAKE_DEVICES", "2")
    backend = registry.create("rdma-core", {"device": "fake0", "peer_device": "fake1", "deadline": "60"})
    assert isinstance(backend, TwoSides)
    with closing(backend):
        assert backend.reset(1) is None
        yield backend


def pair(backend: TwoSides, hca: int) -> dict[str, Any]:
    """A queue pair of a device, in INIT."""
    pd, cq = do(backend, "alloc_pd", hca=hca)["pd"], do(backend, "create_cq", cqe=8, hca=hca)["cq"]
    qp = do(backend, "create_qp", pd=pd, send_cq=cq, recv_cq=cq, max_send_wr=4, max_recv_wr=4)
    do(backend, "modify_qp", qp=qp["qp"], state="INIT", access=[])
    return qp


def test_what_two_devices_call_alike_is_told_apart(two: TwoSides) -> None:
    one, other = pair(two, 1), pair(two, 2)

    assert one["qp"] != other["qp"]
    assert one["qp_num"] != other["qp_num"]


def test_queue_pairs_are_connected_across(two: TwoSides) -> None:
    one, other = pair(two, 1), pair(two, 2)
    for qp, peer in ((one, other), (other, one)):
        do(two, "modify_qp", qp=qp["qp"], state="RTR", peer=peer["qp"], access=[])
        do(two, "modify_qp", qp=qp["qp"], state="RTS", access=[])
        assert do(two, "query_qp", qp=qp["qp"]) == {"state": "RTS"}
    do(two, "destroy_qp", qp=other["qp"])
    do(two, "modify_qp", qp=one["qp"], state="RESET", access=[])
    do(two, "modify_qp", qp=one["qp"], state="INIT", access=[])
    assert two.call("modify_qp", {"qp": one["qp"], "state": "RTR", "peer": other["qp"], "access": []}) == Answer(
        "EINVAL"
    )


def test_two_that_cannot_reach_each_other_are_not_judged(two: TwoSides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "PATIENCE", 0.5)
    with pytest.raises(AdapterError, match=r"of fake0 and one of fake1 cannot talk to each other.*`peer_gid_index`"):
        two.hello()


@pytest.mark.parametrize(("hca", "where"), [(1, FIRST), (2, SECOND)])
def test_a_crash_is_told_with_its_side_and_the_other_goes_on(two: TwoSides, hca: int, where: str) -> None:
    trouble = two.call("create_cq", {"cqe": 14, "hca": hca})

    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == ("crash", "backend")
    assert trouble.message.startswith(where)
    assert "SIGABRT" in trouble.message
    do(two, "create_cq", cqe=8, hca=3 - hca)
    assert two.reset(2) is None
    pair(two, hca)


@pytest.mark.parametrize(("hca", "where"), [(1, FIRST), (2, SECOND)])
def test_an_agent_that_is_killed_is_the_glues_fault(two: TwoSides, hca: int, where: str) -> None:
    side = two._sides[hca - 1]
    assert isinstance(side, RemoteBackend)
    assert isinstance(side._link, Child)
    pid = side._link.pid
    (worker,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
    watch = os.pidfd_open(worker)
    os.kill(pid, signal.SIGKILL)
    assert select.select([watch], [], [], 10)[0], "the process that makes the calls outlives its supervisor"
    os.close(watch)

    trouble = two.call("alloc_pd", {"hca": hca})

    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == ("crash", "glue")
    assert trouble.message.startswith(where)
    assert two.reset(2) is None
    pair(two, hca)


def test_the_twin_of_an_option_is_the_second_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(adapter, "one_side", seen.append)
    given = {"device": "a", "port": "2", "gid_index": "3", "agent": "ssh one", "settle": "1"}
    adapter.rdma_core({**given, "peer_device": "b"})
    adapter.rdma_core({**given, "peer_agent": "", "peer_gid_index": "4"})

    assert seen == [
        given,
        {"device": "b", "agent": "ssh one", "settle": "1"},
        given,
        {"gid_index": "4", "agent": "", "settle": "1"},
    ]


def test_options_of_the_second_side_are_checked() -> None:
    with pytest.raises(UsageError, match="did you mean 'peer_device'"):
        registry.create("rdma-core", {"peer_divice": "b"})
    with pytest.raises(UsageError, match="`port=x` is not a number"):
        registry.create("rdma-core", {"peer_port": "x"})
