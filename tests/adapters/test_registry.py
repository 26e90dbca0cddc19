"""Adapters are found by entry point; a broken one says so, and where it comes from."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from verbs_adapters import registry
from verbs_adapters.contract import AdapterError, Answer, Backend, Trouble, UsageError
from verbs_adapters.remote.client import RemoteBackend

TOY = Path(__file__).parent.parent / "backends" / "toy.py"

PLUGIN = '''
"""Adapters of a distribution that the tests install."""

import os
import sys

from verbs_adapters.contract import Answer, Hello, UsageError


class Shaky:
    """A backend that breaks when told to.

    More on it.
    """

    def __init__(self, options, /):
        if set(options) - {"fault"}:
            raise UsageError("shaky has no such option; known: fault")
        self.fault = options.get("fault")

    def hello(self):
        print("a line that a library prints", flush=True)
        return Hello(contract="1.0", name="shaky", version="1", device=str(os.getpid()), api=(), transport=())

    def reset(self, seed):
        return None

    def call(self, verb, args):
        if self.fault == "exit":
            os._exit(5)
        if self.fault == "raise":
            raise ZeroDivisionError("shaky")
        return Answer("0" if sys.stdin.read() == "" else "EIO")

    def close(self):
        pass


def explodes(options, /):
    raise KeyError("device")


def half(options, /):
    return object()
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with adapters where imports find it."""

    def put(distribution: str = "shaky-adapters", **adapters: str) -> None:
        info = tmp_path / f"{distribution.replace('-', '_')}-3.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 3.1\n")
        points = "".join(f"{name} = {value}\n" for name, value in adapters.items())
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}")
        (tmp_path / "shaky_plugin.py").write_text(PLUGIN)

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shaky_plugin", raising=False)
    return put


def test_an_entry_point_is_an_adapter(install: Install) -> None:
    install(shaky="shaky_plugin:Shaky")
    assert registry.names()["shaky"] == "A backend that breaks when told to."
    backend = registry.create("shaky", {"fault": "raise"})
    assert isinstance(backend, Backend)
    assert backend.hello().name == "shaky"
    with pytest.raises(UsageError, match="known: fault"):
        registry.create("shaky", {"color": "red"})


def test_the_built_in_adapters_are_listed_first_with_a_line_each(install: Install) -> None:
    install(process="shaky_plugin:Shaky")  # a name that is taken
    listed = registry.names()
    assert list(listed)[:3] == ["process", "isolated", "rdma-core"]
    assert listed["process"].startswith("Run a program that speaks the remote protocol (-o command=...), or connect")


def test_an_unknown_adapter_is_told_with_those_known(install: Install) -> None:
    install(shaky="shaky_plugin:Shaky")
    with pytest.raises(
        UsageError, match=r"no adapter 'shakey'\. Known: process, isolated, .*shaky.*; did you mean 'shaky'\?"
    ):
        registry.create("shakey", {})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:Backend", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("shaky_plugin:Missing", "AttributeError: .*Missing"),
    ],
)
def test_a_broken_entry_point_names_its_distribution(install: Install, value: str, reason: str) -> None:
    install(broken=value, shaky="shaky_plugin:Shaky")
    with pytest.raises(AdapterError, match=f"`broken` of shaky-adapters 3.1 cannot be loaded from `{value}`: {reason}"):
        registry.create("broken", {})
    listed = registry.names()
    assert listed["broken"].startswith("(unusable: the adapter `broken` of shaky-adapters 3.1 cannot be loaded")
    assert "shaky" in listed


def test_a_factory_that_fails_names_its_distribution(install: Install) -> None:
    install(explodes="shaky_plugin:explodes", half="shaky_plugin:half")
    with pytest.raises(AdapterError, match=r"failed to start: KeyError: 'device'.*\(from shaky-adapters 3.1\)"):
        registry.create("explodes", {})
    with pytest.raises(AdapterError, match=r"\(from shaky-adapters 3.1\) made a object, which lacks a method"):
        registry.create("half", {})


def test_two_distributions_with_the_same_adapter_are_told(install: Install) -> None:
    install(shaky="shaky_plugin:Shaky")
    install("other-adapters", shaky="shaky_plugin:Shaky")
    with pytest.raises(AdapterError, match=r"several distributions bring an adapter `shaky`: .*Uninstall all but"):
        registry.create("shaky", {})


def test_process_runs_a_command() -> None:
    command = shlex.join([sys.executable, str(TOY)])
    with closing(registry.create("process", {"command": command, "deadline": "60"})) as backend:
        assert backend.hello().name == "toy"
        assert backend.reset(1) is None
        assert backend.call("settle", {}) == Answer("0")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "needs either `-o command='PROGRAM ARGUMENT...'`"),
        ({"command": " "}, "needs either `-o command="),
        ({"command": "a 'b"}, "cannot be split into words"),
        (
            {"command": "a", "deadlin": "5"},
            "no option 'deadlin'. Known: command, connect, deadline.*; did you mean 'deadline'",
        ),
        ({"command": "a", "deadline": "soon"}, "`deadline=soon` is not a time"),
        ({"command": "a", "deadline": "0"}, "is not a time"),
        ({"command": "a", "start_deadline": "inf"}, "is not a time"),
        ({"command": "a", "grace": "nan"}, "is not a time"),
        ({"command": "a", "blame": "me"}, "the option `blame` has no value 'me'. Known: backend, glue"),
    ],
)
def test_options_of_process_are_checked(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        registry.create("process", options)


def _isolated(**options: str) -> closing[RemoteBackend]:
    return closing(cast(RemoteBackend, registry.create("isolated", {"adapter": "shaky"} | options)))


def test_isolated_runs_an_adapter_in_another_process(install: Install) -> None:
    install(shaky="shaky_plugin:Shaky")
    with _isolated() as backend, closing(registry.create("shaky", {})) as here:
        assert backend.hello().name == "shaky"
        assert backend.hello().device != here.hello().device
        assert backend.reset(1) is None
        assert backend.call("settle", {}) == Answer("0")  # and its standard input is empty


def test_isolated_passes_options_on_and_survives_the_end_of_the_backend(install: Install) -> None:
    install(shaky="shaky_plugin:Shaky")
    with _isolated(fault="exit", deadline="60") as backend:
        assert backend.reset(1) is None
        trouble = backend.call("settle", {})
        assert isinstance(trouble, Trouble)
        assert (trouble.kind, trouble.whose) == ("crash", "backend")
        assert "exited with status 5" in trouble.message
        assert "a line that a library prints" in trouble.evidence
    with _isolated(fault="raise") as backend:
        assert backend.reset(1) is None
        trouble = backend.call("settle", {})
        assert isinstance(trouble, Trouble)
        assert "raised ZeroDivisionError: shaky" in trouble.message
        assert "in call" in trouble.evidence


def test_isolated_tells_what_keeps_the_adapter_from_being_set_up(install: Install) -> None:
    install(shaky="shaky_plugin:Shaky")
    with pytest.raises(UsageError, match=r"needs `-o adapter=NAME`; known: process, isolated, .*shaky"):
        registry.create("isolated", {})
    with pytest.raises(UsageError, match="no adapter 'shakey'"):
        registry.create("isolated", {"adapter": "shakey"})
    with _isolated(color="red") as backend, pytest.raises(UsageError, match=r"status 4 .*known: fault"):
        backend.hello()
