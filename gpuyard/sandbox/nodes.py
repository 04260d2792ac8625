"""The environment's pools as simulated nodes."""

from __future__ import annotations

from gpuyard.manifests import Manifest
from gpuyard.manifests.quantity import format_resource
from gpuyard.model.environment import GPU, POOL_LABEL, Environment, Pool

FAKE = "kwok.x-k8s.io/node"
SIMULATED = "sandbox.gpuyard.dev/simulated"


def nodes(environment: Environment, most: int) -> list[Manifest]:
    """Return the nodes of every pool: as many as its minimum, at least one and at most `most`."""
    return [
        node(f"{name}-{index}", name, pool)
        for name, pool in environment.pools.items()
        for index in range(min(most, max(1, pool.nodes.min)))
    ]


def node(name: str, pool_name: str, pool: Pool) -> Manifest:
    """Return one node that offers what the pool's machine offers; KWOK keeps it Ready and runs its pods."""
    offer = {resource: format_resource(resource, amount) for resource, amount in sorted(pool.node.items())}
    offer |= {"pods": "110", "ephemeral-storage": "1Ti"}
    taints = [taint.model_dump(exclude_defaults=False) for taint in pool.taints]
    if pool.machine.gpus:
        # What the GPU Operator's documentation and the managed services put on GPU nodes, against CPU work there.
        taints.append({"key": GPU, "value": "present", "effect": "NoSchedule"})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE: "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
                SIMULATED: "true",
                POOL_LABEL: pool_name,
                **pool.selector,
            },
        },
        "spec": {"taints": taints},
        "status": {"capacity": offer, "allocatable": offer},
    }
