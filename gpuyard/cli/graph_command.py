"""`gpuyard graph ENV`."""

from __future__ import annotations

from pathlib import Path

import click

from gpuyard.cli.project import assemble, sources_option, stacks_folder, stacks_option, warn_of_skipped


@click.command()
@click.argument("env")
@click.option(
    "--format", "form", type=click.Choice(["text", "dot", "mermaid", "json"]), default="text", show_default=True
)
@click.option(
    "--only",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="These objects and all that they need: job/NAME, component/NAME, Kind/NAME, with * and ?.",
)
@click.option("--why", is_flag=True, help="Say for each object what it needs, and for which reason.")
@click.option("--reverse", is_flag=True, help="In the order to delete; with --only, all that needs these objects.")
@stacks_option
@sources_option
def command(
    env: str,
    form: str,
    patterns: tuple[str, ...],
    why: bool,
    reverse: bool,
    stacks: Path | None,
    allow_missing_sources: bool,
) -> None:
    """Draw what depends on what in ENV, in the order to apply it.

    `gpuyard graph prod --only job/resnet50 --why` tells what a job needs and why,
    `gpuyard graph prod --only Queue/vision --reverse` what has to go before a queue can.
    """
    from gpuyard.cli.draw import as_dot, as_json, as_mermaid, as_text, view
    from gpuyard.cli.select import only
    from gpuyard.manifests.graph import Graph

    project = assemble()
    built = project.build(project.load(env, stacks_folder(stacks)), allow_missing=allow_missing_sources)
    chosen = [one.identity for one in only(built.objects, patterns)]
    shown = view(env, Graph(built.objects), chosen, reverse=reverse)
    if form == "json":
        click.echo(as_json(shown))
    elif form == "text":
        click.echo(as_text(shown, why=why))
    else:
        click.echo((as_dot if form == "dot" else as_mermaid)(shown, why=why))
    warn_of_skipped(built.skipped)
