"""Each known bug of the field, switched on in softhca, is caught by a program that ships, and told apart.

For each fault the table names the program that pins it and the rules one of which must be among the
suspects: the rule that the fault violates, or, where a refused call must leave no trace, the rule that met
the trace.
"""

from __future__ import annotations

from functools import cache

import pytest

from verbs_adapters.softhca import SoftHca
from verbs_adapters.softhca.faults import FAULTS
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge, Judgement, shrink
from verbs_conformance.program import Program
from verbs_conformance.running import transcript
from verbs_conformance.target import engine
from verbs_reports.verdicts import Verdict

SEEDS = (1, 2, 3)
MOST_STEPS = 10
MOST_WITHOUT_FAULT = MOST_OF_FEATURE = 20
"""Programs about events take steps to get and acknowledge them, those about features to make their objects."""
MOST_SUSPECTS = 5
CRASH = frozenset({"crash"})

CATCHES: dict[str, tuple[str, frozenset[str]]] = {
    fault: (f"regress/{name}", frozenset(rules.split()))
    for fault, name, rules in (
        # -- keys and access checks
        ("any-right-is-enough", "iwarp-sink-without-remote-write", "read/sink-fault"),
        ("bad-read-sink-unreported", "read-sink-needs-local-write", "read/sink-fault"),
        ("data-ignores-key-byte", "stale-byte-remote", "rdma/refused"),
        ("data-ignores-pd", "foreign-region-local", "sq/source-fault"),
        ("empty-region-has-no-bounds", "empty-region-remote", "rdma/refused"),
        ("first-sge-decides-kind", "mixed-sges-direct-first", "sq/sent send/done"),
        ("key-byte-fixed-at-alloc", "key-byte-of-the-consumer-read", "read/done reg/done"),
        ("last-byte-refused", "last-byte-read", "read/done"),
        ("one-byte-past-end-allowed", "byte-past-end-write", "rdma/refused"),
        ("qp-rights-ignored", "queue-pair-forbids-write", "rdma/refused"),
        ("qp-rights-swapped", "queue-pair-allows-read", "read/done"),
        ("range-end-wraps", "wrapping-range-remote", "rdma/refused"),
        ("receive-into-region-crashes", "receive-into-region", "crash"),
        ("refused-write-writes-anyway", "refused-write-leaves-memory", "rdma/refused buf/read"),
        ("region-rights-ignored", "region-forbids-write", "rdma/refused"),
        ("sink-needs-no-local-write", "read-sink-needs-local-write", "read/sink-fault"),
        ("steps-in-system-pages", "large-pages", "write/done reg/done"),
        ("zero-length-checks-key", "no-bytes-no-key", "write/done cq/poll-send"),
        # -- registration
        ("any-page-size-accepted", "page-too-small", "reg/unmapped"),
        ("failed-reg-changes-the-key", "failed-registration-keeps-key", "reg/valid inv/done cq/poll-send"),
        ("failed-reg-leaks-reference", "failed-registration-leaves-no-use", "pd/dealloc"),
        ("failed-reg-leaves-valid", "failed-registration-keeps-state", "sq/source-fault reg/rights"),
        ("key-leaks-before-reg", "key-update-is-not-in-force", "read/done mr/update-key"),
        ("opcode-table-shifted", "opcode-of-registration", "cq/poll-send"),
        ("reg-alternates-map-sets", "register-twice-after-new-map", "reg/done"),
        ("reg-of-valid-accepted", "register-valid", "reg/valid"),
        ("slot-keeps-old-fields", "slot-keeps-rights", "rdma/refused reg/done"),
        # -- invalidation
        ("inv-does-nothing", "invalidated-for-peers", "rdma/refused inv/done"),
        ("inv-ignores-key-byte", "stale-key-invalidates", "inv/stale"),
        ("inv-ignores-pd", "foreign-invalidation", "inv/foreign"),
        ("inv-key-in-wrong-field", "remote-invalidation-names-key", "send/invalidated cq/poll-recv"),
        ("inv-of-invalid-hits-another", "invalid-leaves-neighbour", "read/done inv/again"),
        ("inv-visible-late", "invalidated-for-peers", "rdma/refused inv/done"),
        ("local-inv-advertised-but-refused", "invalidation-is-posted", "wr/post-send"),
        ("local-inv-at-post", "invalidation-waits-for-execution", "read/done inv/done"),
        ("local-inv-needs-remote-rights", "invalidation-needs-no-remote-right", "inv/done cq/poll-send"),
        ("local-side-survives-inv", "invalidated-for-owner", "sq/source-fault"),
        ("remote-inv-of-local-region", "remote-invalidation-of-local-region", "send/invalidate-refused"),
        ("send-inv-also-at-requester", "remote-invalidation-spares-sender", "read/done send/invalidated"),
        # -- objects and states
        ("cq-destroyed-under-qp", "queue-outlives-queue-pair", "cq/destroy-busy"),
        ("failed-alloc-leaks-pd-reference", "failed-allocation-counts-nothing", "pd/dealloc"),
        ("failed-create-leaks-cq-reference", "failed-create-counts-nothing", "cq/destroy"),
        ("pd-freed-under-children", "domain-outlives-queue-pair", "pd/dealloc-busy"),
        ("refused-destroy-frees-handle", "refused-destroy-can-be-repeated", "pd/dealloc pd/dealloc-busy"),
        ("illegal-moves-accepted", "init-to-rts", "qp/modify-illegal"),
        ("init-receives-lost", "receives-of-init-last", "qp/modify wr/post-recv"),
        ("new-qp-starts-in-init", "new-pair-is-in-reset", "qp/create qp/query"),
        ("refused-modify-takes-access", "refused-modify-keeps-rights", "qp/modify qp/modify-illegal"),
        ("reset-twice-breaks-init", "reset-twice", "qp/modify"),
        ("rts-to-rts-refused", "rts-to-rts", "qp/modify"),
        ("unknown-state-is-error", "unknown-state", "qp/modify-illegal qp/query"),
        # -- posting and order
        ("empty-sge-ends-the-list", "empty-element-first-receive", "send/done sq/sent"),
        ("fence-ignored", "fence-waits-for-all-reads", "sq/send sq/sent"),
        ("fence-released-by-any-read", "fence-waits-for-all-reads", "sq/send sq/sent"),
        ("full-queue-hidden", "full-queue-says-so", "wr/post-send-full wr/post-send sq/complete-signaled"),
        ("post-before-rts-accepted", "no-send-before-rts", "wr/post-send-state"),
        ("queue-holds-one-less", "queue-takes-all", "wr/post-send"),
        ("refused-post-stays-queued", "refused-send-is-not-flushed", "wr/post-send wr/post-send-state"),
        ("send-completions-out-of-order", "completions-in-order", "sq/complete-signaled"),
        ("unsignalled-slots-never-freed", "silent-slots-are-freed", "wr/post-send wr/post-send-full"),
        # -- completions
        ("byte-len-zero", "bytes-of-a-receive", "cq/poll-recv"),
        ("cq-holds-one-less", "queue-fills-again", "cq/create sq/complete-signaled"),
        ("destroy-purges-whole-cq", "destroy-spares-neighbour", "qp/destroy sq/complete-signaled"),
        ("nop-completion", "flush-adds-nothing", "sq/flush sq/unanswered sq/complete-failed"),
        ("peer-qp-num", "number-of-own-pair", "cq/poll-send"),
        ("unsignalled-read-completes", "silent-read-before-write", "sq/complete-silent sq/complete-signaled"),
        ("wr-id-lost-on-error", "id-of-a-failure", "cq/poll-error"),
        # -- ERR and flush
        ("error-flushes-peer", "peer-notices-by-traffic", "qp/modify"),
        ("first-error-is-flush", "first-error-is-told", "sq/complete-failed"),
        ("flush-lands-in-other-cq", "flush-in-own-queues", "sq/flush sq/unanswered"),
        ("flushed-receive-is-success", "receives-are-flushed", "rq/flushed"),
        ("flushed-sends-say-success", "waiting-sends-are-flushed", "sq/flush sq/unanswered"),
        ("no-flush-from-rtr", "flush-from-rtr", "rq/flushed"),
        ("posted-in-error-never-flushed", "posted-in-error-send", "sq/flush"),
        ("receives-flushed-backwards", "receives-in-order", "rq/flushed"),
        ("receives-not-flushed", "receives-are-flushed", "rq/flushed"),
        # -- attributes and draining
        ("drained-queue-still-sends", "drained", "move/rts-sqd"),
        ("draining-never-ends", "drained-event", "sqd/drained"),
        ("signalling-not-told", "attributes-told", "qp/query-attributes"),
        ("state-without-its-bit", "mask-without-state", "move/to-rts-rc"),
        ("unmasked-attributes-taken", "rights-changed-in-rts", "move/to-rts-rc"),
        # -- completion events
        ("arming-again-disarms", "armed-twice", "cq-event/told"),
        ("arming-is-lowered", "downgraded", "cq-event/told"),
        ("arming-lasts", "one-event-a-request", "cq-event/none"),
        ("events-outlive-their-queue", "event-of-a-destroyed-queue", "cq-event/none"),
        ("failures-are-not-solicited", "failure-is-solicited", "cq-event/told"),
        ("resize-disarms", "resize-while-armed", "cq-event/told"),
        ("sends-are-solicited", "solicited-or-not", "cq-event/none"),
        ("taking-an-event-disarms", "event-of-polled-entries", "cq-event/told"),
        ("unacknowledged-events-hold-nothing", "acknowledged-on-another-queue", "cq/destroy-unacknowledged"),
        # -- shared receive queues
        ("limit-is-told-as-error", "limit-event-once", "event/must"),
        ("limit-told-again", "limit-event-once", "event/may"),
        ("limit-told-at-equal", "srq-limit-once", "srq/query srq/taken"),
        ("srq-destroyed-under-qp", "srq-busy", "srq/destroy-busy"),
        ("srq-does-not-hold-its-pd", "srq-domain-count", "pd/dealloc-busy"),
        ("srq-dropped-at-create", "srq-own-receive", "srq/taken"),
        ("srq-last-in-first-out", "srq-own-receive", "srq/taken"),
        ("srq-resize-ignored", "srq-resize-keeps", "srq/resize"),
        # -- asynchronous events
        ("established-in-rts", "established-once", "event/may"),
        ("last-receive-untold", "last-receive-event", "event/must"),
        ("last-receive-without-srq", "last-receive-of-its-own", "event/may"),
    )
}
"""By fault: the program that pins it, and the rules to suspect."""

