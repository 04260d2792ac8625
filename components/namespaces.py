"""Namespaces: the Pod Security level of any, and those that an add-on brings for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from gpuyard.errors import Origin
from gpuyard.manifests import Lifecycle, Rendered, declare
from gpuyard.model.environment import Environment

Mode = Literal["enforce", "audit", "warn"]
Level = Literal["privileged", "baseline", "restricted"]


def pod_security(environment: Environment, levels: Mapping[Mode, Level]) -> dict[str, str]:
    """Return the labels that hold a namespace to Pod Security levels, as the cluster's own version defines them."""
    labels: dict[str, str] = {}
    for mode, level in levels.items():
        labels[f"pod-security.kubernetes.io/{mode}"] = level
        labels[f"pod-security.kubernetes.io/{mode}-version"] = f"v{environment.cluster.kubernetes}"
    return labels


def addon_namespace(
    environment: Environment,
    name: str,
    level: Level,
    origin: Origin | None,
    *,
    critical_pods: int = 0,
) -> Iterator[Rendered]:
    """Yield a Namespace that holds its pods to a Pod Security level.

    critical_pods: how many pods of it may have a system-*-critical priority; on GKE such pods need a ResourceQuota that
    names these priorities outside kube-system, elsewhere they need nothing.
    """
    labels = pod_security(environment, {"enforce": level, "audit": level, "warn": level})
    yield declare(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
        origin=origin,
        lifecycle=Lifecycle(protect=environment.cluster.protect),
    )
    if critical_pods and environment.cluster.provider == "gke":
        # Without it the pods are refused with no more than "insufficient quota to match these scopes".
        critical = {
            "operator": "In",
            "scopeName": "PriorityClass",
            "values": ["system-cluster-critical", "system-node-critical"],
        }
        yield declare(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "critical-pods", "namespace": name},
                "spec": {"hard": {"pods": str(critical_pods)}, "scopeSelector": {"matchExpressions": [critical]}},
            },
            origin=origin,
        )
