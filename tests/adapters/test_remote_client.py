"""Whatever a child does wrong becomes a trouble that says so, and no process is left behind."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbs_adapters.contract import AdapterError, Answer, Backend, Trouble
from verbs_adapters.remote import messages
from verbs_adapters.remote.child import Child
from verbs_adapters.remote.client import RemoteBackend
from verbs_adapters.remote.replies import Asked, decode

BACKENDS = Path(__file__).parent.parent / "backends"
MARK = "VERBSPEC_TEST_CHILD"
PD = Answer("0", {"pd": 1, "local_dma_lkey": 0})

Start = Callable[..., RemoteBackend]


def _gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], 10)[0])
    finally:
        os.close(watch)


def _marked(mark: str) -> list[int]:
    """The processes that have the mark in their environment, which they inherit."""
    pids = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes():
                pids.append(int(environ.parent.name))
        except OSError:  # it ended meanwhile, or is somebody else's
            pass
    return pids


@pytest.fixture
def start() -> Iterator[Start]:
    """Make a backend of one of the scripts; at the end of the test no process may be left of any."""
    mark = f"{MARK}={uuid.uuid4()}"
    backends = []

    def make(script: str, *args: object, **options: Any) -> RemoteBackend:
        command = [sys.executable, str(BACKENDS / f"{script}.py"), *map(str, args)]
        environ = os.environ | dict([mark.split("=")])
        backend = RemoteBackend(command, env=environ, **({"deadline": 60.0} | options))
        backends.append(backend)
        return backend

    yield make
    for backend in backends:
        backend.close()
    _assert_no_child_is_left(mark)


def _assert_no_child_is_left(mark: str) -> None:
    with pytest.raises(ChildProcessError):  # not even a zombie
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert all(_gone(pid) for pid in _marked(mark))


def _reset(backend: RemoteBackend) -> None:
    """Reset a backend whose short deadline is meant for what follows, however busy the machine is."""
    deadline, backend.deadline = backend.deadline, 60.0
    assert backend.reset(1) is None
    backend.deadline = deadline


def _trouble_of_a_call(backend: RemoteBackend) -> Trouble:
    _reset(backend)
    trouble = backend.call("alloc_pd", {})
    assert isinstance(trouble, Trouble), trouble
    return trouble


def test_a_good_backend_is_a_backend(start: Start) -> None:
    backend = start("toy")
    assert isinstance(backend, Backend)
    assert backend.hello().name == "toy"
    assert backend.reset(7) is None
    assert backend.call("alloc_pd", {}) == PD
    assert backend.call("alloc_pd", {}) == Answer("0", {"pd": 2, "local_dma_lkey": 0})
    assert backend.call("create_cq", {"cqe": 1}) == Answer("ENOSYS")
    assert backend.reset(7) is None
    assert backend.call("alloc_pd", {}) == PD


SHORT = {"deadline": 0.2, "grace": 0.0}


class Wrong(NamedTuple):
    """A script with its arguments and options, and what is to be made of it."""

    script: list[object]
    options: dict[str, Any]
    kind: str
    whose: str
    words: list[str]


TROUBLES = [
    Wrong(["hangs"], SHORT, "hang", "backend", ["within 0.2 s; it was killed", "`-o deadline=SECONDS`"]),
    Wrong(["dies_at", 1], {}, "crash", "backend", ["exited with status 1 before", "call 1 is one too many"]),
    Wrong(["killed"], {}, "crash", "backend", ["was killed by SIGKILL before", "nothing to standard error"]),
    Wrong(["garbage"], {}, "garbage", "glue", ["not JSON", "'%PDF-1.7'"]),
    Wrong(["truncated"], {}, "crash", "backend", ["exited with status 0 in the middle of a line", '{"id": 3']),
    Wrong(
        ["wrong_id", 1000],
        {},
        "garbage",
        "glue",
        ["has the id 1003, of a request never made, where 3 is due"],
    ),
    Wrong(["wrong_id", -1], {}, "garbage", "glue", ["has the id 2, of a request answered already, where 3 is"]),
    Wrong(["late", 0.5], {"deadline": 0.2, "grace": 60.0}, "late", "backend", ["after the deadline of 0.2 s"]),
    Wrong(["wrong_type"], {}, "garbage", "glue", ["the output `pd` is '0x1'", "an integer from 1 to 2**64-1"]),
    Wrong(["missing_output"], {}, "garbage", "glue", ["`local_dma_lkey` is missing"]),
    Wrong(["floods"], {}, "garbage", "glue", ["longer than 1048576 bytes", "'xxxx"]),
    Wrong(["drips"], SHORT, "hang", "backend", ["within 0.2 s; it was killed"]),
    Wrong(["leaves_child"], {}, "crash", "backend", ["exited with status 1", "left "]),
    Wrong(["closes_stdout"], {}, "crash", "backend", ["closed its standard output before"]),
]


@pytest.mark.parametrize("wrong", TROUBLES, ids=lambda wrong: "-".join(map(str, wrong.script)))
def test_what_goes_wrong_in_a_call_is_told(start: Start, wrong: Wrong) -> None:
    backend = start(*wrong.script, **wrong.options)
    trouble = _trouble_of_a_call(backend)
    assert (trouble.kind, trouble.whose) == (wrong.kind, wrong.whose)
    for part in [*wrong.words, "request 3 (alloc_pd)", "This counts a"]:
        assert part in trouble.message
    blamed = "against the backend" if wrong.whose == "backend" else "fault of the adapter"
    assert blamed in trouble.message
    assert f"{wrong.script[0]}.py" in trouble.evidence
    assert '"op":"call"' in trouble.evidence
    with pytest.raises(AdapterError, match="call reset first, and after each trouble"):
        backend.call("alloc_pd", {})


@pytest.mark.parametrize("script", [["dies_at", 1], ["hangs"], ["late", 0.5]], ids=lambda script: script[0])
def test_an_agent_in_front_of_the_device_can_take_the_blame(start: Start, script: list[object]) -> None:
    trouble = _trouble_of_a_call(start(*script, deadline=0.2, grace=60.0 * (script[0] == "late"), blame="glue"))
    assert trouble.whose == "glue"
    assert "fault of the adapter or its set-up, not of the device" in trouble.message


ABSURD = [b"", b"null", b"\xff\xfe", b'{"id":3,"answer":{"result":"0","out":{"x":' + b"[" * 100_000]


@given(st.binary(max_size=60) | st.sampled_from(ABSURD))
def test_any_line_is_a_reply_or_a_complaint(line: bytes) -> None:
    asked = Asked(3, "alloc_pd", b"")
    assert isinstance(decode(asked, line, "answer"), str)


# -- before the first hello --------------------------------------------------------------------------


SET_UPS: list[tuple[list[object], str, list[str]]] = [
    (["chatty"], "garbage", ["not JSON", "logs belong on standard error", "INFO toy: device toy0 is up"]),
    (["wrong_version", "protocol"], "garbage", ["version 2.0 of the protocol and this verbspec version 1.1"]),
    (["wrong_version", "contract"], "garbage", ["version 2.0 of the contract and this verbspec version 1.1"]),
    (["stillborn"], "crash", ["exited with status 1 before it answered request 1 (hello)", "no device toy0"]),
]


@pytest.mark.parametrize(
    ("script", "kind", "words"), SET_UPS, ids=lambda case: case[0] if isinstance(case, list) else case
)
def test_a_backend_that_cannot_be_set_up_is_nobodys_verdict(
    start: Start, script: list[object], kind: str, words: list[str]
) -> None:
    with pytest.raises(AdapterError) as error:
        start(*script).hello()
    trouble = start(*script).reset(1)
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == (kind, "glue")
    for part in [*words, "fault of the adapter or its set-up"]:
        assert part in trouble.message
        assert part in str(error.value)


def test_a_start_has_a_deadline_of_its_own(start: Start) -> None:
    with pytest.raises(AdapterError, match=r"No answer to request 1 \(hello\) within 0\.05 s"):
        start("mute", start_deadline=0.05, grace=0.0).hello()


def test_a_command_that_cannot_be_run_is_told() -> None:
    with pytest.raises(AdapterError, match=r"cannot start `no-such-agent --x`: No such file.*is on PATH"):
        RemoteBackend(["no-such-agent", "--x"]).hello()
    with pytest.raises(AdapterError, match="cannot start"):
        RemoteBackend(["a\0b"]).reset(1)
    with pytest.raises(AdapterError, match="is empty"):
        RemoteBackend([])


def test_another_identity_after_a_restart_is_told(start: Start) -> None:
    backend = start("moody")
    first = backend.hello()
    backend.reset(1)
    os.kill(_pid(backend), signal.SIGKILL)
    assert isinstance(backend.reset(1), Trouble)
    trouble = backend.reset(1)
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == ("garbage", "glue")
    assert "did so before as" in trouble.message
    assert backend.hello() == first


# -- restarts ----------------------------------------------------------------------------------------


def _pid(backend: RemoteBackend) -> int:
    assert isinstance(backend._link, Child)
    return backend._link.pid


def test_a_restart_works_any_number_of_times(start: Start) -> None:
    backend = start("dies_at", 2)
    pids = set()
    for _ in range(15):
        assert backend.reset(1) is None
        pids.add(_pid(backend))
        assert backend.call("alloc_pd", {}) == PD
        trouble = backend.call("alloc_pd", {})
        assert isinstance(trouble, Trouble)
        assert trouble.kind == "crash"
    assert len(pids) == 15
    assert backend.hello().name == "toy"


def test_restarts_leak_no_file_descriptors(start: Start) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    backend = start("dies_at", 1)
    _trouble_of_a_call(backend)
    before = count()
    for _ in range(5):
        _trouble_of_a_call(backend)
    assert count() == before


def test_a_crash_between_calls_belongs_to_the_next_one(start: Start) -> None:
    backend = start("toy")
    assert backend.reset(1) is None
    os.kill(_pid(backend), signal.SIGSEGV)
    trouble = backend.reset(2)
    assert isinstance(trouble, Trouble)
    assert "was killed by SIGSEGV before it answered request 3 (reset)" in trouble.message
    assert backend.reset(2) is None


# -- what the agent tells ----------------------------------------------------------------------------


@pytest.mark.parametrize("args", [[], ["unread"]])
def test_a_trouble_told_by_the_agent_is_passed_on(start: Start, args: list[str]) -> None:
    trouble = _trouble_of_a_call(start("tells", *args))
    assert (trouble.kind, trouble.whose, trouble.message) == ("crash", "backend", "kernel panic")
    assert trouble.evidence.startswith("Oops: 0000\ncommand: ")


def test_standard_error_is_kept_up_to_a_bound_and_stalls_nobody(start: Start) -> None:
    backend = start("logs", 300_000)  # more than a pipe holds
    assert backend.reset(1) is None
    assert backend.call("alloc_pd", {}) == PD
    os.kill(_pid(backend), signal.SIGKILL)
    trouble = backend.call("alloc_pd", {})
    assert isinstance(trouble, Trouble)
    assert "Its standard error ends: " in trouble.message
    assert trouble.message.count("x") < 1000
    assert "last words" in trouble.message
    assert 60_000 < len(trouble.evidence) < 70_000


def test_a_child_that_does_not_read_is_a_hang(start: Start) -> None:
    backend = start("deaf", **SHORT)
    _reset(backend)
    trouble = backend.call("write_buffer", {"buf": 1, "offset": 0, "data": "00" * 400_000})
    assert isinstance(trouble, Trouble)
    assert trouble.kind == "hang"
    assert len(trouble.evidence) < 10_000


# -- batches -----------------------------------------------------------------------------------------


def test_a_batch_is_answered_call_by_call(start: Start) -> None:
    backend = start("toy")
    assert backend.reset(1) is None
    assert backend.batch([]) == []
    assert backend.batch([("alloc_pd", {}), ("create_cq", {"cqe": 1}), ("settle", {})]) == [
        PD,
        Answer("ENOSYS"),
        Answer("0"),
    ]


def test_an_older_agent_is_not_sent_parameters_that_it_cannot_know(start: Start) -> None:
    backend = start("toy")  # its contract is 1.0
    assert backend.reset(1) is None
    assert backend.call("alloc_pd", {"hca": 1}) == Answer("EOPNOTSUPP")
    assert backend.call("alloc_pd", {}) == PD
    assert backend.batch([("settle", {}), ("create_cq", {"cqe": 1, "channel": 2}), ("create_cq", {"cqe": 1})]) == [
        Answer("0"),
        Answer("EOPNOTSUPP"),
        Answer("ENOSYS"),
    ]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_batch_of_the_wrong_length_is_garbage(start: Start, count: int) -> None:
    backend = start("stops_batch", count)
    assert backend.reset(1) is None
    (trouble,) = backend.batch([("settle", {}), ("settle", {})])
    assert isinstance(trouble, Trouble)
    assert (trouble.kind, trouble.whose) == ("garbage", "glue")
    assert f"{count} outcomes for 2 calls" in trouble.message


# -- wrong use ---------------------------------------------------------------------------------------


def test_wrong_use_is_an_error_of_the_caller_and_reaches_no_backend(start: Start) -> None:
    backend = start("toy")
    with pytest.raises(AdapterError, match="call reset first"):
        backend.call("alloc_pd", {})
    assert backend.reset(1) is None
    with pytest.raises(AdapterError, match="`alloc_dragon` is not a verb"):
        backend.call("alloc_dragon", {})
    with pytest.raises(AdapterError, match="`alloc_pd` has no parameter `color`"):
        backend.call("alloc_pd", {"color": 1})
    with pytest.raises(AdapterError, match="make it several calls"):
        backend.call("write_buffer", {"buf": 1, "offset": 0, "data": "00" * messages.MAX_LINE})
    assert backend.call("alloc_pd", {}) == PD
    backend.close()
    backend.close()
    for use in (backend.hello, lambda: backend.reset(1), lambda: backend.call("alloc_pd", {})):
        with pytest.raises(AdapterError, match="was closed"):
            use()


# -- no process is left ------------------------------------------------------------------------------


def test_close_lets_the_child_end_by_itself(start: Start) -> None:
    backend = start("toy")
    backend.reset(1)
    child = backend._link
    assert isinstance(child, Child)
    backend.close()
    assert child.end() == (True, 0)


def test_close_ends_a_child_that_does_not_listen(start: Start) -> None:
    backend = start("deaf", deadline=0.2)
    _reset(backend)
    child = backend._link
    assert isinstance(child, Child)
    backend.close()
    assert child.end() == (False, -signal.SIGKILL)
    assert child.end().describe() == "was killed by SIGKILL"


def test_without_pidfds_it_works_too(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> int:
        raise OSError(38, os.strerror(38), pid)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", refuse)
        assert "exited with status 1" in _trouble_of_a_call(start("dies_at", 1)).message
        assert _trouble_of_a_call(start("hangs", **SHORT)).kind == "hang"
        held_open = _trouble_of_a_call(start("leaves_child", deadline=2.0))
        assert held_open.kind == "crash"
        backend = start("toy")
        backend.reset(1)
        backend.close()


def test_what_the_child_has_started_ends_with_it(start: Start) -> None:
    trouble = _trouble_of_a_call(start("leaves_child"))
    left = re.search(r"left (\d+)", trouble.evidence)
    assert left is not None
    assert _gone(int(left[1]))


def test_an_interrupt_ends_the_link(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = start("hangs")
    assert backend.reset(1) is None
    pid = _pid(backend)

    with monkeypatch.context() as patch:
        patch.setattr(Child, "receive", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            backend.call("alloc_pd", {})
    assert _gone(pid)
    assert backend.reset(1) is None


PARENT = """
import sys
from verbs_adapters.remote.client import RemoteBackend
backend = RemoteBackend(sys.argv[1:])
backend.reset(1)
print("waiting", flush=True)
{then}
"""


@pytest.mark.parametrize(
    ("then", "number", "status"),
    [
        ("backend.call('alloc_pd', {})", signal.SIGINT, -signal.SIGINT),
        ("", signal.SIGCONT, 0),
        ("import time; time.sleep(60)", signal.SIGINT, -signal.SIGINT),
    ],
    ids=["ctrl-c in a call", "no close", "ctrl-c between calls"],
)
def test_a_parent_that_ends_leaves_no_link(then: str, number: int, status: int) -> None:
    mark = f"{MARK}={uuid.uuid4()}"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then), sys.executable, str(BACKENDS / "deaf.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | dict([mark.split("=")]),
        start_new_session=True,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"waiting\n"
        parent.send_signal(number)
        assert parent.wait(30) == status
    _assert_no_child_is_left(mark)


FORKS = """
import os
import sys
from verbs_adapters.remote.client import RemoteBackend
backend = RemoteBackend(sys.argv[1:])
backend.reset(1)
pid = os.fork()
if pid == 0:
    sys.exit()
os.waitpid(pid, 0)
print(backend.call("settle", {}))
backend.close()
"""


def test_a_fork_of_the_parent_does_not_end_the_link() -> None:
    command = [sys.executable, "-c", FORKS, sys.executable, str(BACKENDS / "toy.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{Answer('0')}\n"
