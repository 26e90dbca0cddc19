"""An agent behind a socket or a serial port is as good as a child, and is connected anew after trouble."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from verbs_adapters import registry
from verbs_adapters.contract import AdapterError, Answer, Event, EventSource, Trouble, UsageError
from verbs_adapters.remote import messages, streams
from verbs_adapters.remote.client import RemoteBackend

BACKENDS = Path(__file__).parent.parent / "backends"
PD = Answer("0", {"pd": 1, "local_dma_lkey": 0})

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run() -> Iterator[Run]:
    """Run one of the scripts and wait for its first line; it is ended with the test."""
    running = []

    def start(script: str, *args: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(BACKENDS / f"{script}.py"), *args]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def _backend(address: str, deadline: float = 30.0) -> RemoteBackend:
    return RemoteBackend(streams.peer(address, messages.MAX_LINE), deadline=deadline)


def _works(backend: RemoteBackend) -> None:
    assert backend.hello().name == "toy"
    assert backend.reset(7) is None
    assert backend.call("alloc_pd", {}) == PD
    assert backend.batch([("settle", {}), ("create_cq", {"cqe": 1})]) == [Answer("0"), Answer("ENOSYS")]


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_socket_is_connected_anew_after_it_was_reset(run: Run, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    run("listens", kind, str(place))
    address = f"unix:{place}" if kind == "unix" else f"tcp:127.0.0.1:{place.read_text()}"
    backend = _backend(address)
    _works(backend)
    trouble = backend.reset(13)
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == ("crash", "backend")
    assert f"The agent at {address} closed the connection before it answered request 5 (reset)" in trouble.message
    assert f"command: {address}" in trouble.evidence
    _works(backend)
    backend.close()
    second = registry.create("process", {"connect": address})
    assert second.hello().name == "toy"
    second.close()


def test_an_agent_that_comes_back_is_waited_for(run: Run, tmp_path: Path) -> None:
    first = run("listens", "unix", str(tmp_path / "a"))
    backend = _backend(f"unix:{tmp_path / 'a'}")
    _works(backend)
    first.kill()
    first.wait()
    assert isinstance(backend.call("settle", {}), Trouble)
    (tmp_path / "a").unlink()
    later = threading.Timer(0.2, run, ["listens", "unix", str(tmp_path / "a")])
    later.start()
    _works(backend)
    backend.close()
    later.join()


def test_where_nobody_listens_it_says_so(tmp_path: Path) -> None:
    for address in (f"unix:{tmp_path}/nobody", "tcp:127.0.0.1:1"):
        with pytest.raises(AdapterError, match=f"cannot connect to {address}: .*Start the agent there first"):
            _backend(address).hello()
    with pytest.raises(AdapterError, match=r"cannot open .*/nobody: No such file"):
        _backend(f"serial:{tmp_path}/nobody").hello()


@pytest.mark.parametrize(
    "address", ["", "unix:", "serial:", "tcp:host", "tcp:host:x", "tcp::5", "tcp:h:99999", "usb:1"]
)
def test_an_address_is_one_of_the_known_forms(address: str) -> None:
    with pytest.raises(
        AdapterError, match="is no address of an agent; known forms: unix:/PATH, tcp:HOST:PORT, serial:"
    ):
        streams.peer(address, messages.MAX_LINE)


def test_a_serial_port_is_cleared_of_what_an_earlier_conversation_left(run: Run) -> None:
    master, slave = os.openpty()
    try:
        # The agent has the terminal's one side; we open the other by name as a user would /dev/ttyS0.
        name = os.ttyname(slave)
        forward = _Wire(master)
        run("serial", forward.name)
        backend = _backend(f"serial:{name}", deadline=60.0)
        with forward:
            _works(backend)
            backend.deadline = 0.2
            trouble = backend.reset(13)
            assert isinstance(trouble, Trouble)
            assert trouble.kind == "hang"
            assert "the connection was closed" in trouble.message
            backend.deadline = 60.0
            _works(backend)
            backend.close()
    finally:
        os.close(master)
        os.close(slave)


class _Wire:
    """A null-modem cable: a second terminal whose bytes go to and fro a descriptor, while it is entered."""

    def __init__(self, descriptor: int) -> None:
        self._other = descriptor
        self._own, self._slave = os.openpty()
        self.name = os.ttyname(self._slave)

    def __enter__(self) -> None:
        code = (
            "import os, select, sys\n"
            "a, b = map(int, sys.argv[1:])\n"
            "while True:\n"
            "    for fd in select.select([a, b], [], [])[0]:\n"
            "        os.write(b if fd == a else a, os.read(fd, 65536))\n"
        )
        ends = (self._other, self._own)
        self._process = subprocess.Popen([sys.executable, "-c", code, *map(str, ends)], pass_fds=ends)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)
        os.close(self._slave)


def test_events_are_queued_until_they_are_collected() -> None:
    backend = RemoteBackend([sys.executable, str(BACKENDS / "pushes.py")], deadline=60.0)
    assert isinstance(backend, EventSource)
    assert backend.reset(1) is None
    assert backend.events() == []
    assert backend.call("alloc_pd", {}) == PD
    assert backend.events() == [Event("QP_FATAL", {"number": 1}), Event("QP_FATAL", {"number": 2})]
    assert backend.events() == []
    trouble = backend.call("alloc_pd", {})
    assert isinstance(trouble, Trouble)
    assert 'event: QP_FATAL {"number":3}' in trouble.evidence
    backend.close()


def test_process_takes_a_command_or_an_address() -> None:
    for options in ({}, {"command": "x", "connect": "unix:/x"}):
        with pytest.raises(UsageError, match=r"needs either `-o command=.*` or `-o connect=ADDRESS`"):
            registry.create("process", options)
