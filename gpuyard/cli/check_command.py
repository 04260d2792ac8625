"""`gpuyard check ENV...`."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from typing import Any

import click

from gpuyard.cli.console import coloured, counted
from gpuyard.cli.project import assemble, sources_option, stacks_folder, stacks_option, warn_of_skipped


@click.command()
@click.argument("envs", nargs=-1, required=True, metavar="ENV...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@stacks_option
@sources_option
def command(envs: tuple[str, ...], form: str, stacks: Path | None, allow_missing_sources: bool) -> None:
    """Check environments: input, schemas, references, rules.

    Exit code 1 when a finding is an error, 2 when the input itself is wrong.
    """
    from gpuyard.rules.report import as_json, as_text, exit_code
    from gpuyard.rules.rule import Finding, Unjudged

    # Nearly all that is made here lives until the end: collecting garbage among it only costs time.
    gc.disable()
    project, folder = assemble(), stacks_folder(stacks)
    findings: list[Finding] = []
    unjudged: list[Unjudged] = []
    totals: list[dict[str, Any]] = []
    for name in envs:
        start = time.perf_counter()
        environment = project.load(name, folder)
        built = project.build(environment, allow_missing=allow_missing_sources)
        verdict = project.rules().judge(project.context(environment, built))
        findings += verdict.findings
        unjudged += verdict.unjudged
        counts = {
            "objects": len(built.objects),
            "add-ons": len(environment.addons),
            "teams": len(environment.teams),
            "jobs": len(environment.jobs),
        }
        totals.append({"environment": name, **counts, "skipped": list(built.skipped)})
        if form == "text":
            shown = "  ".join(counted(count, what) for what, count in counts.items())
            click.echo(f"{name}  {shown}  {time.perf_counter() - start:.2f} s")
    errors = sum(finding.severity == "error" for finding in findings)
    if form == "json":
        summary = {
            "environments": totals,
            "errors": errors,
            "warnings": len(findings) - errors,
            "unjudged": [{"rule": one.rule, "object": one.object, "reason": one.reason} for one in unjudged],
        }
        click.echo(as_json(findings, summary))
    else:
        text = as_text(findings, list(dict.fromkeys(unjudged)))
        click.echo(f"\n{coloured(text)}" if text else "", nl=bool(text))
        click.echo(f"\n{counted(errors, 'errors')}, {counted(len(findings) - errors, 'warnings')}")
    warn_of_skipped(tuple(dict.fromkeys(name for total in totals for name in total["skipped"])))
    sys.exit(exit_code(findings))
