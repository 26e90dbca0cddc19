"""``verbspec lab``: build, run, look into and list the guests of the lab."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import yaml
from click.core import ParameterSource
from rich.table import Table

from verbs_adapters.lab import boot, host, image, oracle, shell
from verbs_adapters.lab.adapter import DEFAULTS, tell
from verbs_adapters.lab.kernels import APIS, DEVICES, KERNELS, choose, host_compilers
from verbs_conformance import columns

_kernel = click.option(
    "--kernel",
    default=DEFAULTS["kernel"],
    show_default=True,
    metavar="SERIES|DIR",
    help="A kernel of `lab list`, or a folder with one that you built.",
)

CANNOT_TEST = 125
"""What ``git bisect run`` takes for "this commit cannot be tested"."""

_DECIDED = (0, 1, 4, 5)
"""Exit codes of a run that say something of the kernel, or that the command is wrong."""


@click.group("lab")
def lab() -> None:
    """Judge the kernel's software RDMA drivers in virtual machines built from the distribution's packages."""


@lab.command()
@click.argument("kernels", nargs=-1, metavar="[SERIES]...")
@click.option("--again", is_flag=True, help="Build anew even if there is an image, with the newest packages.")
def build(kernels: Sequence[str], again: bool) -> int:
    """Build the images of these kernels (without one, of the default) and keep them."""
    for name in kernels or (DEFAULTS["kernel"],):
        kernel = KERNELS[choose("kernel", name, KERNELS)]
        if again:
            image.forget(kernel)
        built = image.ensure(kernel, tell)
        click.echo(f"{name}: {built.tree.release} ({built.kernel.suite}) in {built.folder}")
    return 0


@lab.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@_kernel
@click.option("--device", default=DEFAULTS["device"], show_default=True, help="The software device.")
@click.option("--api", default=DEFAULTS["api"], show_default=True, help="The API that is judged.")
@click.pass_context
def run(context: click.Context, kernel: str, device: str, api: str) -> None:
    """Judge a driver: `verbspec run lab -o kernel=... -o device=... -o api=...`, and all options of `run`.

    With the folder of a kernel that you built the exit code is for `git bisect run`: 125 where nothing is decided,
    because it does not boot or what else is in the way.
    """
    root = context.find_root().command
    assert isinstance(root, click.Group)
    given = {"kernel": kernel, "device": device, "api": api}
    defaults = {name for name in given if context.get_parameter_source(name) is ParameterSource.DEFAULT}
    options = [f"-o{name}={value}" for name, value in given.items() if name not in defaults]
    own = boot.folder(kernel) is not None
    try:
        root.main(args=["run", "lab", *options, *context.args], prog_name="verbspec")
    except SystemExit as end:
        if own and end.code not in _DECIDED:
            tell(f"nothing is decided about {kernel} (exit code {end.code}), so this ends with {CANNOT_TEST}")
            sys.exit(CANNOT_TEST)
        raise


@lab.command("shell")
@_kernel
@click.option("--device", default=DEFAULTS["device"], show_default=True, help="The software device.")
def shell_(kernel: str, device: str) -> int:
    """Boot a guest and give you a shell on its console; it ends with `exit`."""
    choose("device", device, DEVICES)
    with tempfile.TemporaryDirectory(prefix="verbspec-lab-") as folder:
        return shell.run(boot.prepare(kernel, image.Wanted(DEFAULTS["api"], device), Path(folder), tell), device)


@lab.command()
@click.argument("kernels", nargs=-1, metavar="[SERIES]...")
def packages(kernels: Sequence[str]) -> int:
    """List the packages of this host's distribution (Debian) that the lab needs for these kernels, one a line.

    Without a kernel, for the default one: apt-get install $(verbspec lab packages)
    """
    chosen = [KERNELS[choose("kernel", name, KERNELS)] for name in kernels or (DEFAULTS["kernel"],)]
    for name in host.packages(host_compilers(chosen), roots=any(kernel.toolchain for kernel in chosen)):
        click.echo(name)
    return 0


@lab.command("qp-table")
@_kernel
@click.option("--out", type=click.Path(path_type=Path), help="A file; without it the table is printed.")
def qp_table(kernel: str, out: Path | None) -> int:
    """Ask a kernel which attributes each transition of a queue pair requires and allows."""
    found = oracle.qp_table(kernel, DEFAULTS["device"], tell)
    text = yaml.safe_dump(found, sort_keys=False, default_flow_style=None, width=118)
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        click.echo(f"{len(found['transitions'])} transitions, {found['asked']} questions: {out}")
    return 0


@lab.command("list")
def list_() -> int:
    """List the kernels, what is built, and what this machine lacks."""
    table = Table("kernel", "suite", "image", box=None, pad_edge=False)
    for name, kernel in KERNELS.items():
        built = image.existing(kernel)
        table.add_row(name, kernel.suite, f"{built.tree.release}, in {built.folder}" if built else "not built")
    console = columns.Terminal(highlight=False, soft_wrap=True)
    console.print(table)
    for what, known in (("devices", DEVICES), ("APIs", APIS)):
        console.print(f"\n{what}:")
        for name, text in known.items():
            console.print(f"  {name}: {text}")
    absent = host.missing([*host.PROGRAMS, *host_compilers(KERNELS.values())])
    if absent:
        packages = " ".join(sorted(set(absent.values())))
        console.print(f"\nmissing here: {', '.join(sorted(absent))} (on Debian: apt-get install {packages})")
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        console.print("\n/dev/kvm cannot be used: guests are emulated")
    return 0
