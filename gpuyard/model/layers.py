"""Layered files: `extends` chains, how maps merge, and where every value was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests.data import is_list, is_map
from gpuyard.manifests.yaml.read import Lines, read_settings

Path = tuple[str | int, ...]


class Written(NamedTuple):
    """One place where a value was written: the file and line, and the value there."""

    origin: Origin
    value: Any


@dataclass
class Document:
    """A merged map and, for every path in it, the places that wrote it, the one in force last."""

    data: dict[str, Any] = field(default_factory=dict[str, Any])
    written: dict[Path, list[Written]] = field(default_factory=dict[Path, list[Written]])

    def origin(self, path: Path) -> Origin | None:
        """Return the place of a value, or of the nearest map around it."""
        for length in range(len(path), 0, -1):
            if places := self.written.get(path[:length]):
                return places[-1].origin
        return None

    def overlay(self, data: Mapping[str, Any], lines: Lines, file: str) -> None:
        """Lay a file over this document: maps merge, scalars and lists replace, null deletes."""
        self._merge(self.data, data, (), lines, file)

    def _merge(self, base: dict[str, Any], over: Mapping[str, Any], path: Path, lines: Lines, file: str) -> None:
        for key, value in over.items():
            here = (*path, key)
            if value is None:
                base.pop(key, None)
                self._forget(here)
                continue
            place = Written(Origin(file, lines.get(here, 0)), value)
            if is_map(value) and is_map(base.get(key)):
                self.written.setdefault(here, []).append(place)
                self._merge(base[key], value, here, lines, file)
                continue
            history = self.written.get(here, [])
            self._forget(here)
            self.written[here] = [*history, place]
            if is_map(value):
                base[key] = {}
                self._merge(base[key], value, here, lines, file)
            else:
                base[key] = value
                self._place_items(value, here, lines, file)

    def _place_items(self, value: Any, path: Path, lines: Lines, file: str) -> None:
        children: list[tuple[str | int, Any]] = []
        if is_list(value):
            children = list(enumerate(value))
        elif is_map(value):
            children = list(value.items())
        for key, child in children:
            here = (*path, key)
            self.written[here] = [Written(Origin(file, lines.get(here, 0)), child)]
            self._place_items(child, here, lines, file)

    def _forget(self, path: Path) -> None:
        # A path below one that was never written was never written either.
        if path in self.written:
            for known in [known for known in self.written if known[: len(path)] == path]:
                del self.written[known]


def shown(path: FilePath, stacks: FilePath) -> str:
    """Return a file's path as the user would type it: with the stacks folder as it was given on the command line."""
    return str(stacks / path.resolve().relative_to(stacks.resolve()))


def read_file(path: FilePath, stacks: FilePath, asked_by: Origin | None = None) -> tuple[dict[str, Any], Lines, str]:
    """Read one stack file inside `stacks`. Raises InputError when it is missing, outside, unreadable or malformed."""
    if not path.resolve().is_relative_to(stacks.resolve()):
        raise InputError(
            Problem(
                "file outside the stacks folder", asked_by or Origin(str(path)), detail=f"{path} leads out of {stacks}"
            )
        )
    name = shown(path, stacks)
    try:
        text = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            Problem("missing file", asked_by or Origin(name), "extends" if asked_by else "", f"{name} does not exist")
        ) from error
    except OSError as error:
        raise InputError(Problem("cannot read", Origin(name), detail=str(error.strerror))) from error
    data, lines = read_settings(text, name)
    return data, lines, name


def read_layers(path: FilePath, stacks: FilePath) -> Document:
    """Read a file and everything it extends, the farthest base first."""
    chain: list[tuple[dict[str, Any], Lines, str]] = []
    seen: list[FilePath] = []
    asked_by: Origin | None = None
    current: FilePath | None = path
    while current is not None:
        if current.resolve() in seen:
            names = " -> ".join(shown(file, stacks) for file in [*seen, current])
            raise InputError(Problem("files extend each other", asked_by, "extends", names, "take one extends away"))
        seen.append(current.resolve())
        data, lines, name = read_file(current, stacks, asked_by)
        chain.append((data, lines, name))
        base = data.pop("extends", None)
        asked_by = Origin(name, lines.get(("extends",), 0))
        if base is not None and not isinstance(base, str):
            raise InputError(
                Problem("wrong type", asked_by, "extends", f"{base!r}; a path such as ../base.yaml is needed")
            )
        current = None if base is None else current.parent / base
    document = Document()
    for data, lines, name in reversed(chain):
        document.overlay(data, lines, name)
    return document
