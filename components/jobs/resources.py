"""What one pod of a job asks for."""

from __future__ import annotations

from components.jobs.placement import GIB, MIB, Placement, round_down
from gpuyard.manifests import Manifest
from gpuyard.manifests.quantity import format_bytes, format_count, format_resource, parse_quantity
from gpuyard.model.environment import GPU
from gpuyard.model.jobs import Job


def resources(job: Job, placement: Placement) -> Manifest:
    """Return requests and limits of the training container.

    GPUs, interfaces and huge pages cannot be shared, so limit and request are one number. Memory is the same, or the
    node's memory could be promised twice. CPU has no limit: it would throttle data loaders while cores are idle.
    `cpu` and `memory` of the job are those of every pod.
    """
    cpu, memory = placement.share
    fixed = {"memory": job.memory or format_bytes(memory)}
    if placement.gpus:
        fixed[GPU] = str(placement.gpus)
    if placement.fabric:
        # Pools of one placement have the same interfaces.
        offer = next(iter(placement.pools.values())).fabric_resources
        fixed |= {name: format_resource(name, amount) for name, amount in offer.items()}
    return {"requests": {"cpu": job.cpu or format_count(cpu), **fixed}, "limits": fixed}


def shared_memory(job: Job, placement: Placement) -> str:
    """Return the size of /dev/shm: 8 GiB for each GPU, at most a quarter of the pod's memory, which it counts in.

    The 64 MiB that a container has otherwise end in a bus error of NCCL or of a data loader.
    """
    memory = parse_quantity(job.memory) if job.memory else placement.share[1]
    return format_bytes(round_down(min(8 * GIB * max(placement.gpus, 1), memory / 4), MIB, MIB))
