"""What checks of objects share: what they find, and tests for maps and lists that cost next to nothing."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeGuard

Steps: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead from one value to one inside it."""


class Found(NamedTuple):
    """What a check found below the value it was given: the steps to the place, what stands there, what is wrong.

    malformed: see `Violation`.
    """

    steps: Steps
    value: Any
    message: str
    malformed: bool = False

    def below(self, *steps: str | int) -> Found:
        """Return the same, found from further above."""
        return self._replace(steps=(*steps, *self.steps))


# Plain dicts and lists alone: the abstract classes cost several times as much where every value is visited.
def is_map(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a dict."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value is a list."""
    return isinstance(value, list)


def as_map(value: object) -> dict[str, Any]:
    """Return the value, or an empty map for what is none: a wrong type is the schema's business."""
    return value if is_map(value) else {}


def as_list(value: object) -> list[Any]:
    """Return the value, or an empty list for what is none."""
    return value if is_list(value) else []


def maps(value: object) -> list[dict[str, Any]]:
    """Return the maps in a list."""
    return [each for each in value if isinstance(each, dict)] if is_list(value) else []


def texts(things: list[dict[str, Any]], field: str) -> list[str]:
    """Return a field of each of several maps, where it is text."""
    return [each[field] for each in things if isinstance(each.get(field), str)]
