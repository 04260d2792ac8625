"""`gpuyard render ENV`."""

from __future__ import annotations

from pathlib import Path

import click

from gpuyard.cli.project import assemble, sources_option, stacks_folder, stacks_option, warn_of_skipped


@click.command()
@click.argument("env")
@click.option("--out", type=click.Path(path_type=Path), help="Write a folder with one file for each object instead.")
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.option(
    "--only", "patterns", multiple=True, metavar="PATTERN", help="job/NAME, component/NAME, Kind/NAME, with * and ?."
)
@stacks_option
@sources_option
def command(
    env: str, out: Path | None, form: str, patterns: tuple[str, ...], stacks: Path | None, allow_missing_sources: bool
) -> None:
    """Print the objects of ENV in the order to apply them.

    `gpuyard render prod --only job/resnet50 | kubectl create -f -` works.
    """
    from gpuyard.cli.select import only
    from gpuyard.manifests.emit import to_json, to_yaml

    project = assemble()
    built = project.build(project.load(env, stacks_folder(stacks)), allow_missing=allow_missing_sources)
    objects = only(built.objects, patterns)
    if out is not None:
        from gpuyard.cli.tree import write_tree

        count = write_tree(objects, out, form)
        click.echo(f"{env}: {count} objects in {out}")
    else:
        manifests = [rendered.manifest for rendered in objects]
        click.echo(to_json(manifests) if form == "json" else to_yaml(manifests), nl=False)
    warn_of_skipped(built.skipped)
