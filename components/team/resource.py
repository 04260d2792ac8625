"""Teams as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import team
from gpuyard.pulumi.component import Component


class Teams(Component[None]):
    """The teams of an environment: their namespaces, queues and dataset volumes."""

    component = "team"
    content = staticmethod(team.register)
    exposes = {"namespaces": "Namespace", "queues": "Queue", "claims": "PersistentVolumeClaim"}

    namespaces: pulumi.Output[list[str]]
    queues: pulumi.Output[list[str]]
    claims: pulumi.Output[list[str]]
