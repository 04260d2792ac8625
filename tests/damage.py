"""Objects with one thing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuyard.manifests.data import is_list, is_map
from gpuyard.manifests.pods import Path

GONE = object()
"""In place of a value: the field or item is not there."""


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of everything inside a value."""
    for step, child in value.items() if is_map(value) else enumerate(value) if is_list(value) else ():
        yield (*path, step)
        yield from places(child, (*path, step))


def put(value: Any, path: Path, new: Any) -> Any:
    """Return a value with another one at a path; whatever the path does not lead through is the same object."""
    copy = value.copy()
    if path[1:]:
        copy[path[0]] = put(value[path[0]], path[1:], new)
    elif new is GONE:
        del copy[path[0]]
    else:
        copy[path[0]] = new
    return copy


def damage(value: Any) -> list[Any]:
    """Return what takes the place of a value: nothing, null, and what is of another type."""
    if is_map(value):
        return [GONE, None, {}, [], "text", 7, {"a": None}, {"a": "text"}]
    if is_list(value):
        return [GONE, None, [], {}, "text", 7, [None], ["text"], [7]]
    return [GONE, None, {}, [], 7 if isinstance(value, str) else "text"]
