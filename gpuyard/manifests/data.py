"""Paths in JSON-like data, and tests for its two shapes in a form that a type checker believes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# `type` with a result that the type checker can compare.
_type: Callable[[object], object] = type
_PLAIN: frozenset[type] = frozenset({dict, list, str, int, float, bool, type(None)})


def is_map(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a map with text keys, as every map of a manifest is."""
    kind = type(value)
    # An abstract class is asked last: that takes ten times as long, and nearly every value is of a plain type.
    return kind is dict or (kind not in _PLAIN and isinstance(value, Mapping))


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a list; text is not one."""
    kind = type(value)
    return kind is list or (kind not in _PLAIN and isinstance(value, Sequence) and not isinstance(value, (str, bytes)))


def has(value: object, step: str | int) -> bool:
    """Return whether a map has the key, or a list the index."""
    if isinstance(step, int):
        return is_list(value) and 0 <= step < len(value)
    return is_map(value) and step in value


def at(value: Any, *path: str | int) -> Any:
    """Return the value at a path of keys and indexes, or None where the path ends early."""
    found: Any = value
    for step in path:
        if _type(found) is dict:  # as nearly always
            found = found.get(step)
        elif isinstance(step, int):
            found = found[step] if is_list(found) and step < len(found) else None
        elif is_map(found):
            found = found.get(step)
        else:
            return None
    return found


def text_at(value: Any, *path: str | int) -> str:
    """Return the text at a path, or "" where there is none: a wrong type is the schema's business."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def map_at(value: Any, *path: str | int) -> Mapping[str, Any]:
    """Return the map at a path, or an empty one."""
    found = at(value, *path)
    return found if is_map(found) else {}


def maps_at(value: Any, *path: str | int) -> list[tuple[int, Mapping[str, Any]]]:
    """Return (index, map) of the maps in the list at a path."""
    found = at(value, *path)
    return [(index, each) for index, each in enumerate(found) if is_map(each)] if is_list(found) else []


def texts_at(value: Any, *path: str | int) -> list[str]:
    """Return the texts in the list at a path."""
    found = at(value, *path)
    return [each for each in found if isinstance(each, str)] if is_list(found) else []


def below(path: str, *steps: str | int) -> str:
    """Return a JSON path with steps added: `spec.containers[0]`, and `metadata.labels["a.b/c"]` for what is no word."""
    for step in steps:
        if isinstance(step, int):
            path = f"{path}[{step}]"
        elif _WORD.fullmatch(step):
            path = f"{path}.{step}" if path else step
        else:
            path = f'{path}["{step}"]'
    return path


def unshared(value: Any) -> Any:
    """Return a copy to change: parts that are one object in the original are one each, unlike with `copy.deepcopy`."""
    if is_map(value):
        return {key: unshared(child) for key, child in value.items()}
    return [unshared(child) for child in value] if is_list(value) else value
