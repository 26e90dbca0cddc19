"""Sample results: a run that fails in every way, one that was killed, one that passes.

``python tests/reports/reports_samples.py DIR`` (with ``reports`` on PYTHONPATH) writes them, and every
report of each, for the eye.
"""

from __future__ import annotations

import sys
from pathlib import Path

from verbs_reports import html, junit, markdown
from verbs_reports.results import (
    Adapter,
    Choice,
    Device,
    Failure,
    Footer,
    Header,
    Program,
    Record,
    Results,
    Rule,
    Trouble,
    Writer,
    read,
)
from verbs_reports.verdicts import Verdict

HEADER = Header(
    suite="0.1.0",
    spec="1.0 (sha256 5f0c1c8ea2b7)",
    started="2026-03-01T12:00:00Z",
    command="verbspec run rdma-core -o host=node7 -o device=rxe0 --profile linux-user --seed 7 --out results",
    adapter=Adapter(name="rdma-core", options={"host": "node7", "device": "rxe0"}),
    device=Device(name="rdma_rxe", version="in-kernel 6.18", device="rxe0 (Soft-RoCE)", kernel="6.18.3-rc1+ #14 SMP"),
    api="linux-user",
    transport="roce",
    seed=7,
    capabilities=("mw_type_1", "mw_type_2", "srq", "local_inv"),
    limits={
        "max_qp_wr": 16384,
        "max_sge": 32,
        "max_cqe": 32767,
        "max_mr": 524287,
        "max_fast_reg_page_list_len": 512,
    },
)

_STEPS = (
    "pd0 = alloc_pd() -> 0",
    "cq0 = create_cq(cqe=16) -> 0, cqe=16",
    "qp0 = connected(pd0, cq0, RC) -> 0",
    "mr0 = reg_mr(pd0, length=4096, access=LOCAL_WRITE|REMOTE_WRITE|MW_BIND) -> 0, rkey=0x00001a04",
    "mw0 = alloc_mw(pd0, TYPE_2) -> 0, rkey=0x00002b00",
    "post_send(qp0, BIND_MW, mw0, mr0, rkey=0x00002b01, addr=0, length=4096) -> 0",
    "until poll_cq(cq0) -> SUCCESS BIND_MW wr_id=1",
    "dereg_mr(mr0) -> 0",
    "dealloc_mw(mw0) -> 0",
)

FAILING = Program(
    name="mr/dereg-with-bound-window.1",
    kind="directed",
    target="mr/dereg-with-bound-window",
    verdict=Verdict.FAIL,
    calls=9,
    steps=_STEPS,
    fixture="rc-pair",
    fired={"mr/register": 1, "mw/bind": 1},
    possible={"mr/dereg": 1},
    unobserved=2,
    belief=3,
    failure=Failure(
        step=8,
        action="dereg_mr(mr0)",
        seen="0: the region is gone",
        allowed=("EBUSY, and nothing has changed", "EINVAL, and nothing has changed"),
        suspects=("mr/dereg-with-bound-window", "mw/bind"),
        message="dereg_mr of a region with a bound window succeeded; the rules allow EBUSY or EINVAL",
    ),
    file="programs/mr-dereg-with-bound-window.1.yaml",
)

CRASHED = Program(
    name="stateful-qp-0042",
    kind="stateful",
    verdict=Verdict.FAIL,
    calls=61,
    steps=tuple(f"post_send(qp0, SEND, wr_id={number}) -> 0" for number in range(1, 61)),
    fixture="rc-pair",
    failure=Failure(
        step=61,
        action="modify_qp(qp0, ERR)",
        seen="no answer within 10 s",
        allowed=("0",),
        suspects=("qp/modify-to-err",),
        message="modify_qp to ERR with 60 work requests in flight was never answered",
    ),
    trouble=Trouble(
        kind="hang",
        whose="backend",
        message="no answer within 10 s; the second agent still answers",
        evidence="BUG: KASAN: slab-use-after-free in rxe_completer+0x1a4/0x2f0 [rdma_rxe]\n"
        "Read of size 8 at addr ffff88810a2b4c40 by task kworker/u8:2/187\n"
        "Workqueue: rxe_wq do_work [rdma_rxe]",
    ),
    file="programs/stateful qp 0042.yaml",
)

FLAKY = Program(
    name="regression/B12-flush-order",
    kind="regression",
    target="qp/flush-in-order",
    verdict=Verdict.FLAKY,
    calls=24,
    fixture="rc-pair",
    reason="failed once and passed twice with the same seed",
    file="programs/B12.yaml",
)

PASSING = Program(
    name="pd/alloc.1",
    kind="directed",
    target="pd/alloc",
    verdict=Verdict.PASS,
    calls=2,
    steps=("pd0 = alloc_pd() -> 0", "dealloc_pd(pd0) -> 0"),
    fixture="none",
    fired={"pd/alloc": 1, "pd/dealloc": 1},
)

UNDECIDED = Program(
    name="cq/overflow.2",
    kind="directed",
    target="cq/overflow",
    verdict=Verdict.INCONCLUSIVE,
    calls=40,
    fixture="rc-pair",
    reason="the rule may have fired, but not in every explanation (repeated with 4 other pacings)",
)


def _rule(
    rule: str,
    verdict: Verdict,
    says: str,
    fired: int = 3,
    level: str = "must",
    reason: str = "",
    status: str = "",
) -> Rule:
    return Rule(
        rule=rule,
        object=rule.partition("/")[0],
        level=level,  # type: ignore[arg-type]  # the writer checks it
        status=status,
        says=says,
        sources=("IBTA 1.7, 10.6.5.1, C10-70", "rdma-core 57.0, libibverbs/man/ibv_dereg_mr.3"),
        verdict=verdict,
        fired=fired,
        programs=min(fired, 2),
        reason=reason,
    )


