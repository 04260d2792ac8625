"""On which pools a DaemonSet has a pod, as far as an environment tells what its nodes look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuyard.diff.state import PoolState
from gpuyard.manifests.data import at

_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Labels that operators put on nodes with GPUs, with values that an environment does not tell."""

_EVERYWHERE = ("kubernetes.io/arch", "kubernetes.io/hostname", "topology.kubernetes.io/")
_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def pools_of(pod: Mapping[str, Any], pools: Iterable[PoolState]) -> list[PoolState]:
    """Return the pools whose nodes accept the pod; what a label that is not known would decide is taken as yes."""
    return [pool for pool in pools if _selected(pod, pool) and _tolerated(pod, pool)]


def nodes_text(pools: Iterable[PoolState]) -> str:
    """Return `24 nodes of pools h100, a100`, or `16 to 32 nodes of pool h100` where the number moves."""
    known = list(pools)
    low, high = sum(pool.nodes_min for pool in known), sum(pool.nodes_max for pool in known)
    number = f"{low} to {high}" if low != high else str(high)
    names = ", ".join(pool.name for pool in known)
    return f"{number} node{'' if high == 1 else 's'} of pool{'' if len(known) == 1 else 's'} {names}"


def _selected(pod: Mapping[str, Any], pool: PoolState) -> bool:
    selector: Mapping[str, str] = pod.get("nodeSelector") or {}
    if not all(_holds(key, "In", [value], pool) for key, value in selector.items()):
        return False
    terms = at(pod, *_REQUIRED)
    return terms is None or any(
        all(_holds(one["key"], one["operator"], one.get("values") or [], pool) for one in term["matchExpressions"])
        for term in terms
        if term.get("matchExpressions")
    )


def _holds(key: str, operator: str, values: list[str], pool: PoolState) -> bool:
    value = pool.labels.get(key)
    if value is None and (key.startswith(_EVERYWHERE) or (pool.gpus and key.startswith(_DISCOVERED))):
        return True
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    # Gt and Lt compare numbers that only the node knows.
    return value is not None


def _tolerated(pod: Mapping[str, Any], pool: PoolState) -> bool:
    tolerations: list[Mapping[str, Any]] = pod.get("tolerations") or []
    return all(any(_tolerates(one, *taint) for one in tolerations) for taint in pool.taints)


def _tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    # Clouds give the GPU taint different values, so that its value is not known.
    return toleration.get("key") == key and (not value or (toleration.get("value") or "") == value)