BY_SCHEDULE = frozenset({"fence-ignored", "fence-released-by-any-read"})
"""Faults that one seed in about two shows; the others show under each."""

UNSEEN = {
    "any-path-mtu": "no rule compares a path's MTU with the port's",
    "destroy-returns-taken-receives": "no program has a queue pair go between taking a receive and reporting it",
    "drain-event-unasked": "event/may lets SQ_DRAINED come unasked, as rxe tells it",
    "established-for-every-message": "no program sends two messages to a queue pair in RTR and asks for events",
    "freed-key-reused-at-once": "no text forbids that a new region gets the key of one that is gone",
    "last-poll-disarms": "no program polls the last entry of an armed queue and lets another come",
    "old-entries-tell": "the choice unread_entries leaves it to the device",
    "overrun-goes-unnoticed": "overrunning a completion queue is the consumer's error, and not judged",
    "refused-resize-takes-limit": "the witness of srq/arm-out-of-range shows it",
    "remote-write-without-local-write": "the choice weak_rights leaves it to the device",
    "shrink-below-entries-accepted": "making a queue too small is the consumer's error, and not judged",
}
"""Faults that no regression program shows, with the reason."""


@cache
def _shipped() -> dict[str, Program]:
    return {p.name: p for p in programs.shipped("programs") if p.kind == "regression"}