RULES = (
    _rule("pd/alloc", Verdict.PASS, "Allocating a PD gives a handle that no live PD has.", 214),
    _rule("pd/dealloc", Verdict.PASS, "A PD that nothing refers to can be deallocated.", 187),
    _rule(
        "pd/dealloc-busy",
        Verdict.PASS,
        "A PD that an MR, MW, QP, SRQ or AH refers to is refused with EBUSY.",
        12,
    ),
    _rule(
        "mr/register",
        Verdict.PASS,
        "Registering gives an lkey, and an rkey if remote access was asked for.",
        96,
    ),
    _rule(
        "mr/dereg-with-bound-window",
        Verdict.FAIL,
        "Deregistering a region to which a window is bound is refused.",
        1,
        reason="dereg_mr succeeded while mw0 was bound",
    ),
    _rule(
        "mr/rereg-access",
        Verdict.UNSUPPORTED,
        "Changing the access of a region.",
        0,
        "may",
        "not declared: rereg_mr",
    ),
    _rule(
        "mr/key-changes",
        Verdict.DEVIATION,
        "A new registration gets a new key.",
        31,
        "should",
        "same rkey 31 times",
    ),
    _rule(
        "mw/bind",
        Verdict.PASS,
        "Binding gives the window the new key after its completion.",
        22,
        status="reviewed",
    ),
    _rule(
        "mw/bind-zero-length",
        Verdict.WAIVED,
        "A bind of length zero unbinds.",
        2,
        reason="waiver 3: fixed in 6.19",
    ),
    _rule("qp/modify-to-err", Verdict.FAIL, "Any state but RESET can be left for ERR.", 7, reason="hang"),
    _rule("qp/flush-in-order", Verdict.FLAKY, "Flushed work requests complete in the order of posting.", 9),
    _rule(
        "qp/sqd-drain",
        Verdict.NOT_RUN,
        "In SQD what was begun is completed.",
        0,
        reason="no program fired it",
    ),
    _rule("cq/overflow", Verdict.INCONCLUSIVE, "A CQ that overflows reports CQ_ERR.", 0, reason="may have fired"),
    _rule(
        "cq/rearm",
        Verdict.UNEXPECTED_PASS,
        "An armed CQ loses no wake-up.",
        40,
        reason="waiver 5 says that it fails",
    ),
    _rule(
        "srq/limit-event",
        Verdict.ERROR,
        "SRQ_LIMIT_REACHED comes once an arming.",
        0,
        reason="the agent crashed",
    ),
)

CHOICES = (
    Choice(
        choice="dereg-with-bound-window",
        options=("refuse", "orphan"),
        taken=("orphan",),
        stable=True,
        verdict=Verdict.CHOICE,
    ),
    Choice(
        choice="local-inv-stale-key",
        options=("error", "success"),
        taken=(),
        stable=True,
        verdict=Verdict.FAIL,
    ),
    Choice(
        choice="vendor-err",
        options=("zero", "anything"),
        taken=("zero", "anything"),
        stable=False,
        verdict=Verdict.CHOICE,
    ),
)


def _counts(rules: tuple[Rule, ...]) -> dict[Verdict, int]:
    return {verdict: sum(rule.verdict is verdict for rule in rules) for verdict in {rule.verdict for rule in rules}}


FAILED_RUN: tuple[Record, ...] = (
    HEADER,
    PASSING,
    FAILING,
    CRASHED,
    FLAKY,
    UNDECIDED,
    *RULES,
    *CHOICES,
    Footer(
        verdict=Verdict.ERROR,
        exit_code=3,
        counts=_counts(RULES),
        calls=18204,
        seconds=61.25,
        programs=412,
        largest_belief=17,
        unobserved_share=0.634,
        note="interrupted by Ctrl-C",
    ),
)

TRUNCATED_RUN: tuple[Record, ...] = (HEADER, PASSING, FAILING, UNDECIDED)

_GREEN = tuple(rule for rule in RULES if rule.verdict is Verdict.PASS)
PASSED_RUN: tuple[Record, ...] = (
    HEADER,
    PASSING,
    *_GREEN,
    Footer(
        verdict=Verdict.PASS,
        exit_code=0,
        counts=_counts(_GREEN),
        calls=2,
        seconds=0.5,
        programs=1,
        largest_belief=1,
    ),
)

RUNS = {"failed": FAILED_RUN, "truncated": TRUNCATED_RUN, "passed": PASSED_RUN}


def write(path: Path, run: tuple[Record, ...]) -> Path:
    """Write the records of a run, the first of which is its header."""
    header, *others = run
    assert isinstance(header, Header)
    with Writer(path, header) as writer:
        for record in others:
            writer.write(record)
    return path


def results_of(run: tuple[Record, ...]) -> Results:
    """Give a run as the value that reading its file gives."""
    header = run[0]
    assert isinstance(header, Header)
    footer = run[-1] if isinstance(run[-1], Footer) else None
    return Results(
        header=header,
        programs=tuple(record for record in run if isinstance(record, Program)),
        rules=tuple(record for record in run if isinstance(record, Rule)),
        choices=tuple(record for record in run if isinstance(record, Choice)),
        footer=footer,
    )


def main(folder: Path) -> None:
    """Write every sample and its reports into a folder."""
    for name, run in RUNS.items():
        results = read(write(folder / f"{name}.jsonl", run))
        for suffix, render in {"html": html.render, "xml": junit.render, "md": markdown.render}.items():
            (folder / f"{name}.{suffix}").write_text(render(results), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
