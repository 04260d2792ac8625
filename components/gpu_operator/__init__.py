"""The GPU Operator: driver, container toolkit, device plugin and metrics of GPU nodes."""

from __future__ import annotations

from components.gpu_operator.objects import chart, cluster_policy, namespace
from components.gpu_operator.settings import GpuOperatorSettings
from gpuyard.model.registry import Component, Registry


def register(registry: Registry) -> None:
    """Add the add-on `gpu-operator`."""
    component = Component("gpu-operator", settings=GpuOperatorSettings)
    component.part(namespace)
    component.sourced("gpu-operator")(chart)
    component.pinned("gpu-operator")(cluster_policy)
    registry.add(component)
