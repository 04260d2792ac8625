"""How the pods of a training job are read off its custom resource."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.manifests import declare
from policies.shared.gangs import REPLICAS, Gang, read_gang, whole_number


def gang(kind: str, replicas: dict[str, Any], api_version: str = "kubeflow.org/v1", **spec: Any) -> Gang | None:
    template = {"spec": {"containers": []}}
    roles = {role: {"replicas": count, "template": template} for role, count in replicas.items()}
    for role in roles.values():
        if role["replicas"] is None:
            del role["replicas"]
    manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "one", "namespace": "vision"},
        "spec": {REPLICAS.get(kind, "pytorchReplicaSpecs"): roles, **spec},
    }
    return read_gang(declare(manifest))


@pytest.mark.parametrize("kind", REPLICAS)
def test_every_kind_has_its_own_field_for_its_pods(kind: str) -> None:
    found = gang(kind, {"Worker": 3})

    assert found
    assert found.counts == "Worker 3 = 3 pods"


def test_replicas_that_are_left_out_are_one() -> None:
    found = gang("TFJob", {"Chief": None, "Worker": 2})

    assert found
    assert found.counts == "Chief 1 + Worker 2 = 3 pods"


def test_workers_of_mpi_that_are_left_out_are_none() -> None:
    found = gang("MPIJob", {"Launcher": None, "Worker": None})

    assert found
    assert found.counts == "Launcher 1 + Worker 0 = 1 pod"


@pytest.mark.parametrize(
    ("kind", "api_version", "replicas"),
    [
        ("Deployment", "apps/v1", {"Worker": 2}),
        ("MPIJob", "kubeflow.org/v2beta1", {"Worker": 2}),
        ("PyTorchJob", "kubeflow.org/v1", {"Worker": "two"}),
        ("PyTorchJob", "kubeflow.org/v1", {}),
    ],
)
def test_what_has_no_pods_to_count_is_no_gang(kind: str, api_version: str, replicas: dict[str, Any]) -> None:
    assert gang(kind, replicas, api_version) is None


@pytest.mark.parametrize(
    ("elastic", "expected"),
    [({"minReplicas": 2, "maxReplicas": 6}, 2), ({"maxReplicas": 6}, 6), ({"minReplicas": 3.0}, 3), ({}, 8)],
)
def test_an_elastic_job_starts_with_its_smallest_size(elastic: dict[str, Any], expected: int) -> None:
    found = gang("PyTorchJob", {"Worker": 8}, elasticPolicy=elastic)

    assert found
    assert found.minimum == expected
    assert [count for _, count in found.members] == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(4, 4), (4.0, 4), (4.5, None), ("4", None), (True, None), (None, None), (float("nan"), None)],
)
def test_whole_number(value: object, expected: int | None) -> None:
    assert whole_number(value) == expected
