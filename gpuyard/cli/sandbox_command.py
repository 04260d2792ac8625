"""`gpuyard sandbox up | status | down | scenario`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuyard.cli.console import table, word
from gpuyard.cli.project import assemble, stacks_folder, stacks_option

if TYPE_CHECKING:
    from gpuyard.sandbox.scenario import Deadlock


@click.group()
def command() -> None:
    """Run an environment on this machine: a real control plane, simulated GPU nodes, no Docker."""


def say(text: str) -> None:
    """Print a step where a person waits for it."""
    click.echo(text, err=True)


def built_binaries(names: tuple[str, ...], progress: Callable[[str, str], None]) -> Mapping[str, Path]:
    """Return the sandbox's binaries; the first time they are built from the lock file's sources."""
    from gpuyard.sources import read_lock
    from gpuyard.sources.build import binaries

    return binaries(read_lock(assemble().LOCK), names, progress)


@command.command()
@click.argument("env", default="sandbox")
@click.option(
    "--engine",
    type=click.Choice(["apply", "pulumi"]),
    default="apply",
    show_default=True,
    help="Who deploys to it. pulumi: the cluster stays empty for `gpuyard deploy ENV --engine pulumi`.",
)
@click.option("--show-substitutions", is_flag=True, help="Print what is replaced so that controllers run as processes.")
@stacks_option
def up(env: str, engine: str, show_substitutions: bool, stacks: Path | None) -> None:
    """Start the sandbox with ENV's nodes and platform  [default: sandbox]; one that runs already is left alone."""
    from gpuyard.sandbox import BINARIES
    from gpuyard.sandbox import up as start

    project: Any = assemble()
    environment = project.load(env, stacks_folder(stacks))
    built = project.build(environment)
    binaries = built_binaries(BINARIES, lambda name, state: say(f"{name:<24} {state}"))
    sandbox = start(environment, built.objects, binaries, project.open_sources(), progress=say, engine=engine)
    if show_substitutions:
        table(["object", "field", "rendered", "here"], sandbox.table)
    click.echo(f"export KUBECONFIG={sandbox.kubeconfig}")
    if engine == "pulumi":
        say(f"next, with that set: gpuyard deploy {env} --engine pulumi")


@command.command()
def status() -> None:
    """Tell whether the sandbox runs. Exit code 1 when it does not."""
    from gpuyard.sandbox import status as look

    found = look()
    click.echo(f"sandbox  {found.state}" + (f"  environment {found.environment}" if found.environment else ""))
    for process, alive in found.processes.items():
        click.echo(f"  {process:<26} {'running' if alive else word('fail') + '  see ' + found.logs[process]}")
    if found.kubeconfig and found.state == "running":
        click.echo(f"export KUBECONFIG={found.kubeconfig}")
    sys.exit(0 if found.state == "running" else 1)


@command.command()
def down() -> None:
    """Stop the sandbox and delete everything it wrote."""
    from gpuyard.sandbox import down as stop

    click.echo("the sandbox is gone" if stop(progress=say) else "there was no sandbox")


@command.command()
@click.argument("name", type=click.Choice(["deadlock"]))
@stacks_option
def scenario(name: str, stacks: Path | None) -> None:
    """Run a scenario in the sandbox.

    deadlock: two jobs that each need all GPUs, under the default scheduler and as gpuyard declares them.
    """
    from gpuyard.cli.deadlock_table import show_deadlock

    result = run_deadlock(stacks_folder(stacks), say)
    show_deadlock(result)
    sys.exit(0 if result.proven else 1)


def run_deadlock(folder: Path, progress: Callable[[str], None]) -> Deadlock:
    """Run the two TFJobs of environment `sandbox` both ways."""
    from gpuyard.sandbox import BINARIES, deadlock

    project: Any = assemble()
    environment = project.load("sandbox", folder)
    built = project.build(environment)
    binaries = built_binaries(BINARIES, lambda name, state: progress(f"{name:<24} {state}"))
    return deadlock(environment, built.objects, binaries, project.open_sources(), progress=progress)
