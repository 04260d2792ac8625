"""Priorities as a Pulumi component."""

from __future__ import annotations

import pulumi

from components import priorities
from gpuyard.pulumi.component import Component


class Priorities(Component[None]):
    """The PriorityClasses of an environment."""

    component = "priorities"
    content = staticmethod(priorities.register)
    exposes = {"classes": "PriorityClass"}

    classes: pulumi.Output[list[str]]
