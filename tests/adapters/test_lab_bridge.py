"""The bridge carries lines, whichever way they come."""

from __future__ import annotations

import os
import select
import subprocess
import sys

GUEST = """
import socket, threading
from verbs_adapters.lab.bridge import Bridge
agent, inside = socket.socketpair()
warden, other = socket.socketpair()
def answer():
    inside.recv(1000)
    inside.sendall(b'{"id":0,"event":{"name":"QP_FATAL"}}\\n{"id":1,"ok":true}\\n')
threading.Thread(target=answer, daemon=True).start()
bridge = Bridge(["sleep", "1000"], agent, warden, [])
try:
    bridge.serve(1000.0, 1000.0)
finally:
    bridge.end()
"""
"""A bridge to a machine that does nothing, with an agent that answers and tells an event in one piece."""


def test_an_event_and_an_answer_may_come_in_one_piece() -> None:
    """Neither is kept until something else comes."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", GUEST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    ) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write(b'{"op":"reset","id":1,"seed":1}\n')
        bridge.stdin.flush()
        said = b""
        while said.count(b"\n") < 2 and select.select([bridge.stdout], [], [], 60)[0]:
            said += os.read(bridge.stdout.fileno(), 1000)
        assert said.splitlines() == [b'{"id":0,"event":{"name":"QP_FATAL"}}', b'{"id":1,"ok":true}']
        bridge.stdin.close()
        assert bridge.wait(60) == 0
