"""What every run has, whatever its kind: its name, its limits, its gang, and how it lives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from components.jobs.pod import labels
from components.jobs.refuse import refusal
from components.jobs.volumes import checkpoint_claim
from gpuyard.manifests import RUN, Manifest, Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import HASH_LENGTH, ROOM_FOR_INDEX, Job
from gpuyard.model.settings import seconds


def run(environment: Environment, job: Job, kind: str, spec: Manifest) -> Iterator[Rendered]:
    """Yield the objects of one run of a job: the volume of its checkpoints and its custom resource."""
    yield from checkpoint_claim(environment, job)
    manifest: Manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": job.object_name, "namespace": job.team, "labels": labels(job)},
        "spec": spec,
    }
    yield declare(
        manifest,
        id=f"{kind}/{job.team}/{job.name}",
        layer="jobs",
        origin=environment.origin("jobs", job.name),
        lifecycle=RUN,
    )


def run_policy(environment: Environment, job: Job) -> Manifest:
    """Return the limits of a run and its gang.

    `ttlSecondsAfterFinished` is left out: it deletes the object, and with it the record of the run.
    """
    key = ("policy", job.retries, job.time_limit, job.queue or job.team, job.priority, sum(job.pods.values()))
    return environment.share(key, lambda: _run_policy(environment, job))


def _run_policy(environment: Environment, job: Job) -> Manifest:
    policy: dict[str, Any] = {"cleanPodPolicy": "Running", "backoffLimit": backoff_limit(job)}
    if job.time_limit:
        policy["activeDeadlineSeconds"] = seconds(job.time_limit)
    if environment.scheduling.gang == "volcano":
        policy["schedulingPolicy"] = {"minAvailable": sum(job.pods.values()), "queue": job.queue or job.team}
        if job.priority:
            policy["schedulingPolicy"]["priorityClass"] = job.priority
    return policy


def backoff_limit(job: Job) -> int:
    """Return the number of container restarts at which a run has failed.

    The operator adds up the restarts of all pods and fails the job when the sum reaches the limit
    (github.com/kubeflow/trainer v1.9.4, pkg/core/job.go). When one pod of a gang dies all of them restart, so that
    `retries` restarts of the gang are `retries` for each pod, and the next one is too many.
    """
    return job.retries * sum(job.pods.values()) + 1 if job.retries else 0


def check_name(environment: Environment, job: Job) -> None:
    """Raise InputError when a pod's name would be longer than a DNS label: `<job>-<run>-<role>-<number>`."""
    room = _room(tuple(job.pods.items()))
    if len(job.name) > room:
        raise refusal(
            environment,
            job,
            ("name",),
            "name too long",
            f"{len(job.name)} characters; its pods add {1 + HASH_LENGTH} for the run and "
            f"{63 - 1 - HASH_LENGTH - room} for role and number, and their names end at 63",
            f"use at most {room} characters",
        )


@cache
def _room(pods: tuple[tuple[str, int], ...]) -> int:
    """Return the characters of a job's name that its pods, as (role, number), leave for it."""
    suffixes = [f"-{role}-{count - 1}" for role, count in pods]
    return 63 - 1 - HASH_LENGTH - max(ROOM_FOR_INDEX, *map(len, suffixes))
