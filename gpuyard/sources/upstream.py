"""Upstream manifests as data, parsed once: megabytes of YAML take seconds, the JSON of what is left milliseconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from gpuyard.cache import cache_dir, write_atomically
from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Manifest
from gpuyard.manifests.data import is_list, is_map
from gpuyard.sources.lock import Entry

FORMAT = 1
"""Part of every key: raise it when what is cached changes its meaning."""

_SCHEMAS = ("properties", "patternProperties", "definitions")
_SCHEMA = ("items", "additionalProperties", "not")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")


def cached(folder: str, key: Any, make: Callable[[], Any]) -> Any:
    """Return what `make` returned for this key, from the cache when it is there; always a fresh copy.

    key: all inputs, as JSON data. A file that is damaged is made again.
    """
    # Pydantic is loaded anyway, and its reader takes two thirds of the time of json's.
    text = json.dumps([FORMAT, key], sort_keys=True)
    file = cache_dir(folder) / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
    try:
        return from_json(file.read_bytes())
    except (FileNotFoundError, ValueError):
        content = json.dumps(make(), separators=(",", ":")).encode()
        write_atomically(file, content)
        return from_json(content)


def read_manifests(entry: Entry, top: Path, path: str) -> list[Manifest]:
    """Return the objects of a YAML file, or of every YAML file of a folder in name order, CRDs without descriptions.

    path: what `top` is called inside the source. Raises InputError when there is no such file, or none in the folder.
    """
    return cached("parsed", [entry.digest, path], lambda: _read(entry, top, path))


def _read(entry: Entry, top: Path, path: str) -> list[Manifest]:
    from gpuyard.manifests.yaml.read import read_documents

    shown = f"{entry.name} {entry.version}: {path}"
    files = {shown: top} if top.is_file() else {}
    if top.is_dir():
        files = {f"{shown}/{file.name}": file for file in sorted(top.iterdir()) if _is_manifest(file)}
    if not files:
        raise InputError(
            Problem(
                "no such manifests in this version",
                entry.origin,
                entry.name,
                f"{entry.version} has no YAML at {path}",
                "look where this version keeps them, and change the component that reads them",
            )
        )
    return [
        manifest for name, file in files.items() for manifest in objects(read_documents(file.read_bytes(), name), name)
    ]


def _is_manifest(file: Path) -> bool:
    return file.suffix in (".yaml", ".yml") and file.stem != "kustomization"


def objects(documents: Iterable[dict[str, Any]], file: str) -> list[Manifest]:
    """Return the objects of YAML documents: lists unfolded, descriptions of CRDs stripped.

    Raises InputError for a document that is no object.
    """
    found: list[Manifest] = []
    for document in documents:
        kind = document.get("kind")
        if not kind or not document.get("apiVersion"):
            raise InputError(
                Problem("not a Kubernetes object", Origin(file), detail="a document without apiVersion or kind")
            )
        if kind.endswith("List") and is_list(document.get("items")):
            found += objects(document["items"], file)
        else:
            found.append(strip_descriptions(document) if kind == "CustomResourceDefinition" else document)
    return found


def strip_descriptions(crd: Manifest) -> Manifest:
    """Return a CRD whose schemas say nothing in prose; a property that is called `description` stays.

    The prose is nine tenths of the large CRDs and the API server does not need it. Nothing else is changed.
    """
    spec: dict[str, Any] = crd.get("spec", {})
    versions = [
        {**version, "schema": {**version["schema"], "openAPIV3Schema": _silent(version["schema"]["openAPIV3Schema"])}}
        if "openAPIV3Schema" in version.get("schema", {})
        else version
        for version in spec.get("versions", ())
    ]
    return {**crd, "spec": {**spec, "versions": versions}}


def _silent(schema: Any) -> Any:
    if not is_map(schema):
        return schema
    return {key: _silent_field(key, value) for key, value in schema.items() if key != "description"}


def _silent_field(key: str, value: Any) -> Any:
    if key in _SCHEMAS and is_map(value):
        return {name: _silent(schema) for name, schema in value.items()}
    if key in _ALTERNATIVES or (key == "items" and is_list(value)):
        return [_silent(schema) for schema in value]
    return _silent(value) if key in _SCHEMA else value
