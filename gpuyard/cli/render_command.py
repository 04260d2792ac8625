"""`gpuyard render ENV`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuyard.cli.console import counted
from gpuyard.cli.project import assemble, sources_option, stacks_folder, stacks_option, warn_of_skipped

if TYPE_CHECKING:
    from gpuyard.cli.repository import Location
    from gpuyard.cli.tree import Changes
    from gpuyard.manifests import Manifest, Rendered


@click.command()
@click.argument("env")
@click.option("--out", type=click.Path(path_type=Path), help="Write a folder with one file for each object instead.")
@click.option("--verify", is_flag=True, help="Write nothing; exit with 1 when the folder of --out is stale.")
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.option(
    "--only", "patterns", multiple=True, metavar="PATTERN", help="job/NAME, component/NAME, Kind/NAME, with * and ?."
)
@click.option("--for", "controller", type=click.Choice(["argocd", "flux"]), help="Add what this controller needs.")
@click.option("--repo", metavar="URL", help="Of the repository with the folder.  [default: git remote origin]")
@click.option("--path", metavar="PATH", help="Of the folder in the repository.  [default: as git says]")
@click.option("--revision", metavar="REF", default="main", show_default=True, help="Branch, or refs/tags/TAG.")
@stacks_option
@sources_option
def command(
    env: str,
    out: Path | None,
    verify: bool,
    form: str,
    patterns: tuple[str, ...],
    controller: str | None,
    repo: str | None,
    path: str | None,
    revision: str,
    stacks: Path | None,
    allow_missing_sources: bool,
) -> None:
    """Print the objects of ENV in the order to apply them.

    `gpuyard render prod --only job/resnet50 | kubectl create -f -` works. With --out, for a repository that Argo CD or
    Flux watches: files that stay the same are not touched, those whose object is gone are removed, and the folder
    changes as a whole or not at all.
    """
    if out is None and (verify or controller):
        raise click.UsageError(f"{'--verify' if verify else '--for'} needs --out DIR")
    if (repo or path) and not controller:
        raise click.UsageError("--repo and --path go with --for")
    if controller and (patterns or form == "json"):
        raise click.UsageError("--for takes the whole environment, as YAML")
    from gpuyard.cli.select import only

    project = assemble()
    environment = project.load(env, stacks_folder(stacks))
    built = project.build(environment, allow_missing=allow_missing_sources)
    objects = only(built.objects, patterns)
    is_stale = False
    if out is None:
        from gpuyard.manifests.yaml.emit import each_yaml, to_json

        manifests = [rendered.manifest for rendered in objects]
        if form == "json":
            click.echo(to_json(manifests), nl=False)
        else:
            for number, text in enumerate(each_yaml(manifests)):
                click.echo(f"---\n{text}" if number else text, nl=False)
    else:
        from gpuyard.cli.repository import locate
        from gpuyard.cli.tree import compare, tree_files, write_tree

        entries = _entries(controller, environment, objects, lambda: locate(out, repo, revision, path))
        files = tree_files(entries, form, skipped=built.skipped)
        if verify:
            is_stale = _report(env, out, compare(files, out))
        else:
            click.echo(f"{env}: {counted(len(objects), 'objects')} in {out}; {write_tree(files, out)}")
    warn_of_skipped(built.skipped)
    sys.exit(1 if is_stale else 0)


def _entries(
    controller: str | None, environment: Any, objects: Sequence[Rendered], location: Callable[[], Location]
) -> list[tuple[str, Manifest]]:
    """Return path and manifest of every file of a tree."""
    from gpuyard.cli.gitops import argocd_tree, flux_tree
    from gpuyard.cli.tree import object_paths

    if controller == "argocd":
        return argocd_tree(environment.name, environment.cluster.name, objects, location())
    if controller == "flux":
        return flux_tree(environment.name, objects, location())
    return [(path, one.manifest) for path, one in zip(object_paths(objects), objects, strict=True)]


def _report(env: str, out: Path, changes: Changes) -> bool:
    """Print which files a render would change, and return whether there are any."""
    for what, paths in changes._asdict().items():
        for path in paths:
            click.echo(f"{what:<8} {path}")
    is_stale = any(changes)
    click.echo(f"{env}: {out} is {f'stale: {changes}' if is_stale else 'up to date'}")
    if is_stale:
        click.echo("  fix: the same command without --verify")
    return is_stale
