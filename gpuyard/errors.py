"""What a person reads when their input is wrong.

Malformed input is an error (exit code 2) and always names the file, the line, the field, the value and a way out.
What the rules find in well-formed input is a finding (exit code 1) and lives in `gpuyard.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Origin(NamedTuple):
    """Where a value was written: a path as the user would type it, and a line counted from 1 (0: the whole file)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Problem(NamedTuple):
    """One thing that is wrong with an input.

    title:  what is wrong, in a few words, without the place: "unknown field".
    origin: the file and line that caused it.
    field:  the field as the user wrote it, dotted from the top of the file: "nodes.max". May be empty.
    detail: the value found and what is accepted.
    fix:    what to do, as an imperative; empty where `detail` already says it.
    """

    title: str
    origin: Origin | None = None
    field: str = ""
    detail: str = ""
    fix: str = ""

    def __str__(self) -> str:
        lines = [f"error  {self.title}"]
        where = "   ".join(part for part in (str(self.origin) if self.origin else "", self.field) if part)
        lines += [f"  {where}"] if where else []
        lines += [f"  {line}" for line in self.detail.splitlines()]
        lines += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(lines)


class InputError(Exception):
    """One or more problems in what the user gave. The command line prints them and exits with code 2."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n\n".join(str(problem) for problem in self.problems))


def nearest(word: str, accepted: Iterable[str]) -> str:
    """Return "did you mean X?" for the accepted word closest to `word`, or "" when none is close."""
    import difflib  # only where something is wrong: it takes longer to load than this whole module

    close = difflib.get_close_matches(word, sorted(accepted), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def listed(words: Iterable[str], limit: int = 12) -> str:
    """Return the words sorted and joined by commas; past `limit` words, the first of them and how many more."""
    ordered = sorted(words)
    shown = ", ".join(ordered[:limit])
    return f"{shown} and {len(ordered) - limit} more" if len(ordered) > limit else shown or "none"
