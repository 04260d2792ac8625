"""`gpuyard sources pull | verify | list | lock`."""

from __future__ import annotations

import sys

import click

from gpuyard.cli.console import table, word
from gpuyard.cli.project import assemble


@click.group()
def command() -> None:
    """Pull, verify and list the pinned upstream sources of gpuyard.lock.yaml."""


def told(name: str, state: str) -> None:
    """Print a step of something that takes long, where a person waits for it."""
    click.echo(f"{name:<21} {state}", err=True)


@command.command()
@click.argument("names", nargs=-1)
def pull(names: tuple[str, ...]) -> None:
    """Bring sources into the cache: those named, else all. What does not match its digest is refused."""
    from gpuyard.sources import read_lock
    from gpuyard.sources.pull import pull as pull_sources

    pull_sources(read_lock(assemble().LOCK), names, told)


@command.command()
def verify() -> None:
    """Compute every digest in the cache anew. Exit code 1 when something changed or is missing."""
    from gpuyard.sources import read_lock
    from gpuyard.sources.pull import verify as verify_sources

    verdicts = verify_sources(read_lock(assemble().LOCK))
    amiss = [verdict for verdict in verdicts if verdict.state not in ("ready", "not needed")]
    for verdict in verdicts:
        state = verdict.state if verdict in amiss else word("ok")
        click.echo(f"{verdict.name:<21} {state}   {verdict.detail}".rstrip())
    sys.exit(1 if amiss else 0)


@command.command(name="list")
def list_() -> None:
    """List every source with its version and whether it is in the cache."""
    from gpuyard.sources import read_lock
    from gpuyard.sources.pull import listing

    rows = [[str(cell) for cell in row] for row in listing(read_lock(assemble().LOCK))]
    table(["source", "kind", "version", "from", "state"], rows)


@command.command()
@click.argument("name")
def lock(name: str) -> None:
    """Download NAME as it is upstream now and record its digest: the one command that trusts what it gets."""
    from gpuyard.sources import read_lock
    from gpuyard.sources.pull import record

    click.echo(f"{name} {record(read_lock(assemble().LOCK), name, told)}")
