"""JSON Schemas of Kubernetes' own kinds, strict, one small file for each kind in the cache.

Source: the data of the package kubernetes-validate, made from the API server's OpenAPI. Its definitions of one version
are 1.5 MB; a kind with what it reaches, without descriptions, is 1 to 60 kB.
"""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gpuyard.cache import cache_dir, write_atomically
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests.schemas.limits import FORMATS, QUANTITY, limits_of
from gpuyard.manifests.schemas.places import Tree, place_tree

Schema: TypeAlias = dict[str, Any]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_FORMAT = 3
"""Of the cached files; counts up when what is written there changes."""

# Types with their own decoder, which the package says with a `oneOf` that null matches twice.
_OWN_DECODER: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string", "null"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["number", "string", "null"], "pattern": QUANTITY},
}
_KEPT = frozenset(["$ref", "type", "enum", "required", "properties", "additionalProperties", "items", "oneOf", "anyOf",
                   "x-kubernetes-list-map-keys"])  # fmt: skip
_REFERENCE = "#/$defs/"


class Kind(NamedTuple):
    """What is known of a kind: its strict schema, and where in its objects there is more to check."""

    schema: Schema
    places: Tree


class BuiltinSchemas:
    """The kinds of one minor version of Kubernetes, which was written at `origin`.

    Raises InputError for a version that the package does not have.
    """

    def __init__(self, kubernetes: str, origin: Origin | None = None) -> None:
        spec = importlib.util.find_spec("kubernetes_validate")
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError("kubernetes_validate", name="kubernetes_validate")
        package = Path(spec.submodule_search_locations[0])
        data = package / "kubernetes-json-schema"
        match = re.fullmatch(r"v?(\d+\.\d+)(?:[.+-].*)?", kubernetes)
        self._folder = data / f"v{match[1] if match else kubernetes}.0-local-strict"
        if not self._folder.is_dir():
            minors = sorted(int(name.name.split(".")[1]) for name in data.glob("v1.*.0-local-strict"))
            raise InputError(
                Problem(
                    "unknown Kubernetes version",
                    origin,
                    "cluster.kubernetes",
                    f"{kubernetes}; schemas are known for 1.{minors[0]} to 1.{minors[-1]}",
                    "write one of these minor versions, or install a newer kubernetes-validate",
                )
            )
        # Read as text: importing the package costs more than a whole check.
        version = re.sub(r"[^0-9.]", "", (package / "version.py").read_text())
        self.key = f"{_FORMAT}-{version}-{self._folder.name}"
        self._cache = cache_dir("schemas", self.key)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The definition's name by `apiVersion/Kind`."""
        path = self._cache / "kinds.json"
        known = read_json(path)
        if known is None:
            known = {
                "/".join(part for part in (gvk["group"], gvk["version"], gvk["kind"]) if part): name
                for name, definition in self._definitions.items()
                for gvk in definition.get("x-kubernetes-group-version-kind", ())
            }
            write_json(path, known)
        return known

    def kind(self, api_version: str, kind: str) -> Kind | None:
        """Return what is known of a kind, or None when this version of Kubernetes does not have it."""
        name = self.kinds.get(f"{api_version}/{kind}")
        if name is None:
            return None
        path = self._cache / f"{name}.json"
        found = read_json(path)
        if found is None:
            schema = self.definition(name)
            found = Kind(schema, place_tree(schema, custom=False))
            write_json(path, found)
        return Kind(*found)

    def definition(self, name: str) -> Schema:
        """Return a definition with all that it reaches."""
        reached: dict[str, Schema] = {}
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current not in reached:
                reached[current] = _OWN_DECODER.get(current) or self._limited(current, waiting)
        return {"$ref": _REFERENCE + name, "$defs": {key: reached[key] for key in sorted(reached)}}

    def _limited(self, name: str, references: list[str]) -> Schema:
        schema = _pruned(self._definitions[name], references)
        for field, child in schema.get("properties", {}).items():
            limits = limits_of(name, field)
            if "items" in limits:
                child["items"] |= limits["items"]
            else:
                child |= limits
        return schema

    @cached_property
    def _definitions(self) -> dict[str, Schema]:
        return json.loads((self._folder / "_definitions.json").read_bytes())["$defs"]


def read_json(path: Path) -> Any:
    """Return the content of a cached file, or None when it is not there or is damaged: then it is made again."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write_json(path: Path, value: object) -> None:
    """Put a value into the cache."""
    write_atomically(path, json.dumps(value, separators=(",", ":")).encode())


def _pruned(schema: Schema, references: list[str]) -> Schema:
    """Return a schema without what judges nothing; the definitions that it names are added to `references`."""
    kept: Schema = dict(FORMATS.get(schema.get("format", ""), ()))
    for keyword, value in schema.items():
        if keyword not in _KEPT:
            continue
        if keyword == "$ref":
            references.append(value.removeprefix(_REFERENCE))
            kept[keyword] = value
        elif keyword == "properties":
            kept[keyword] = {name: _pruned(child, references) for name, child in value.items()}
        elif keyword in ("items", "additionalProperties") and isinstance(value, dict):
            kept[keyword] = _pruned(value, references)  # pyright: ignore[reportUnknownArgumentType] - parsed JSON
        elif keyword in ("oneOf", "anyOf"):
            kept[keyword] = [_pruned(child, references) for child in value]
        else:
            kept[keyword] = value
    return kept
