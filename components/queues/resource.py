"""Shared queues as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import queues
from gpuyard.pulumi.component import Component


class Queues(Component[None]):
    """The queues beside the teams' own."""

    component = "queues"
    content = staticmethod(queues.register)
    exposes = {"queues": "Queue"}

    queues: pulumi.Output[list[str]]
