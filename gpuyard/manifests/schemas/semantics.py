"""What the API server checks and OpenAPI does not say: names, labels, quantities, ports, selectors, keys of lists.

Source: k8s.io/apimachinery/pkg/util/validation, k8s.io/apimachinery/pkg/api/validation and
k8s.io/kubernetes/pkg/apis/*/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from gpuyard.manifests.data import below
from gpuyard.manifests.rendered import Manifest
from gpuyard.manifests.schemas.amounts import check_resources
from gpuyard.manifests.schemas.kind_checks import KIND_CHECKS, name_problem
from gpuyard.manifests.schemas.places import Place
from gpuyard.manifests.schemas.pod_checks import CONTAINERS, check_pod, check_pod_part
from gpuyard.manifests.schemas.selectors import check_selector
from gpuyard.manifests.schemas.shapes import Found, Steps, as_map, is_list, is_map
from gpuyard.manifests.schemas.text import key_problem, label_problem, value_problem
from gpuyard.manifests.schemas.violations import Violation

Rules = Callable[[Place, Any], Iterable[Found]]

_MAX_ANNOTATIONS = 256 * 1024
_TEXT = frozenset([str])
_TEMPLATES = ("template", "podTemplate")


Good = dict[int, Place]
"""Parts of objects by `id`, and the place at which each was good. Objects may share parts; each is looked at once."""


def check_semantics(manifest: Manifest, place: Place | None, rules: Rules, good: Good | None = None) -> list[Violation]:
    """Return what is wrong with an object beside its schema. Values of a wrong type are the schema's business.

    place: where to look in objects of this kind; None where it has no schema: then everywhere.
    rules: evaluates the rules of a CRD at a place.
    good:  filled, and read, while all objects that it was filled from exist.
    """
    kind = _group_kind(manifest["apiVersion"], manifest["kind"])
    found = _check_metadata(kind, manifest.get("metadata"))
    if check := KIND_CHECKS.get(kind):
        found += check(manifest)
    if place:
        _visit(place, manifest, [], found, rules, {} if good is None else good)
    else:
        found += _check_anything(manifest.get("spec"), "spec")
    return [Violation(below("", *each.steps), each.value, each.message, each.malformed) for each in found]


@lru_cache(maxsize=1024)
def _group_kind(api_version: str, kind: str) -> str:
    return f"{api_version.rpartition('/')[0]}/{kind}"


def _check_metadata(kind: str, metadata: object) -> list[Found]:
    if not is_map(metadata):
        return [Found(("metadata",), metadata, "required field is missing")]
    found: list[Found] = []
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if isinstance(name, str):
        if problem := name_problem(kind, name):
            found.append(Found(("metadata", "name"), name, problem))
    elif name is None and not metadata.get("generateName"):
        found.append(Found(("metadata", "name"), None, "required field is missing"))
    if isinstance(namespace, str) and (problem := label_problem(namespace)):
        found.append(Found(("metadata", "namespace"), namespace, problem))
    found += _check_labels(metadata, "metadata")
    return found


def _check_labels(metadata: object, *steps: str | int) -> Iterable[Found]:
    return () if not is_map(metadata) or _labels_are_good(metadata) else _each_label(metadata, steps)


def _labels_are_good(metadata: dict[str, Any]) -> bool:
    """Return whether nothing is wrong at a first look, which is quick."""
    labels, annotations = as_map(metadata.get("labels")), as_map(metadata.get("annotations"))
    values, notes = labels.values(), annotations.values()
    return (
        _TEXT.issuperset(map(type, (*values, *notes)))
        and _are_keys(tuple(labels))
        and not any(map(value_problem, values))
        and (not annotations or _are_annotations(tuple(annotations.items())))
    )


@lru_cache(maxsize=1024)
def _are_keys(keys: tuple[str, ...]) -> bool:
    return not any(map(key_problem, keys))


@lru_cache(maxsize=1024)
def _are_annotations(annotations: tuple[tuple[str, str], ...]) -> bool:
    """Return whether annotations are good for certain: four times their characters are at least their bytes."""
    size = sum(len(key) + len(text) for key, text in annotations)
    return 4 * size <= _MAX_ANNOTATIONS and not any(_annotation_problem(key) for key, _ in annotations)


def _each_label(metadata: dict[str, Any], steps: Steps) -> Iterator[Found]:
    for key, value in as_map(metadata.get("labels")).items():
        problem = key_problem(key) or (value_problem(value) if isinstance(value, str) else _text_problem(value))
        if problem:
            yield Found((*steps, "labels", key), value, problem)
    size = 0
    for key, value in as_map(metadata.get("annotations")).items():
        problem = _annotation_problem(key) or _text_problem(value)
        if problem:
            yield Found((*steps, "annotations", key), value, problem)
        else:
            size += len(key.encode()) + len((value or "").encode())
    if size > _MAX_ANNOTATIONS:
        yield Found((*steps, "annotations"), None, f"{size} bytes in all; at most {_MAX_ANNOTATIONS}")


@lru_cache(maxsize=1024)
def _annotation_problem(key: str) -> str:
    return key_problem(key.lower())


def _text_problem(value: object) -> str:
    # null is the empty text to the API server.
    return "" if value is None or isinstance(value, str) else "must be text; write it in quotes"


def _visit(place: Place, value: Any, steps: list[str | int], found: list[Found], rules: Rules, good: Good) -> None:
    """Check a value and what is below it; `steps` lead to it and are the same again on return."""
    key, before = id(value), len(found)
    if good.get(key) is place:
        return
    sort, keys, own_rules, _, fields, items, values, _ = place
    if sort or keys or own_rules:
        hits = _CHECKS[sort](value) if sort in _CHECKS else ()
        if keys:
            hits = [*hits, *_check_keys(value, keys)]
        if own_rules and value is not None:
            hits = [*hits, *rules(place, value)]
        if hits:
            found += [each.below(*steps) for each in hits]
    # Most of what is inside is good already, or nothing in it is looked at.
    if is_map(value):
        # A pod has some sixty fields that are looked into, and mostly a dozen of them.
        names = fields if len(fields) < len(value) else value
        for name in names:
            child = fields.get(name)
            if child is None or name not in value:
                continue
            inner: Any = value[name]
            if good.get(id(inner)) is not child and not (child.inner and _has_none(inner, child.fields)):
                steps.append(name)
                _visit(child, inner, steps, found, rules, good)
                steps.pop()
        if values:
            for name, inner in value.items():
                steps.append(name)
                _visit(values, inner, steps, found, rules, good)
                steps.pop()
    elif items and is_list(value):
        for index, inner in enumerate(value):
            if good.get(id(inner)) is not items and not (items.inner and _has_none(inner, items.fields)):
                steps.append(index)
                _visit(items, inner, steps, found, rules, good)
                steps.pop()
    if len(found) == before and (is_map(value) or is_list(value)):
        good[key] = place


def _has_none(value: object, fields: dict[str, Place]) -> bool:
    return is_map(value) and value.keys().isdisjoint(fields)


def _check_keys(value: object, keys: tuple[tuple[str, Any], ...]) -> Iterable[Found]:
    """Check that no two items of a list have the same keys, which server-side apply refuses."""
    return _each_item(value, keys) if is_list(value) and len(value) > 1 else ()


def _each_item(items: list[Any], keys: tuple[tuple[str, Any], ...]) -> Iterator[Found]:
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        if is_map(item):
            said = ", ".join(f"{key} {item.get(key, default)}" for key, default in keys)
            if said in first:
                yield Found((index,), item, f"item {first[said]} has {said} too; it tells the items apart")
            first.setdefault(said, index)


def _check_resources(value: object) -> Iterable[Found]:
    return check_resources(value) if is_map(value) else ()


def _check_anything(top: Any, *start: str | int) -> Iterator[Found]:
    """Check the pods and amounts of resources at any depth of a value whose schema nobody knows."""
    # The stack holds what may contain one.
    stack: list[tuple[Steps, Any]] = [(start, top)]
    while stack:
        steps, value = stack.pop()
        if is_list(value):
            stack += [((*steps, index), child) for index, child in enumerate(value)]
        elif is_map(value):
            if "containers" in value:
                whole = steps[-1:] == ("spec",) and steps[-2:-1] and steps[-2] in _TEMPLATES
                for each in check_pod(value) if whole else check_pod_part(value):
                    yield each.below(*steps)
            for key, child in value.items():
                if key == "resources" and is_map(child):
                    yield from check_resources(child, *steps, "resources")
                elif key in CONTAINERS:
                    continue  # checked with their pod
                elif key in _TEMPLATES and is_map(child) and is_map(child.get("metadata")):
                    yield from _check_labels(child["metadata"], *steps, key, "metadata")
                    stack.append(((*steps, key), child))
                elif not isinstance(child, str):
                    stack.append(((*steps, key), child))


_CHECKS: dict[str, Callable[[Any], Iterable[Found]]] = {
    "any": _check_anything,
    "labels": _check_labels,
    "pod": check_pod,
    "pod-part": check_pod_part,
    "resources": _check_resources,
    "selector": check_selector,
}
