"""How many verbs calls a second go through the rdma-core agent, next to a bare pyverbs loop on the same machine.

``python benchmarks/bench_agent.py [SECONDS] [KEY=VALUE...]`` takes the options of the adapter ``rdma-core``
(``device=rxe0``, ``agent='ssh HOST'``, ...).  It needs an RDMA device, and says so where there is none.  Three rates
are printed for each pair of verbs: one call a request, batches of 64, and the loop; the aim is half of the loop.

Wall-clock figures of a shared machine are noisy: compare ratios of one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from verbs_adapters.contract import AdapterError, Answer
from verbs_adapters.rdma_core.adapter import command_line, one_side
from verbs_adapters.remote.client import DEADLINE, RemoteBackend

LOOP = """
import json, sys, time
name, seconds = "@DEVICE@", @SECONDS@
try:
    import pyverbs.device as d, pyverbs.pd as p, pyverbs.mr as m, pyverbs.cq as q
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    raise SystemExit(0)
context = d.Context(name=name)
pd, cq = p.PD(context), q.CQ(context, 16)
def region():
    mr = m.MR(pd, 4096, 1)
    mr.close()
def poll():
    cq.poll(1)
rates = {}
for label, pair, calls in (("reg_mr, dereg_mr", region, 2), ("poll_cq of an empty queue", poll, 1)):
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(16):
            pair()
        count += 16 * calls
    rates[label] = count / (time.perf_counter() - began)
print(json.dumps(rates))
"""
"""The bare loop, run by the target's own Python."""

BATCH = 64


def main() -> int:
    """Measure and print."""
    seconds, options = 3.0, {}
    for word in sys.argv[1:]:
        key, equals, value = word.partition("=")
        if equals:
            options[key] = value
        else:
            seconds = float(word)
    backend = one_side(options)
    try:
        hello = backend.hello()
    except AdapterError as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 3
    try:
        ours = agent(backend, seconds)
    finally:
        backend.close()
    bare = loop(options, hello.device, seconds)
    print(f"{hello.device}, {hello.kernel}")
    print(f"{'calls a second':<28}{'one a request':>14}{'in batches':>14}{'pyverbs loop':>14}")
    for label, (single, batched) in ours.items():
        rate = bare.get(label)
        shown = f"{rate:14.0f}  ({batched / rate:.2f} of the loop in batches)" if rate else f"{'-':>14}"
        print(f"{label:<28}{single:14.0f}{batched:14.0f}{shown}")
    if "missing" in bare:
        print(f"no loop was run: pyverbs is not there ({bare['missing']})")
    return 0


def agent(backend: RemoteBackend, seconds: float) -> dict[str, tuple[float, float]]:
    """The rates through the agent: one call a request, and in batches."""
    trouble = backend.reset(1)
    if trouble is not None:
        raise SystemExit(trouble.message)
    pd = succeed(backend, "alloc_pd", {})["pd"]
    buffer = succeed(backend, "alloc_buffer", {"length": 4096})
    cq = succeed(backend, "create_cq", {"cqe": 16})["cq"]
    region = {"pd": pd, "addr": buffer["addr"], "length": 4096, "access": ["LOCAL_WRITE"]}

    def register() -> int:
        succeed(backend, "dereg_mr", {"mr": succeed(backend, "reg_mr", region)["mr"]})
        return 2

    def register_many() -> int:
        made = batch(backend, [("reg_mr", region)] * BATCH)
        batch(backend, [("dereg_mr", {"mr": answer.out["mr"]}) for answer in made])
        return 2 * BATCH

    def poll() -> int:
        succeed(backend, "poll_cq", {"cq": cq})
        return 1

    def poll_many() -> int:
        batch(backend, [("poll_cq", {"cq": cq})] * BATCH)
        return BATCH

    return {
        "reg_mr, dereg_mr": (rate(register, seconds), rate(register_many, seconds)),
        "poll_cq of an empty queue": (rate(poll, seconds), rate(poll_many, seconds)),
    }


def rate(act: Callable[[], int], seconds: float) -> float:
    """Calls a second."""
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        calls += act()
    return calls / (time.perf_counter() - began)


def succeed(backend: RemoteBackend, verb: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a call."""
    answer = backend.call(verb, args)
    if not isinstance(answer, Answer) or answer.result != "0":
        raise SystemExit(f"{verb} gave {answer}")
    return answer.out


def batch(backend: RemoteBackend, calls: list[tuple[str, dict[str, Any]]]) -> list[Answer]:
    """The answers to a batch, all of them successes."""
    answers = backend.batch(calls)
    good = [answer for answer in answers if isinstance(answer, Answer) and answer.result == "0"]
    if len(good) != len(calls):
        raise SystemExit(f"a batch gave {answers[-1]}")
    return good


def loop(options: Mapping[str, str], device: str, seconds: float) -> dict[str, Any]:
    """The rates of the bare loop on the target."""
    source = LOOP.replace("@DEVICE@", device).replace("@SECONDS@", repr(seconds)).encode()
    done = subprocess.run(  # noqa: S603 - the user names the machine
        command_line(options, DEADLINE), input=b"%08d" % len(source) + source, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
