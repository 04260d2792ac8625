"""Pods inside other objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuyard.manifests.data import is_list, is_map

Path = tuple[str | int, ...]

_TEMPLATES = ("template", "podTemplate")
_SCALARS: frozenset[type] = frozenset({str, int, bool, float})
"""Most values are of these types, and text is a sequence."""


def pod_specs(manifest: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield (path, pod spec) for every pod template inside an object of any kind, and for a Pod itself."""
    if manifest["kind"] == "Pod":
        yield ("spec",), manifest["spec"]
    elif manifest["kind"] != "CustomResourceDefinition":
        found: list[tuple[Path, Mapping[str, Any]]] = []
        _find((), manifest, found)
        yield from found


def _find(path: Path, value: Mapping[str, Any] | Sequence[Any], found: list[tuple[Path, Mapping[str, Any]]]) -> None:
    children: Iterable[tuple[str | int, Any]] = value.items() if is_map(value) else enumerate(value)
    for step, child in children:
        if type(child) in _SCALARS or not child or step == "metadata":
            continue
        if is_map(child):
            if step in _TEMPLATES and is_map(spec := child.get("spec")) and "containers" in spec:
                found.append(((*path, step, "spec"), spec))
            else:
                _find((*path, step), child, found)
        elif is_list(child):
            _find((*path, step), child, found)


def different(pods: Iterable[tuple[Path, Mapping[str, Any]]]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the pods of one object that are not equal to one before.

    Roles of one job mostly have equal pods, and to compare two takes a fraction of the time of looking into one.
    """
    seen: list[Mapping[str, Any]] = []
    for path, pod in pods:
        # The same object is mostly in both places, which `in` sees first.
        if pod not in seen:
            seen.append(pod)
            yield path, pod
