"""`verbspec adapter check` finds what is wrong with an agent, and only that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from verbs_adapters.contract import VERBS
from verbs_adapters.remote import messages
from verbs_adapters.remote.checker import NOBODY, Checker, Finding, Unusable, arguments, in_order
from verbs_adapters.remote.child import ChildPeer
from verbs_adapters.remote.shapes import wrong_arguments

BACKENDS = Path(__file__).parent.parent / "backends"


def check(script: str, *args: str, deadline: float = 60.0) -> dict[str, Finding]:
    """The findings about one of the scripts, by the check's name."""
    peer = ChildPeer([sys.executable, str(BACKENDS / f"{script}.py"), *args], None, messages.MAX_LINE)
    return {finding.name: finding for finding in Checker(peer, deadline, 60.0).run()}


def failed(findings: dict[str, Finding]) -> dict[str, str]:
    """What failed, and why."""
    return {name: finding.note for name, finding in findings.items() if not finding.passed}


def test_the_least_agent_is_found_to_be_sloppy() -> None:
    findings = check("toy")
    assert failed(findings) == {
        "empty line": "it exited with status 1 without an answer",
        "unknown op": "it is taken for a request",
        "wrong seed": "it is taken for a request",
        "half a line": "after the end of its input it exited with status 1; 0 is due",
    }
    heard = findings["unknown op"].heard
    assert heard[-2:] == ('> {"op":"dance","id":90}', '< {"id": 90, "ok": true}')
    assert b"JSONDecodeError" in findings["empty line"].log
    assert findings["verb alloc_pd"].note == "0"
    assert findings["verb create_cq"].note == "ENOSYS"


@pytest.mark.parametrize(
    ("script", "name", "words"),
    [
        (["wrong_version", "protocol"], "hello", "it speaks version 2.0 of the protocol"),
        (["missing_output"], "verb alloc_pd", "`alloc_pd`: the output `local_dma_lkey` is missing"),
        (["wrong_type"], "verb alloc_pd", "the output `pd` is '0x1'"),
        (["stops_batch", "1"], "batch", "1 outcomes for 3 calls; an errno does not stop a batch"),
    ],
    ids=lambda case: case[0] if isinstance(case, list) else "",
)
def test_each_fault_fails_its_check(script: list[str], name: str, words: str) -> None:
    assert words in failed(check(*script))[name]


def test_an_agent_that_cannot_start_was_not_checked() -> None:
    with pytest.raises(Unusable, match=r"no hello: it exited with status 1.*\n.*no device toy0"):
        check("stillborn")


def test_the_usual_arguments_are_of_the_contract() -> None:
    kinds = {name for verb in VERBS.values() for name, kind in verb.out.items() if kind == "handle"}
    for verb in in_order():
        assert wrong_arguments(verb, arguments(verb, {})) is None
        assert NOBODY not in arguments(verb, dict.fromkeys(kinds, 5)).values()
        assert arguments(verb, {}).keys().isdisjoint(VERBS[verb].optional)
