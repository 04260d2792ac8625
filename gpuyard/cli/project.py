"""Finds the project a command runs in and loads its content by name; the framework never imports it otherwise."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gpuyard.errors import InputError, Origin, Problem

F = TypeVar("F", bound=Callable[..., Any])


def find_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` with Pulumi.yaml and infra/assemble.py."""
    for folder in (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file() and (folder / "infra" / "assemble.py").is_file():
            return folder
    raise InputError(
        Problem(
            "no gpuyard project", Origin(str(start)), detail="no Pulumi.yaml with infra/ here or above", fix="go there"
        )
    )


def assemble() -> Any:
    """Return the project's `infra.assemble`: `load`, `build`, `rules`, `registry`, `open_sources`."""
    root = str(find_root(Path.cwd()))
    if root not in sys.path:
        sys.path.insert(0, root)
    return importlib.import_module("infra.assemble")


def stacks_option(command: F) -> F:
    """Add `--stacks DIR`."""
    return click.option(
        "--stacks",
        type=click.Path(path_type=Path),
        default=None,
        help="Folder of environments.  [default: stacks, of the project]",
    )(command)


def stacks_folder(given: Path | None) -> Path:
    """Return the folder of environments; the default one relative to where the user stands, for short messages."""
    if given is not None:
        return given
    folder = find_root(Path.cwd()) / "stacks"
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def sources_option(command: F) -> F:
    """Add `--allow-missing-sources`."""
    return click.option(
        "--allow-missing-sources",
        is_flag=True,
        help="Go on without the upstream sources that are not in the cache, and say so.",
    )(command)


def warn_of_skipped(skipped: tuple[str, ...]) -> None:
    """Say on standard error which sources a result goes without."""
    if skipped:
        click.echo(
            f"incomplete: rendered without {', '.join(skipped)} (not in the cache; gpuyard sources pull)", err=True
        )
