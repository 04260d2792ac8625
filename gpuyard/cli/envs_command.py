"""`gpuyard envs`."""

from __future__ import annotations

from pathlib import Path

import click

from gpuyard.cli.console import table
from gpuyard.cli.project import assemble, stacks_folder, stacks_option
from gpuyard.model.load import environments


@click.command()
@stacks_option
def command(stacks: Path | None) -> None:
    """List the environments with what they are."""
    folder, project = stacks_folder(stacks), assemble()
    rows: list[list[str]] = []
    for name in environments(folder):
        environment = project.load(name, folder)
        gpus = sum(pool.gpus for pool in environment.pools.values())
        rows.append(
            [
                name,
                environment.cluster.name,
                environment.cluster.provider,
                environment.cluster.kubernetes,
                ", ".join(environment.pools),
                str(gpus),
                str(len(environment.teams)),
                str(len(environment.jobs)),
            ]
        )
    table(["environment", "cluster", "provider", "kubernetes", "pools", "GPUs", "teams", "jobs"], rows)
