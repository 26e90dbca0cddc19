"""What on a guest's console is the kernel's trouble, and what is not."""

from __future__ import annotations

import pytest

from verbs_adapters.lab.console import KEPT, Console

REPORTS = [
    "[   12.345678] BUG: kernel NULL pointer dereference, address: 0000000000000018",
    "[   12.345678] Oops: 0000 [#1] PREEMPT SMP NOPTI",
    "[    3.000001] Kernel panic - not syncing: sysrq triggered crash",
    "[    3.000001] WARNING: CPU: 0 PID: 301 at drivers/infiniband/core/verbs.c:340 ib_dealloc_pd_user+0x3a/0x60",
    "[    9.1] refcount_t: underflow; use-after-free.",
    "[    9.1] BUG: KASAN: slab-use-after-free in rxe_completer+0x1/0x2 [rdma_rxe]",
    "[    9.1] INFO: possible recursive locking detected",
    "[  241.9] INFO: task python3:312 blocked for more than 120 seconds.",
    "[   60.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
    "[   60.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [python3:312]",
    "general protection fault, probably for non-canonical address 0xdead000000000108",
]

TALK = [
    "[    1.0] rdma_rxe: loaded",
    "[    1.0] rxe0: qp#17 moved to error state",
    "[    1.0] DEBUG: nothing",
    "[    1.0] systemd: WARNING: nothing of the kernel",
    "verbose: BUG: said a program",
]


@pytest.mark.parametrize("line", REPORTS)
def test_a_report_is_trouble_and_its_line_is_told(line: str) -> None:
    console = Console()

    console.feed(f"quiet\r\n{line}\r\nCall Trace:\r\n".encode())

    assert console.trouble
    assert console.trouble in line
    assert "Call Trace:" in console.text


@pytest.mark.parametrize("line", TALK)
def test_what_is_logged_is_no_trouble(line: str) -> None:
    console = Console()

    console.feed(f"{line}\n".encode())

    assert console.trouble == ""


def test_a_line_counts_once_it_is_whole_however_it_comes() -> None:
    console = Console()
    line = b"[    3.000001] Kernel panic - not syncing: sysrq triggered crash\r\n"

    for byte in line[:-1]:
        console.feed(bytes([byte]))
        assert console.trouble == ""
    console.feed(line[-1:])

    assert console.trouble == "Kernel panic - not syncing: sysrq triggered crash"


def test_evidence_keeps_the_first_report_and_what_led_to_it() -> None:
    console = Console()
    console.feed(b"x" * KEPT + b"\nlast words\n[ 1.0] BUG: first\n")

    console.feed(b"y" * (2 * KEPT) + b"\n[ 2.0] BUG: second\n")

    assert console.trouble == "BUG: first"
    assert "last words" in console.text
    assert "second" not in console.text
    assert len(console.text) <= KEPT


def test_the_guest_says_what_it_could_not_do() -> None:
    console = Console()

    console.feed(b"verbspec: the guest cannot be set up: rdma link add rxe0 failed\n")

    assert console.complaint == "the guest cannot be set up: rdma link add rxe0 failed"


def test_an_image_that_does_not_unpack_itself_is_why_a_guest_does_not_start() -> None:
    console = Console()

    console.feed(
        b"Probing EDD (edd=off to disable)... ok\r\n\r\n\r\nXZ-compressed data is corrupt\r\n\r\n -- System halted"
    )

    assert console.complaint == "the kernel's image does not unpack itself: XZ-compressed data is corrupt"
