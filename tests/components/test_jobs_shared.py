"""Jobs share equal parts, and each is still the job that it would be alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from components.jobs.pytorch import PyTorchJob, pytorch_run
from components.jobs.tensorflow import TensorFlowJob, tensorflow_run
from gpuyard.errors import InputError
from gpuyard.manifests.data import unshared
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job
from tests.components.clusters import KINDS, cluster

BASE = {"name": "a", "team": "vision", "kind": "pytorch", "image": "registry.acme.com/a:1", "gpus": 8, "nodes": 2}
TF = {"kind": "tensorflow", "nodes": None, "replicas": {"chief": 1, "worker": 2, "ps": 1}}

# Each differs from the one before in one thing that decides about a part.
JOBS: list[dict[str, Any]] = [
    {"pools": ["h100"]},
    {"pools": ["a100"]},
    {"pools": ["h100"], "nodes": 1},
    {"pools": ["h100"], "nodes": 1, "gpus": 4},
    {"gpus": 1, "nodes": 1},
    {"gpus": 1, "nodes": 1, "priority": "batch"},
    {"gpus": 1, "nodes": 1, "cpu": 3},
    {"gpus": 1, "nodes": 1, "memory": "40Gi"},
    {"gpus": 0, "nodes": 1},
    {"gpus": 0, "nodes": 1, "pools": ["cpu"]},
    {"data": ["imagenet"]},
    {"data": ["imagenet"], "memory": "40Gi"},
    {"data": ["imagenet"], "checkpoint": {"size": "10Gi"}},
    {"checkpoint": {"size": "10Gi"}},
    {"checkpoint": {"size": "10Gi"}, "name": "b"},
    {"user": 1000},
    {"user": 2000},
    {"env": {"NCCL_DEBUG": "INFO"}},
    {"env": {"NCCL_DEBUG": "WARN", "MODE": "fast"}},
    TF,
    TF | {"replicas": {"worker": 3}},
]


def manifests(environment: Environment, job: Job) -> list[dict[str, Any]]:
    if isinstance(job, TensorFlowJob):
        return [one.manifest for one in tensorflow_run(environment, job)]
    assert isinstance(job, PyTorchJob)
    return [one.manifest for one in pytorch_run(environment, job)]


def read(job: dict[str, Any]) -> Job:
    written = {key: value for key, value in {**BASE, **job}.items() if value is not None}
    return KINDS[written["kind"]].model_validate(written)


def test_a_job_among_others_is_the_job_alone() -> None:
    together = cluster(team={"pull_secrets": ["registry"]})
    first = [manifests(together, read(job)) for job in JOBS]
    again = [manifests(together, read(job)) for job in reversed(JOBS)]

    for job, one, other in zip(JOBS, first, reversed(again), strict=True):
        alone = manifests(cluster(team={"pull_secrets": ["registry"]}), read(job))
        assert one == other == alone, job


def test_jobs_of_one_pool_share_what_is_equal() -> None:
    environment = cluster()
    pods: list[Any] = []
    for name in ("a", "b"):
        (run,) = manifests(environment, read({"name": name, "pools": ["h100"], "data": ["imagenet"]}))
        replicas = run["spec"]["pytorchReplicaSpecs"]
        assert replicas["Master"]["template"] is replicas["Worker"]["template"]
        pods.append(replicas["Master"]["template"]["spec"])

    for part in ("affinity", "tolerations", "volumes"):
        assert pods[0][part] is pods[1][part]
    for part in ("resources", "securityContext", "volumeMounts"):
        assert pods[0]["containers"][0][part] is pods[1]["containers"][0][part]


def test_a_copy_to_change_shares_nothing() -> None:
    (run,) = manifests(cluster(), read({"pools": ["h100"]}))
    changed = unshared(run)
    assert changed == run
    changed["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {"a": "b"}

    assert "nodeSelector" not in changed["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert "nodeSelector" not in run["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]


def test_a_part_that_cannot_be_made_is_refused_for_every_job() -> None:
    environment = cluster()
    before = copy.deepcopy(environment.shared)
    for name in ("a", "b"):
        with pytest.raises(InputError, match="pools with different interfaces"):
            manifests(environment, read({"name": name, "pools": ["h100", "a10g"]}))
    assert environment.shared == before
