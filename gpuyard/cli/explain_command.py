"""`gpuyard explain ENV KEY`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from gpuyard.cli.project import assemble, stacks_folder, stacks_option
from gpuyard.errors import InputError, Origin, Problem, listed, nearest
from gpuyard.manifests.data import is_map
from gpuyard.manifests.yaml.read import field_name
from gpuyard.model.complain import value_text


@click.command()
@click.argument("env")
@click.argument("key")
@stacks_option
def command(env: str, key: str, stacks: Path | None) -> None:
    """Tell which file and line the value of KEY came from.

    KEY is dotted: pools.h100.nodes.max, teams.vision.quota, jobs.resnet50.gpus, addons.gpu-operator.driver.
    """
    folder = stacks_folder(stacks)
    environment = assemble().load(env, folder)
    path = tuple(int(part) if part.isdigit() else part for part in re.split(r"[.\[]", key.replace("]", "")) if part)
    places = environment.written.get(path)
    if not places:
        parent = path[
            : next(length for length in range(len(path), -1, -1) if length == 0 or path[:length] in environment.written)
        ]
        accepted = {str(known[len(parent)]) for known in environment.written if known[: len(parent)] == parent != known}
        if not parent:
            accepted = {str(known[0]) for known in environment.written}
        missing = str(path[len(parent)]) if len(parent) < len(path) else ""
        where = field_name(parent) or "the environment"
        raise InputError(
            Problem(
                "nothing is written there",
                Origin(str(folder / env)),
                key,
                f"{where} has {listed(accepted)}",
                nearest(missing, accepted),
            )
        )
    *earlier, last = places
    click.echo(f"{field_name(path)} = {value_text(last.value)}")
    click.echo(f"  {last.origin}")
    for place in reversed(earlier):
        click.echo(f"  {place.origin}   {'merged with' if is_map(place.value) else 'was'} {value_text(place.value)}")
