"""A training pod ends only after all pods of its job ran at the same time, whoever scheduled them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.sandbox.pods import expected_pods, run_length, to_end, volume
from gpuyard.sandbox.stages import ENDS_AFTER, RUN_FOR


def pod(name: str, phase: str = "Running", *, role: str = "worker", told: bool = False, **metadata: Any) -> Any:
    annotations = {ENDS_AFTER: "4s"} if told else {}
    labels = {"training.kubeflow.org/replica-type": role}
    metadata = {"name": name, "labels": labels, "annotations": annotations, **metadata}
    return {"metadata": metadata, "status": {"phase": phase}}


def names(pods: list[Any]) -> list[str]:
    return [one["metadata"]["name"] for one in pods]


def test_half_a_job_never_ends() -> None:
    assert to_end([pod("a"), pod("b"), pod("c", "Pending")], expected=3) == []
    assert to_end([pod("a"), pod("b")], expected=3) == []


def test_a_whole_job_ends() -> None:
    assert names(to_end([pod("a"), pod("b"), pod("c")], expected=3)) == ["a", "b", "c"]


def test_no_pod_is_told_twice() -> None:
    assert names(to_end([pod("a", told=True), pod("b"), pod("c")], expected=3)) == ["b", "c"]


def test_a_pod_that_ended_after_the_rendezvous_was_there() -> None:
    assert names(to_end([pod("a", "Succeeded", told=True), pod("b")], expected=2)) == ["b"]


def test_a_pod_that_ended_by_itself_was_not_at_the_rendezvous() -> None:
    assert to_end([pod("a", "Succeeded"), pod("b")], expected=2) == []


def test_a_pod_on_its_way_out_does_not_count() -> None:
    leaving = pod("a", deletionTimestamp="2026-01-01T00:00:00Z")
    assert to_end([leaving, pod("b")], expected=2) == []


def test_parameter_servers_never_end_by_themselves() -> None:
    assert names(to_end([pod("chief", role="chief"), pod("ps", role="ps")], expected=2)) == ["chief"]


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"tfReplicaSpecs": {"Chief": {"replicas": 1}, "Worker": {"replicas": 3}, "PS": {}}}, 5),
        ({"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 7}}, "nprocPerNode": "8"}, 8),
    ],
)
def test_pods_of_a_job(spec: dict[str, Any], count: int) -> None:
    assert expected_pods({"spec": spec}) == count


def test_how_long_a_job_runs() -> None:
    job = {"metadata": {"annotations": {RUN_FOR: "9s"}}}
    assert run_length({"metadata": {}}, pod("a"), "4s") == "4s"
    assert run_length(job, pod("a"), "4s") == "9s"
    assert run_length(job, pod("a", annotations={RUN_FOR: "2s"}), "4s") == "2s"


def test_a_volume_is_bound_to_its_claim_alone() -> None:
    claim = {
        "metadata": {"name": "data", "namespace": "vision", "uid": "17"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "5Gi"}},
            "storageClassName": "scratch",
        },
    }
    made = volume(claim)
    assert made["metadata"]["name"] == "sandbox-17"
    assert made["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": "data",
        "namespace": "vision",
        "uid": "17",
    }
    assert made["spec"]["capacity"] == {"storage": "5Gi"}
    assert (made["spec"]["storageClassName"], made["spec"]["accessModes"]) == ("scratch", ["ReadWriteMany"])
