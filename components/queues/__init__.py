"""Volcano queues beside the teams' own."""

from __future__ import annotations

from collections.abc import Iterator

from components.queues.queue import format_amounts, queue, quota_amounts, team_quota
from gpuyard.manifests import Lifecycle, Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Component, Registry

__all__ = ["component", "format_amounts", "queue", "quota_amounts", "register", "shared_queues", "team_quota"]

component = Component("queues")


@component.part
def shared_queues(environment: Environment, settings: None) -> Iterator[Rendered]:
    """Yield one Queue for each entry of `scheduling.queues`, where Volcano places the gangs."""
    if environment.scheduling.gang != "volcano":
        return
    for name, shared in environment.scheduling.queues.items():
        path = ("scheduling", "queues", name)
        yield declare(
            queue(environment, name, shared.quota, shared.share, path),
            origin=environment.origin(*path),
            lifecycle=Lifecycle(protect=environment.cluster.protect),
        )


def register(registry: Registry) -> None:
    """Add this component."""
    registry.add(component)
