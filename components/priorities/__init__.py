"""PriorityClasses: which job goes first, and which may take the place of another."""

from __future__ import annotations

from collections.abc import Iterator

from components.priorities.priority_class import priority_class
from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Component, Registry

__all__ = ["component", "priority_class", "priority_classes", "register"]

component = Component("priorities")


@component.part
def priority_classes(environment: Environment, settings: None) -> Iterator[Rendered]:
    """Yield one PriorityClass for each entry of `scheduling.priorities`."""
    for name, priority in environment.scheduling.priorities.items():
        origin = environment.origin("scheduling", "priorities", name)
        if name.startswith("system-"):
            raise InputError(
                Problem(
                    "reserved name",
                    origin,
                    f"scheduling.priorities.{name}",
                    "Kubernetes keeps priority names that start with system- for itself",
                    "choose another name",
                )
            )
        yield declare(priority_class(name, priority), origin=origin)


def register(registry: Registry) -> None:
    """Add this component."""
    registry.add(component)
