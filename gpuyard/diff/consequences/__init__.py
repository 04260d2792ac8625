"""The table of facts: what follows from a change, by kind of object."""

from gpuyard.diff.consequences import (
    access,
    admission,
    gpu_stack,
    lifecycle,
    network,
    quotas,
    runs,
    storage,
    workloads,
)

FACTS = (
    *runs.FACTS,
    *lifecycle.FACTS,
    *gpu_stack.FACTS,
    *workloads.FACTS,
    *quotas.FACTS,
    *storage.FACTS,
    *access.FACTS,
    *network.FACTS,
    *admission.FACTS,
)
"""In the order in which consequences of one risk are told."""

__all__ = ["FACTS"]
