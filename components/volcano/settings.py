"""What a person may set under `addons: volcano:`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpuyard.model.settings import Settings


class VolcanoSettings(Settings):
    """The gang scheduler.

    preemption: a job may evict jobs of lower priority in its own queue when the cluster is full. A queue that is full
                to its own capability evicts nobody: its next job waits, the one of highest priority first. Pods are
                evicted one by one, so a job that loses some keeps the rest until it is stopped.
    replicas:   of scheduler, controllers and admission each; more than one elects a leader.
    """

    preemption: bool = True
    replicas: Annotated[int, Field(ge=1, le=3)] = 1
