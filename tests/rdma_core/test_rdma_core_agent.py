"""The agent's own machinery, on a libibverbs that is ours: real devices are for the lab.

What is tested: that arguments and errnos go through unchanged, that a call that blocks or crashes costs that program
only, that nothing is left behind, and that whatever is missing is said.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdma_core_rig import Open, do, fails, fake_library

from verbs_adapters import registry
from verbs_adapters.contract import AdapterError, Event, Trouble, UsageError
from verbs_adapters.rdma_core import adapter
from verbs_adapters.remote import messages
from verbs_adapters.remote.checker import Checker
from verbs_adapters.remote.child import Child, ChildPeer
from verbs_adapters.remote.client import RemoteBackend

ACCESS = ["LOCAL_WRITE", "REMOTE_WRITE"]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_library(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def fake(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Make the adapter; its agent finds the fake library."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    made = []

    def open_(**options: str) -> RemoteBackend:
        backend = registry.create("rdma-core", {"deadline": "60"} | options)
        assert isinstance(backend, RemoteBackend)
        made.append(backend)
        return backend

    yield open_
    for backend in made:
        backend.close()


def worker(backend: RemoteBackend) -> int:
    """The process that makes the calls."""
    assert isinstance(backend._link, Child)
    pid = backend._link.pid
    (found,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
    return found


def test_hello_tells_the_device(fake: Open) -> None:
    hello = fake().hello()
    assert (hello.name, hello.device, hello.firmware) == ("rdma-core", "fake0", "1.2.3")
    assert (hello.api, hello.transport) == (("linux-user",), ("roce",))
    assert (hello.limits["max_qp_wr"], hello.limits["max_mr_size"]) == (64, 2**64 - 1)
    assert hello.limits["phys_port_cnt"] == 1


def test_a_message(fake: Open) -> None:
    backend = fake()
    assert backend.reset(1) is None
    pd = do(backend, "alloc_pd")
    assert pd["local_dma_lkey"] == 0
    cq = do(backend, "create_cq", cqe=8)
    assert cq["cqe_actual"] == 9
    queues = {"pd": pd["pd"], "send_cq": cq["cq"], "recv_cq": cq["cq"], "max_send_wr": 4, "max_recv_wr": 4}
    one, other = (do(backend, "create_qp", **queues) for _ in range(2))
    assert one["max_send_wr_actual"] == 7
    for state in ("RTS", "UNKNOWN", "SOUTH"):
        assert fails(backend, "modify_qp", qp=one["qp"], state=state, access=[]) == "EINVAL"
    for state in ("INIT", "RTR", "RTS"):
        for qp, peer in ((one, other), (other, one)):
            do(backend, "modify_qp", qp=qp["qp"], state=state, peer=peer["qp"], access=ACCESS)
    assert do(backend, "query_qp", qp=one["qp"]) == {"state": "RTS"}
    do(backend, "post_recv", qp=other["qp"], wr_id=2**64 - 1, sg_list=[])
    send = {"qp": one["qp"], "wr_id": 7, "opcode": "SEND", "signaled": True, "fence": False, "sg_list": []}
    do(backend, "post_send", **send)
    do(backend, "settle")
    seen = [do(backend, "poll_cq", cq=cq["cq"]) for _ in range(3)]
    assert [(w.get("wr_id"), w.get("opcode"), w.get("qp_num")) for w in seen] == [
        (2**64 - 1, "RECV", other["qp_num"]),
        (7, "SEND", one["qp_num"]),
        (None, None, None),
    ]
    do(backend, "modify_qp", qp=one["qp"], state="SQD", access=[])
    do(backend, "settle")
    assert backend.events() == [Event("SQ_DRAINED", {"qp_num": one["qp_num"]})]


def test_errnos_come_as_the_library_gave_them(fake: Open) -> None:
    backend = fake()
    backend.reset(1)
    assert fails(backend, "create_cq", cqe=15) == "ENOSPC"
    assert fails(backend, "create_cq", cqe=0) == "EINVAL"
    pd = do(backend, "alloc_pd")["pd"]
    buffer = do(backend, "alloc_buffer", length=100)
    place = {"pd": pd, "addr": buffer["addr"], "length": 100}
    assert fails(backend, "reg_mr", **place, access=["REMOTE_WRITE"]) == "EINVAL"
    mr = do(backend, "reg_mr", **place, access=ACCESS)
    assert mr["rkey"] == mr["lkey"] - 0x100 + 0x80000000
    assert fails(backend, "dealloc_pd", pd=pd) == "EBUSY"
    do(backend, "dereg_mr", mr=mr["mr"])
    do(backend, "dealloc_pd", pd=pd)
    assert fails(backend, "dealloc_pd", pd=pd) == "EINVAL"


def test_what_no_c_call_could_say_is_refused_by_the_agent(fake: Open) -> None:
    backend = fake()
    backend.reset(1)
    assert fails(backend, "create_cq", cqe=2**31) == "EINVAL"
    assert fails(backend, "alloc_mr", pd=1, max_num_sg=1) == "EOPNOTSUPP"
    pd = do(backend, "alloc_pd")["pd"]
    assert fails(backend, "reg_mr", pd=pd, addr=0, length=1, access=["TELEPORT"]) == "EINVAL"
    assert fails(backend, "reg_mr", pd=pd + 1, addr=0, length=1, access=[]) == "EINVAL"


def test_buffers_are_memory(fake: Open) -> None:
    backend = fake()
    backend.reset(1)
    one, other = (do(backend, "alloc_buffer", length=70_000) for _ in range(2))
    assert one["addr"] % 65536 == 0
    assert abs(one["addr"] - other["addr"]) > 70_000
    assert do(backend, "read_buffer", buf=one["buf"], offset=69_990, length=10)["data"] == "00" * 10
    do(backend, "write_buffer", buf=one["buf"], offset=69_998, data="abcd")
    assert do(backend, "read_buffer", buf=one["buf"], offset=69_996, length=4)["data"] == "0000abcd"
    assert fails(backend, "write_buffer", buf=one["buf"], offset=69_999, data="abcd") == "EINVAL"
    assert fails(backend, "alloc_buffer", length=2**60) == "ENOMEM"
    do(backend, "free_buffer", buf=one["buf"])
    assert fails(backend, "read_buffer", buf=one["buf"], offset=0, length=1) == "EINVAL"


def test_behind_a_buffer_there_is_no_page_even_for_the_kernel(fake: Open) -> None:
    backend = fake()
    backend.reset(1)
    buffer = do(backend, "alloc_buffer", length=5000)
    # Like a registration for reading, /proc/PID/mem looks behind the protection of a page (FOLL_FORCE).
    with open(f"/proc/{worker(backend)}/mem", "rb", buffering=0) as memory:
        assert os.pread(memory.fileno(), 1, buffer["addr"] + 5000) == b"\0"
        with pytest.raises(OSError, match="Input/output error"):
            os.pread(memory.fileno(), 1, buffer["addr"] + 8192)


def test_a_reset_forgets_everything(fake: Open) -> None:
    backend = fake()
    backend.reset(1)
    buffer = do(backend, "alloc_buffer", length=1)
    assert backend.reset(2) is None
    assert fails(backend, "free_buffer", buf=buffer["buf"]) == "EINVAL"


def trouble_of(backend: RemoteBackend, cqe: int) -> Trouble:
    assert backend.reset(1) is None
    trouble = backend.call("create_cq", {"cqe": cqe})
    assert isinstance(trouble, Trouble)
    return trouble


def test_a_call_that_blocks_is_the_device_s_hang(fake: Open) -> None:
    backend = fake(deadline="2")
    trouble = trouble_of(backend, 13)
    assert (trouble.kind, trouble.whose) == ("hang", "backend")
    assert "`create_cq` did not return within 1.6 s" in trouble.message
    assert "/proc/PID/status: Name:" in trouble.evidence
    assert backend.reset(1) is None
    assert do(backend, "create_cq", cqe=8)["cqe_actual"] == 9


def test_a_crash_in_the_library_is_the_device_s(fake: Open) -> None:
    backend = fake()
    trouble = trouble_of(backend, 14)
    assert (trouble.kind, trouble.whose) == ("crash", "backend")
    assert "was killed by SIGABRT during `create_cq`" in trouble.message
    assert backend.reset(1) is None


def test_after_a_trouble_the_agent_itself_goes_on(fake: Open) -> None:
    # The harness ends an agent that told a trouble; another one need not.
    peer = ChildPeer(adapter.command_line({}, 60.0), None, messages.MAX_LINE, preamble=adapter.preamble())
    fake()
    child = peer.open(0.0)
    try:
        for number, request in enumerate(
            ('"op":"reset","seed":1', '"op":"call","verb":"create_cq","args":{"cqe":14}', '"op":"reset","seed":1'), 1
        ):
            child.send(b'{"id":%d,%s}\n' % (number, request.encode()))
            line = child.receive(time.monotonic() + 60)
            assert isinstance(line, bytes)
            reply = messages.decode_reply(line)
            assert reply.id == number
            assert isinstance(reply.trouble, Trouble) is (number == 2)
    finally:
        child.end()


def test_nothing_is_left_when_the_agent_is_killed(fake: Open) -> None:
    backend = fake()
    assert backend.reset(1) is None
    assert isinstance(backend._link, Child)
    watch = os.pidfd_open(worker(backend))
    try:
        os.kill(backend._link.pid, signal.SIGKILL)
        assert select.select([watch], [], [], 10)[0]
    finally:
        os.close(watch)
    assert isinstance(backend.call("settle", {}), Trouble)


def test_the_agent_keeps_to_the_protocol(fake: Open) -> None:
    fake()
    command = adapter.command_line({"device": "fake0"}, 60.0)
    peer = ChildPeer(command, None, messages.MAX_LINE, preamble=adapter.preamble())
    findings = list(Checker(peer, 60.0, 60.0).run())
    assert [finding for finding in findings if not finding.passed] == []
    assert len(findings) > 40


def test_through_a_shell_elsewhere(fake: Open, tmp_path: Path) -> None:
    remote = tmp_path / "ssh"
    remote.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n', encoding="ascii")
    remote.chmod(remote.stat().st_mode | stat.S_IXUSR)
    backend = fake(agent=f"{remote} host", device="fake0", port="1", gid_index="1")
    assert backend.hello().device == "fake0"
    assert fake(agent="env A=b").hello().device == "fake0"


@pytest.mark.parametrize(
    ("devices", "options", "words"),
    [
        ("0", {}, ["devices found: none", "rdma link add", "-o agent='ssh HOST'"]),
        ("2", {}, ["several RDMA devices", "`-o device=NAME`: fake0, fake1"]),
        ("2", {"device": "mlx5_0"}, ["no RDMA device is called `mlx5_0`; devices found: fake0, fake1"]),
        ("1", {"port": "2"}, ["has the ports 1 to 1, not 2"]),
        ("1", {"gid_index": "0"}, ["has no GID with index 0 (indices found: 1)"]),
        ("1", {"python": "no-such-python"}, ["cannot start `no-such-python -u -c (the rdma-core agent)"]),
    ],
)
def test_what_is_missing_is_said(
    fake: Open, monkeypatch: pytest.MonkeyPatch, devices: str, options: dict[str, str], words: list[str]
) -> None:
    monkeypatch.setenv("FAKE_DEVICES", devices)
    with pytest.raises(AdapterError) as error:
        fake(**options).hello()
    for part in words:
        assert part in str(error.value)


def test_one_of_several_is_chosen(fake: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DEVICES", "2")
    assert fake(device="fake1").hello().device == "fake1"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"color": "red"}, "has no option 'color'. Known: device, port"),
        ({"port": "x"}, "`port=x` is not a number from 0 to 255"),
        ({"python": ""}, "`python` is empty"),
        ({"agent": "'"}, "`agent` cannot be split"),
        ({"settle": "-1"}, "is not a time"),
    ],
)
def test_options_are_checked(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        registry.create("rdma-core", options)
