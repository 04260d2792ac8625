"""Which nodes accept a pod, as far as it is known what all nodes of one kind look like.

Source: kubernetes/kubernetes v1.34, staging/src/k8s.io/component-helpers/scheduling/corev1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from gpuyard.manifests.data import at

GPU = "nvidia.com/gpu"
"""The resource, and the key of the taint that keeps other pods away from nodes that have it."""

Taint: TypeAlias = tuple[str, str, str]
"""Key, value, effect."""

_EVERYWHERE = ("kubernetes.io/arch", "kubernetes.io/hostname", "topology.kubernetes.io/")
"""Labels that every node has with values that an environment may not tell."""

_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Labels that operators put on nodes with GPUs, with values that an environment may not tell."""

_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def refusal(pod: Mapping[str, Any], labels: Mapping[str, str], taints: Sequence[Taint], *, has_gpus: bool) -> str:
    """Return why nodes do not accept a pod, whatever it asks for; "" when they do.

    What a label decides whose value is not known is taken as accepted.

    labels: those that are known of every node. taints: those that keep pods away which do not tolerate them.
    """
    unknown = (*_EVERYWHERE, *_DISCOVERED) if has_gpus else _EVERYWHERE
    selector: Mapping[str, str] = pod.get("nodeSelector") or {}
    for key, value in selector.items():
        if labels.get(key) != value and (key in labels or not key.startswith(unknown)):
            return f"the node selector wants {key}={value}"
    terms: Sequence[Mapping[str, Any]] | None = at(pod, *_REQUIRED)
    if terms is not None and not any(_matches(term, labels, unknown) for term in terms):
        return "no term of the node affinity matches its labels"
    for key, value, effect in taints:
        if not any(_tolerates(toleration, key, value, effect) for toleration in pod.get("tolerations") or ()):
            return f"the taint {key}{'=' + value if value else ''}:{effect} is not tolerated"
    return ""


def _matches(term: Mapping[str, Any], labels: Mapping[str, str], unknown: tuple[str, ...]) -> bool:
    expressions = term.get("matchExpressions") or ()
    # A term without any requirement matches no node.
    return bool(expressions or term.get("matchFields")) and all(
        _holds(each, labels) for each in expressions if each["key"] in labels or not each["key"].startswith(unknown)
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, operator = labels.get(expression["key"]), expression["operator"]
    values: Sequence[str] = expression.get("values") or []
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not value.isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def _tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    # Clouds give the GPU taint different values, so its value is not known and any will do.
    return toleration.get("key") == key and (key == GPU or (toleration.get("value") or "") == value)
