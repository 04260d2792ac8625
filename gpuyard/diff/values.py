"""Changed fields in words: short values in one line, text of many lines as the lines that differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from gpuyard.manifests.data import is_list, is_map
from gpuyard.manifests.diff import MISSING, FieldChange, Item, path_text

_LONGEST = 80
_TELLING = ("nvidia.com/gpu", "requests.nvidia.com/gpu", "version", "image", "storage", "value", "replicas")
"""Last steps of a path that say most about a change: one of them comes first."""


class Line(NamedTuple):
    """One changed value; "" on the side where it is not there.

    telling: place in `_TELLING`. of_text: whether the values are lines of a longer text.
    """

    path: str
    before: str
    after: str
    telling: int = len(_TELLING)
    of_text: bool = False

    def __str__(self) -> str:
        if self.of_text:
            return f"{self.path} {f'- {self.before}' if self.before else f'+ {self.after}'}"
        if self.before == self.after:
            return f"{self.path} changes {self.after}"
        if self.before and self.after:
            return f"{self.path} {self.before} -> {self.after}"
        return f"{self.path} {self.after or f'{self.before} is gone'}"


def headline(lines: Sequence[Line]) -> tuple[str, list[str]]:
    """Return the line that says most, and the others in their order."""
    if not lines:
        return "", []
    first = min(range(len(lines)), key=lambda index: (lines[index].telling, index))
    return str(lines[first]), [str(line) for index, line in enumerate(lines) if index != first]


def field_lines(field: FieldChange) -> Iterator[Line]:
    """Yield a changed field as lines: one for a value, one for each line that differs of a longer text."""
    path = _short(field)
    last = field.path[-1] if field.path else ""
    telling = _TELLING.index(str(last)) if last in _TELLING else len(_TELLING)
    if field.reordered:
        yield Line(f"{path} in another order", _shown(field.before), _shown(field.after))
    elif isinstance(field.before, str) and isinstance(field.after, str) and "\n" in field.before + field.after:
        sides = field.before.splitlines(), field.after.splitlines()
        for line in islice(difflib.unified_diff(*sides, n=0, lineterm=""), 2, None):
            if line[0] == "-":
                yield Line(path, _shown(line[1:].strip()), "", of_text=True)
            elif line[0] == "+":
                yield Line(path, "", _shown(line[1:].strip()), of_text=True)
    else:
        before, after = ("" if value is MISSING else _shown(value) for value in (field.before, field.after))
        yield Line(path, before, after, telling)


def _short(field: FieldChange) -> str:
    """Return a path without `spec` in front; of two steps, as words: `capability nvidia.com/gpu`."""
    path = field.path[1:] if len(field.path) > 1 and field.path[0] == "spec" else field.path
    if len(path) <= 2 and all(isinstance(step, str) and not isinstance(step, Item) for step in path):
        return " ".join(map(str, path))
    return path_text(path)


def _shown(value: Any) -> str:
    """Return a value in one line; what could move a terminal's cursor or be taken for something else is quoted."""
    if isinstance(value, str):
        text = value if value and value.isprintable() and value == value.strip() else json.dumps(value)
    elif is_map(value) or is_list(value) or value is None or isinstance(value, bool):
        text = json.dumps(value, default=str)
        if len(text) > _LONGEST and (is_map(value) or is_list(value)):
            return f"({len(value)} {'fields' if is_map(value) else 'items'})"
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
