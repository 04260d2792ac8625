"""`gpuyard diff ENV`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuyard.cli.console import is_terminal
from gpuyard.cli.project import find_root, sources_option, stacks_folder, stacks_option, warn_of_skipped

if TYPE_CHECKING:
    from gpuyard.diff.report import Report

_COLOURS = {"+": "green", "-": "red", "~": "yellow", "±": "magenta"}


@click.command()
@click.argument("env")
@click.option(
    "--base",
    metavar="REV|DIR",
    help="A git revision, the folder of another project, or one that `render --out` wrote."
    "  [default: where HEAD left origin/main, else HEAD]",
)
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@stacks_option
@sources_option
def command(env: str, base: str | None, form: str, stacks: Path | None, allow_missing_sources: bool) -> None:
    """Tell what changes in ENV since a base, and what follows from it.

    A project as base is rendered by its own code. Exit code 0: nothing changes. 1: something does. 2: an error.
    """
    from gpuyard.diff.report import as_json, as_markdown, as_text

    # Nearly all that is made here lives until the end: collecting garbage among it only costs time.
    gc.disable()
    try:
        report = _report(env, base, stacks_folder(stacks), allow_missing_sources)
    except KeyboardInterrupt:
        # 1, the usual exit code after Ctrl-C, would say that something changes.
        sys.exit(130)
    if form == "json":
        click.echo(as_json(report))
    elif form == "markdown":
        click.echo(as_markdown(report))
    else:
        text = as_text(report)
        click.echo(_coloured(text) if is_terminal() else text)
    warn_of_skipped(tuple(report.skipped))
    sys.exit(int(bool(report.outcomes)))


def _report(env: str, base: str | None, stacks: Path, allow_missing: bool) -> Report:
    """Render both sides and compare them."""
    from gpuyard.cli.committed import is_committed, read_committed
    from gpuyard.cli.state import render_state
    from gpuyard.diff.base import open_base, render_base
    from gpuyard.diff.consequences import FACTS
    from gpuyard.diff.facts import View, judge
    from gpuyard.diff.report import Report
    from gpuyard.manifests.diff import compare

    root = find_root(Path.cwd())
    after = render_state(env, stacks, allow_missing=allow_missing)
    if base and is_committed(Path(base)):
        label, before = base, read_committed(Path(base), after)
    else:
        with open_base(base, root) as opened:
            before = render_base(
                opened, root, env, stacks, allow_missing=allow_missing, without=after.skipped, like=after.objects
            )
        label = opened.label
    if set(before.skipped) - set(after.skipped):
        # What one side goes without would look like a change.
        after = render_state(env, stacks, allow_missing=True, without=before.skipped)
    outcomes = judge(compare(before.objects, after.objects), View(before, after), FACTS)
    return Report(env, label, outcomes, after.skipped)


def _coloured(text: str) -> str:
    """Return the report with the sign of each object and its risk in colour."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line[:1] in _COLOURS:
            lines[index] = click.style(line[0], fg=_COLOURS[line[0]], bold=True) + line[1:]
        elif line.startswith("    high:"):
            lines[index] = click.style(line, fg="red")
    return "\n".join(lines)
