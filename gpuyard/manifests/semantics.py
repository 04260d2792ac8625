"""What the API server checks and OpenAPI does not say: names, labels, quantities, ports, selectors.

Source: k8s.io/apimachinery/pkg/util/validation, k8s.io/apimachinery/pkg/api/validation and
k8s.io/kubernetes/pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from gpuyard.manifests.quantity import parse_quantity
from gpuyard.manifests.rendered import Manifest
from gpuyard.manifests.violations import Violation, below

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")

_CONTAINERS = ("initContainers", "containers")
_RBAC = frozenset(["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"])
_SELECTING = frozenset(["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
_AMOUNTS = {
    "ResourceQuota": ("hard",),
    "Queue": ("capability", "deserved"),
    "PodGroup": ("minResources",),
}
_LIMIT_RANGE = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_MAX_ANNOTATIONS = 256 * 1024


def check_semantics(manifest: Manifest) -> list[Violation]:
    """Return what is wrong with an object beside its schema. Values of a wrong type are the schema's business."""
    found = list(_check_metadata(manifest))
    spec = manifest.get("spec")
    if _is_map(spec) and manifest["kind"] != "CustomResourceDefinition":
        found += _check_spec(manifest["kind"], spec)
    return found


def _check_metadata(manifest: Manifest) -> Iterator[Violation]:
    metadata = manifest.get("metadata")
    if not _is_map(metadata):
        yield Violation("metadata", metadata, "required field is missing")
        return
    name, kind = metadata.get("name"), manifest["kind"]
    if isinstance(name, str):
        problem = _name_problem(kind, name)
        if problem:
            yield Violation("metadata.name", name, problem)
    elif name is None and not metadata.get("generateName"):
        yield Violation("metadata.name", None, "required field is missing")
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and (problem := _label_problem(namespace)):
        yield Violation("metadata.namespace", namespace, problem)
    yield from _check_labels(metadata, "metadata")


def _check_labels(metadata: Mapping[str, Any], path: str) -> Iterator[Violation]:
    for key, value in _map(metadata.get("labels")).items():
        problem = _key_problem(key) or (_value_problem(value) if isinstance(value, str) else _text_problem(value))
        if problem:
            yield Violation(below(f"{path}.labels", key), value, problem)
    size = 0
    for key, value in _map(metadata.get("annotations")).items():
        problem = _key_problem(key.lower()) or _text_problem(value)
        if problem:
            yield Violation(below(f"{path}.annotations", key), value, problem)
        else:
            size += len(key.encode()) + len((value or "").encode())
    if size > _MAX_ANNOTATIONS:
        yield Violation(f"{path}.annotations", None, f"{size} bytes in all; at most {_MAX_ANNOTATIONS}")


def _text_problem(value: object) -> str:
    # null is the empty text to the API server.
    return "" if value is None or isinstance(value, str) else "must be text; write it in quotes"


def _check_spec(kind: str, spec: Mapping[str, Any]) -> Iterator[Violation]:
    for field in _AMOUNTS.get(kind, ()):
        yield from _check_amounts(spec.get(field), f"spec.{field}")
    if kind == "Queue":
        yield from _check_amounts(_map(spec.get("guarantee")).get("resource"), "spec.guarantee.resource")
    if kind == "LimitRange":
        for index, limit in enumerate(_list(spec.get("limits"))):
            for field in _LIMIT_RANGE:
                yield from _check_amounts(_map(limit).get(field), f"spec.limits[{index}].{field}")
    if kind == "Service":
        yield from _check_service_ports(spec.get("ports"))
    if kind in _SELECTING:
        yield from _check_selector(spec)
    # Pods hide at any depth of custom resources. The stack holds what may contain one.
    stack: list[tuple[str, Any]] = [("spec", spec)]
    while stack:
        path, value = stack.pop()
        if _is_list(value):
            stack += [(f"{path}[{index}]", child) for index, child in enumerate(value)]
        elif _is_map(value):
            if "containers" in value:
                yield from _check_pod(value, path)
            for key, child in value.items():
                if key == "resources" and _is_map(child):
                    yield from _check_resources(child, path)
                elif key in _CONTAINERS:
                    continue  # judged with their pod
                elif key == "template" and _is_map(child) and _is_map(child.get("metadata")):
                    yield from _check_labels(child["metadata"], f"{path}.template.metadata")
                    stack.append((f"{path}.template", child))
                elif not isinstance(child, str):
                    stack.append((below(path, key), child))


def _check_pod(pod: Mapping[str, Any], path: str) -> Iterator[Violation]:
    names: dict[str, str] = {}
    for field in _CONTAINERS:
        for index, container in enumerate(map(_map, _list(pod.get(field)))):
            here = f"{path}.{field}[{index}]"
            yield from _check_unique_name(container.get("name"), here, names, _label_problem)
            yield from _check_resources(_map(container.get("resources")), here)
            ports: dict[str, str] = {}
            for number, port in enumerate(map(_map, _list(container.get("ports")))):
                there = f"{here}.ports[{number}]"
                yield from _check_number(port.get("containerPort"), f"{there}.containerPort")
                # 0 is the same as left out here.
                yield from _check_number(port.get("hostPort") or None, f"{there}.hostPort")
                yield from _check_unique_name(port.get("name"), there, ports, _port_name_problem)


