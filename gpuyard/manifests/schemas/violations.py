"""What is wrong with an object, and how jsonschema_rs's errors become that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuyard.errors import listed, nearest
from gpuyard.manifests.data import below
from gpuyard.manifests.schemas.limits import WORDS

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a map",
    "string": "text",
}
_COMBINATIONS = ("allOf", "anyOf", "oneOf")
_LONGEST_MESSAGE = 200


class Violation(NamedTuple):
    """One field of an object that the API server would refuse or drop.

    path:    JSON path inside the object: "spec.template.spec.containers[0].imagee".
    value:   what stands there; None where something is missing.
    message: what is wrong and what is accepted.
    malformed: whether what reads such objects may fall over it: another type, or something missing.
    """

    path: str
    value: Any
    message: str
    malformed: bool = False


def violations(schema: dict[str, Any], errors: Iterable[ValidationError]) -> list[Violation]:
    """Return the errors of a validation against `schema` as violations, each once."""
    found = {(violation.path, violation.message): violation for error in errors for violation in _of(schema, error)}
    return list(found.values())


def _of(schema: dict[str, Any], error: ValidationError) -> Iterator[Violation]:
    path = below("", *error.instance_path)
    what: Any = error.kind
    value: Any = error.instance
    if what.name == "additionalProperties":
        accepted = _parent(schema, error.schema_path).get("properties", {})
        for name in what.unexpected:
            hint = nearest(name, accepted) or f"accepted: {listed(accepted)}"
            yield Violation(below(path, name), value[name], f"unknown field; {hint}")
    elif what.name == "required":
        yield Violation(below(path, what.property), None, "required field is missing", malformed=True)
    elif what.name == "type":
        wanted = [_TYPES[name] for name in what.types if name != "null"] or ["null"]
        yield Violation(path, value, f"{_described(value)}; must be {' or '.join(wanted)}", malformed=True)
    elif what.name == "enum":
        accepted = [str(option) for option in what.options if option not in ("", None)]
        hint = nearest(str(value), accepted)
        message = f"{_described(value)}; accepted: {listed(accepted)}" + (f"; {hint}" if hint else "")
        yield Violation(path, value, message)
    elif what.name == "pattern" and what.pattern in WORDS:
        yield Violation(path, value, f"{_quoted(value)} is {WORDS[what.pattern]}")
    elif what.name == "pattern":
        yield Violation(path, value, f"{_described(value)}; must match the pattern {what.pattern}")
    else:
        # Limits of length, size and range, and combinations: jsonschema_rs says these well.
        message = str(error.message)
        short = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."
        yield Violation(path, value, short, malformed=what.name in _COMBINATIONS)


def _parent(schema: dict[str, Any], path: Iterable[str | int]) -> dict[str, Any]:
    """Return the schema whose keyword the path leads to. References in the path are followed already."""
    current: Any = schema
    for step in list(path)[:-1]:
        current = current[step]
    return current


def _quoted(value: object) -> str:
    return f"`{value}`" if len(str(value)) <= 80 else "this text"


def _described(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}" is text' if len(value) <= 80 else "this is text"
    if isinstance(value, bool) or value is None:
        return {True: "this is true", False: "this is false", None: "this is null"}[value]
    if isinstance(value, (int, float)):
        return f"{value} is a number"
    return "this is a list" if isinstance(value, list) else "this is a map"
