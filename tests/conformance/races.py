"""Ten races planted in softhca: places where a device gives its lock away in the middle of something.

Theory of operation
-------------------
In the threaded mode one lock is around every call and every micro-step.  Each race here replaces one function of the
device in memory by one that does two things that belong together with a *gap* between them, in which the other threads
have the lock; or in the wrong order, with the gap between (the flag before the data); or it returns and does the rest
later.  A step of a device without threads has no gaps.

:data:`RACES` names them, each with what goes wrong.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from verbs_adapters.softhca import SoftHca
from verbs_adapters.softhca.answers import Answers
from verbs_adapters.softhca.completer import SUCCESS, Completer
from verbs_adapters.softhca.cq import Cqs
from verbs_adapters.softhca.execution import Execution
from verbs_adapters.softhca.keys import KeyTable
from verbs_adapters.softhca.objects import find
from verbs_adapters.softhca.pairs import Pairs
from verbs_adapters.softhca.requester import Requester

GAP = 2e-3
"""Seconds without the lock; the race itself, so there is nothing to wait for."""


class Gap:
    """Gives the lock of the device under test away for a moment."""

    def __init__(self) -> None:
        self._lock: Any = None
        self._started: list[threading.Thread] = []

    def of(self, hca: SoftHca) -> None:
        """Be in this device from now on."""
        assert hca._workers is not None
        self._lock = hca._workers._lock

    def later(self, action: Callable[[], object]) -> None:
        """Do the rest in a thread of its own, when the others had the lock."""
        lock = self._lock

        def rest() -> None:
            time.sleep(GAP)
            with lock:
                action()

        thread = threading.Thread(target=rest)
        thread.start()
        self._started.append(thread)

    def close(self) -> None:
        """Wait until all that was put off is done."""
        while self._started:
            self._started.pop().join()

    def __call__(self) -> None:
        self._lock.release()
        time.sleep(GAP)
        self._lock.acquire()


gap = Gap()


@contextmanager
def receive_before_its_data() -> Iterator[None]:
    fill, complete = Execution.fill, Execution._complete
    stored: list[tuple[Any, ...]] = []

    def late_fill(_self: Any, *args: Any) -> Any:
        stored.append(args)

    def early_complete(self: Any, *args: Any) -> Any:
        response = complete(self, *args)
        gap()
        fill(self, *stored.pop(0))
        return response

    with patch.object(Execution, "fill", late_fill), patch.object(Execution, "_complete", early_complete):
        yield


@contextmanager
def read_before_its_data() -> Iterator[None]:
    scatter = Answers._scatter

    def late(self: Any, qp: Any, wqe: Any, data: bytes) -> str:
        wqe.status, wqe.byte_len = SUCCESS, wqe.length  # the completer may report it
        gap()
        return scatter(self, qp, wqe, data)

    with patch.object(Answers, "_scatter", late):
        yield


@contextmanager
def local_operation_before_its_effect() -> Iterator[None]:
    execute = Requester._execute_local

    def late(self: Any, qp: Any, wqe: Any) -> None:
        wqe.status = SUCCESS
        gap()
        execute(self, qp, wqe)

    with patch.object(Requester, "_execute_local", late):
        yield


def _torn(name: str) -> Callable[[], AbstractContextManager[None]]:
    """Something leaves its queue, and is reported when others had the lock."""

    @contextmanager
    def plant() -> Iterator[None]:
        healthy = Completer._write

        def write(self: Any, qp: Any, cq: Any, wqe: Any, outputs: Any, *, receive: bool) -> None:
            kind = "flush" if outputs.get("status") == "WR_FLUSH_ERR" else "receive" if receive else "send"
            if kind == name:
                gap()
            healthy(self, qp, cq, wqe, outputs, receive=receive)

        with patch.object(Completer, "_write", write):
            yield

    return plant


@contextmanager
def receive_is_taken_twice() -> Iterator[None]:
    healthy = Execution.take_receive

    def take(self: Any, qp: Any, request: Any) -> Any:
        first = qp.receives[0]
        gap()
        healthy(self, qp, request)
        return first

    with patch.object(Execution, "take_receive", take):
        yield


@contextmanager
def deregistration_returns_early() -> Iterator[None]:
    remove = KeyTable.remove

    def late(self: Any, region: Any) -> None:
        gap.later(lambda: remove(self, region))

    with patch.object(KeyTable, "remove", late):
        yield


@contextmanager
def error_comes_late() -> Iterator[None]:
    healthy = Pairs._to_err

    def late(self: Any, qp: Any) -> None:
        gap.later(lambda: healthy(self, qp))

    with patch.object(Pairs, "_to_err", late):
        yield


@contextmanager
def slots_come_back_late() -> Iterator[None]:
    healthy = Cqs.poll_cq

    def poll(self: Any, args: Any) -> Any:
        entries = find(self._objects.cqs, args["cq"]).entries
        first: Any = entries[0] if entries else None
        out = healthy(self, args)
        if first is not None and not first.receive:
            first.qp.sq_used += first.frees
            gap.later(lambda: setattr(first.qp, "sq_used", first.qp.sq_used - first.frees))
        return out

    with patch.object(Cqs, "poll_cq", poll):
        yield


RACES: dict[str, tuple[str, Callable[[], AbstractContextManager[None]]]] = {
    "receive-before-its-data": ("a receive is reported before its bytes are there", receive_before_its_data),
    "read-before-its-data": ("a READ is reported before its bytes are there", read_before_its_data),
    "local-operation-before-its-effect": ("LOCAL_INV is reported before it holds", local_operation_before_its_effect),
    "sends-overtake": ("sends are reported by whichever thread is first", _torn("send")),
    "receives-overtake": ("receives are reported by whichever thread is first", _torn("receive")),
    "flushes-overtake": ("work requests are flushed by whichever thread is first", _torn("flush")),
    "receive-is-taken-twice": ("two messages take the receive that both see first", receive_is_taken_twice),
    "deregistration-returns-early": ("a key works when its region is gone", deregistration_returns_early),
    "error-comes-late": ("modify_qp returns before the queue pair is in ERR", error_comes_late),
    "slots-come-back-late": ("a polled completion gives its slots back later", slots_come_back_late),
}
