"""Volcano as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import volcano
from components.volcano.settings import VolcanoSettings
from gpuyard.pulumi.component import Component


class Volcano(Component[VolcanoSettings]):
    """The gang scheduler: its namespace, its three Deployments, and the queues of its own."""

    component = "volcano"
    content = staticmethod(volcano.register)
    exposes = {"namespaces": "Namespace", "deployments": "Deployment", "queues": "Queue"}

    namespaces: pulumi.Output[list[str]]
    deployments: pulumi.Output[list[str]]
    queues: pulumi.Output[list[str]]