def _check_service_ports(ports: object) -> Iterator[Violation]:
    names: dict[str, str] = {}
    for index, port in enumerate(map(_map, _list(ports))):
        here = f"spec.ports[{index}]"
        yield from _check_number(port.get("port"), f"{here}.port")
        yield from _check_unique_name(port.get("name"), here, names, _label_problem)


def _check_number(port: object, path: str) -> Iterator[Violation]:
    if isinstance(port, int) and not isinstance(port, bool) and not 1 <= port <= 65535:
        yield Violation(path, port, f"{port} is no port; a port is 1 to 65535")


def _check_unique_name(
    name: object, path: str, names: dict[str, str], check: Callable[[str], str]
) -> Iterator[Violation]:
    """Check a name of one of several things; `names` says where each was seen first."""
    if isinstance(name, str) and name:
        problem = check(name) or (f"{names[name]} has this name too" if name in names else "")
        if problem:
            yield Violation(f"{path}.name", name, problem)
        names.setdefault(name, path)


def _check_selector(spec: Mapping[str, Any]) -> Iterator[Violation]:
    """A workload that does not select its own pods is refused."""
    selector = spec.get("selector")
    if not _is_map(selector):
        return
    labels = _map(_map(_map(spec.get("template")).get("metadata")).get("labels"))
    wanted, expressions = _map(selector.get("matchLabels")), _list(selector.get("matchExpressions"))
    if not wanted and not expressions:
        yield Violation("spec.selector", selector, "an empty selector is refused; select the labels of the template")
    for key, value in wanted.items():
        if labels.get(key) != value:
            has = f"{key}={labels[key]}" if key in labels else f"no label {key}"
            yield Violation(
                below("spec.selector.matchLabels", key), value, f"selects {key}={value}; the template has {has}"
            )
    for index, expression in enumerate(expressions):
        if _is_map(expression) and not _selects(expression, labels):
            values = ", ".join(map(str, _list(expression.get("values"))))
            said = f"{expression.get('key')} {expression.get('operator')} {values}"
            yield Violation(
                f"spec.selector.matchExpressions[{index}]",
                expression,
                f"the template's labels do not match {said.rstrip()}",
            )


def _selects(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = str(expression.get("key")), _list(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def _check_resources(resources: Mapping[str, Any], path: str) -> Iterator[Violation]:
    yield from _check_amounts(resources.get("limits"), f"{path}.resources.limits")
    yield from _check_amounts(resources.get("requests"), f"{path}.resources.requests")


def _check_amounts(amounts: object, path: str) -> Iterator[Violation]:
    for resource, amount in _map(amounts).items():
        problem = _key_problem(resource) or _amount_problem(amount)
        if problem:
            yield Violation(below(path, resource), amount, problem)


def _amount_problem(amount: object) -> str:
    if isinstance(amount, bool) or not isinstance(amount, (str, int, float)):
        return "must be a quantity: 500m, 4, 64Gi"
    try:
        return _quantity_problem(amount)
    except ValueError as error:
        return f"`{amount}` is no quantity: {error}"


@lru_cache(maxsize=4096)
def _quantity_problem(amount: str | float) -> str:
    return "" if parse_quantity(amount) >= 0 else f"{amount} is negative"


def _name_problem(kind: str, name: str) -> str:
    if kind in _RBAC:
        bad = name in (".", "..") or "/" in name or "%" in name
        return "a name of an RBAC object is any text without / and %" if bad or not name else ""
    if kind == "Namespace":
        return _label_problem(name)
    if kind == "Service":
        shape = "a DNS-1035 label: lower-case letters, digits and '-', with a letter first and no '-' last"
        return _shape_problem(name, _LABEL_1035, 63, shape)
    return _subdomain_problem(name)


@lru_cache(maxsize=4096)
def _label_problem(name: str) -> str:
    shape = "a DNS-1123 label: lower-case letters, digits and '-', with a letter or digit first and last"
    return _shape_problem(name, _LABEL, 63, shape)


@lru_cache(maxsize=4096)
def _subdomain_problem(name: str) -> str:
    shape = (
        "a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', each part with a letter or digit at both ends"
    )
    return _shape_problem(name, _SUBDOMAIN, 253, shape)


@lru_cache(maxsize=4096)
def _key_problem(key: str) -> str:
    """Say what is wrong with the key of a label, an annotation or a resource."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or _subdomain_problem(prefix)):
        return f"the part of the key before / must be a DNS-1123 subdomain: `{prefix}`"
    return _shape_problem(
        name, _QUALIFIED, 63, "a key: letters, digits, '-', '_' and '.', with a letter or digit first and last"
    )


@lru_cache(maxsize=4096)
def _value_problem(value: str) -> str:
    shape = "a label value: letters, digits, '-', '_' and '.', with a letter or digit first and last, or nothing"
    return _shape_problem(value, _QUALIFIED, 63, shape) if value else ""


def _port_name_problem(name: str) -> str:
    return _shape_problem(
        name, _PORT_NAME, 15, "a port name: lower-case letters, digits and single '-', with at least one letter"
    )


def _shape_problem(text: str, pattern: re.Pattern[str], limit: int, shape: str) -> str:
    if not pattern.fullmatch(text):
        return f"`{text}` must be {shape}"
    return f"{len(text)} characters; at most {limit}" if len(text) > limit else ""


# Plain dicts and lists alone: the abstract classes cost several times as much where every value is visited.
def _is_map(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


# What is no map or no list is the schema's business.
def _map(value: object) -> dict[str, Any]:
    return value if _is_map(value) else {}


def _list(value: object) -> list[Any]:
    return value if _is_list(value) else []
