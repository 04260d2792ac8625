"""Volcano: gang scheduling, queues with shares, and preemption."""

from __future__ import annotations

from components.volcano.objects import volcano
from components.volcano.settings import VolcanoSettings
from gpuyard.model.registry import Component, Registry


def register(registry: Registry) -> None:
    """Add the add-on `volcano`."""
    component = Component("volcano", settings=VolcanoSettings)
    component.sourced("volcano")(volcano)
    registry.add(component)
