"""What a person sees: colour and tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

_COLOURS = {"error": "red", "warning": "yellow", "ok": "green", "fail": "red"}


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header; in a pipe as columns of plain text."""
    if is_terminal():
        from rich.console import Console
        from rich.table import Table

        drawn = Table(*header, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            drawn.add_row(*row)
        Console(highlight=False).print(drawn)
        return
    widths = [max(len(cells[column]) for cells in [header, *rows]) for column in range(len(header))]
    for cells in [header, *rows]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def word(text: str) -> str:
    """Return a word such as `error` or `ok`, coloured on a terminal."""
    colour = _COLOURS.get(text)
    return click.style(text, fg=colour, bold=True) if colour and is_terminal() else text


def coloured(text: str) -> str:
    """Return a report with the word that starts each finding coloured on a terminal."""
    if not is_terminal():
        return text
    lines = text.split("\n")
    for index, line in enumerate(lines):
        head, space, rest = line.partition(" ")
        lines[index] = f"{word(head)}{space}{rest}"
    return "\n".join(lines)


def counted(count: int, plural: str) -> str:
    """Return "1 job" or "8 jobs"."""
    return f"{count} {plural.removesuffix('s') if count == 1 else plural}"


def step(name: str, state: str, detail: str) -> None:
    """Print one line of progress: what, ok or fail, and a few words."""
    click.echo(f"{name:<21} {word(state)}{' ' * max(1, 5 - len(state))}{detail}")
