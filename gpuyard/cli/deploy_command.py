"""`gpuyard deploy ENV`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.project import assemble, find_root, stacks_folder, stacks_option
from gpuyard.errors import InputError, Problem
from gpuyard.manifests import LAYERS, Rendered
from gpuyard.pulumi.stacks import stack_name


@click.command()
@click.argument("env")
@click.option(
    "--engine",
    type=click.Choice(["pulumi", "apply"]),
    default="pulumi",
    show_default=True,
    help="pulumi: the three stacks of ENV, in order. apply: server-side apply, for the sandbox only.",
)
@click.option("--preview", is_flag=True, help="Only show what would change (pulumi).")
@click.option("--yes", is_flag=True, help="Do not ask (pulumi).")
@click.option(
    "--only", "patterns", multiple=True, metavar="PATTERN", help="Only these objects; nothing is pruned (apply)."
)
@stacks_option
def command(env: str, engine: str, preview: bool, yes: bool, patterns: tuple[str, ...], stacks: Path | None) -> None:
    """Deploy ENV. A missing source, a finding or another cluster than the first time stops it."""
    if engine == "apply" and (preview or yes):
        raise click.UsageError("--preview and --yes belong to --engine pulumi")
    if engine == "pulumi" and patterns:
        raise click.UsageError("--only belongs to --engine apply; Pulumi has --target")
    folder = stacks_folder(stacks)
    objects = _checked(env, folder)
    if engine == "apply":
        _apply(env, objects, patterns)
    else:
        _pulumi(env, stacks, preview=preview, yes=yes)


def _checked(env: str, folder: Path) -> list[Rendered]:
    """Return the objects of an environment that has no findings; else print them and exit with 1."""
    from gpuyard.cli.console import coloured
    from gpuyard.rules.report import as_text, exit_code

    project: Any = assemble()
    environment = project.load(env, folder)
    built = project.build(environment)
    verdict = project.rules().judge(project.context(environment, built))
    if exit_code(verdict.findings):
        click.echo(coloured(as_text(verdict.findings)), err=True)
        click.echo("\nnot deployed", err=True)
        sys.exit(1)
    return built.objects


def _apply(env: str, objects: list[Rendered], patterns: Sequence[str]) -> None:
    from gpuyard.cli.sandbox_command import say
    from gpuyard.cli.select import names_of, only
    from gpuyard.sandbox import apply

    # A pattern that matches nothing is an error, before anything is applied.
    only(objects, patterns)

    def chosen(one: Rendered) -> bool:
        return any(fnmatchcase(name, pattern) for name in names_of(one) for pattern in patterns)

    applied = apply(env, objects, progress=say, only=chosen if patterns else None)
    counts = {
        "applied": applied.applied,
        "untouched": applied.untouched,
        "deleted": applied.deleted,
        "kept": applied.kept,
    }
    click.echo(f"{env}: " + ", ".join(f"{len(which)} {what}" for what, which in counts.items()))
    for what in ("deleted", "kept"):
        for one in counts[what]:
            click.echo(f"  {what}  {one}")


def _pulumi(env: str, stacks: Path | None, *, preview: bool, yes: bool) -> None:
    pulumi = shutil.which("pulumi")
    if not pulumi:
        raise InputError(
            Problem(
                "pulumi is not on PATH", detail="--engine pulumi runs it", fix="https://www.pulumi.com/docs/install"
            )
        )
    root = find_root(Path.cwd())
    if stacks is not None and stacks.resolve() != (root / "stacks").resolve():
        raise InputError(
            Problem(
                "Pulumi deploys the project's own environments",
                detail=f"{stacks} is not {root / 'stacks'}, the stackConfigDir of Pulumi.yaml",
                fix="deploy without --stacks, from a project whose stacks folder it is",
            )
        )
    for layer in LAYERS:
        stack = stack_name(env, layer)
        click.echo(f"stack {stack}", err=True)
        select = [pulumi, "stack", "select", "--create", stack]
        deploy = [pulumi, "preview" if preview else "up", "--stack", stack, "--policy-pack", "policies"]
        for arguments in (select, [*deploy, *(["--yes"] if yes and not preview else [])]):
            code = subprocess.run(arguments, cwd=root, check=False).returncode
            if code:
                click.echo(f"\nstopped at stack {stack}: `{' '.join(arguments[1:])}` ended with {code}", err=True)
                sys.exit(2)
