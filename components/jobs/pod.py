"""The pod template that every kind of job shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from components.jobs.placement import Placement, affinity
from components.jobs.refuse import refusal
from components.jobs.resources import resources
from components.jobs.volumes import CHECKPOINTS, checkpoint_volume, mounts, volumes
from gpuyard.manifests import Manifest
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job, SecretKey

SERVICE_ACCOUNT = "training"
"""Made by component `team` in every team's namespace."""

SPOT_NOTICE = {"eks": 120}
"""Seconds between the notice and the loss of a spot node; other providers give 30."""

ANNOTATIONS = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Of pods: a consolidated node or a smaller cluster is worth less than a run."""


@dataclass(frozen=True)
class Framework:
    """What a training framework wants of its pods.

    container: the name that the operator looks for.
    env:       set in pods with GPUs, unless the job sets it.
    operated:  variables that the operator sets after the job's own, so that a job cannot.
    """

    container: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    operated: frozenset[str] = frozenset()


def check_env(environment: Environment, job: Job, framework: Framework) -> None:
    """Raise InputError for a variable that the operator overrides."""
    for name in job.env:
        if name in framework.operated:
            raise refusal(
                environment,
                job,
                ("env", name),
                "variable of the operator",
                f"the training operator sets {name} itself, after the job's own variables",
                f"take {name} out",
            )


def pod_templates(
    environment: Environment, job: Job, places: Mapping[str, Placement], framework: Framework
) -> dict[str, Manifest]:
    """Return the template of each role. Roles that run in one place have one and the same."""
    templates: dict[int, Manifest] = {}
    for placement in places.values():
        if id(placement) not in templates:
            templates[id(placement)] = _pod_template(environment, job, placement, framework)
    return {role: templates[id(placement)] for role, placement in places.items()}


class _Blank(NamedTuple):
    """What many pods have in common: all that does not follow from what a job is called and what it runs.

    spec:      with an empty list for the containers.
    container: without name, image, command, arguments and variables.
    env:       the variables that follow from where a pod runs, by name.
    """

    spec: Manifest
    container: Manifest
    env: dict[str, Manifest]


def _pod_template(environment: Environment, job: Job, placement: Placement, framework: Framework) -> Manifest:
    """Return the template of pods in one place. The operator fills in the restart policy."""
    size = job.cpu, job.memory, job.user, job.priority, bool(job.checkpoint), *job.data
    key = ("pod", id(placement), framework.container, job.team, *size)
    blank = environment.share(key, lambda: _blank(environment, job, placement, framework))
    spec = {**blank.spec, "containers": [_container(environment, job, blank, framework)]}
    if placement.key:
        spec["affinity"] = affinity(job, placement)
    if job.checkpoint:
        spec["volumes"] = [*blank.spec["volumes"], checkpoint_volume(job)]
    annotations = environment.share("annotations", lambda: dict(ANNOTATIONS))
    return {"metadata": {"labels": labels(job), "annotations": annotations}, "spec": spec}


def labels(job: Job) -> dict[str, str]:
    """Return the labels of a job and of its pods."""
    return {
        "app.kubernetes.io/managed-by": "gpuyard",
        "gpuyard.dev/team": job.team,
        "gpuyard.dev/job": job.name,
    }


def _blank(environment: Environment, job: Job, placement: Placement, framework: Framework) -> _Blank:
    spec: dict[str, Any] = {
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _pod_security(job),
        "affinity": placement.affinity,
        "containers": [],
        "volumes": volumes(job, placement),
    }
    if environment.scheduling.gang == "volcano":
        spec["schedulerName"] = "volcano"
    if job.priority:
        spec["priorityClassName"] = job.priority
    if placement.tolerations:
        spec["tolerations"] = placement.tolerations
    if secrets := environment.teams[job.team].pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    if job.checkpoint:
        spec["terminationGracePeriodSeconds"] = _grace_period(environment, placement)
    container = {
        "resources": resources(job, placement),
        "securityContext": placement.container_security,
        "volumeMounts": mounts(environment, job),
    }
    return _Blank(spec, container, _platform_env(job, placement, framework))


def _container(environment: Environment, job: Job, blank: _Blank, framework: Framework) -> Manifest:
    container: dict[str, Any] = {"name": framework.container, "image": job.image}
    if job.command:
        container["command"] = list(job.command)
    if job.args:
        container["args"] = list(job.args)
    # Ours first, in the job's words where it sets them too.
    written = {name: _written(environment, name, value) for name, value in job.env.items()}
    if env := blank.env | written:
        container["env"] = list(env.values())
    return container | blank.container


def _written(environment: Environment, name: str, value: str | SecretKey) -> Manifest:
    """Return a variable as the job sets it. All jobs of a team read a few keys of Secrets."""
    if isinstance(value, str):
        return {"name": name, "value": value}
    source = {"name": value.secret, "key": value.key}
    return environment.share(
        ("variable", name, value.secret, value.key), lambda: {"name": name, "valueFrom": {"secretKeyRef": source}}
    )


def _platform_env(job: Job, placement: Placement, framework: Framework) -> dict[str, Manifest]:
    env: dict[str, str] = {}
    if placement.gpus:
        env |= {"NCCL_DEBUG": "WARN"} | dict(framework.env)
    if placement.fabric:
        env |= placement.fabric.env
    if job.checkpoint:
        env["CHECKPOINT_DIR"] = CHECKPOINTS
    return {name: {"name": name, "value": value} for name, value in env.items()}


def _pod_security(job: Job) -> Manifest:
    context: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if job.user:
        # A volume of many files is not walked again for every pod.
        context |= {
            "runAsUser": job.user,
            "runAsNonRoot": True,
            "fsGroup": job.user,
            "fsGroupChangePolicy": "OnRootMismatch",
        }
    return context


def _grace_period(environment: Environment, placement: Placement) -> int:
    """Return the seconds a pod has to save its work; a spot node does not wait longer than its notice."""
    if any(pool.capacity == "spot" for pool in placement.pools.values()):
        return SPOT_NOTICE.get(environment.cluster.provider, 30)
    return 600
