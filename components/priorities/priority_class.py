"""The PriorityClass of one entry under `scheduling.priorities`."""

from __future__ import annotations

from gpuyard.manifests import Manifest
from gpuyard.model.environment import Priority


def priority_class(name: str, priority: Priority) -> Manifest:
    """Return a PriorityClass that only pods which name it have, and that may preempt lower ones."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "gpuyard"}},
        "value": priority.value,
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": f"Training jobs of priority {name}; those that name no pool prefer the {priority.prefer} GPUs.",
    }
