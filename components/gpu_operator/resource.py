"""The GPU Operator as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import gpu_operator
from components.gpu_operator.settings import GpuOperatorSettings
from gpuyard.pulumi.component import Component


class GpuOperator(Component[GpuOperatorSettings]):
    """The GPU Operator: its namespace and the ClusterPolicy that it follows."""

    component = "gpu-operator"
    content = staticmethod(gpu_operator.register)
    exposes = {"namespaces": "Namespace", "policies": "ClusterPolicy"}

    namespaces: pulumi.Output[list[str]]
    policies: pulumi.Output[list[str]]
