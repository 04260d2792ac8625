"""`gpuyard demo`: the main job of gpuyard, end to end, on this machine."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.console import coloured, step
from gpuyard.cli.project import assemble, find_root

CHECKED = ("dev", "staging", "prod")
MISTAKES = {
    "no-gang": "two jobs that can each hold half the GPUs for ever",
    "unfit-gang": "a gang that its queue can never admit",
}


@click.command()
def command() -> None:
    """Show what gpuyard does: checks, two planted mistakes, and gang scheduling on a simulated GPU cluster.

    The first run builds a control plane from the pinned sources, about ten minutes on two cores; later ones take two.
    """
    from gpuyard.cli.deadlock_table import show_deadlock
    from gpuyard.cli.sandbox_command import run_deadlock

    # Relative to where the user stands, so that messages name files as the user would.
    root, project = Path(os.path.relpath(find_root(Path.cwd()))), assemble()
    _pull(project)
    _check(project, root / "stacks")
    _refuse(project, root / "examples" / "01-mistakes")
    _control_plane(project)
    result = run_deadlock(root / "stacks", lambda text: click.echo(f"  {text}", err=True))
    show_deadlock(result)
    sys.exit(0 if result.proven else 1)


def _pull(project: Any) -> None:
    """Bring every source with manifests into the cache; those that cannot be had are named, not hidden."""
    from gpuyard.errors import InputError
    from gpuyard.sources import read_lock
    from gpuyard.sources.pull import pull

    start = time.perf_counter()
    lock = read_lock(project.LOCK)
    ready: list[str] = []
    left_out: list[str] = []
    for name in project.source_names():
        if not lock[name].digest:
            # Only a person can decide to trust a download that nobody has recorded yet.
            left_out.append(f"{name} (no digest in the lock: gpuyard sources lock {name})")
            continue
        try:
            pull(lock, [name])
            ready.append(name)
        except InputError as error:
            step("Sources", "fail", name)
            raise error
    took = time.perf_counter() - start
    step(
        "Sources", "ok", f"{', '.join(ready)}, {took:.1f} s" + (f"; without {', '.join(left_out)}" if left_out else "")
    )


def _check(project: Any, stacks: Path) -> None:
    """Check the company's environments; nothing may be found in them."""
    start, objects, found = time.perf_counter(), 0, 0
    skipped: set[str] = set()
    for name in CHECKED:
        environment = project.load(name, stacks)
        built = project.build(environment, allow_missing=True)
        verdict = project.rules().judge(project.context(environment, built))
        objects += len(built.objects)
        found += len(verdict.findings)
        skipped |= set(built.skipped)
    without = f"; rendered without the objects of {', '.join(sorted(skipped))}" if skipped else ""
    took = time.perf_counter() - start
    step(", ".join(CHECKED), "fail" if found else "ok", f"{objects} objects, {found} findings, {took:.1f} s{without}")
    if found:
        click.echo(f"see: gpuyard check {' '.join(CHECKED)}", err=True)
        sys.exit(1)


def _refuse(project: Any, stacks: Path) -> None:
    """Check the planted mistakes; every one must be found."""
    from gpuyard.rules.report import as_text

    reports: list[str] = []
    for name in MISTAKES:
        environment = project.load(name, stacks)
        verdict = project.rules().judge(project.context(environment, project.build(environment, allow_missing=True)))
        if not verdict.findings:
            step("planted mistakes", "fail", f"{MISTAKES[name]}: nobody noticed")
            sys.exit(1)
        reports.append(as_text(verdict.findings))
    step("planted mistakes", "ok", f"all refused: {', '.join(MISTAKES.values())}")
    report = coloured("\n\n".join(reports))
    click.echo("\n" + "\n".join(f"    {line}".rstrip() for line in report.split("\n")) + "\n")


def _control_plane(project: Any) -> None:
    from gpuyard.cli.sandbox_command import built_binaries
    from gpuyard.sandbox import BINARIES

    start = time.perf_counter()
    built_binaries(BINARIES, lambda name, state: click.echo(f"  {name:<24} {state}", err=True))
    took = time.perf_counter() - start
    step("Control plane", "ok", f"{len(BINARIES)} binaries from pinned sources, {took:.0f} s (cached from now on)")
