"""The command line. Each command is a module of its own, loaded only when it runs, so that `--help` stays quick."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

import click

from gpuyard import __version__
from gpuyard.errors import InputError

COMMANDS = {
    "envs": "List the environments.",
    "render": "Print or write the objects of an environment.",
    "check": "Check environments: input, schemas, references, rules.",
    "diff": "Tell what changes since a base, and what follows from it.",
    "graph": "Draw what depends on what.",
    "explain": "Tell which file and line a value came from.",
    "sources": "Pull, verify and list the pinned upstream sources.",
    "sandbox": "Run an environment on this machine, with simulated GPU nodes.",
    "deploy": "Deploy an environment to its cluster.",
    "demo": "Show what gpuyard does, from a check to gang-scheduled jobs.",
    "doctor": "Tell what this machine has and what is missing.",
}
"""In the order in which a newcomer needs them. Help comes from here: listing commands imports none of them."""


class Commands(click.Group):
    """A group whose commands are `gpuyard.cli.<name>_command.command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"gpuyard.cli.{cmd_name}_command").command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from gpuyard.errors import nearest

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = nearest(args[0], COMMANDS) or f"commands: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command is called {args[0]}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpuyard", message="%(prog)s %(version)s")
def gpuyard() -> None:
    """A GPU training platform as code.

    Environments are folders of stacks/. Exit codes: 0 fine, 1 findings, 2 error.
    """


def main() -> None:
    """Run the command line. Input errors are printed without a traceback and exit with 2; bugs may trace."""
    try:
        gpuyard(prog_name="gpuyard")
    except InputError as error:
        sys.stdout.flush()
        print(error, file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of a pipe has gone (`| head`): nothing is wrong and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    finally:
        # The interpreter looks for garbage as it ends, among all that goes with it anyway.
        gc.freeze()
