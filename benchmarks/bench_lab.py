"""What the lab costs: building a guest, booting it, and calling verbs in it, next to a bare pyverbs loop there.

``python benchmarks/bench_lab.py [SECONDS] [KEY=VALUE...] [--build]`` takes the options of the adapter ``lab``
(``kernel=6.12``).  The loop runs in the guest before the agent says hello, and the agent's hello brings its rates
along, so both are measured in one guest, one after the other; the aim is half of the loop.  ``--build`` builds a guest
in an empty cache first and prints what each stage takes.

Seconds are of the wall clock, and processor seconds of all programs that were run.  On a shared machine the former are
noisy: compare ratios of one run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench_agent import LOOP, agent

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab import image
from verbs_adapters.lab.adapter import DEFAULTS, lab, tell
from verbs_adapters.lab.kernels import KERNELS
from verbs_adapters.rdma_core.source import agent_source

GUEST = """
import os, subprocess, sys, types
loop = subprocess.run([sys.executable, "-c", {loop!r}], capture_output=True, text=True)
module = sys.modules["measured"] = types.ModuleType("measured")
exec(compile({agent!r}, "agent.py", "exec"), module.__dict__)
bare = module.Opened.hello
def hello(self, capabilities):
    import json
    rates = json.loads(loop.stdout) if loop.returncode == 0 else {{}}
    if not rates or "missing" in rates:
        raise module.Unusable("the loop does not run: " + (loop.stderr or loop.stdout)[-300:])
    found = bare(self, capabilities)
    found["limits"] = {{"loop " + label: int(rate) for label, rate in rates.items()}}
    return found
module.Opened.hello = hello
module.main()
"""
"""The guest's agent: first the loop, then the ordinary agent, whose hello holds the loop's rates as limits."""


def main() -> int:
    """Measure and print."""
    seconds, options, building = 3.0, {"api": "linux-user"}, False
    for word in sys.argv[1:]:
        key, equals, value = word.partition("=")
        if word == "--build":
            building = True
        elif equals:
            options[key] = value
        else:
            seconds = float(word)
    kernel = options.get("kernel", DEFAULTS["kernel"])
    try:
        if building:
            build(kernel)
        image.ensure(KERNELS[kernel], tell)
        with tempfile.TemporaryDirectory() as folder:
            rates(options, seconds, Path(folder))
    except AdapterError as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 3
    return 0


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print what something takes."""
    began, before = time.perf_counter(), _processor()
    yield
    print(f"{what:<34}{time.perf_counter() - began:8.1f} s{_processor() - before:8.1f} s of a processor", flush=True)


def _processor() -> float:
    """Processor seconds of this process and of the programs that it ran and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def build(kernel: str) -> None:
    """Build a guest and our kernel module from nothing."""
    kept = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            with timed(f"building the guest {kernel}"):
                built = image.ensure(KERNELS[kernel], tell)
            with timed("building kverbs.ko, packing"):
                wanted = image.Wanted("linux-kernel", DEFAULTS["device"])
                image.for_run(built, built.tree, wanted, Path(folder) / "run", tell)
        finally:
            if kept is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = kept


def rates(options: dict[str, str], seconds: float, folder: Path) -> None:
    """Boot a guest twice: as it is, then with the loop in it; print boot time and rates."""
    with timed("booting a guest to its hello"):
        first = lab(options)
        try:
            first.hello()
        finally:
            first.close()
    measured = folder / "agent.py"
    source = LOOP.replace("@DEVICE@", "rxe0").replace("@SECONDS@", repr(seconds))
    measured.write_text(GUEST.format(loop=source, agent=agent_source().decode()), encoding="utf-8")
    backend = lab(options | {"agent": str(measured)})
    try:
        hello = backend.hello()
        ours = agent(backend, seconds)
    finally:
        backend.close()
    print(f"{hello.device}, {hello.kernel}")
    print(f"{'calls a second':<28}{'one a request':>14}{'in batches':>14}{'pyverbs loop':>14}")
    for label, (single, batched) in ours.items():
        bare = hello.limits[f"loop {label}"]
        print(f"{label:<28}{single:14.0f}{batched:14.0f}{bare:14d}  ({batched / bare:.2f} of the loop in batches)")


if __name__ == "__main__":
    sys.exit(main())
