"""``verbspec adapter``: begin an agent, check that one keeps to the protocol, and have one that ships.

None judges a device: ``check`` is about lines and shapes (docs/adapter-protocol.md), ``new`` writes something that
passes it, ``agent`` writes an agent that is brought to a target by its adapter otherwise.
"""

from __future__ import annotations

import os
import shlex
import stat
from importlib import resources
from pathlib import Path
from string import Template

import click

from verbs_adapters.contract import AdapterError
from verbs_adapters.lab.kernels import agent as agent_of
from verbs_adapters.remote import messages, streams
from verbs_adapters.remote.checker import Checker, Finding, Unusable
from verbs_adapters.remote.child import ChildPeer
from verbs_adapters.remote.client import DEADLINE, START_DEADLINE

TEMPLATES = {"agent.py": "agent.py.txt", "README.md": "README.md.txt", "judge": "judge.txt"}
"""The files of a new agent, and what each is made from."""

RUN_BY_HAND = ("agent.py", "judge")

AGENTS = {"rdma-core": lambda: agent_of("linux-user"), "kverbs": lambda: agent_of("linux-kernel")}
"""The agents that ship."""


@click.group()
def adapter() -> None:
    """Begin an agent of your own, or check one."""


@adapter.command()
@click.argument("command")
@click.option("--deadline", default=DEADLINE, show_default=True, help="Seconds that a reply may take.")
@click.option("--start-deadline", default=START_DEADLINE, show_default=True, help="Seconds until the hello.")
@click.option("-v", "--verbose", is_flag=True, help="Show the conversation of every failed check in full.")
def check(command: str, deadline: float, start_deadline: float, verbose: bool) -> int:
    """Check that an agent keeps to the protocol: COMMAND starts it, or is unix:/PATH, tcp:HOST:PORT, serial:/dev/NAME.

    Exit codes: 0 it does; 1 it does not; 3 it cannot be started; 4 wrong usage.
    """
    checker = Checker(_peer(command), deadline, start_deadline)
    failed = total = 0
    try:
        for finding in checker.run():
            total += 1
            failed += not finding.passed
            _print(finding, verbose)
    except Unusable as error:
        raise AdapterError(f"the agent `{command}` gives {error}") from error
    click.echo(f"{total} checks, {failed} failed" if failed else f"{total} checks, all passed")
    return 1 if failed else 0


def _peer(command: str) -> ChildPeer | streams.SocketPeer | streams.SerialPeer:
    if command.partition(":")[0] in ("unix", "tcp", "serial"):
        return streams.peer(command, messages.MAX_LINE)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"COMMAND cannot be split into words as a shell would: {error}") from error
    if not words:
        raise click.UsageError("COMMAND is empty; give the program and its arguments in one word of the shell")
    return ChildPeer(words, None, messages.MAX_LINE)


def _print(finding: Finding, verbose: bool) -> None:
    click.echo(f"{'pass' if finding.passed else 'FAIL'}  {finding.name:<30} {finding.note}")
    for line in finding.heard if verbose else finding.heard[-3:]:
        click.echo(f"        {line}")
    for line in finding.log.decode("utf-8", "backslashreplace").splitlines()[-20 if verbose else -3 :]:
        click.echo(f"        stderr: {line}")


@adapter.command()
@click.argument("name", type=click.Choice(list(AGENTS)))
def agent(name: str) -> int:
    """Print an agent that ships, one plain Python file: for rdma-core, or for kernel verbs (kverbs)."""
    click.echo(AGENTS[name](), nl=False)
    return 0


@adapter.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--python", default="python3", show_default=True, help="What runs the agent.")
def new(folder: Path, python: str) -> int:
    """Write an agent in plain Python into FOLDER, which passes the check and is yours to fill in."""
    taken = [name for name in TEMPLATES if (folder / name).exists()]
    if taken:
        raise click.UsageError(f"{folder} has {', '.join(taken)} already, and nothing is written over; name another")
    name = folder.resolve().name
    if not name.isprintable() or set(name) & set("\"'\\"):
        raise click.UsageError(f"{name!r} becomes the name of the device; choose one without quotes and backslashes")
    folder.mkdir(parents=True, exist_ok=True)
    source = resources.files("verbs_adapters.starter")
    for target, template in TEMPLATES.items():
        text = Template(source.joinpath(template).read_text(encoding="utf-8"))
        path = folder / target
        path.write_text(text.substitute(name=name, python=python), encoding="utf-8")
        if target in RUN_BY_HAND:
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        click.echo(f"wrote {path}")
    agent = shlex.join([*shlex.split(python), os.fspath(folder / "agent.py")])
    click.echo(f"check it: verbspec adapter check {shlex.quote(agent)}")
    click.echo(f"judge it: {shlex.quote(os.fspath(folder / 'judge'))}")
    return 0
