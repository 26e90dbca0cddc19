"""Resizing and asynchronous events: each regression program finds the device that it was written for."""

import pytest
from defective import Defect, judged

from verbs_reports.verdicts import Verdict

RESIZE, EVENT = "rules/cq_resize.yaml", "rules/event.yaml"
DRAINING = ("asynchronous-events", "qp-attributes")
ALONE, SHARED = ("asynchronous-events",), ("asynchronous-events", "shared-receive-queues")
SIZES, CHANNELS = ("resize-cq",), ("completion-channels", "resize-cq")
SIZED = ("id: cq-resize/done\n", "cq.size = cqe_actual\n")
MAY = ("id: event/may\n", "n == 0 or (n == 1 and may_come(event, qp, cq, srq))")


def resize(change: str, program: str) -> Defect:
    """A resize that does something more."""
    return Defect(RESIZE, *SIZED, f"cq.size = cqe_actual\n          {change}\n", program)


def telling(event: str, about: str, program: str) -> Defect:
    """A device that tells an event for which there is no reason."""
    return Defect(EVENT, *MAY, f"n == 1 and event == {event} and {about}", program)


DEFECTS = {
    "loses-an-entry": (SIZES, resize("pop(cq.q)", "regress/resize-keeps-entries")),
    "shrinks-anyway": (
        SIZES,
        Defect(
            RESIZE,
            "id: cq-resize/too-small",
            'cause: "cqe < len',
            'cause: "cqe > len',
            "regress/resize-smaller-than-before",
        ),
    ),
    "takes-nothing": (
        SIZES,
        Defect(RESIZE, "id: cq-resize/too-large", "cqe > cq.hca.max_cqe", "false", "regress/resize-refused"),
    ),
    "disarms": (CHANNELS, resize("cq.arm = UNARMED", "regress/resize-while-armed")),
    "never-last": (
        SHARED,
        Defect(
            "profiles/asynchronous-events.yaml",
            "reach_last",
            "q.last_told += 1",
            "q.last_told += 0",
            "regress/last-receive-event",
        ),
    ),
    "last-again": (
        SHARED,
        Defect(EVENT, "take_event", "q.last_told -= 1", "q.last_told -= 0", "regress/last-receive-event"),
    ),
    "limit-lost": (
        SHARED,
        Defect(EVENT, "id: event/limit-told", "s.limited += 1", "s.limited += 0", "regress/limit-event-once"),
    ),
    "limit-again": (
        SHARED,
        Defect(EVENT, "take_event", "s.limited -= 1", "s.limited -= 0", "regress/limit-event-once"),
    ),
    "never-drained": (
        DRAINING,
        Defect(
            "profiles/asynchronous-events.yaml",
            "sqd/drained",
            "q.drain_told += 1",
            "q.drain_told += 0",
            "regress/drained-event",
        ),
    ),
    "healthy-named": (
        ALONE,
        telling("QP_ACCESS_ERR", "about_qp(qp, cq, srq) and not faulty(qp)", "regress/event-of-a-failure"),
    ),
    "nobody-named": (ALONE, telling("QP_ACCESS_ERR", "about_none(qp, cq, srq)", "regress/event-of-a-failure")),
    "established": (ALONE, telling("COMM_EST", "about_qp(qp, cq, srq)", "regress/established-once")),
    "overrun": (ALONE, telling("CQ_ERR", "alive(cq) and qp == null", "regress/full-and-no-more")),
    "last-without": (ALONE, telling("QP_LAST_WQE_REACHED", "about_qp(qp, cq, srq)", "regress/last-receive-of-its-own")),
    "destroyed": (SHARED, telling("QP_LAST_WQE_REACHED", "about_qp(qp, cq, srq)", "regress/event-of-a-destroyed-pair")),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_the_program_finds_the_device(name: str) -> None:
    features, defect = DEFECTS[name]
    assert any(done.verdict == Verdict.FAIL for done in judged(defect.program, features, defect))


@pytest.mark.parametrize("program", sorted({(d.program, f) for f, d in DEFECTS.values()}))
def test_a_good_device_passes(program: tuple[str, tuple[str, ...]]) -> None:
    assert {done.verdict for done in judged(*program, seeds=2)} == {Verdict.PASS}
