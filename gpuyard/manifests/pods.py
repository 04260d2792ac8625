"""Pods inside other objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.manifests.data import is_list, is_map


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
        if is_map(value):
            spec = value.get("spec")
            if path and path[-1] in ("template", "podTemplate") and is_map(spec) and "containers" in spec:
                yield (*path, "spec"), spec
                continue
            stack.extend(((*path, key), child) for key, child in reversed(list(value.items())))
        elif is_list(value):
            stack.extend(((*path, index), child) for index, child in reversed(list(enumerate(value))))