def _judge(fault: str, program: Program) -> Judge:
    api = program.api[0] if program.api else "linux-user" if program.feature else "linux-kernel"
    backend = SoftHca({**FAULTS[fault].needs, "fault": fault, "api": api})
    judged = engine(api, backend.hello().transport[0], tuple(sorted(program.feature)))
    return Judge(judged, backend, backend.hello(), programs.fixtures())


def _most(program: Program) -> int:
    """How many steps a program that pins a fault may have."""
    return MOST_OF_FEATURE if program.feature else MOST_STEPS


def _own_lines(done: Judgement) -> int:
    return len(done.program.steps)


def test_each_fault_is_caught_or_has_a_reason() -> None:
    assert set(CATCHES) | set(UNSEEN) == set(FAULTS)
    assert not set(CATCHES) & set(UNSEEN)


def test_programs_have_names_of_their_own() -> None:
    names = [p.name for p in programs.shipped("programs") if p.kind == "regression"]
    assert len(names) == len(set(names))


def test_programs_are_short_and_say_what_they_are_for() -> None:
    pinned = {program for program, _ in CATCHES.values()}
    for name, program in _shipped().items():
        assert name.startswith(("regress/", "moves/"))
        assert program.says.endswith("."), name
        # those of no fault may make objects and connect queue pairs of their own
        asked = [s for s in program.steps if name in pinned or not (s.out or s.call == "modify_qp")]
        assert len(asked) <= (_most(program) if name in pinned else MOST_WITHOUT_FAULT), name


@pytest.mark.parametrize("fault", sorted(CATCHES))
def test_fault_is_caught_and_told_apart(fault: str) -> None:
    name, rules = CATCHES[fault]
    program = _shipped()[name]
    judge = _judge(fault, program)
    runs = [judge.run(program, seed) for seed in SEEDS]
    caught = [done for done in runs if done.verdict == Verdict.FAIL]
    assert caught if fault in BY_SCHEDULE else len(caught) == len(SEEDS)

    short = shrink(judge, caught[0], tries=12)
    assert _own_lines(short) <= _most(program)
    for done in (caught[0], short):
        if rules == CRASH:
            assert done.trouble is not None
            assert (done.trouble.kind, done.trouble.whose) == ("crash", "backend")
        else:
            assert done.refused is not None
            assert len(done.suspects) <= MOST_SUSPECTS
            assert rules & set(done.suspects), done.suspects

    again = [transcript(judge.engine, judge.run(short.program, short.seed), full=True) for _ in range(2)]
    assert again[0] == again[1] == transcript(judge.engine, short, full=True)
