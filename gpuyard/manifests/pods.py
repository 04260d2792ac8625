"""Pods inside other objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuyard.manifests.data import is_list, is_map

_SCALARS: frozenset[type] = frozenset({str, int, float, bool, type(None)})


def pod_specs(manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield (path, pod spec) for every pod template inside an object of any kind, and for a Pod itself."""
    if manifest["kind"] == "Pod":
        yield ("spec",), manifest["spec"]
        return
    if manifest["kind"] == "CustomResourceDefinition":
        return
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), manifest)]
    while stack:
        path, value = stack.pop()
        children: Iterable[tuple[str | int, Any]] = ()
        if is_map(value):
            spec = value.get("spec")
            if path and path[-1] in ("template", "podTemplate") and is_map(spec) and "containers" in spec:
                yield (*path, "spec"), spec
                continue
            children = value.items()
        elif is_list(value):
            children = enumerate(value)
        # Most children are scalars, and those are never looked at again.
        inner = [((*path, step), child) for step, child in children if type(child) not in _SCALARS]
        inner.reverse()
        stack += inner


def first_equals(pods: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return for each pod the index of the first one that is equal to it.

    Roles of one job mostly have equal pods, and to compare two takes a fraction of the time of looking into one.
    """
    firsts: list[int] = []
    found: list[int] = []
    for index, pod in enumerate(pods):
        first = next((first for first in firsts if pods[first] == pod), index)
        if first == index:
            firsts.append(index)
        found.append(first)
    return found
