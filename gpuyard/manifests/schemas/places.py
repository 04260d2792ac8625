"""Where in the objects of a kind there is something to check that its schema cannot say; found once from the schema.

A place is a tree beside the schema with nothing in it but what leads to a check: a pod, the labels of a pod template,
a label selector, amounts of resources, a list whose items have a key, the rules of a CRD. So checking an object of
thousands of fields visits a few dozen of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpuyard.manifests.schemas.pod_checks import CONTAINERS
from gpuyard.manifests.schemas.shapes import is_map

Tree = dict[str, Any]
"""A place as JSON: `is`, `keys`, `rules`, and below it `fields`, `items` and `values`; what is empty is left out."""

_REFERENCE = "#/$defs/"
_SHAPE = ("default", "format", "type")


class Place(NamedTuple):
    """What to check of a value, and where to go on.

    sort:   "pod", "pod-checked" (by its kind's own check), "pod-part" (which an operator completes), "labels",
            "selector", "resources", "any" (whatever is there), or "".
    keys:   the fields that tell the items of a list apart, with the value that a missing one has.
    rules:  of a CRD, and the shape of the values they are about, as `gpuyard.manifests.schemas.cel` takes them.
    fields, items, values: the places below: of some fields of a map, of each item of a list, of each value of a map.
    inner:  whether the fields are all: then nothing is checked of a map with none of them, as most are.
    """

    sort: str
    keys: tuple[tuple[str, Any], ...]
    rules: tuple[dict[str, Any], ...]
    shape: Tree
    fields: dict[str, Place]
    items: Place | None
    values: Place | None
    inner: bool


def place_tree(schema: Mapping[str, Any], *, custom: bool) -> Tree:
    """Return the places of a kind from its strict schema; `custom`: no check of its own looks into its pods."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    tree = _Finder(definitions, custom).tree(schema, "", root=True)
    return tree or {}


def place(tree: Tree) -> Place:
    """Return a tree in the form that is quick to follow."""
    return Place(
        tree.get("is", ""),
        tuple(tree.get("keys", {}).items()),
        tuple(tree.get("rules", ())),
        tree.get("shape", {}),
        {name: place(child) for name, child in tree.get("fields", {}).items()},
        place(tree["items"]) if "items" in tree else None,
        place(tree["values"]) if "values" in tree else None,
        tree.keys() == {"fields"},
    )


class _Finder:
    def __init__(self, definitions: Mapping[str, Any], custom: bool) -> None:
        self._definitions, self._custom = definitions, custom
        self._known: dict[str, Tree | None] = {}

    def tree(self, schema: Mapping[str, Any], name: str, *, root: bool = False) -> Tree | None:
        """Return the places in values of a schema that stand under `name`, or None where nothing is to be checked."""
        reference: str = schema.get("$ref", "")
        # A CRD may limit the name of its objects beside the reference to ObjectMeta; no place comes of that.
        if reference:
            key = reference.removeprefix(_REFERENCE) + ("" if name != "metadata" else " metadata")
            if key not in self._known:
                self._known[key] = None  # a definition that reaches itself is followed once
                definition = self._definitions[reference.removeprefix(_REFERENCE)]
                self._known[key] = self._tree(definition, name, root=root)
            return self._known[key]
        branches = schema.get("anyOf")
        if branches and branches[0] == {"type": "null"}:
            return self.tree(branches[1], name)
        return self._tree(schema, name, root=root)

    def _tree(self, schema: Mapping[str, Any], name: str, *, root: bool) -> Tree | None:
        fields: Mapping[str, Any] = schema.get("properties", {})
        found: Tree = {}
        sort = self._sort(schema, fields, name)
        if sort and not root:
            found["is"] = sort
        if keys := schema.get("x-kubernetes-list-map-keys"):
            items = schema.get("items", {})
            found["keys"] = {key: self._default(items, key) for key in keys}
        if rules := schema.get("x-kubernetes-validations"):
            found["rules"] = rules
            found["shape"] = shape(schema)
        # Pods are checked with their containers.
        below = {
            key: tree
            for key, child in fields.items()
            if not (root and key in ("metadata", "status")) and not (sort.startswith("pod") and key in CONTAINERS)
            if (tree := self.tree(child, key))
        }
        if sort.startswith("pod") and "volumes" in below:
            # The check of a pod says that with the names.
            below["volumes"].pop("keys", None)
        if below:
            found["fields"] = below
        for key, child in (("items", schema.get("items")), ("values", schema.get("additionalProperties"))):
            if is_map(child) and (tree := self.tree(child, "")):
                found[key] = tree
        return found or None

    def _sort(self, schema: Mapping[str, Any], fields: Mapping[str, Any], name: str) -> str:
        if "containers" in fields and "restartPolicy" in fields:
            return "pod" if self._custom else "pod-checked"
        if "containers" in fields and {"image", "name"} <= self._item_fields(fields["containers"]):
            return "pod-part"
        if name == "metadata" and "labels" in fields:
            return "labels"
        if "matchLabels" in fields and "matchExpressions" in fields:
            return "selector"
        if "limits" in fields and "requests" in fields:
            return "resources"
        if self._custom and not fields and schema.get("type") == "object" and "additionalProperties" not in schema:
            return "any"
        return ""

    def _item_fields(self, schema: Mapping[str, Any]) -> set[str]:
        return set(self._resolved(schema.get("items", {})).get("properties", {}))

    def _default(self, items: Mapping[str, Any], key: str) -> Any:
        field = self._resolved(items).get("properties", {}).get(key, {})
        return field.get("default", "TCP" if key == "protocol" else None)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._definitions[schema["$ref"].removeprefix(_REFERENCE)] if "$ref" in schema else schema


def shape(schema: Mapping[str, Any]) -> Tree:
    """Return what the evaluation of a rule has to know of a schema: fields, defaults, and which texts are more."""
    result: Tree = {keyword: schema[keyword] for keyword in _SHAPE if keyword in schema}
    if fields := schema.get("properties"):
        result["properties"] = {name: shape(field) for name, field in fields.items()}
    for keyword in ("items", "additionalProperties"):
        if is_map(child := schema.get(keyword)):
            result[keyword] = shape(child)
    branches = schema.get("anyOf")
    if branches and branches[0] == {"type": "null"}:
        return shape(branches[1]) | result
    return result
