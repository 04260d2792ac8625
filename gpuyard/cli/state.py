"""`python -m gpuyard.cli.state ENV`: a render of this revision for `gpuyard diff` of another one, as lines of JSON.

No command of its own: its reader is another revision of gpuyard, which finds it by this module's name and arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from gpuyard.cli.project import assemble, sources_option, stacks_folder, stacks_option
from gpuyard.diff.state import State, describe, to_lines
from gpuyard.errors import InputError
from gpuyard.model.registry import Pin, Source, Sources


class Without:
    """Sources of which some are taken as missing, so that two renders go without the same ones."""

    def __init__(self, sources: Sources, names: Iterable[str]) -> None:
        self._sources, self._names = sources, frozenset(names)

    def missing(self, names: Iterable[str]) -> list[str]:
        wanted = list(names)
        gone = self._names.union(self._sources.missing(wanted))
        return [name for name in wanted if name in gone]

    def open(self, name: str) -> Source:
        return self._sources.open(name)

    def pin(self, name: str) -> Pin:
        return self._sources.pin(name)


def render_state(env: str, stacks: Path, *, allow_missing: bool, without: Iterable[str] = ()) -> State:
    """Return the state of an environment as this revision renders it."""
    project = assemble()
    environment = project.load(env, stacks)
    sources = Without(project.open_sources(), without)
    return describe(environment, project.build(environment, sources, allow_missing=allow_missing))


@click.command()
@click.argument("env")
@click.option("--without", multiple=True, metavar="SOURCE", help="Go on without this source.")
@stacks_option
@sources_option
def command(env: str, without: tuple[str, ...], stacks: Path | None, allow_missing_sources: bool) -> None:
    """Print the state of ENV."""
    state = render_state(env, stacks_folder(stacks), allow_missing=allow_missing_sources, without=without)
    sys.stdout.writelines(f"{line}\n" for line in to_lines(state))


if __name__ == "__main__":
    try:
        command(prog_name="python -m gpuyard.cli.state")
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
