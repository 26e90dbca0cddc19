"""The example session of the protocol's document is what the agent that it names really answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from verbs_adapters.remote import messages

ROOT = Path(__file__).parent.parent.parent


def test_the_example_session_is_true() -> None:
    text = (ROOT / "docs" / "adapter-protocol.md").read_text(encoding="utf-8")
    session = text.partition("```text\n")[2].partition("```")[0].splitlines()
    asked, answered = ([line[2:] for line in session if line[0] == side] for side in "><")
    assert len(asked) == len(answered) == 6
    for line in asked:
        assert messages.encode(messages.decode_request(line)).decode() == f"{line}\n"
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "backends" / "toy.py")],
        input="".join(f"{line}\n" for line in asked),
        capture_output=True,
        text=True,
        check=True,
    )
    replies = [messages.decode_reply(line) for line in run.stdout.splitlines()]
    assert [messages.decode_reply(line) for line in answered] == replies


def test_the_document_names_the_version_and_the_limit() -> None:
    text = (ROOT / "docs" / "adapter-protocol.md").read_text(encoding="utf-8")
    assert f"version **{messages.PROTOCOL}**" in text
    assert f"{messages.MAX_LINE:,} bytes" in text
