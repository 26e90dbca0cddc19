"""The command line, ``verbspec``.

Each command is a thin shell: it reads options, calls the layer that does the work, prints, and turns what came of it
into the documented exit code.  Errors that a person can mend are printed without a traceback, with whose fault it
is; 3 is for the adapter, the harness and the specification, 4 for wrong usage.  A command stands in a module that is
imported when it is called: a check of the specification waits for nothing that only a run needs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from verbs_adapters.contract import AdapterError
from verbs_adapters.contract import UsageError as AdapterUsageError
from verbs_conformance.errors import BadProgram, BadWaivers
from verbs_conformance.start import INTERRUPTED, NOTHING_DONE
from verbs_reports.results import ResultsError
from verbs_spec.errors import ProfileError, SpecError

ERROR, USAGE = 3, 4
COMMANDS = {
    "run": "run_cli:run",
    "replay": "run_cli:replay",
    "list": "spec_cli:list_",
    "explain": "spec_cli:explain",
    "prove": "spec_cli:prove",
    "spec": "spec_cli:spec",
    "adapter": "adapter_cli:adapter",
    "report": "report_cli:report",
    "waivers": "waivers_cli:waivers",
    "lab": "lab_cli:lab",
    "faults": "faults_cli:command",
}
"""Where each command stands."""


class Commands(click.Group):
    """A group whose usage errors end with exit code 4, and whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, from its module."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, name = COMMANDS[cmd_name].split(":")
        found: click.Command = getattr(import_module(f"verbs_conformance.{module}"), name)
        return found

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            return sys.exit(super().main(*args, **kwargs) or 0)
        except click.exceptions.Exit as e:
            sys.exit(e.exit_code)
        except click.UsageError as e:
            e.show()
            sys.exit(USAGE)
        except click.ClickException as e:
            e.show()
            sys.exit(e.exit_code)
        except (click.Abort, KeyboardInterrupt):
            click.echo(NOTHING_DONE, err=True)
            sys.exit(INTERRUPTED)
        except OSError as e:
            _of_the_system(e)
        except SpecError as e:
            _fail(f"{e}\nThe fault is the specification's.", ERROR)
        except AdapterUsageError as e:
            _fail(f"{e}\nNothing was started: correct the command and run it again.", USAGE)
        except AdapterError as e:
            _fail(f"{e}\nNothing was judged: the adapter cannot be used like this.", ERROR)
        except (BadProgram, BadWaivers, ResultsError, ProfileError) as e:
            _fail(str(e), USAGE)


def _of_the_system(error: OSError) -> None:
    """End because of a file or a folder."""
    where = f"{error.filename}: " if error.filename else ""
    _fail(f"{where}{error.strerror or error}\nA file cannot be read or written; the fault is not the backend's.", USAGE)


def _fail(message: str, code: int) -> None:
    click.echo(f"verbspec: {message}", err=True)
    sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="verbspec")
def main() -> None:
    """Judge an implementation of RDMA verbs against the specification."""


if __name__ == "__main__":
    main()
