"""The adapters there are: those of entry points, and those that run agents.

An adapter is a :class:`~verbs_adapters.contract.BackendFactory` that a distribution announces in the entry
point group ``verbspec.adapters``.  Four names are taken: ``process`` runs or connects to any program that speaks
the remote protocol, ``isolated`` runs any other adapter in a process of its own, ``rdma-core`` brings an agent to a
machine that has an RDMA device, ``lab`` to a guest that has one.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from verbs_adapters.contract import AdapterError, Backend, BackendFactory, UsageError
from verbs_adapters.lab.adapter import lab
from verbs_adapters.options import check_known, seconds, whose, words
from verbs_adapters.rdma_core.adapter import rdma_core
from verbs_adapters.remote import messages, streams
from verbs_adapters.remote.client import DEADLINE, GRACE, START_DEADLINE, RemoteBackend

GROUP = "verbspec.adapters"


def process(options: Mapping[str, str], /) -> RemoteBackend:
    """Run a program that speaks the remote protocol (-o command=...), or connect to one (-o connect=...)."""
    check_known("process", options, ("command", "connect", "deadline", "start_deadline", "grace", "blame"))
    command = words(options, "command")
    if bool(command) == ("connect" in options):
        raise UsageError(
            "the adapter `process` needs either `-o command='PROGRAM ARGUMENT...'` or `-o connect=ADDRESS`; "
            f"addresses are {streams.FORMS}"
        )
    return RemoteBackend(
        command or streams.peer(options["connect"], messages.MAX_LINE),
        deadline=seconds(options, "deadline", DEADLINE),
        start_deadline=seconds(options, "start_deadline", START_DEADLINE),
        grace=seconds(options, "grace", GRACE) if "grace" in options else None,
        blame=whose(options, "backend"),
    )


def isolated(options: Mapping[str, str], /) -> RemoteBackend:
    """Run another adapter in a child process, so that it may crash or hang."""
    name = options.get("adapter")
    if name is None:
        raise UsageError(f"the adapter `isolated` needs `-o adapter=NAME`; known: {', '.join(names())}")
    _check_exists(name)
    passed_on = [f"-o{key}={value}" for key, value in options.items() if key not in ("adapter", "deadline")]
    # -P, and our own path: the child must import what we would, not what lies in the current directory.
    command = [sys.executable, "-P", "-m", "verbs_adapters.remote.serve", *passed_on, "--", name]
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return RemoteBackend(
        command, deadline=seconds(options, "deadline", DEADLINE), env=os.environ | {"PYTHONPATH": path}
    )


_BUILT_IN: dict[str, BackendFactory] = {"process": process, "isolated": isolated, "rdma-core": rdma_core, "lab": lab}


def create(name: str, options: Mapping[str, str]) -> Backend:
    """Make the backend of that name; whatever prevents it is an `AdapterError` that says what."""
    _check_exists(name)
    factory = _BUILT_IN.get(name) or _load(name)
    try:
        backend = factory(options)
    except AdapterError:
        raise
    except Exception as error:
        raise AdapterError(
            f"the adapter `{name}` failed to start: {type(error).__name__}: {error}. This is a defect of the "
            f"adapter{_origin(name)}."
        ) from error
    if not isinstance(backend, Backend):
        raise AdapterError(
            f"the adapter `{name}`{_origin(name)} made a {type(backend).__name__}, which lacks a method of "
            "the contract (hello, reset, call, close). This is a defect of the adapter."
        )
    return backend


def names() -> dict[str, str]:
    """Each adapter's name with one line on what it is, or on why it cannot be used."""
    found = {}
    for name in sorted(_entry_points()):
        try:
            found[name] = _first_line(_load(name))
        except AdapterError as error:
            found[name] = f"(unusable: {error})"
    return {name: _first_line(factory) for name, factory in _BUILT_IN.items()} | found


def _entry_points() -> dict[str, list[EntryPoint]]:
    """The entry points by name; more than one only if distributions disagree."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        if point.name not in _BUILT_IN:
            found.setdefault(point.name, []).append(point)
    return found


def _check_exists(name: str) -> None:
    known = [*_BUILT_IN, *sorted(_entry_points())]
    if name not in known:
        found = UsageError.unknown("this environment", "adapter", name, known)
        raise UsageError(
            f"{found} One that is missing comes with a distribution that has an entry point in the group "
            f"{GROUP}: is it installed here?"
        )


def _load(name: str) -> BackendFactory:
    point, *others = _entry_points()[name]
    if others:
        raise AdapterError(
            f"several distributions bring an adapter `{name}`: "
            f"{', '.join(map(_distribution, [point, *others]))}. Uninstall all but one."
        )
    try:
        factory: BackendFactory = point.load()
    except Exception as error:
        raise AdapterError(
            f"the adapter `{name}` of {_distribution(point)} cannot be loaded from `{point.value}`: "
            f"{type(error).__name__}: {error}. Reinstall that distribution or report it there."
        ) from error
    return factory


def _origin(name: str) -> str:
    return "".join(f" (from {_distribution(point)})" for point in _entry_points().get(name, []))


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"


def _first_line(factory: BackendFactory) -> str:
    return (inspect.getdoc(factory) or "").partition("\n")[0]
