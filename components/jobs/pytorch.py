"""PyTorch jobs: PyTorchJob of the training operator, started with torchrun."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

from pydantic import Field

from components.jobs.placement import place
from components.jobs.pod import Framework, check_env, pod_templates
from components.jobs.run import check_name, run, run_policy
from components.jobs.volumes import check_volumes
from gpuyard.manifests import Manifest, Rendered
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job

RESOURCE = "pytorchjobs"

PYTORCH = Framework(
    container="pytorch",
    # A collective that hangs is ended, with a trace of what each rank waited for. The trace survives a restart of the
    # container, because /dev/shm is a volume of the pod.
    env={
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCH_NCCL_ENABLE_MONITORING": "1",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "20000",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/dev/shm/nccl_trace_rank_",
        "TORCH_DIST_INIT_BARRIER": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    },
    # github.com/kubeflow/trainer v1.9.4, pkg/controller.v1/pytorch: envvar.go and master.go
    operated=frozenset(
        {
            "MASTER_ADDR",
            "MASTER_PORT",
            "RANK",
            "WORLD_SIZE",
            "PET_MASTER_ADDR",
            "PET_MASTER_PORT",
            "PET_NNODES",
            "PET_NODE_RANK",
            "PET_NPROC_PER_NODE",
        }
    ),
)


class PyTorchJob(Job):
    """A job of `nodes` equal pods; the first of them is where the others meet."""

    nodes: Annotated[int, Field(ge=1)] = 1

    @cached_property
    def pods(self) -> dict[str, int]:
        return {"master": 1} | ({"worker": self.nodes - 1} if self.nodes > 1 else {})


def pytorch_run(environment: Environment, job: PyTorchJob) -> Iterator[Rendered]:
    """Yield the objects of one run."""
    return run(environment, job, "PyTorchJob", pytorch_spec(environment, job))


def pytorch_spec(environment: Environment, job: PyTorchJob) -> Manifest:
    """Return the spec of the PyTorchJob.

    Without a Master the operator would set no MASTER_ADDR; its replicas are written out, or the webhook refuses them.
    One process for each GPU; a pod without GPUs runs one, where `auto` would start one for each core of the node.
    """
    check_name(environment, job)
    check_env(environment, job, PYTORCH)
    places = place(environment, job)
    check_volumes(environment, job, places)
    templates = pod_templates(environment, job, places, PYTORCH)
    return {
        "nprocPerNode": str(job.gpus or 1),
        "runPolicy": run_policy(environment, job),
        "pytorchReplicaSpecs": {
            role.capitalize(): {
                "replicas": count,
                # Restarted where it stands, with the files of its /dev/shm, up to `retries` times.
                "restartPolicy": "OnFailure",
                "template": templates[role],
            }
            for role, count in job.pods.items()
        },
    }
