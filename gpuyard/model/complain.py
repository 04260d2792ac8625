"""Turns what pydantic says about a value into one clear message with its file and line."""

from __future__ import annotations

import json
import types
import typing
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpuyard.errors import Origin, Problem, listed, nearest
from gpuyard.manifests.data import has, is_list, is_map
from gpuyard.manifests.yaml.read import field_name
from gpuyard.model.layers import Document, Path

_NEEDED = {
    "bool_type": "true or false",
    "dict_type": "a map",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "list_type": "a list",
    "model_type": "a map",
    "string_type": "text",
}


def problems(error: ValidationError, model: type[BaseModel], document: Document, prefix: Path = ()) -> list[Problem]:
    """Return a Problem for every field that pydantic refused, in the order of their places.

    prefix: path of the model's data inside the document: ("jobs", "resnet50") for a job.
    """
    data: Any = document.data
    for key in prefix:
        data = data[key]
    by_path: dict[Path, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        by_path.setdefault(_written_path(detail, data), []).append(detail)
    found = [_problem(path, details, model, data, document, prefix) for path, details in by_path.items()]
    return sorted(found, key=lambda problem: (problem.origin or Origin(""), problem.field))


def value_text(value: Any) -> str:
    """Return a value in one short line, as it looks in the file."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _written_path(detail: ErrorDetails, data: Any) -> Path:
    """Return the location without the tags that pydantic adds for unions; they are no keys of the file."""
    path: list[str | int] = []
    value = data
    steps = [step for step in detail["loc"] if step != "[key]"]
    for index, step in enumerate(steps):
        if has(value, step):
            value = value[step]
            path.append(step)
        elif index == len(steps) - 1 and detail["type"] == "missing":
            path.append(step)
    return tuple(path)


def _problem(
    path: Path, details: list[ErrorDetails], model: type[BaseModel], data: Any, document: Document, prefix: Path
) -> Problem:
    detail = details[0]
    kind, value = detail["type"], detail["input"]
    context: dict[str, Any] = detail.get("ctx", {})
    origin, field = document.origin((*prefix, *path)), field_name(path)
    if kind == "extra_forbidden":
        accepted = _keys(model, path[:-1])
        key = str(path[-1])
        return Problem("unknown field", origin, field, nearest(key, accepted) or f"accepted: {listed(accepted, 30)}")
    if kind == "missing":
        return Problem("missing field", origin, field, f"{_named(data, prefix)} needs {path[-1]}", f"add {path[-1]}:")
    if kind == "literal_error":
        accepted = [part.strip("' ") for part in str(context["expected"]).replace(" or ", ", ").split(",")]
        hint = nearest(str(value), accepted)
        return Problem("unknown value", origin, field, f"{value_text(value)}; accepted: {', '.join(accepted)}", hint)
    needed = [_NEEDED[each["type"]] for each in details if each["type"] in _NEEDED]
    if needed:
        wanted = " or ".join(dict.fromkeys(needed))
        quotes = isinstance(value, (int, float, bool)) and "text" in needed
        return Problem(
            "wrong type",
            origin,
            field,
            f"{value_text(value)} is {_type_name(value)}; {wanted} is needed",
            f'write "{value_text(value)}" in quotes' if quotes else "",
        )
    if kind == "value_error":
        return Problem("bad value", origin, field, f"{value_text(value)}: {context['error']}")
    if kind == "string_pattern_mismatch":
        return Problem("bad value", origin, field, f"{value_text(value)}: it must match {context['pattern']}")
    return Problem("bad value", origin, field, f"{value_text(value)}: {detail['msg'][0].lower()}{detail['msg'][1:]}")


def _named(data: Any, prefix: Path) -> str:
    what = {"jobs": "job", "teams": "team"}.get(str(prefix[0]) if prefix else "", "the file")
    name = data.get("name") if is_map(data) and prefix else None
    return f"{what} {name}" if name else what


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if is_list(value) else "a map" if is_map(value) else "of an unknown type"


def _keys(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys that the map at `path` inside `model` accepts."""
    current: list[Any] = [model]
    for step in path:
        following: list[Any] = []
        for annotation in current:
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                following += [f.annotation for name, f in annotation.model_fields.items() if step in (f.alias, name)]
            elif get_origin(annotation) in (dict, list):
                following.append(get_args(annotation)[-1])
        current = [part for annotation in following for part in _flatten(annotation)]
    return [
        field.alias or name
        for annotation in current
        if isinstance(annotation, type) and issubclass(annotation, BaseModel)
        for name, field in annotation.model_fields.items()
    ]


def _flatten(annotation: Any) -> list[Any]:
    """Return the alternatives of a union, and what Annotated annotates."""
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return [part for argument in get_args(annotation) for part in _flatten(argument)]
    if get_origin(annotation) is typing.Annotated:
        return _flatten(get_args(annotation)[0])
    return [annotation]
