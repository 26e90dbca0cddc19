"""Builds the C pieces of these tests, where there are a compiler and the header of libibverbs; makes calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from verbs_adapters.contract import Answer, Backend
from verbs_adapters.remote.client import RemoteBackend

HERE = Path(__file__).parent

Open = Callable[..., RemoteBackend]


def compile_c(source: Path, target: Path, *flags: str) -> Path:
    """Compile one file against <infiniband/verbs.h>.

    Where that cannot be done the test is skipped, and fails if VERBSPEC_NEEDS_C says that it can: as `.ci/run` does,
    which installs what is needed.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        _lack("no C compiler on PATH; install gcc to run this test")
    probe = subprocess.run(
        [compiler, "-E", "-"], input="#include <infiniband/verbs.h>\n", capture_output=True, text=True, check=False
    )
    if probe.returncode:
        _lack("no <infiniband/verbs.h>; install libibverbs-dev (rdma-core-devel) to run this test")
    subprocess.run([compiler, "-Wall", "-Werror", *flags, "-o", str(target), str(source)], check=True)
    return target


def _lack(what: str) -> NoReturn:
    if os.environ.get("VERBSPEC_NEEDS_C"):
        pytest.fail(what)
    pytest.skip(what)


def fake_library(folder: Path) -> Path:
    """A folder whose libibverbs.so.1 is the one of ibverbs.c, for LD_LIBRARY_PATH."""
    compile_c(HERE / "ibverbs.c", folder / "libibverbs.so.1", "-shared", "-fPIC", "-O1")
    return folder


def do(backend: Backend, verb: str, /, **args: Any) -> dict[str, Any]:
    """A call that must succeed."""
    answer = backend.call(verb, args)
    assert isinstance(answer, Answer), answer
    assert answer.result == "0", (verb, answer)
    return answer.out


def fails(backend: RemoteBackend, verb: str, /, **args: Any) -> str:
    """A call that must fail; its errno."""
    answer = backend.call(verb, args)
    assert isinstance(answer, Answer), answer
    return answer.result
