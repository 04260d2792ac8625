"""The deadlock scenario as a table that a person understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpuyard.sandbox.scenario import Deadlock, Half, Track

STEP = 15
"""Seconds between two columns."""
SETTLE = 5
"""Seconds after which a column is read: what was submitted at its start has become of something by then."""


def show_deadlock(result: Deadlock) -> None:
    """Print both halves side by side, how the first was brought about, and what each half showed."""
    halves = (("default scheduler", result.without_gang), ("gpuyard + Volcano", result.with_gang))
    tracks = [track for _, half in halves for track in half.tracks]
    last = max(track.samples[-1].t for track in tracks)
    columns = [STEP * number for number in range(int(last // STEP) + 2)]
    width = max(len(track.job) for track in tracks) + 2
    click.echo(f"\nTwo TFJobs, {result.gpus} GPUs each, {result.gpus} GPUs in all; both submitted at once")
    click.echo(" " * (19 + width) + "".join(f"{f't+{t}s':<10}" for t in columns).rstrip())
    for title, half in halves:
        for number, track in enumerate(half.tracks):
            cells = "".join(f"{cell:<10}" for cell in _cells(track, columns))
            ending = "" if track.samples[-1].state == "finished" else "waits for ever"
            click.echo(f"{'' if number else title:<19}{track.job:<{width}}{cells}{ending}".rstrip())
    click.echo(
        f"\nBoth halves: the same operator with {result.threads} threads, the same nodes, stages and rendezvous;\n"
        "only the scheduler and the gang flag differ. In the first half the jobs are plain manifests: the operator's\n"
        "threads create the pods of both at once. "
        f"It was watched until nothing had changed for {result.held_still:.0f} s."
    )
    for title, half in halves:
        click.echo(f"{title}: {_outcome(half)}")


def _cells(track: Track, columns: list[int]) -> list[str]:
    cells: list[str] = []
    for column in columns:
        sample = track.at(column + SETTLE)
        if sample.state == "finished":
            cells.append("" if "finished" in cells else "finished")
        else:
            cells.append(f"{sample.held} of {track.needs}")
    return cells


def _outcome(half: Half) -> str:
    return half.verdict if not half.broken else "not as expected: " + "; ".join(half.broken)
