"""The adapter ``rdma-core``: the agent (source.py), brought to the machine that has the device.

Theory of operation
-------------------
The target needs nothing of verbspec: it is given a one-line program that reads a length and then so many bytes of
source from its standard input, and runs them; the same pipe carries the protocol from there on.  Here that
program is run by ``python3``; elsewhere by whatever the option `agent` names, mostly ``ssh HOST``, whose remote
shell needs the program in quotes.

With an option `peer_...` there are two agents, for a requester on one device and a responder on another, of one host or
of two; see :mod:`verbs_adapters.two`.

The agent answers for a call that blocks and for a crash in the library, so what remains (the agent itself dies,
the connection breaks) is the glue's unless `blame` says otherwise.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from verbs_adapters.contract import Backend, UsageError
from verbs_adapters.options import check_known, number, seconds, whose, words
from verbs_adapters.rdma_core.source import agent_source
from verbs_adapters.remote import messages
from verbs_adapters.remote.child import ChildPeer
from verbs_adapters.remote.client import DEADLINE, GRACE, START_DEADLINE, RemoteBackend
from verbs_adapters.two.backend import TwoSides

OF_A_SIDE = ("device", "port", "gid_index", "agent", "python")
"""Options that the two sides have each for itself; those of the second begin with `peer_`."""
OF_HOST = ("agent", "python")
"""Of these the second side takes the first one's where it has none of its own."""
PEER = "peer_"
OPTIONS = (*OF_A_SIDE, *(PEER + key for key in OF_A_SIDE), "settle", "deadline", "start_deadline", "grace", "blame")

BOOTSTRAP = """
import os
def read(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more:
            raise SystemExit("verbspec: the input ended before the agent had come")
        data += more
    return data
exec(compile(read(int(read(8))), "agent.py", "exec"))
"""
"""What the target's Python is told: eight digits, then so many bytes of source, then the protocol."""

AGENT_SHARE = 0.8
"""How much of the deadline the agent has to notice that a call blocks and to tell."""

_SHELLS = ("ssh",)
"""Programs that hand their arguments to a shell on another machine."""


def preamble() -> bytes:
    """What the bootstrap reads."""
    source = agent_source()
    return b"%08d" % len(source) + source


def rdma_core(options: Mapping[str, str], /) -> Backend:
    """Judge an RDMA device of this machine (-o device=NAME) or another (-o agent='ssh HOST') through libibverbs, or two
    devices that talk to each other (-o peer_device=NAME, -o peer_agent='ssh HOST')."""
    check_known("rdma-core", options, OPTIONS)
    first = {key: value for key, value in options.items() if not key.startswith(PEER)}
    if len(first) == len(options):
        return one_side(first)
    second = {key: value for key, value in first.items() if key not in OF_A_SIDE or key in OF_HOST}
    second |= {key[len(PEER) :]: value for key, value in options.items() if key.startswith(PEER)}
    return TwoSides(one_side(first), one_side(second))


def one_side(options: Mapping[str, str]) -> RemoteBackend:
    """The agent on one device."""
    deadline = seconds(options, "deadline", DEADLINE)
    command = command_line(options, deadline)
    shown = shlex.join(command).replace(shlex.quote(BOOTSTRAP), "(the rdma-core agent)")
    return RemoteBackend(
        ChildPeer(command, None, messages.MAX_LINE, preamble=preamble(), shown=shown),
        deadline=deadline,
        start_deadline=seconds(options, "start_deadline", START_DEADLINE),
        grace=seconds(options, "grace", GRACE) if "grace" in options else None,
        blame=whose(options, "glue"),
    )


def command_line(options: Mapping[str, str], deadline: float) -> list[str]:
    """What starts the bootstrap on the target."""
    target = [options.get("python", "python3"), "-u", "-c", BOOTSTRAP]
    if not target[0].strip():
        raise UsageError("`python` is empty; give the name or path of the target's Python, like `python=python3`")
    target += ["--deadline", f"{deadline * AGENT_SHARE:g}"]
    if "device" in options:
        target.append(f"--device={options['device']}")
    if "settle" in options:
        target += ["--quiet", f"{seconds(options, 'settle', 0.0):g}"]
    for key, flag, most in (("port", "--port", 255), ("gid_index", "--gid-index", 255)):
        found = number(options, key, most)
        if found is not None:
            target += [flag, str(found)]
    prefix = words(options, "agent")
    through_a_shell = any(os.path.basename(word) in _SHELLS for word in prefix)
    return [*prefix, shlex.join(target)] if through_a_shell else [*prefix, *target]
