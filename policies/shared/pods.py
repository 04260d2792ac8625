"""What a pod asks for.

Source: kubernetes/kubernetes v1.34, pkg/api/v1/resource/helpers.go and the page on sidecar containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Rendered
from gpuyard.manifests.data import maps_at
from gpuyard.manifests.quantity import add_resources, parse_resources

Amounts = dict[str, Decimal]


def pod_resources(
    rendered: Rendered, pod: Mapping[str, Any], field: Literal["requests", "limits"] = "requests"
) -> Amounts:
    """Return what the scheduler counts for one pod of an object. A limit without a request is the request, too.

    Init containers run one after the other before the rest, so the largest counts; those that restart always are
    sidecars and stay. Raises InputError for an amount that is no quantity.
    """
    containers = [_container(rendered, one, field) for _, one in maps_at(pod, "containers")]
    if len(containers) == 1 and not pod.get("initContainers") and not pod.get("overhead"):
        return containers[0]
    running = add_resources(containers)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for _, container in maps_at(pod, "initContainers"):
        amounts = add_resources([sidecars, _container(rendered, container, field)])
        if container.get("restartPolicy") == "Always":
            sidecars = amounts
        peak = _largest(peak, amounts)
    total = _largest(add_resources([running, sidecars]), peak)
    overhead = pod.get("overhead")
    return add_resources([total, parse_resources(overhead)]) if overhead else total


def _container(rendered: Rendered, container: Mapping[str, Any], field: str) -> Amounts:
    resources: Mapping[str, Any] = container.get("resources") or {}
    amounts: dict[str, Any] = dict(resources.get("limits") or {})
    if field == "requests":
        amounts |= resources.get("requests") or {}
    try:
        # To the API server, null is as good as nothing.
        return parse_resources({resource: amount for resource, amount in amounts.items() if amount is not None})
    except ValueError as error:
        raise InputError(
            Problem("bad quantity", rendered.origin, f"{rendered.identity} {container['name']} resources", str(error))
        ) from error


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {
        key: max(one.get(key, Decimal(0)), other.get(key, Decimal(0))) for key in [*one, *(other.keys() - one.keys())]
    }
