"""TensorFlow jobs: TFJob of the training operator, with parameter servers on CPU nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, model_validator

from components.jobs.placement import place
from components.jobs.pod import Framework, check_env, pod_templates
from components.jobs.run import check_name, run, run_policy
from components.jobs.volumes import check_volumes
from gpuyard.manifests import Manifest, Rendered
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job
from gpuyard.model.settings import Settings

RESOURCE = "tfjobs"

TENSORFLOW = Framework(container="tensorflow", operated=frozenset({"TF_CONFIG"}))

_KEYS = {"chief": "Chief", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"}
"""Roles as the operator spells them; it ignores any other spelling without a word."""


class Replicas(Settings):
    """Number of pods of each role. Chief and workers hold the GPUs; parameter servers and the evaluator none."""

    chief: Annotated[int, Field(ge=0, le=1)] = 0
    worker: Annotated[int, Field(ge=0)] = 0
    ps: Annotated[int, Field(ge=0)] = 0
    evaluator: Annotated[int, Field(ge=0, le=1)] = 0

    @model_validator(mode="after")
    def somebody_trains(self) -> Replicas:
        if not self.chief + self.worker:
            raise ValueError("a job needs a chief or a worker")
        return self


class TensorFlowJob(Job):
    """A job of pods in roles; `gpus` is of the chief and of each worker."""

    replicas: Replicas

    @cached_property
    def pods(self) -> dict[str, int]:
        return {role: count for role in _KEYS if (count := getattr(self.replicas, role))}

    @property
    def cpu_roles(self) -> frozenset[str]:
        return frozenset({"ps", "evaluator"})


def tensorflow_run(environment: Environment, job: TensorFlowJob) -> Iterator[Rendered]:
    """Yield the objects of one run."""
    return run(environment, job, "TFJob", tensorflow_spec(environment, job))


def tensorflow_spec(environment: Environment, job: TensorFlowJob) -> Manifest:
    """Return the spec of the TFJob.

    Restarts are `OnFailure`: `ExitCode` would end the job at the first Python error, which exits with 1, and would
    recreate a pod that was killed without ever counting it against `retries`.
    Without a chief the job is done when all workers are: the first one may be done while others still write.
    """
    check_name(environment, job)
    check_env(environment, job, TENSORFLOW)
    places = place(environment, job)
    check_volumes(environment, job, places)
    templates = pod_templates(environment, job, places, TENSORFLOW)
    spec: dict[str, Any] = {"runPolicy": run_policy(environment, job)}
    if not job.replicas.chief:
        spec["successPolicy"] = "AllWorkers"
    spec["tfReplicaSpecs"] = {
        _KEYS[role]: {
            "replicas": count,
            "restartPolicy": "OnFailure",
            "template": templates[role],
        }
        for role, count in job.pods.items()
    }
    return spec
