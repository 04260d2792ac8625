"""JSON Schemas of custom kinds: a CRD's openAPIV3Schema, made strict.

Source: the rules for structural schemas, pruning and embedded resources in the Kubernetes documentation,
"Extend the Kubernetes API with CustomResourceDefinitions". What the API server would drop is refused here.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuyard.cache import cache_dir
from gpuyard.manifests.rendered import Manifest
from gpuyard.manifests.schemas.builtin import OBJECT_META, BuiltinSchemas, Kind, Schema, read_json, write_json
from gpuyard.manifests.schemas.limits import FORMATS
from gpuyard.manifests.schemas.places import place_tree
from gpuyard.manifests.schemas.shapes import as_map, is_map, maps

_FORMAT = 3
"""Of the cached files; counts up when what is written there changes."""

_KEPT = ("default", "format", "x-kubernetes-list-map-keys", "x-kubernetes-validations")
"""What says nothing about a value alone, and is used when places to check are looked for."""

_LIMITS = ("enum", "pattern", "required", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
           "maxProperties", "multipleOf", "uniqueItems")  # fmt: skip
_COMBINATIONS = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING = ({"type": "integer"}, {"type": "string"})
_ANY_META: Schema = {"$ref": f"#/$defs/{OBJECT_META}"}


def versions(crds: Iterable[Manifest]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (apiVersion, kind, version) of every version that CRDs define. What is malformed is found in the CRD."""
    for crd in crds:
        spec = as_map(crd.get("spec"))
        for version in maps(spec.get("versions")):
            yield f"{spec.get('group')}/{version.get('name')}", str(as_map(spec.get("names")).get("kind")), version


class CustomSchemas:
    """The served versions of the kinds that CRDs define."""

    def __init__(self, crds: Iterable[Manifest], builtin: BuiltinSchemas) -> None:
        self._builtin = builtin
        self._open_api: dict[str, Schema] = {}
        self._digests: dict[str, str] = {}
        for api_version, kind, version in versions(crds):
            open_api = as_map(version.get("schema")).get("openAPIV3Schema")
            if version.get("served", True) and is_map(open_api):
                self._open_api[f"{api_version}/{kind}"] = open_api

    def __contains__(self, kind: str) -> bool:
        return kind in self._open_api

    def __iter__(self) -> Iterator[str]:
        return iter(self._open_api)

    def kind(self, kind: str) -> Kind | None:
        """Return what is known of `apiVersion/Kind`, or None when no CRD serves it."""
        if kind not in self._open_api:
            return None
        open_api = self._open_api[kind]
        path = cache_dir("schemas", f"custom-{_FORMAT}-{self._builtin.key}") / f"{self.digest(kind)}.json"
        found = read_json(path)
        if found is None:
            schema = strict_schema(open_api) | {"$defs": self._builtin.definition(OBJECT_META)["$defs"]}
            found = Kind(schema, place_tree(schema, custom=True))
            write_json(path, found)
        return Kind(*found)

    def digest(self, kind: str) -> str:
        """Return a digest of the schema of `apiVersion/Kind` as the CRD has it, or "" when no CRD serves it."""
        if kind not in self._digests:
            self._digests[kind] = digest(self._open_api[kind]) if kind in self._open_api else ""
        return self._digests[kind]


def digest(value: Any) -> str:
    """Return a digest of plain data in the order it stands in."""
    # marshal takes a third of json's time. Its format 2 has no references, so that equal data is equal bytes. BLAKE2
    # takes less than SHA-256, which few processors have built in.
    return hashlib.blake2b(marshal.dumps(value, 2), digest_size=32).hexdigest()


def strict_schema(open_api: Mapping[str, Any]) -> Schema:
    """Return the JSON Schema of a whole custom resource; the caller adds ObjectMeta to its `$defs`."""
    return _structural({**open_api, "x-kubernetes-embedded-resource": True})


def _structural(source: Mapping[str, Any]) -> Schema:
    """Return a node of the structural schema, which declares fields; `anyOf` and the like only limit them."""
    result = _limits(source) | {keyword: source[keyword] for keyword in _KEPT if keyword in source}
    if source.get("x-kubernetes-list-type") == "set":
        result["uniqueItems"] = True
    if source.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    elif "type" in source:
        result["type"] = source["type"]
    if "items" in source:
        result["items"] = _structural(source["items"])
    if source.get("type") == "object" or "properties" in source:
        properties = {name: _structural(child) for name, child in source.get("properties", {}).items()}
        if source.get("x-kubernetes-embedded-resource"):
            for name in ("apiVersion", "kind"):
                properties.setdefault(name, {"type": "string"})
            # A CRD may limit the name; everything else about metadata is the API server's.
            properties["metadata"] = _limits(source.get("properties", {}).get("metadata", {}), nested=True) | _ANY_META
        result["properties"] = properties
        additional = source.get("additionalProperties")
        if isinstance(additional, Mapping):
            result["additionalProperties"] = _structural(additional)  # pyright: ignore[reportUnknownArgumentType] - YAML
        elif not additional and not source.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
    if not source.get("nullable"):
        return result
    if "type" in result and not {"enum", "not", *_COMBINATIONS} & result.keys():
        types: Any = result["type"]
        return result | {"type": [types, "null"] if isinstance(types, str) else [*types, "null"]}
    return {"anyOf": [{"type": "null"}, result]}


def _limits(source: Mapping[str, Any], *, nested: bool = False) -> Schema:
    """Return what limits a value without declaring fields; `nested`: of its fields as well."""
    result: Schema = {**FORMATS.get(source.get("format", ""), {})}
    result |= {keyword: source[keyword] for keyword in _LIMITS if keyword in source}
    for bound in ("minimum", "maximum"):
        if bound in source:
            # OpenAPI 3.0 says with a boolean whether the bound itself is left out.
            exclusive = f"exclusive{bound.capitalize()}"
            result[exclusive if source.get(exclusive) else bound] = source[bound]
    for keyword in _COMBINATIONS:
        # What x-kubernetes-int-or-string says already would hide the plain message about the type.
        if keyword in source and not (
            source.get("x-kubernetes-int-or-string") and _says_int_or_string(source[keyword])
        ):
            result[keyword] = [_inner(child) for child in source[keyword]]
    if "not" in source:
        result["not"] = _inner(source["not"])
    if nested:
        result |= _fields(source)
    return result


def _inner(source: Mapping[str, Any]) -> Schema:
    result = _limits(source, nested=True)
    if "type" in source:
        result["type"] = source["type"]
    return result


def _fields(source: Mapping[str, Any]) -> Schema:
    result: Schema = {}
    if "properties" in source:
        result["properties"] = {name: _inner(child) for name, child in source["properties"].items()}
    if "items" in source:
        result["items"] = _inner(source["items"])
    if isinstance(source.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _inner(source["additionalProperties"])
    return result


def _says_int_or_string(branches: Iterable[Any]) -> bool:
    return tuple(branches) == _INT_OR_STRING
